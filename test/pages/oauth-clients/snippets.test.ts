/** Example programs of a client contain any value as a string literal, and never a secret. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { runInNewContext } from 'node:vm';
import { expect } from 'chai';
import { clientSnippets, listensAt, type ProgramValues } from '../../../src/pages/oauth-clients/programs.ts';

const TEMPLATES = new URL('../../../views/programs/', import.meta.url);

const VALUES = {
  issuer: 'https://auth.example.com',
  clientId: 'gate_ci_0123456789abcdefghijkl',
  redirectUri: 'http://127.0.0.1:4000/callback',
  api: undefined,
};

const codeOf = (name: string, values: Partial<ProgramValues> = {}): string =>
  clientSnippets({ ...VALUES, ...values }).find((snippet) => snippet.name === name)?.code ?? '';

/** Returns the rest of the line after `before`. */
const lineAfter = (code: string, before: string): string =>
  code.split(before)[1]?.split('\n')[0]?.replace(/,$/, '') ?? '';

describe('example programs for a client escape all values and use only safe addresses', () => {
  it('example programs quote every value as a string literal of their language', () => {
    const value = `it's "$(id)" \`id\` \\' \\" \\ \${HOME} %s é \u2028 #`;
    const api = { graphqlUrl: 'https://api.example.com', exampleQuery: value };
    const body = JSON.stringify({ query: value });
    const nodeLiteral = lineAfter(codeOf('Node', { api }), '  body: ');
    expect(runInNewContext(nodeLiteral)).to.equal(body);
    expect(codeOf('Python', { api })).to.include(`data=${nodeLiteral}.encode()`);
    const shellLiteral = codeOf('curl', { api }).split('--data ')[1]?.split(' \\\n')[0];
    const printed = execFileSync('bash', ['-c', `printf %s ${shellLiteral}`], { encoding: 'utf8' });
    expect(printed).to.equal(body);
  });

  it('templates of example programs escape every value that a client or the operator chooses', () => {
    const constant = /^(preparation|comment|port|paths\.\w+|host === '::1' \? 'AF_INET6' : 'AF_INET')$/;
    const files = readdirSync(TEMPLATES);
    expect(files).to.have.length(clientSnippets(VALUES).length + 1);
    for (const file of files) {
      const source = readFileSync(new URL(file, TEMPLATES), 'utf8');
      for (const [, printed = ''] of source.matchAll(/<%-\s*(.*?)\s*-?%>/gs)) {
        expect(printed, file).to.match(constant);
      }
    }
  });

  it('example programs allow plain http only for a loopback issuer', () => {
    const insecure = /allowInsecureRequests|INSECURE_TRANSPORT/;
    for (const name of ['Node', 'Python']) {
      expect(codeOf(name)).not.to.match(insecure);
      expect(codeOf(name, { issuer: 'http://localhost:3000' })).to.match(insecure);
    }
  });

  it('example programs listen only on loopback redirect URIs with an unprivileged port', () => {
    const listening = ['http://127.0.0.1:4000/', 'http://localhost:1024/a/b', 'http://[::1]:4000/x'];
    expect(listening.map((uri) => listensAt(uri)?.host)).to.deep.equal(['127.0.0.1', 'localhost', '::1']);
    for (const uri of [
      'https://127.0.0.1:4000/',
      'http://127.0.0.1/',
      'http://127.0.0.1:80/',
      'http://127.0.0.1:4000',
      'http://127.0.0.1:4000/?a=b',
      'http://127.0.0.1.example:4000/',
    ]) {
      expect(listensAt(uri), uri).to.equal(undefined);
    }
  });
});
