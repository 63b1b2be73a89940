/** The refusals of the guide's Express program, on both versions of Express. */
import { expect } from 'chai';
import { ask } from '../../../test/support/oauth.ts';
import { freePort, type Program, startProgram } from '../../../test/support/programs.ts';
import { temporaryDirectory } from '../../../test/support/temporary-directory.ts';
import { writeGuideTo } from './guide.ts';
import { API, answering, startStandIn, TOKEN } from './stand-in.ts';

const organizations = [
  {
    id: 'org_a',
    name: 'A',
    role: 'member',
    warehouses: [{ id: 'wh_a', name: 'Rotterdam', rights: ['read'] }],
  },
];
const ACTIVE = { token_type: 'Bearer', client_id: 'gate_ci_a', sub: 'acc_a', organizations };

for (const [version, folder] of [
  [4, 'express4'],
  [5, 'express'],
] as const) {
  describe(`express.mjs of the guide, on Express ${version}`, () => {
    let url: URL;
    let api: Program;

    before(async () => {
      const service = await startStandIn((answer, form, asked) => {
        const active = new URLSearchParams(form).get('token') === TOKEN;
        return answering({ ...ACTIVE, iss: service.origin, active })(answer, form, asked);
      });
      const project = temporaryDirectory(`express-${version}`);
      writeGuideTo(project, ['express.mjs'], [['express', folder]]);
      const port = await freePort();
      url = new URL(`http://localhost:${port}/stock/wh_a`);
      const { id: CLIENT_ID, secret: CLIENT_SECRET } = API;
      const addresses = { ISSUER: service.origin, PORT: String(port) };
      const environment = { PATH: process.env.PATH, ...addresses, CLIENT_ID, CLIENT_SECRET };
      api = startProgram(process.execPath, ['express.mjs'], { cwd: project, environment });
      await api.waitUntil(() => fetch(url, { headers: { authorization: `Bearer ${TOKEN}` } }));
    });
    after(() => api?.end('SIGTERM'));

    const get = (token?: string, path = 'wh_a') =>
      ask(new URL(path, url), {
        headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
      });

    it('the Express example sends refusals with status, header and code but no stack trace, and keeps running', async () => {
      for (const [token, path, status, code, challenge] of [
        [undefined, 'wh_a', 401, 'UNAUTHENTICATED', /^Bearer$/],
        [`${TOKEN}dead`, 'wh_a', 401, 'UNAUTHENTICATED', /invalid_token/],
        [TOKEN, 'wh_b', 403, 'FORBIDDEN', /insufficient_scope/],
      ] as const) {
        const { status: answered, headers, body, text } = await get(token, path);
        expect(answered, text).to.equal(status);
        expect(headers.get('www-authenticate')).to.match(challenge);
        expect(headers.get('cache-control')).to.equal('no-store');
        expect(body).to.have.nested.property('errors[0].extensions.code', code);
        expect(text).to.not.match(/node_modules|\bat .*:\d/);
        expect((await get(TOKEN)).body).to.deep.equal({ warehouse: 'wh_a' });
      }
      expect(api.output()).to.equal('');
    });
  });
}
