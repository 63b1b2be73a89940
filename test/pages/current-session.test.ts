/** `POST /oauth/token/refresh`: keeps a browser session alive, and is no OAuth endpoint. */
import { expect } from 'chai';
import { createTestClock, type TestClock } from '../support/clock.ts';
import { type Answer, ask, basic } from '../support/oauth.ts';
import { createPerson, type Person } from '../support/person.ts';
import { type Seed, seed } from '../support/seed.ts';
import { forEachDeployment, type TestService } from '../support/service.ts';

const HOUR = 3_600;
const IDLE = 12 * HOUR;
const ABSOLUTE = 7 * 24 * HOUR;

forEachDeployment('keeping the browser session alive', (start) => {
  let service: TestService;
  let seeded: Seed;
  let person: Person;
  let time: TestClock;

  before(async () => {
    time = createTestClock();
    const settings = { sessions: { idleSeconds: IDLE, absoluteSeconds: ABSOLUTE } };
    service = await start({ clock: time.clock, settings });
    seeded = await seed(service);
  });
  after(() => time.restore());

  beforeEach(async () => {
    person = createPerson(service.issuer);
    await person.signIn(seeded.person);
  });

  const PATH = '/oauth/token/refresh';

  /** As our own script does. @param headers replace its headers; undefined removes one. */
  function send(
    headers: Record<string, string | undefined> = {},
    { body = null, query = '' }: { body?: string | URLSearchParams | null; query?: string } = {},
  ): Promise<Answer> {
    const own = {
      cookie: person.cookieHeader(PATH),
      origin: service.issuer,
      'sec-fetch-site': 'same-origin',
    };
    const present = Object.entries({ ...own, ...headers }).filter(
      (entry): entry is [string, string] => entry[1] !== undefined,
    );
    const url = new URL(PATH + query, service.issuer);
    return ask(url, { method: 'POST', headers: Object.fromEntries(present), body });
  }

  const isSignedIn = async (): Promise<boolean> => (await person.get('/profile')).status === 200;

  const expectRefused = ({ status, body, headers }: Answer, code: number, error: string): void => {
    expect([status, body.error]).to.deep.equal([code, error]);
    expect(headers.get('set-cookie')).to.equal(null);
  };

  it('says how long the session lives from now, and renews it', async () => {
    const answer = await person.post(PATH, {});
    expect(answer.status).to.equal(200);
    expect(JSON.parse(answer.html)).to.deep.equal({ session_expires_in: IDLE });
    expect(answer.headers.get('cache-control')).to.equal('no-store');

    time.advance(IDLE - 1);
    expect((await person.post(PATH, {})).status).to.equal(200);
    time.advance(IDLE - 1);
    expect(await isSignedIn()).to.equal(true);
  });

  it('a session that nobody keeps alive ends', async () => {
    time.advance(IDLE);
    expectRefused(await send(), 401, 'login_required');
    expect(await isSignedIn()).to.equal(false);
  });

  it('no session outlives its greatest age, however often it is kept alive', async () => {
    let left = ABSOLUTE;
    for (; left > IDLE / 2; left -= IDLE / 2) {
      const { html } = await person.post(PATH, {});
      expect(JSON.parse(html)).to.deep.equal({ session_expires_in: Math.min(IDLE, left) });
      time.advance(IDLE / 2);
    }
    time.advance(left - 10);
    const { html } = await person.post(PATH, {});
    expect(JSON.parse(html)).to.deep.equal({ session_expires_in: 10 });
    time.advance(10);
    expect((await person.post(PATH, {})).status).to.equal(401);
    expect(await isSignedIn()).to.equal(false);
  });

  it('nobody signed in is 401: no cookie, a forged one, one that was signed out', async () => {
    const before = person.cookieHeader(PATH);
    const session = /gate_session=([^;]+)/.exec(before)?.[1] ?? '';
    await person.submit(await person.get('/logout'), {});
    const cookies = [undefined, '', 'gate_session=x', `gate_session=${session}`, before];
    for (const cookie of cookies) {
      expectRefused(await send({ cookie }), 401, 'login_required');
    }
  });

  it('a suspended account is 401', async () => {
    await service.accounts.suspend(seeded.person.accountId);
    expectRefused(await send(), 401, 'login_required');
    await service.accounts.resume(seeded.person.accountId);
  });

  it('a request from elsewhere is 403, and so is one that says nothing about its origin', async () => {
    const from: Record<string, string | undefined>[] = [
      { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' },
      { origin: 'https://evil.example', 'sec-fetch-site': undefined },
      { origin: undefined, 'sec-fetch-site': 'cross-site' },
      { origin: undefined, 'sec-fetch-site': 'same-site' },
      { origin: undefined, 'sec-fetch-site': 'none' },
      { origin: 'null', 'sec-fetch-site': undefined },
      { origin: `${service.issuer}.evil.example`, 'sec-fetch-site': undefined },
      { origin: service.issuer.replace('http:', 'https:'), 'sec-fetch-site': undefined },
      { origin: undefined, 'sec-fetch-site': undefined },
    ];
    for (const headers of from) {
      const answer = await send(headers);
      expect(answer.status, JSON.stringify(headers)).to.equal(403);
      expect(answer.headers.get('set-cookie')).to.equal(null);
    }
  });

  it('anything that looks like OAuth is 400 and named the token endpoint', async () => {
    const { confidential } = seeded.clients;
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
      expect([answer.status, answer.body.error], shown).to.deep.equal([400, 'invalid_request']);
      expect(answer.body.error_description, shown).to.contain('POST /oauth/token');
    }
  });

  it('every method but POST is refused with 405', async () => {
    for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS']) {
      const { status, headers } = await ask(new URL(PATH, service.issuer), {
        method,
        headers: { cookie: person.cookieHeader(PATH), 'sec-fetch-site': 'same-origin' },
      });
      expect([status, headers.get('allow')], method).to.deep.equal([405, 'POST']);
    }
  });
});
