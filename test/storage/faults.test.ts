/** A store that hangs or is gone while the service runs: nobody waits, and nothing is lost. */

import { expect } from 'chai';
import { Redis } from 'ioredis';
import { partnerTokens, type Tokens, tokensOf } from '../provider/partner-tokens.ts';
import { eventually } from '../support/eventually.ts';
import {
  ask,
  authorizationUrl,
  clientCredentials,
  exchangeCode,
  introspect,
  postForm,
  refresh,
  revokeCurrent,
} from '../support/oauth.ts';

import { createPerson } from '../support/person.ts';
import { type PostgresServer, startPostgresServer } from '../support/postgres-server.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { type Seed, seed } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { startsOn, type TestService } from '../support/service.ts';
import { ticksOf } from '../support/stopwatch.ts';
import { LIMIT } from './waiting.ts';

interface Servers {
  readonly redis: RedisServer;
  readonly postgres: PostgresServer;
}

/** Of these tests only: the run's own are not to be harmed. */
let servers: Promise<Servers> | undefined;

async function startServers(): Promise<Servers> {
  const [redis, postgres] = await Promise.all([
    // By default a Redis that is killed may lose what was written in the last second.
    startRedisServer({ appendfsync: 'always' }),
    startPostgresServer(),
  ]);
  return { redis, postgres };
}

interface Place {
  readonly title: string;
  readonly harmed: keyof Servers;
  readonly tokens: keyof Servers;
}

const PLACES: readonly Place[] = [
  { title: 'Redis is away', harmed: 'redis', tokens: 'redis' },
  { title: 'PostgreSQL is away and keeps the tokens', harmed: 'postgres', tokens: 'postgres' },
  { title: 'PostgreSQL is away and Redis is not', harmed: 'postgres', tokens: 'redis' },
];

for (const { title, harmed, tokens } of PLACES) {
  describeOn([postgresServer, redisServer], `requests while ${title}`, () => {
    let server: Servers[typeof harmed];
    let service: TestService;
    let seeded: Seed;
    const start = startsOn('postgres');

    before(async () => {
      servers ??= startServers();
      const { redis, postgres } = await servers;
      server = (await servers)[harmed];
      const databaseUrl = await postgres.createDatabase();
      const redisUrl = tokens === 'redis' ? { redisUrl: redis.url } : {};
      service = await start({ settings: { storage: { databaseUrl, ...redisUrl } } });
      seeded = await seed(service);
    });

    it('because it hangs are answered 503 in time, and nothing is lost', () =>
      expectNothingLost(
        () => server.pause(),
        () => server.resume(),
      ));

    it('because it is gone are answered 503 in time, and nothing is lost', () =>
      expectNothingLost(
        () => server.kill(),
        () => server.restart(),
      ));

    /** Whether the tokens are in the harmed store: then nothing can be said of them meanwhile. */
    const isOfTokens = harmed === tokens;

    async function expectNothingLost(
      harm: () => Promise<void> | void,
      undo: () => Promise<void> | void,
    ): Promise<void> {
      const partner = partnerTokens(service.issuer, seeded);
      const { confidential } = seeded.clients;
      const held = {
        code: await partner.code(confidential),
        tokens: await partner.tokens(confidential),
        toRevoke: await partner.tokens(confidential),
        cookie: partner.browser.cookieHeader('/'),
      };
      // It was asked nothing yet, so it has nothing to answer from its memory.
      const node = await start({ patience: 1, beside: service });
      const requests = await requestsTo(node, seeded, held);
      // As many connections as there may be: what they wait for hangs as well.
      const busy = Array.from({ length: 10 }, () => node.database.query('SELECT pg_sleep(0.05)'));
      await Promise.all(busy);
      const revoke = () => revokeCurrent(node.issuer, held.toRevoke.accessToken);
      if (isOfTokens) requests['revocation by the holder'] = revoke;

      await harm();
      try {
        await Promise.all(Object.entries(requests).map(([name, send]) => expectAway(name, send)));
        // It is ended where the tokens are, but no node could be told.
        if (!isOfTokens) await expectAway('revocation by the holder', revoke);
      } finally {
        await undo();
      }

      await eventually(async () => {
        const { status } = await fetch(`${node.operatorsUrl}/readyz`);
        expect(status).to.equal(200);
      });
      // Of the node with its short limits: a machine that is held up may still ask to try again.
      await eventually(async () => {
        const issued = await clientCredentials(node.issuer, seeded.clients.machine);
        expect(issued).to.include({ status: 200 });
      });
      expect(await clientCredentials(service.issuer, seeded.clients.machine)).to.include({
        status: 200,
      });
      await expectAllGood(service.issuer, seeded, held);
      // Ended where the tokens were not away, though the answer was 503.
      expect(await partner.isActive(held.toRevoke.accessToken)).to.equal(isOfTokens);
      expect(await revokeCurrent(service.issuer, held.toRevoke.accessToken)).to.include({
        status: isOfTokens ? 204 : 401,
      });
      expect(await partner.isActive(held.toRevoke.accessToken)).to.equal(false);
    }
  });
}

interface Held {
  /** Not exchanged yet. */
  readonly code: string;
  readonly tokens: Tokens;
  readonly toRevoke: Tokens;
  /** Of the signed-in browser. */
  readonly cookie: string;
}

/** One request of each kind, ready to be sent. */
async function requestsTo(
  { issuer, operatorsUrl }: TestService,
  { clients, person: { email, password } }: Seed,
  { code, tokens, toRevoke, cookie }: Held,
): Promise<Record<string, () => Promise<unknown>>> {
  const { confidential, machine, resourceServer } = clients;
  const newcomer = createPerson(issuer);
  const signInPage = await newcomer.get('/login');
  const withSession = { cookie, origin: issuer, 'sec-fetch-site': 'same-origin' };
  const page = (path: string) => () => ask(new URL(path, issuer), { headers: withSession });
  return {
    exchange: () => exchangeCode(issuer, confidential, code),
    refresh: () => refresh(issuer, confidential, tokens.refreshToken),
    'client credentials': () => clientCredentials(issuer, machine),
    introspection: () => introspect(issuer, resourceServer, tokens.accessToken),
    'revocation by the client': () =>
      postForm(issuer, '/oauth/revoke', { token: toRevoke.refreshToken }, { client: confidential }),
    'session keep-alive': () =>
      ask(new URL('/oauth/token/refresh', issuer), { method: 'POST', headers: withSession }),
    'page: sign in': () => newcomer.submit(signInPage, { email, password }),
    'page: authorize': () => newcomer.get(authorizationUrl(issuer, confidential)),
    'page: profile': page('/profile'),
    readiness: () => ask(new URL('/readyz', operatorsUrl), {}),
  };
}

async function expectAway(name: string, send: () => Promise<unknown>): Promise<void> {
  const sent = send() as Promise<Awaited<ReturnType<typeof ask>> & { html?: string }>;
  expect(await ticksOf(sent), `${name}, milliseconds`).to.be.below(LIMIT);
  const answer = await sent;
  expect(answer.status, name).to.equal(503);
  if (name === 'readiness') {
    expect(answer.body, name).to.include({ status: 'not ready' });
    return;
  }
  expect(answer.headers.get('retry-after'), name).to.equal('2');
  if (name.startsWith('page')) {
    expect(answer.headers.get('content-type'), name).to.contain('text/html');
    expect(answer.html ?? answer.text, name).not.to.match(/redis|postgres|ECONN|timeout|\n\s+at /i);
    return;
  }
  expect(answer.headers.get('content-type'), name).to.contain('application/json');
  expect(answer.body, name).to.include({ error: 'temporarily_unavailable' });
  expect(answer.body?.error_description, name).to.match(
    /^(the service cannot reach its storage, )?try again in a moment$/,
  );
}

/** Everything that was handed out before still does what it was handed out for. */
async function expectAllGood(issuer: string, { clients }: Seed, held: Held): Promise<void> {
  const isActive = async (token: string): Promise<unknown> =>
    (await introspect(issuer, clients.resourceServer, token)).body.active;
  expect(await isActive(held.tokens.accessToken)).to.equal(true);
  const refreshed = await refresh(issuer, clients.confidential, held.tokens.refreshToken);
  expect(refreshed.status, refreshed.text).to.equal(200);
  expect(await isActive(tokensOf(refreshed).accessToken)).to.equal(true);
  const exchanged = await exchangeCode(issuer, clients.confidential, held.code);
  expect(exchanged.status, exchanged.text).to.equal(200);
}

describeOn([postgresServer, redisServer], 'tokens in Redis', () => {
  const on = startSeeded({ on: 'postgres+redis' });

  it('that are flushed away are refused like any unknown one, and new ones are handed out', async () => {
    const { issuer, partner } = on;
    const { confidential, machine, resourceServer } = on.clients;
    const code = await partner.code(confidential);
    const { accessToken, refreshToken } = await partner.tokens(confidential);
    const machineToken = tokensOf(await clientCredentials(issuer, machine)).accessToken;
    const redis = new Redis(`${on.service.settings.storage.redisUrl}`);
    await redis.flushdb();
    redis.disconnect();

    for (const answer of [
      await exchangeCode(issuer, confidential, code),
      await refresh(issuer, confidential, refreshToken),
    ]) {
      expect(answer.status).to.equal(400);
      expect(answer.body).to.include({ error: 'invalid_grant' });
    }
    for (const token of [accessToken, machineToken, refreshToken]) {
      const { status, body } = await introspect(issuer, resourceServer, token);
      expect([status, body]).to.deep.equal([200, { active: false }]);
    }
    expect(await revokeCurrent(issuer, accessToken)).to.include({ status: 401 });
    const gone = { token: refreshToken };
    const revoked = await postForm(issuer, '/oauth/revoke', gone, { client: confidential });
    expect(revoked).to.include({ status: 200 });
    const page = await partner.browser.get('/profile');
    expect([page.status, page.location?.pathname]).to.deep.equal([303, '/login']);

    const again = await partnerTokens(issuer, on.seeded).tokens(confidential);
    expect(await partner.isActive(again.accessToken)).to.equal(true);
  });
});
