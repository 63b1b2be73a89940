/** Whatever goes wrong between an API and the service, nobody is let in by it. */
import type { Socket } from 'node:net';
import { expect } from 'chai';
import {
  createIntrospector,
  type FailureReason,
  type IntrospectionFailure,
  type IntrospectorOptions,
} from '../../src/resource-server/resource-server.ts';
import { tokensOf } from '../provider/partner-tokens.ts';
import { basic, clientCredentials, type TestClient } from '../support/oauth.ts';
import { freePort } from '../support/programs.ts';
import { startSeeded } from '../support/seeded.ts';
import { startTestService } from '../support/service.ts';
import {
  API,
  answering,
  bearer,
  introspectorOf,
  passOnTo,
  type Respond,
  startStandIn,
  TOKEN,
} from './stand-in.ts';

const ISSUER = 'https://auth.example.com';
const ACTIVE = {
  active: true,
  token_type: 'Bearer',
  client_id: 'gate_ci_partner',
  sub: 'acc_person',
  iss: ISSUER,
  organizations: [],
};

interface Outcome {
  readonly status: number;
  readonly headers: object;
  readonly body: string;
  readonly failures: readonly IntrospectionFailure[];
}

/** Asks once, and says what the caller and what the operator of the API are told. */
async function identify(
  options: Partial<IntrospectorOptions>,
  { token = TOKEN, client = API }: { token?: string; client?: TestClient } = {},
): Promise<Outcome> {
  const failures: IntrospectionFailure[] = [];
  const onFailure = (failure: IntrospectionFailure): void => void failures.push(failure);
  const introspector = introspectorOf(client, { issuer: ISSUER, onFailure, ...options });
  const { refusal } = await introspector.identify(bearer(token));
  if (!refusal) return { status: 200, headers: {}, body: '', failures };
  return { status: refusal.status, headers: refusal.headers, body: refusal.body, failures };
}

/** Asks a stand-in that responds like this. */
async function identifyAt(respond: Respond, options: Partial<IntrospectorOptions> = {}) {
  const { introspectionEndpoint } = await startStandIn(respond);
  return identify({ introspectionEndpoint, ...options });
}

function expectClosed(answer: Outcome, reason: FailureReason, retryAfter = '2'): void {
  expect(answer.status).to.equal(503);
  expect(answer.headers).to.include({ 'Retry-After': retryAfter });
  expect(answer.failures.map((failure) => failure.reason)).to.deep.equal([reason]);
  // The caller is not told why, and nobody is told the token or the secret.
  expect(answer.body).to.not.include(answer.failures[0]?.message);
  const told = answer.failures.map(({ message, stack, cause }) => [message, stack, cause]);
  expect(JSON.stringify([told, answer.body])).to.not.match(/gate_(at|cs)_/);
}

const withStatus =
  (status: number, headers: Record<string, string> = {}): Respond =>
  (answer) =>
    answer.writeHead(status, headers).end(JSON.stringify(ACTIVE));
describe('an API fails closed', () => {
  it('lets a caller in that the service calls active', async () => {
    expect(await identifyAt(answering(ACTIVE))).to.deep.include({ status: 200, failures: [] });
  });

  it('when nobody listens', async () => {
    expectClosed(await identify({ issuer: `http://127.0.0.1:${await freePort()}` }), 'unreachable');
  });

  it('when the service hangs, each API within its own time limit', async () => {
    const { introspectionEndpoint } = await startStandIn(() => {});
    const ended: number[] = [];
    const hang = async (timeoutMs: number): Promise<void> => {
      expectClosed(await identify({ introspectionEndpoint, timeoutMs }), 'timed_out');
      ended.push(timeoutMs);
    };
    await Promise.all([hang(500), hang(100)]);
    expect(ended).to.deep.equal([100, 500]);
  });

  const closes = (title: string, reason: FailureReason, respond: Respond, timeoutMs = 20_000) =>
    it(`when ${title}`, async () => {
      expectClosed(await identifyAt(respond, { timeoutMs }), reason);
    });
  const begins: Respond = (answer) => answer.write('{"active": true, ');
  closes('the answer begins and does not end, within the time limit', 'timed_out', begins, 150);
  closes('the connection breaks in the middle of the answer', 'unreachable', (answer) => {
    answer.setHeader('content-length', 1_000);
    answer.write('{"active": true, ', () => answer.destroy());
  });
  closes('the answer is not JSON, and repeats nothing of it', 'malformed_answer', (answer) =>
    answer.end(`<h1>Bad token ${TOKEN}</h1>`),
  );
  closes('the answer does not stop', 'malformed_answer', (answer) =>
    answer.end(JSON.stringify(ACTIVE) + ' '.repeat(5 * 1024 * 1024)),
  );
  for (const status of [500, 502, 400, 403, 404, 301, 204]) {
    closes(`the service answers ${status}`, 'failed', withStatus(status));
  }

  it('when the service wants to be left alone, and passes on for how long', async () => {
    const wait = { 'retry-after': '17' };
    expectClosed(await identifyAt(withStatus(503, wait)), 'failed', '17');
    expectClosed(await identifyAt(withStatus(429, wait)), 'throttled', '17');
  });

  it('when the answer is not one of Gatehouse to a resource server', async () => {
    const { organizations: _, ...withoutOrganizations } = ACTIVE;
    for (const body of [
      {},
      null,
      [],
      'active',
      { ...ACTIVE, active: 'true' },
      { ...ACTIVE, active: 1 },
      { ...ACTIVE, iss: 'https://elsewhere.example' },
      { ...ACTIVE, sub: undefined },
      { ...ACTIVE, client_id: undefined },
      { ...ACTIVE, token_type: 'N_A' },
      { ...ACTIVE, organizations: {} },
      { ...ACTIVE, organizations: [null] },
      { ...ACTIVE, organizations: [{ id: 'org_a', name: 'A', role: 'owner' }] },
      withoutOrganizations,
    ]) {
      expectClosed(await identifyAt(answering(body)), 'malformed_answer');
    }
  });

  it('but not because a kept connection was closed in the meantime', async () => {
    const used = new Set<Socket>();
    const standIn = await startStandIn((answer, form, asked) => {
      if (used.has(asked.socket)) return asked.socket.destroy();
      used.add(asked.socket);
      return answering(ACTIVE)(answer, form, asked);
    });
    const { introspectionEndpoint } = standIn;
    const introspector = introspectorOf(API, { issuer: ISSUER, introspectionEndpoint });
    for (const connections of [1, 2, 3]) {
      expect(await introspector.identify(bearer(TOKEN))).to.have.property('caller');
      expect(standIn.connections).to.equal(connections);
    }
  });

  it('and says why on standard error, once a second, unless the API wants to be told', async () => {
    const printed: unknown[] = [];
    const { error } = console;
    const { now } = performance;
    console.error = (...words) => printed.push(...words);
    // The second does not pass, however long the three take.
    performance.now = () => 0;
    try {
      const issuer = `http://127.0.0.1:${await freePort()}`;
      const introspector = introspectorOf(API, { issuer });
      for (const _ of [1, 2, 3]) await introspector.identify(bearer(TOKEN));
      expect(printed).to.have.lengthOf(1);
      performance.now = () => 1_000;
      await introspector.identify(bearer(TOKEN));
    } finally {
      console.error = error;
      performance.now = now;
    }
    expect(printed).to.have.lengthOf(2);
    expect(printed[0]).to.match(/^http:.*\/oauth\/introspect cannot be reached: ECONNREFUSED$/);
  });

  it('also when the API throws at being told why', async () => {
    const printed: unknown[] = [];
    const { error } = console;
    console.error = (...words) => printed.push(...words);
    try {
      const { introspectionEndpoint } = await startStandIn(withStatus(500));
      const onFailure = () => {
        throw new Error('the log is full');
      };
      const api = introspectorOf(API, { issuer: ISSUER, introspectionEndpoint, onFailure });
      expect((await api.identify(bearer(TOKEN))).refusal?.status).to.equal(503);
    } finally {
      console.error = error;
    }
    expect(String(printed)).to.include('the log is full');
  });

  it('gives nothing for a role or a right that it does not know', async () => {
    const warehouses = [{ id: 'wh_a', name: 'A', rights: ['read', 'fly'] }];
    const organizations = [
      { id: 'org_a', name: 'A', role: 'member', warehouses },
      { id: 'org_b', name: 'B', role: 'emperor', warehouses },
    ];
    const { introspectionEndpoint } = await startStandIn(answering({ ...ACTIVE, organizations }));
    const introspector = introspectorOf(API, { issuer: ISSUER, introspectionEndpoint });
    const { caller } = await introspector.identify(bearer(TOKEN));
    expect(caller?.organizations).to.deep.equal([
      { ...organizations[0], warehouses: [{ ...warehouses[0], rights: ['read'] }] },
    ]);
  });

  it('does not begin with settings that cannot be meant', () => {
    for (const wrong of [
      { issuer: `${ISSUER}/` },
      { issuer: 'auth.example.com' },
      { clientId: '' },
      { clientSecret: '' },
      { timeoutMs: 0 },
      { timeoutMs: Number.NaN },
      { timeoutMs: 60_001 },
      { mostRemembered: 0 },
      { introspectionEndpoint: 'ftp://10.0.0.7/' },
    ]) {
      const options = { issuer: ISSUER, clientId: 'a', clientSecret: 'b', ...wrong };
      expect(() => createIntrospector(options), JSON.stringify(wrong)).to.throw(TypeError);
    }
  });
});

describe('an API of a real service fails closed', () => {
  const on = startSeeded();
  let client: TestClient;
  let token: string;

  before(async () => {
    client = on.clients.resourceServer;
    token = tokensOf(await clientCredentials(on.issuer, on.clients.machine)).accessToken;
  });

  const ask = (by: TestClient): Promise<Outcome> =>
    identify({ issuer: on.issuer }, { token, client: by });

  it('when its own credentials are refused', async () => {
    expect(await ask(client)).to.include({ status: 200 });
    const wrong = { ...client, secret: `gate_cs_${'a'.repeat(43)}` };
    expectClosed(await ask(wrong), 'credentials_refused');
  });

  it('when it was registered as another kind of client', async () => {
    const answer = await ask(on.clients.machine);
    expectClosed(answer, 'malformed_answer');
    expect(answer.failures[0]?.message).to.include('registered as a resource server?');
  });

  it('asks as RFC 7662 says, at an address of its own if the service has one', async () => {
    const seen: object[] = [];
    const through = passOnTo(on.issuer);
    const { introspectionEndpoint } = await startStandIn((answer, form, asked) => {
      seen.push({ method: asked.method, url: asked.url, ...asked.headers, form });
      return through(answer, form, asked);
    });
    const options = { issuer: on.issuer, introspectionEndpoint };
    expect(await identify(options, { token, client })).to.include({ status: 200 });
    expect(seen).to.have.lengthOf(1);
    expect(seen[0]).to.deep.include({
      method: 'POST',
      url: '/oauth/introspect',
      // The service refuses every other host, wherever it is reached.
      host: new URL(on.issuer).host,
      authorization: basic(client),
      'content-type': 'application/x-www-form-urlencoded',
      accept: 'application/json',
      form: `token=${token}`,
    });
  });

  it('when the service stops, on connections that were open, until it is back', async () => {
    const reasons: FailureReason[] = [];
    const onFailure = ({ reason }: IntrospectionFailure): void => void reasons.push(reason);
    const introspector = introspectorOf(client, { issuer: on.issuer, onFailure });
    const status = async () => (await introspector.identify(bearer(token))).refusal?.status ?? 200;
    expect(await status()).to.equal(200);
    await on.service.close();
    expect(await status()).to.equal(503);
    expect(reasons).to.deep.equal(['unreachable']);

    const { server, storage } = on.service.settings;
    const again = await startTestService({ settings: { server, storage } });
    expect(await status().finally(again.close)).to.equal(200);
  });
});
