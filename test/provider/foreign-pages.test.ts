/** Requests that a browser sends for a page of another site do not count against any limit. */
import { expect } from 'chai';
import { withChecksum } from '../../src/base/random-id.ts';
import { type Answer, ask, authorizationUrl, postForm, revokeCurrent } from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { startSeeded } from '../support/seeded.ts';
import { providerSettings } from '../support/upstream.ts';

const MAX = 3;
const SENT = 3 * MAX;
const LIMITS = {
  waitingSignInsPerAddress: MAX,
  clientFailures: MAX,
  clientFailuresPerAddress: MAX,
};

describe('requests of another site’s page', () => {
  const on = startSeeded({ settings: { limits: LIMITS, signIn: { providers: [providerSettings()] } } });
  const FOREIGN = 'https://foreign.example';

  const authorize = (headers: Record<string, string>, parameters = {}) =>
    createPerson(on.issuer).get(authorizationUrl(on.issuer, on.clients.confidential, parameters), headers);
  /** Sends more than the limit allows. @returns the last answer. */
  async function often<Result>(send: () => Promise<Result>): Promise<Result> {
    for (let sent = 1; sent < SENT; sent += 1) await send();
    return send();
  }

  const embedded: readonly Record<string, string>[] = [
    { 'sec-fetch-dest': 'image' },
    { 'sec-fetch-dest': 'empty' },
    { 'sec-fetch-dest': 'script' },
    { 'sec-fetch-dest': 'iframe' },
    { 'sec-fetch-dest': 'object' },
    { 'sec-purpose': 'prefetch' },
    { 'sec-purpose': 'prefetch;prerender' },
  ];
  it('a request that a browser sends for another site’s page starts no sign-in', async () => {
    for (const headers of embedded) {
      const site = { 'sec-fetch-site': 'cross-site', ...headers };
      const refused = await often(() => authorize(site));
      expect(refused.status, JSON.stringify(headers)).to.equal(403);
      expect(refused.headers.get('set-cookie')).to.equal(null);
      for (const path of ['/login', '/login/platform']) {
        expect((await createPerson(on.issuer).get(path, site)).status, path).to.equal(403);
      }
    }
  });

  it('prompt=none is allowed in a frame, stores nothing and counts against no limit', async () => {
    const frame = { 'sec-fetch-dest': 'iframe', 'sec-fetch-site': 'same-site' };
    const { location } = await often(() => authorize(frame, { prompt: 'none' }));
    expect(location?.searchParams.get('error')).to.equal('login_required');
    expect((await authorize({})).location?.pathname).to.match(/^\/interaction\//);
  });

  it('wrong secrets, codes and tokens from another site’s page do not count against limits', async () => {
    const { public: browserClient, machine } = on.clients;
    const post = (path: string, form: Record<string, string>, headers = {}): Promise<Answer> =>
      ask(new URL(path, on.issuer), {
        method: 'POST',
        headers: { origin: FOREIGN, 'sec-fetch-site': 'cross-site', ...headers },
        body: new URLSearchParams(form),
      });
    const wrong = { client_id: machine.id, client_secret: withChecksum(`gate_cs_${'w'.repeat(43)}`) };
    const unknown = { client_id: `gate_ci_${'x'.repeat(22)}`, client_secret: 'w' };
    const code = { grant_type: 'authorization_code', code: `gate_ac_${'x'.repeat(43)}` };
    const bearer = { authorization: `Bearer gate_at_${'x'.repeat(89)}` };
    const tries: readonly (readonly [status: number, () => Promise<Answer>])[] = [
      [400, () => post('/oauth/token', { grant_type: 'client_credentials', ...wrong })],
      [401, () => post('/oauth/token', { grant_type: 'client_credentials', ...unknown })],
      [400, () => post('/oauth/token', { ...code, client_id: browserClient.id })],
      [400, () => post('/oauth/introspect', { token: 'x', ...wrong })],
      [400, () => post('/oauth/revoke', { token: 'x', ...wrong })],
      [401, () => post('/oauth/token/revoke', {}, bearer)],
    ];
    for (const [status, send] of tries) {
      const { status: seen, text } = await often(send);
      expect(seen, text).to.equal(status);
    }
    // A program in the same network is still answered 401 for a wrong secret or token.
    const refused = await postForm(on.issuer, '/oauth/token', {
      grant_type: 'client_credentials',
      ...wrong,
    });
    expect(refused.status).to.equal(401);
    expect((await revokeCurrent(on.issuer, withChecksum(`gate_at_${'x'.repeat(89)}`))).status).to.equal(401);
  });

  it('a request from another site’s page gets the same answer for a right and a wrong secret: neither is checked', async () => {
    const { id = '', secret = '' } = on.clients.machine;
    const right = { grant_type: 'client_credentials', client_id: id, client_secret: secret };
    const [withRight, withWrong] = await Promise.all(
      [right, { ...right, client_secret: withChecksum(`gate_cs_${'w'.repeat(43)}`) }].map((form) =>
        ask(new URL('/oauth/token', on.issuer), {
          method: 'POST',
          headers: { origin: FOREIGN },
          body: new URLSearchParams(form),
        }),
      ),
    );
    expect(withRight?.text).to.equal(withWrong?.text);
  });
});
