/** `POST /oauth/token/refresh`: extends a browser session, and is not an OAuth endpoint. */
import { expect } from 'chai';
import { type Answer, ask, authorizationUrl, basic } from '../../support/oauth.ts';
import { createPerson, type Person } from '../../support/person.ts';
import { startSeeded } from '../../support/seeded.ts';

const HOUR = 3_600;
const IDLE = 11 * HOUR;
const ABSOLUTE = 5 * 24 * HOUR;

describe('extending the browser session', () => {
  const on = startSeeded({
    clock: true,
    settings: { sessions: { idleSeconds: IDLE, absoluteSeconds: ABSOLUTE } },
  });
  let person: Person;

  async function signIn(): Promise<void> {
    person = createPerson(on.issuer);
    await person.signIn(on.seeded.person);
  }
  before(signIn);
  beforeEach('sign in again if needed', async () => {
    if (!(await isSignedIn())) await signIn();
  });

  const PATH = '/oauth/token/refresh';

  /** Sends the request of our script. @param headers replace its headers; undefined removes one. */
  function send(
    headers: Record<string, string | undefined> = {},
    { body = null, query = '' }: { body?: string | URLSearchParams | null; query?: string } = {},
  ): Promise<Answer> {
    const own = {
      cookie: person.cookieHeader(PATH),
      origin: on.issuer,
      'sec-fetch-site': 'same-origin',
    };
    const present = Object.entries({ ...own, ...headers }).filter(
      (entry): entry is [string, string] => entry[1] !== undefined,
    );
    const url = new URL(PATH + query, on.issuer);
    return ask(url, { method: 'POST', headers: Object.fromEntries(present), body });
  }

  const isSignedIn = async (): Promise<boolean> => (await person.get('/profile')).status === 200;

  const expectRefused = ({ status, body, headers }: Answer, code: number, error: string): void => {
    expect(status).to.equal(code);
    expect(body.error).to.equal(error);
    expect(headers.get('set-cookie')).to.equal(null);
  };

  it('a request reads its stored session once', async () => {
    const { store } = on.service;
    const { read } = store;
    let reads = 0;
    store.read = (kind, id) => {
      if (kind === 'session') reads += 1;
      return read(kind, id);
    };
    for (const path of ['/profile', '/profile/security', '/logout']) {
      reads = 0;
      expect((await person.get(path)).status).to.equal(200);
      expect(reads, path).to.equal(1);
    }
    reads = 0;
    expect((await person.post(PATH, {})).status).to.equal(200);
    store.read = read;
    expect(reads).to.equal(1);
  });

  it('only a sign-in sets the session cookie, so that a late answer cannot restore an earlier session', async () => {
    const sessionCookies = ({ headers }: { headers: Headers }): string[] =>
      headers.getSetCookie().filter((line) => line.startsWith('gate_session='));
    const silent = authorizationUrl(on.issuer, on.clients.confidential, { prompt: 'none' });
    const late = [
      await person.post(PATH, {}),
      await person.get('/profile'),
      await person.get(silent),
      await person.get(authorizationUrl(on.issuer, on.clients.confidential)),
    ];
    for (const answer of late) expect(sessionCookies(answer), answer.url.pathname).to.deep.equal([]);

    // The cookie expires with the absolute limit of the session; the store enforces the idle limit.
    const expected = new Date(on.clock.clock() + ABSOLUTE * 1_000).toUTCString();
    const { email, password } = on.seeded.person;
    const credentials = { email, password };
    const there = createPerson(on.issuer);
    const login = await there.get('/login');
    const signedIn = [await there.submit(login, credentials)];
    const asked = await person.follow(
      await person.get(authorizationUrl(on.issuer, on.clients.confidential, { prompt: 'login' })),
    );
    signedIn.push(await person.submit(asked, credentials));
    for (const answer of signedIn) {
      const [cookie = '', ...others] = sessionCookies(answer);
      expect(cookie.split('; ').filter((part) => part.startsWith('expires='))).to.deep.equal([`expires=${expected}`]);
      expect(others).to.deep.equal([]);
    }
  });

  it('a renewed session lasts for the idle time, but never beyond the absolute limit', async () => {
    await signIn();
    for (let age = 0; age < ABSOLUTE - HOUR; ) {
      const step = Math.min(IDLE - HOUR, ABSOLUTE - HOUR - age);
      on.clock.advance(step);
      age += step;
      const expected = Math.min(IDLE, ABSOLUTE - age);
      expect((await send()).body, `after ${age / HOUR} hours`).to.deep.equal({ session_expires_in: expected });
    }
    on.clock.advance(HOUR);
    expectRefused(await send(), 401, 'login_required');
  });

  it('renewing a session gets 401 if the cookie is missing, forged or changed, or if the session is signed out', async () => {
    const before = person.cookieHeader(PATH);
    const session = /gate_session=([^;]+)/.exec(before)?.[1] ?? '';
    const changed = before.replace(session, `${session.startsWith('a') ? 'b' : 'a'}${session.slice(1)}`);
    const forged = [undefined, '', 'gate_session=x', `gate_session=${session}`];
    for (const cookie of forged) expectRefused(await send({ cookie }), 401, 'login_required');
    expect((await send({ cookie: changed })).status, 'the signature of another value').to.equal(401);
    expect((await send({ cookie: before })).status).to.equal(200);
    await person.submit(await person.get('/logout'), {});
    expectRefused(await send({ cookie: before }), 401, 'login_required');
  });

  it('renewing a session gets 403 from another origin, or without any origin header', async () => {
    const from: Record<string, string | undefined>[] = [
      { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' },
      { origin: 'https://evil.example', 'sec-fetch-site': undefined },
      { origin: undefined, 'sec-fetch-site': 'cross-site' },
      { origin: undefined, 'sec-fetch-site': 'same-site' },
      { origin: undefined, 'sec-fetch-site': 'none' },
      { origin: 'null', 'sec-fetch-site': undefined },
      { origin: `${on.issuer}.evil.example`, 'sec-fetch-site': undefined },
      { origin: on.issuer.replace('http:', 'https:'), 'sec-fetch-site': undefined },
      { origin: undefined, 'sec-fetch-site': undefined },
    ];
    for (const headers of from) {
      const answer = await send(headers);
      expect(answer.status, JSON.stringify(headers)).to.equal(403);
      expect(answer.headers.get('set-cookie')).to.equal(null);
    }
  });

  it('an OAuth request to the endpoint that renews sessions gets 400, and the error names the token endpoint', async () => {
    const { confidential } = on.clients;
    const server = { cookie: undefined, origin: undefined, 'sec-fetch-site': undefined };
    const form = (text: string) => ({ body: new URLSearchParams(text) });
    const attempts: [Record<string, string | undefined>, Parameters<typeof send>[1]][] = [
      [server, form('grant_type=refresh_token&refresh_token=x')],
      [{}, form('grant_type=refresh_token')],
      [{}, form('refresh_token=gate_rt_x')],
      [{}, form('client_id=gate_ci_x')],
      [{}, form('client_secret=gate_cs_x')],
      [{}, form('grant_type=')],
      [{}, { query: '?grant_type=refresh_token' }],
      [{}, { query: '?refresh_token=x' }],
      [{ authorization: 'Bearer gate_at_x' }, {}],
      [{ ...server, authorization: basic(confidential) }, {}],
      [{ 'content-type': 'application/json' }, { body: '{"refresh_token":"x"}' }],
      [{ ...server, 'content-type': 'application/json' }, { body: '{"grant_type":"x"}' }],
    ];
    for (const [headers, request] of attempts) {
      const answer = await send(headers, request);
      const shown = JSON.stringify([headers, request]);
      expectRefused(answer, 400, 'invalid_request');
      expect(answer.body.error_description, shown).to.contain('POST /oauth/token');
    }
  });
});
