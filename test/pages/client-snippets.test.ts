/** The programs of a client hold its values as text, whatever they are, and never a secret. */
import { execFileSync } from 'node:child_process';
import { runInNewContext } from 'node:vm';
import { expect } from 'chai';
import { clientSnippets, type SnippetValues } from '../../src/pages/oauth-clients/snippets.ts';
import { startSeeded } from '../support/seeded.ts';
import { signedIn } from './signed-in-person.ts';

const VALUES = {
  issuer: 'https://auth.example.com',
  clientId: 'gate_ci_0123456789abcdefghijkl',
  redirectUri: 'https://partner.example/callback',
};

const codeOf = (name: string, values: Partial<SnippetValues> = {}): string =>
  clientSnippets({ ...VALUES, ...values }).find((snippet) => snippet.name === name)?.code ?? '';

/** What stands between `before` and the end of its line. */
const lineAfter = (code: string, before: string): string =>
  code.split(before)[1]?.split('\n')[0]?.replace(/,$/, '') ?? '';

describe('the programs of a client', () => {
  it('any value is one string of its language', () => {
    const value = `it's "$(id)" \`id\` \\' \\" \\ \${HOME} %s é \u2028 #`;
    const inNode = lineAfter(codeOf('Node', { clientId: value }), 'client.discovery(\n');
    expect(inNode).to.equal(`  new URL('https://auth.example.com')`);
    const literal = lineAfter(
      codeOf('Node', { clientId: value }),
      `'https://auth.example.com'),\n`,
    );
    expect(runInNewContext(literal)).to.equal(value);
    expect(lineAfter(codeOf('Python', { clientId: value }), 'OAuth2Session(\n')).to.equal(
      `  ${literal}`,
    );
    const inShell = lineAfter(codeOf('curl', { clientId: value }), 'client_id=');
    const printed = execFileSync('bash', ['-c', `printf %s ${inShell}`], { encoding: 'utf8' });
    expect(printed).to.equal(value);
  });

  it('a redirect URI goes through the shell percent-encoded', () => {
    const redirectUri = "https://partner.example/it's/(a)!;$(id)?y=%22";
    const written = lineAfter(codeOf('curl', { redirectUri }), 'redirect_uri=').split(' ')[0] ?? '';
    expect(written).to.match(/^'[A-Za-z0-9%._~-]+'$/);
    expect(decodeURIComponent(written.slice(1, -1))).to.equal(redirectUri);
  });

  it('plain http is allowed for a loopback issuer only', () => {
    const insecure = /allowInsecureRequests|INSECURE_TRANSPORT/;
    for (const name of ['Node', 'Python']) {
      expect(codeOf(name)).not.to.match(insecure);
      expect(codeOf(name, { issuer: 'http://localhost:3000' })).to.match(insecure);
    }
  });

  describe('on the page of the client', () => {
    const on = startSeeded();

    it('are those of clients with a secret and a redirect URI', async () => {
      const owner = await signedIn(on.service, on.seeded.other);
      const { clients } = on.service;
      const shown: Record<string, boolean> = {};
      for (const kind of ['confidential', 'public', 'machine'] as const) {
        const redirectUris = kind === 'machine' ? [] : [VALUES.redirectUri];
        const ownerAccountId = on.seeded.other.accountId;
        const draft = { kind, name: kind, redirectUris, isNative: false, ownerAccountId };
        const { client, secret } = await clients.add(draft);
        const { html } = await owner.get(`/profile/oauth-clients/${client.id}`);
        shown[kind] = html.includes('The flow with curl');
        if (secret !== undefined) expect(html).not.to.include(secret);
        if (shown[kind]) {
          expect(html).to.include(`issuer=&#39;${on.issuer}&#39;`);
          expect(html).to.include(`client_id=&#39;${client.id}&#39;`);
        }
      }
      expect(shown).to.deep.equal({ confidential: true, public: false, machine: false });
    });
  });
});
