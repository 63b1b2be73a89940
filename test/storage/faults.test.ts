/** A store hangs or is killed while the service runs: requests fail in time, no data is lost. */
import { expect } from 'chai';
import { textsFor } from '../../src/texts/texts.ts';
import { granted, partnerTokens, type Tokens } from '../provider/partner-tokens.ts';
import { eventually } from '../support/eventually.ts';
import { readinessOf } from '../support/metrics.ts';
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
import { startPostgresServer } from '../support/postgres-server.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { type Seed, seed } from '../support/seed.ts';
import { startsOn, type TestService } from '../support/service.ts';
import { ticksOf } from '../support/stopwatch.ts';
import { LIMIT } from './waiting.ts';

/** Servers for these tests only: other tests need the shared servers. */
let servers: ReturnType<typeof startServers> | undefined;

async function startServers() {
  const [redis, postgres] = await Promise.all([
    // Without this setting, a Redis that is killed may lose the writes of the last second.
    startRedisServer({ appendfsync: 'always' }),
    startPostgresServer(),
  ]);
  return { redis, postgres };
}

const SCENARIOS = [
  { title: 'Redis is unavailable', harmed: 'redis', tokens: 'redis' },
  { title: 'PostgreSQL, with the tokens, is unavailable', harmed: 'postgres', tokens: 'postgres' },
  { title: 'PostgreSQL is unavailable and Redis is not', harmed: 'postgres', tokens: 'redis' },
] as const;

for (const { title, harmed, tokens } of SCENARIOS) {
  describeOn([postgresServer, redisServer], `requests while ${title}`, () => {
    let server: Awaited<ReturnType<typeof startServers>>[typeof harmed];
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

    it('requests get 503 in time if a store hangs, and no data is lost', () =>
      expectNothingLost(
        () => server.pause(),
        () => server.resume(),
      ));

    it('requests get 503 in time if a store is killed, and no data is lost', () =>
      expectNothingLost(
        () => server.kill(),
        () => server.restart(),
      ));

    async function expectNothingLost(
      harm: () => Promise<void> | void,
      undo: () => Promise<void> | void,
    ): Promise<void> {
      const partner = partnerTokens(service.issuer, seeded);
      const { confidential } = seeded.clients;
      const prior = {
        code: await partner.code(confidential),
        tokens: await partner.tokens(confidential),
        toRevoke: await partner.tokens(confidential),
        cookie: partner.browser.cookieHeader('/'),
      };
      // Start a new node, whose caches are empty.
      const node = await start({ timeoutFactor: 1, sharing: service });
      const requests = await requestsTo(node, seeded, prior);
      // Open all allowed connections, so that some requests wait for an answer on a hanging connection. A busy machine
      // may take longer to open one than the limit of production allows.
      await eventually(() =>
        Promise.all(Array.from({ length: 10 }, () => node.database.query('SELECT pg_sleep(0.05)'))),
      );
      requests['revocation by the holder'] = () => revokeCurrent(node.issuer, prior.toRevoke.accessToken);

      await harm();
      try {
        await Promise.all(Object.entries(requests).map(([name, send]) => expect503(name, send)));
      } finally {
        await undo();
      }

      await eventually(async () => expect((await readinessOf(node)).status).to.equal(200));
      // Retry: this node has the time limits of production, and on a slow machine may answer 503 first.
      await eventually(() => granted(clientCredentials(node.issuer, seeded.clients.machine)));
      await granted(clientCredentials(service.issuer, seeded.clients.machine));
      await expectValid(service.issuer, seeded, prior);
      // A PostgreSQL that hung may have read the revocation, and carry it out when it continues.
      const isActive = await partner.isActive(prior.toRevoke.accessToken);
      if (harmed === tokens) expect(isActive).to.equal(true);
      const { status } = await revokeCurrent(service.issuer, prior.toRevoke.accessToken);
      expect(status).to.be.oneOf(isActive ? [204] : [204, 401]);
      expect(await partner.isActive(prior.toRevoke.accessToken)).to.equal(false);
    }
  });
}

interface Prior {
  /** An authorization code that has not been exchanged yet. */
  readonly code: string;
  readonly tokens: Tokens;
  readonly toRevoke: Tokens;
  /** The cookie of the signed-in browser. */
  readonly cookie: string;
}

/** One request of each kind, ready to be sent. */
async function requestsTo(
  { issuer, operatorsUrl }: TestService,
  { clients, person: { email, password } }: Seed,
  { code, tokens, toRevoke, cookie }: Prior,
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
    'session keep-alive': () => ask(new URL('/oauth/token/refresh', issuer), { method: 'POST', headers: withSession }),
    'page: sign in': () => newcomer.submit(signInPage, { email, password }),
    'page: authorize': () => newcomer.get(authorizationUrl(issuer, confidential)),
    'page: profile': page('/profile'),
    'page: profile in German': () =>
      ask(new URL('/profile', issuer), { headers: { ...withSession, 'accept-language': 'de' } }),
    readiness: () => ask(new URL('/readyz', operatorsUrl), {}),
  };
}

async function expect503(name: string, send: () => Promise<unknown>): Promise<void> {
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
    const html = answer.html ?? answer.text;
    const language = name.endsWith('German') ? 'de' : 'en';
    expect(html, name).to.include(`<h1>${textsFor(language)('errors.store-away-heading')}</h1>`);
    expect(html, name).not.to.match(/redis|postgres|ECONN|timeout|\n\s+at /i);
    return;
  }
  expect(answer.headers.get('content-type'), name).to.contain('application/json');
  expect(answer.body, name).to.include({ error: 'temporarily_unavailable' });
  expect(answer.body?.error_description, name).to.match(
    /^(the service cannot reach its storage, )?try again in a moment$/,
  );
}

/** Checks that the code and the tokens issued before the outage are still valid. */
async function expectValid(issuer: string, { clients }: Seed, prior: Prior): Promise<void> {
  const isActive = async (token: string): Promise<unknown> =>
    (await introspect(issuer, clients.resourceServer, token)).body.active;
  expect(await isActive(prior.tokens.accessToken)).to.equal(true);
  const refreshed = await granted(refresh(issuer, clients.confidential, prior.tokens.refreshToken));
  expect(await isActive(refreshed.accessToken)).to.equal(true);
  await granted(exchangeCode(issuer, clients.confidential, prior.code));
}
