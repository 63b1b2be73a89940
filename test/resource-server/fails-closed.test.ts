import { createServer, type Socket } from 'node:net';
import { expect } from 'chai';
import {
  createIntrospector,
  type FailureReason,
  type IntrospectionFailure,
  type IntrospectorOptions,
} from '../../src/resource-server/resource-server.ts';
import { basic } from '../support/oauth.ts';
import { freePort } from '../support/programs.ts';
import { type Seed, seed } from '../support/seed.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { ticksOf } from '../support/stopwatch.ts';
import { answering, passOnTo, type Respond, startStandIn } from './stand-in.ts';
import { machineToken } from './tokens.ts';

const TOKEN = `gate_at_${'a'.repeat(43)}`;
const ISSUER = 'https://auth.example.com';
const ACTIVE = {
  active: true,
  token_type: 'Bearer',
  client_id: 'gate_ci_partner',
  sub: 'acc_person',
  iss: ISSUER,
  organizations: [],
};

/** Milliseconds: the machine of the tests may be busy, and most of them are not about time. */
const UNHURRIED = 10_000;

/** Asks once, and says what the caller and what the operator of the API are told. */
async function identify(
  options: Partial<IntrospectorOptions>,
  token = TOKEN,
): Promise<{ status: number; headers: object; body: string; failures: IntrospectionFailure[] }> {
  const failures: IntrospectionFailure[] = [];
  const introspector = createIntrospector({
    issuer: ISSUER,
    clientId: 'gate_ci_api',
    clientSecret: 'gate_cs_api',
    timeoutMs: UNHURRIED,
    onFailure: (failure) => failures.push(failure),
    ...options,
  });
  const headers = { authorization: `Bearer ${token}` };
  const { refusal } = await introspector.identify({ headers });
  introspector.close();
  if (!refusal) return { status: 200, headers: {}, body: '', failures };
  return { status: refusal.status, headers: refusal.headers, body: refusal.body, failures };
}

/** Asks a stand-in that responds like this. */
async function identifyAt(respond: Respond, options: Partial<IntrospectorOptions> = {}) {
  const standIn = await startStandIn(respond);
  try {
    const { introspectionEndpoint } = standIn;
    return await identify({ introspectionEndpoint, ...options });
  } finally {
    await standIn.close();
  }
}

function expectClosed(
  answer: Awaited<ReturnType<typeof identify>>,
  reason: FailureReason,
  retryAfter = '2',
): void {
  expect(answer.status).to.equal(503);
  expect(answer.headers).to.include({ 'Retry-After': retryAfter });
  expect(answer.failures.map((failure) => failure.reason)).to.deep.equal([reason]);
  // The caller is not told why, and nobody is told the token or the secret.
  expect(answer.body).to.not.include(answer.failures[0]?.message);
  const told = answer.failures.map(({ message, stack, cause }) => [message, stack, cause]);
  expect(JSON.stringify([told, answer.body])).to.not.match(/gate_(at|cs)_/);
}

describe('an API fails closed', () => {
  it('lets a caller in that the service calls active', async () => {
    expect(await identifyAt(answering(ACTIVE))).to.deep.include({ status: 200, failures: [] });
  });

  it('when nobody listens', async () => {
    expectClosed(await identify({ issuer: `http://127.0.0.1:${await freePort()}` }), 'unreachable');
  });

  it('when the service hangs, within the time limit', async () => {
    const sockets: Socket[] = [];
    const silent = createServer((socket) => sockets.push(socket));
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const address = silent.address();
    const port = typeof address === 'object' ? address?.port : undefined;
    const asking = identify({ issuer: `http://127.0.0.1:${port}`, timeoutMs: 150 });
    expect(await ticksOf(asking)).to.be.below(1_000);
    expectClosed(await asking, 'timed_out');
    for (const socket of sockets) socket.destroy();
    silent.close();
  });

  it('when the answer begins and does not end, within the time limit', async () => {
    const begins: Respond = (answer) => answer.write('{"active": true, ');
    expectClosed(await identifyAt(begins, { timeoutMs: 150 }), 'timed_out');
  });

  it('when the connection breaks in the middle of the answer', async () => {
    const breaks: Respond = (answer) => {
      answer.setHeader('content-length', 1_000);
      answer.write('{"active": true, ', () => answer.destroy());
    };
    expectClosed(await identifyAt(breaks), 'unreachable');
  });

  it('when the service answers with an error', async () => {
    for (const status of [500, 502, 400, 403, 404, 301, 204]) {
      const body = JSON.stringify(ACTIVE);
      const answer = await identifyAt((answer) => answer.writeHead(status).end(body));
      expectClosed(answer, 'failed');
    }
  });

  it('when the service wants to be left alone, and passes on for how long', async () => {
    const wait = { 'retry-after': '17' };
    const away = await identifyAt((answer) => answer.writeHead(503, wait).end());
    expectClosed(away, 'failed', '17');
    const throttled = await identifyAt((answer) => answer.writeHead(429, wait).end());
    expectClosed(throttled, 'throttled', '17');
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

  it('when the answer is not JSON, and repeats nothing of it', async () => {
    const page: Respond = (answer) => answer.end(`<h1>Bad token ${TOKEN}</h1>`);
    expectClosed(await identifyAt(page), 'malformed_answer');
  });

  it('when the answer does not stop', async () => {
    const endless: Respond = (answer) =>
      answer.end(JSON.stringify(ACTIVE) + ' '.repeat(5 * 1024 * 1024));
    expectClosed(await identifyAt(endless), 'malformed_answer');
  });

  it('but not because a kept connection was closed in the meantime', async () => {
    const used = new Set<Socket>();
    const standIn = await startStandIn((answer, form, asked) => {
      if (used.has(asked.socket)) return asked.socket.destroy();
      used.add(asked.socket);
      return answering(ACTIVE)(answer, form, asked);
    });
    const { introspectionEndpoint } = standIn;
    const credentials = { clientId: 'gate_ci_api', clientSecret: 'gate_cs_api' };
    const introspector = createIntrospector({
      issuer: ISSUER,
      introspectionEndpoint,
      ...credentials,
    });
    const headers = { authorization: `Bearer ${TOKEN}` };
    for (const connections of [1, 2, 3]) {
      expect(await introspector.identify({ headers })).to.have.property('caller');
      expect(standIn.connections).to.equal(connections);
    }
    introspector.close();
    await standIn.close();
  });

  it('and says why on standard error, once a second, unless the API wants to be told', async () => {
    const printed: unknown[] = [];
    const { error } = console;
    console.error = (...words) => printed.push(...words);
    const introspector = createIntrospector({
      issuer: `http://127.0.0.1:${await freePort()}`,
      clientId: 'gate_ci_api',
      clientSecret: 'gate_cs_api',
    });
    const headers = { authorization: `Bearer ${TOKEN}` };
    for (const _ of [1, 2, 3]) await introspector.identify({ headers });
    console.error = error;
    expect(printed).to.have.lengthOf(1);
    expect(printed[0]).to.match(/^http:.*\/oauth\/introspect cannot be reached: ECONNREFUSED$/);
  });

  it('gives nothing for a role or a right that it does not know', async () => {
    const warehouses = [{ id: 'wh_a', name: 'A', rights: ['read', 'fly'] }];
    const organizations = [
      { id: 'org_a', name: 'A', role: 'member', warehouses },
      { id: 'org_b', name: 'B', role: 'emperor', warehouses },
    ];
    const standIn = await startStandIn(answering({ ...ACTIVE, organizations }));
    const introspector = createIntrospector({
      issuer: ISSUER,
      introspectionEndpoint: standIn.introspectionEndpoint,
      clientId: 'gate_ci_api',
      clientSecret: 'gate_cs_api',
    });
    const headers = { authorization: `Bearer ${TOKEN}` };
    const { caller } = await introspector.identify({ headers });
    expect(caller?.organizations).to.deep.equal([
      { ...organizations[0], warehouses: [{ ...warehouses[0], rights: ['read'] }] },
    ]);
    introspector.close();
    await standIn.close();
  });

  it('does not begin with options that cannot work', () => {
    const options = { issuer: ISSUER, clientId: 'a', clientSecret: 'b' };
    for (const wrong of [
      { issuer: `${ISSUER}/` },
      { issuer: 'auth.example.com' },
      { clientId: '' },
      { clientSecret: '' },
      { timeoutMs: 0 },
      { timeoutMs: Number.NaN },
      { cacheSeconds: 6 },
      { cacheSeconds: -1 },
      { introspectionEndpoint: 'ftp://10.0.0.7/' },
    ]) {
      expect(() => createIntrospector({ ...options, ...wrong })).to.throw(TypeError);
    }
  });
});

describe('an API of a real service fails closed', () => {
  let service: TestService;
  let seeded: Seed;
  let options: Pick<IntrospectorOptions, 'issuer' | 'clientId' | 'clientSecret'>;
  let token: string;

  before(async () => {
    service = await startTestService();
    seeded = await seed(service);
    const { id, secret = '' } = seeded.clients.resourceServer;
    options = { issuer: service.issuer, clientId: id, clientSecret: secret };
    token = await machineToken(service.issuer, seeded.clients.machine);
  });
  after(() => service.close());

  it('when its own credentials are refused', async () => {
    expect(await identify(options, token)).to.include({ status: 200 });
    const answer = await identify({ ...options, clientSecret: `gate_cs_${'a'.repeat(43)}` }, token);
    expectClosed(answer, 'credentials_refused');
  });

  it('when its client was suspended', async () => {
    await service.clients.suspend(options.clientId);
    expectClosed(await identify(options, token), 'credentials_refused');
    await service.clients.resume(options.clientId);
    expect(await identify(options, token)).to.include({ status: 200 });
  });

  it('when it was registered as another kind of client', async () => {
    const { id, secret = '' } = seeded.clients.machine;
    const answer = await identify({ ...options, clientId: id, clientSecret: secret }, token);
    expectClosed(answer, 'malformed_answer');
    expect(answer.failures[0]?.message).to.include('registered as a resource server?');
  });

  it('when the service stops, on connections that were open, until it is back', async () => {
    const failures: IntrospectionFailure[] = [];
    const onFailure = (failure: IntrospectionFailure): void => void failures.push(failure);
    const introspector = createIntrospector({ ...options, timeoutMs: UNHURRIED, onFailure });
    const headers = { authorization: `Bearer ${token}` };
    const status = async () => (await introspector.identify({ headers })).refusal?.status ?? 200;
    expect(await status()).to.equal(200);
    const { settings } = service;
    await service.close();
    expect(await status()).to.equal(503);
    expect(failures.map(({ reason }) => reason)).to.deep.equal(['unreachable']);

    const { server, storage } = settings;
    service = await startTestService({ settings: { server, storage } });
    expect(await status()).to.equal(200);
    introspector.close();
  });

  it('asks as RFC 7662 says, at an address of its own if the service has one', async () => {
    const seen: object[] = [];
    const through = passOnTo(service.issuer);
    const standIn = await startStandIn((answer, form, asked) => {
      seen.push({ method: asked.method, url: asked.url, ...asked.headers, form });
      return through(answer, form, asked);
    });
    const { introspectionEndpoint } = standIn;
    expect(await identify({ ...options, introspectionEndpoint }, token)).to.include({
      status: 200,
    });
    expect(seen).to.have.lengthOf(1);
    expect(seen[0]).to.deep.include({
      method: 'POST',
      url: '/oauth/introspect',
      // The service refuses every other host, wherever it is reached.
      host: new URL(service.issuer).host,
      authorization: basic(seeded.clients.resourceServer),
      'content-type': 'application/x-www-form-urlencoded',
      accept: 'application/json',
      form: `token=${token}`,
    });
    await standIn.close();
  });
});
