/** Every setting does what it says with a value that is not its default. */
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import { expect } from 'chai';
import { knownSettings } from '../../src/config/schema/known-settings.ts';
import { attempt, guesses, newPerson, spread } from '../pages/sign-in/password-guessing.ts';
import { tokensOf } from '../provider/partner-tokens.ts';
import { eventually } from '../support/eventually.ts';
import { counted, scrape } from '../support/metrics.ts';
import { clientCredentials, exchangeCode, introspect, refresh } from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { startSeeded } from '../support/seeded.ts';
import { windowOf } from '../support/stopwatch.ts';

const TESTS = path.join(import.meta.dirname, '..');
const HERE = 'config/settings-in-force.test.ts';

type Tested = readonly [file: string, title: string, value: string];

/** For each setting the test that sees it work, and the text by which that file sets another value. */
const TESTED: Readonly<Record<string, Tested>> = {
  issuer: [
    'provider/metadata.test.ts',
    'is what the metadata says, though the request came by http',
    "issuer = 'https://auth.example.test'",
  ],
  'server.host': [HERE, 'server.host is the only address', "host: '127.0.0.1'"],
  'server.port': ['main.test.ts', 'on an empty directory prints where it answers', 'PORT: '],
  'server.proxy_hops': [
    'many-nodes/reload.test.ts',
    'changes which address a caller comes from, and what is logged',
    'proxyHops: 1',
  ],
  'server.max_connections': [HERE, 'server.max_connections are', 'maxConnections: CONNECTIONS'],
  'server.operators_host': [
    'host/operators-host.test.ts',
    'goes by the name that it is configured to listen at',
    "operatorsHost: 'Gatehouse.internal'",
  ],
  'server.operators_port': ['main.test.ts', 'at SIGTERM it answers', 'GATEHOUSE_OPERATORS_PORT:'],
  'server.reuse_port': ['many-nodes/shared-port.slow.ts', 'all answer', 'reuse_port: true'],
  'server.shutdown_delay': [
    'many-nodes/leaving.slow.ts',
    'takes requests for the shutdown delay, on old and new connections, and says it leaves',
    'shutdown_delay: 3s',
  ],
  'storage.data_directory': [
    'main.test.ts',
    'the next start has everything that was there, and seeds nothing again',
    'GATEHOUSE_DATA_DIR: dataDirectory',
  ],
  'storage.database_url': [
    'storage/database.test.ts',
    'a server that is not there, or says nothing, is away within the limit',
    'databaseUrl',
  ],
  'storage.database_connections': [HERE, 'storage.database_connections', 'databaseConnections: 2'],
  'storage.remembered_people': [HERE, 'storage.remembered_people', 'rememberedPeople: 1'],
  'storage.redis_url': [
    'storage/redis.test.ts',
    'of one server names host, port, database, and who connects',
    'redis://',
  ],
  'storage.auto_migrate': [
    'storage/migrate.test.ts',
    'a node that may not migrate refuses to start, names what is pending, and changes nothing',
    'autoMigrate: false',
  ],
  'storage.accept_volatile_redis': [
    'storage/redis.test.ts',
    'that evicts or keeps nothing on disk is refused, each with its remedy',
    'acceptVolatileRedis',
  ],
  'tokens.authorization_code': [HERE, 'tokens.* are how long', 'authorizationCodeSeconds: 60'],
  'tokens.access_token': [HERE, 'tokens.* are how long', 'accessTokenSeconds: 120'],
  'tokens.machine_access_token': [HERE, 'tokens.* are how long', 'machineAccessTokenSeconds: 90'],
  'tokens.refresh_token': [HERE, 'tokens.* are how long', 'refreshTokenSeconds: 1_000'],
  'tokens.retry_window': [
    'many-nodes/reload.test.ts',
    'changes the retry window, for chains that were begun before too',
    'retryWindowSeconds: 0',
  ],
  'tokens.absolute_age': [HERE, 'tokens.* are how long', 'absoluteAgeSeconds: 2_500'],
  'sessions.idle': [
    'pages/sign-in/current-session.test.ts',
    'a session that nobody keeps alive ends',
    'idleSeconds: IDLE',
  ],
  'sessions.absolute': [
    'pages/sign-in/current-session.test.ts',
    'says how long the session lives from now, and renews it',
    'absoluteSeconds: ABSOLUTE',
  ],
  'sign_in.passwords': [
    'sign-in-upstream/journey.test.ts',
    'meets no page about passwords',
    'passwords: false',
  ],
  'sign_in.passkeys': [
    'pages/passkeys/passkeys.test.ts',
    'are on no page, and nothing answers',
    'passkeys: false',
  ],
  'sign_in.require': [
    'sign-in-upstream/required.test.ts',
    'do nothing in a session of before, once the grace is over',
    "require: 'passkey-or-upstream'",
  ],
  'sign_in.require_grace': [
    'sign-in-upstream/required.test.ts',
    'are told until when, on each page, and go on with a password meanwhile',
    'requireGraceSeconds: GRACE_SECONDS',
  ],
  'sign_in.providers': [
    'sign-in-upstream/sign-in.test.ts',
    'leads there with PKCE, state and nonce, back, and on to the page that asked for it',
    'startWithUpstream(',
  ],
  'sign_in.recovery_wait': [
    'sign-in-upstream/recovery-wait.test.ts',
    'starts a wait that the person is mailed about, after which another link does it',
    'recoveryWaitSeconds: WAIT',
  ],
  'limits.clients_per_person': [
    'pages/oauth-clients/oauth-clients.test.ts',
    'has a limit, told on the form, also when many are created at once',
    'clientsPerPerson: 3',
  ],
  'limits.api_keys_per_person': [
    'pages/api-keys.test.ts',
    'at the limit there is no form, and one sent by hand is refused in words',
    'apiKeysPerPerson: 3',
  ],
  'limits.sign_in_failures': [HERE, 'limits.sign_in_failures and', 'signInFailures: 2'],
  'limits.sign_in_failures_per_address': [
    HERE,
    'limits.sign_in_failures_per_address',
    'signInFailuresPerAddress: 4',
  ],
  'limits.sign_in_failure_window': [
    HERE,
    'limits.sign_in_failures and',
    'signInFailureWindowSeconds: 700',
  ],
  'limits.sign_in_failures_per_account': [
    HERE,
    'limits.sign_in_failures_per_account and',
    'signInFailuresPerAccount: 3',
  ],
  'limits.sign_in_account_window': [
    HERE,
    'limits.sign_in_failures_per_account and',
    'signInAccountWindowSeconds: 1_500',
  ],
  'limits.client_failures': [HERE, 'limits.client_failures and', 'clientFailures: 2'],
  'limits.client_failures_per_address': [
    'provider/failure-limits.test.ts',
    'of one address are counted together, whichever clients and endpoints they name',
    'clientFailuresPerAddress: PER_ADDRESS',
  ],
  'limits.client_failure_window': [
    HERE,
    'limits.client_failures and',
    'clientFailureWindowSeconds: 800',
  ],
  'limits.change_streams_per_client': [
    'provider/introspection-changes.test.ts',
    'is refused to a client that has too many, until it closes one, and to no other client',
    'changeStreamsPerClient: MAX',
  ],
  'limits.waiting_sign_ins_per_address': [
    'provider/waiting-sign-ins.test.ts',
    'are so many for each address, each small; others are told to wait',
    'waitingSignInsPerAddress: MOST',
  ],
  'mail.smtp_url': [
    'pages/account-mail.test.ts',
    'tells of a new browser, connection, key and password, each once',
    'smtpUrl: mail.url',
  ],
  'mail.from': [
    'pages/account-mail.test.ts',
    'tells of a new browser, connection, key and password, each once',
    'from }',
  ],
  'api.graphql_url': [
    'pages/oauth-clients/test.test.ts',
    'an API that fails stops the test, with what it said, and nothing stays',
    'api: { graphqlUrl',
  ],
  'api.example_query': [
    'pages/oauth-clients/test.test.ts',
    'an API that fails stops the test, with what it said, and nothing stays',
    "exampleQuery: '{a}'",
  ],
  'activity.retention': ['pages/activity.test.ts', 'is what the operator set', 'retentionSeconds:'],
  'import.prune_at_most': [
    'operator/import-prune.test.ts',
    'has the limit of the settings, in place of which an option may stand',
    'import: { prune_at_most:',
  ],
  'log.level': [
    'many-nodes/reload.test.ts',
    'changes which address a caller comes from, and what is logged',
    "level: 'silent'",
  ],
  'log.format': [
    'process-log.slow.ts',
    'has what is wrong at once, even if the process is killed the next moment',
    "'words'",
  ],
};

/** Settings without such a test, each with the reason. */
const NOT_TESTED: Readonly<Record<string, string>> = {
  demo: 'main.test.ts sees it in force; every service of the tests is started with false',
};

describe('settings', () => {
  it('are each tested with another value than their default', () => {
    const listed = Object.keys({ ...TESTED, ...NOT_TESTED });
    const next = 'add a test that starts the service with another value, and its row to TESTED';
    expect(listed, next).to.have.members([...knownSettings.keys()]);
    for (const [name, [file, title, value]] of Object.entries(TESTED)) {
      const place = path.join(TESTS, file);
      expect(existsSync(place), `${name}: ${file}`).to.equal(true);
      // What this list itself says does not count.
      const text = readFileSync(place, 'utf8').split('\nconst NOT_TESTED').at(-1);
      expect(text, `${name}: ${file}`).to.include(title).and.to.include(value);
    }
  });
});

const CONNECTIONS = 12;
const settings = {
  server: { host: '127.0.0.1', proxyHops: 1, maxConnections: CONNECTIONS },
  storage: { databaseConnections: 2, rememberedPeople: 1 },
  tokens: {
    authorizationCodeSeconds: 60,
    accessTokenSeconds: 120,
    machineAccessTokenSeconds: 90,
    refreshTokenSeconds: 1_000,
    absoluteAgeSeconds: 2_500,
  },
  limits: {
    signInFailures: 2,
    signInFailuresPerAddress: 4,
    signInFailureWindowSeconds: 700,
    signInFailuresPerAccount: 3,
    signInAccountWindowSeconds: 1_500,
    clientFailures: 2,
    clientFailureWindowSeconds: 800,
  },
};

/** Seconds that the clocks of the stores may differ from the test's. */
const SLACK = 10;

describeOn([postgresServer, redisServer], 'a service with other settings', () => {
  const on = startSeeded({ on: 'postgres+redis', clock: true, settings });
  const port = (): number => Number(new URL(on.issuer).port);

  it('server.host is the only address that it answers at', async () => {
    const [error] = await once(connect(port(), '127.0.0.2'), 'error');
    expect(error).to.have.property('code', 'ECONNREFUSED');
  });

  it('server.max_connections are open at once, and the others are closed', async () => {
    const sockets = Array.from({ length: CONNECTIONS + 5 }, () => connect(port(), '127.0.0.1'));
    let closed = 0;
    for (const socket of sockets) {
      socket.on('error', () => {});
      socket.on('close', () => {
        closed += 1;
      });
    }
    await eventually(() => expect(closed).to.be.at.least(5));
    expect(closed).to.be.below(sockets.length);
    for (const socket of sockets) socket.destroy();
    await eventually(async () => {
      expect((await clientCredentials(on.issuer, on.clients.machine)).status).to.equal(200);
    });
  });

  it('storage.database_connections are the most that are opened', async () => {
    const { database } = on.service;
    const slow = Array.from({ length: 5 }, () => database.query('SELECT pg_sleep(0.5)'));
    await eventually(() => {
      expect(database.connections()).to.include({ used: 2, waiting: 3 });
    });
    await Promise.all(slow);
  });

  it('storage.remembered_people are the most whose keys are looked up once', async () => {
    const values: string[] = [];
    for (const name of ['First', 'Second']) {
      const { value } = await on.service.apiKeys.add(
        { accountId: on.seeded.person.accountId, name, expiresInDays: 30 },
        { address: '203.0.113.7', browser: '' },
      );
      values.push(value);
    }
    const queries = async (): Promise<number> => {
      const samples = await scrape(on.service);
      const name = 'gatehouse_store_operation_duration_seconds_count';
      return counted(samples, name)['{store="database",operation="query"}'] ?? 0;
    };
    const queriesFor = async (value: string): Promise<number> => {
      const before = await queries();
      await introspect(on.issuer, on.clients.resourceServer, value);
      return (await queries()) - before;
    };
    const [first = '', second = ''] = values;
    await queriesFor(first);
    const remembered = await queriesFor(first);
    await queriesFor(second);
    expect(await queriesFor(first)).to.be.above(remembered);
  });

  it('tokens.* are how long codes and tokens live', async () => {
    const { confidential, machine, resourceServer } = on.clients;
    const isActive = async (token: unknown): Promise<unknown> =>
      (await introspect(on.issuer, resourceServer, String(token))).body.active;

    const code = await on.partner.code(confidential);
    on.clock.advance(60 + SLACK);
    expect((await exchangeCode(on.issuer, confidential, code)).body.error).to.equal(
      'invalid_grant',
    );

    const { body } = await clientCredentials(on.issuer, machine);
    expect(body.expires_in).to.equal(90);
    on.clock.advance(90 - SLACK);
    expect(await isActive(body.access_token)).to.equal(true);
    on.clock.advance(2 * SLACK);
    expect(await isActive(body.access_token)).to.equal(false);

    const tokens = await on.partner.tokens(confidential);
    on.clock.advance(120 - SLACK);
    expect(await isActive(tokens.accessToken)).to.equal(true);
    on.clock.advance(2 * SLACK);
    expect(await isActive(tokens.accessToken)).to.equal(false);

    const { refreshToken: unused } = await on.partner.tokens(confidential);
    on.clock.advance(1_000 + SLACK);
    const late = await refresh(on.issuer, confidential, unused);
    expect(late.body.error_description).to.include('refresh token has expired');

    let { refreshToken } = await on.partner.tokens(confidential);
    for (const seconds of [900, 900, 600]) {
      on.clock.advance(seconds);
      const answer = await refresh(on.issuer, confidential, refreshToken);
      expect(answer.status, answer.text).to.equal(200);
      ({ refreshToken } = tokensOf(answer));
    }
    on.clock.advance(100 + SLACK);
    const old = await refresh(on.issuer, confidential, refreshToken);
    expect(old.body.error_description).to.include('greatest age');
  });

  it('limits.client_failures and limits.client_failure_window hold back wrong secrets', async () => {
    const wrong = { ...on.clients.machine, secret: 'wrong' };
    const left = windowOf(800);
    const answers = [];
    for (let sent = 0; sent < 3; sent += 1) {
      answers.push(await clientCredentials(on.issuer, wrong));
    }
    expect(answers.map(({ status }) => status)).to.deep.equal([401, 401, 429]);
    expect(Number(answers[2]?.headers.get('retry-after'))).to.be.within(left(), 800);
  });

  it('limits.sign_in_failures and limits.sign_in_failure_window hold back wrong passwords', async () => {
    const person = await newPerson(on.service);
    const left = windowOf(700);
    const seen = await guesses(on.service, person, Array(3).fill('10.50.0.1'));
    expect(seen).to.deep.equal([401, 401, 429]);
    const right = await attempt(createPerson(on.issuer), person, '10.50.0.1');
    expect(Number(right.headers.get('retry-after'))).to.be.within(left(), 700);
  });

  it('limits.sign_in_failures_per_address are those of all accounts', async () => {
    const people = [];
    for (let count = 0; count < 5; count += 1) people.push(await newPerson(on.service));
    const seen = [];
    for (const person of people) seen.push(...(await guesses(on.service, person, ['10.51.0.1'])));
    expect(seen).to.deep.equal([401, 401, 401, 401, 429]);
  });

  it('limits.sign_in_failures_per_account and limits.sign_in_account_window are for all addresses', async () => {
    const person = await newPerson(on.service);
    const left = windowOf(1_500);
    expect(await guesses(on.service, person, spread(4, 52))).to.deep.equal([401, 401, 401, 429]);
    const right = await attempt(createPerson(on.issuer), person, '10.53.0.1');
    expect(Number(right.headers.get('retry-after'))).to.be.within(left(), 1_500);
  });
});
