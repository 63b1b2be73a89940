/** Each row of the guide compiles in strict TypeScript, and answers as documented. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import { atEndOfFile } from '../../../test/support/end-of-run.ts';
import { ask } from '../../../test/support/oauth.ts';
import { temporaryDirectory } from '../../../test/support/temporary-directory.ts';
import { ROWS } from './rows.ts';
import { compile, fileOf, PRESENT, writeRows } from './rows-project.ts';
import { API, answering, startStandIn, TOKEN } from './stand-in.ts';

const GUIDE = readFileSync(path.join(import.meta.dirname, '../../../docs/graphql-api.md'), 'utf8');

describe('the rows of the guide', () => {
  const project = temporaryDirectory('rows');
  before(() => writeRows(project, ['express', 'sse', 'yoga']));

  it('the programs contain what the guide says', () => {
    const guide = GUIDE.replaceAll(/\s+/g, ' ');
    for (const [name, { guide: texts, code }] of Object.entries(ROWS)) {
      for (const text of texts) {
        expect(guide, name).to.include(`\`${text}`);
        expect(code, name).to.include(text);
      }
    }
  });

  it('each row of the guide compiles in strict TypeScript 7', () => compile(PRESENT, project));

  it('import and require give the same names and values', async () => {
    const lib = path.join(project, 'node_modules/gatehouse/lib');
    const required = createRequire(import.meta.url)(path.join(lib, 'resource-server.js'));
    const imported = await import(pathToFileURL(path.join(lib, 'resource-server.mjs')).href);
    expect({ ...imported }).to.deep.equal({ ...required });
  });

  describe('at run time', () => {
    before(async () => {
      const service = await startStandIn((answer, form, asked) => {
        const active = new URLSearchParams(form).get('token') === TOKEN;
        const person = { token_type: 'Bearer', client_id: 'gate_ci_a', sub: 'acc_a' };
        const body = { ...person, iss: service.origin, organizations: [], active };
        return answering(body)(answer, form, asked);
      });
      const { id: CLIENT_ID, secret: CLIENT_SECRET } = API;
      Object.assign(process.env, { ISSUER: service.origin, CLIENT_ID, CLIENT_SECRET });
      atEndOfFile(() => {
        for (const name of ['ISSUER', 'CLIENT_ID', 'CLIENT_SECRET']) delete process.env[name];
      });
    });

    for (const name of Object.keys(ROWS)) {
      it(`the row ${name} accepts a valid token, and refuses all others with 401`, async () => {
        const program = await import(pathToFileURL(path.join(project, fileOf(name))).href);
        atEndOfFile(() => void program.server.close());
        const { port } = program.server.address();
        const query = (token?: string) =>
          ask(new URL(`http://localhost:${port}/graphql`), {
            method: 'POST',
            headers: {
              'content-type': 'application/json',
              ...(token !== undefined && { authorization: `Bearer ${token}` }),
            },
            body: '{"query":"{ subject }"}',
          });
        expect((await query(TOKEN)).body).to.deep.equal({ data: { subject: 'acc_a' } });
        for (const token of [undefined, `${TOKEN}dead`]) {
          const { status, headers, body } = await query(token);
          expect(status).to.equal(401);
          expect(headers.get('www-authenticate')).to.match(/^Bearer/);
          expect(body).to.have.nested.property('errors[0].extensions.code', 'UNAUTHENTICATED');
        }
      });
    }
  });
});
