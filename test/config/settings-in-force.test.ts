/** Every setting has its effect with a value other than its default. */
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import { expect } from 'chai';
import { type KnownSetting, knownSettings } from '../../src/config/schema/known-settings.ts';
import { valueAt } from '../../src/config/validate.ts';
import { attempt, guesses, newPerson, spread } from '../pages/sign-in/password-guessing.ts';
import { tokensOf } from '../provider/partner-tokens.ts';
import { eventually } from '../support/eventually.ts';
import { counted, scrape } from '../support/metrics.ts';
import { clientCredentials, exchangeCode, introspect, refresh } from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { startSeeded } from '../support/seeded.ts';
import { windowOf } from '../support/stopwatch.ts';
import { settingsOf } from './configuration.ts';

const DEFAULTS = settingsOf('{}');
const TESTS = path.join(import.meta.dirname, '..');
const HERE = 'config/settings-in-force.test.ts';

/**
 * @param setting the text in the file that sets the value; needed if the value is not a literal.
 */
type Tested = readonly [file: string, beginningOfTitle: string, setting?: string];

/** For each setting, the test that uses a value other than its default. */
const TESTED: Readonly<Record<string, Tested>> = {
  issuer: [
    'provider/metadata.test.ts',
    'an https issuer is the one in the metadata, even if the request came by http',
    "issuer = 'https://auth.example.test'",
  ],
  'server.host': [HERE, 'server.host is the only address'],
  'server.port': ['main.test.ts', 'started on an empty directory, the service prints', 'PORT: '],
  'server.proxy_hops': ['many-nodes/reload.test.ts', 'a reload changes which client address'],
  'server.max_connections': [HERE, 'server.max_connections limits'],
  'server.operators_host': ['host/operators-host.test.ts', 'the listener for operators answers for its'],
  'server.operators_port': ['main.test.ts', 'on SIGTERM the service answers'],
  'server.reuse_port': ['many-nodes/shared-port.slow.ts', 'all processes that share a port receive'],
  'server.shutdown_delay': ['many-nodes/leaving.slow.ts', 'a stopping node accepts requests'],
  'storage.data_directory': ['main.test.ts', 'the next start', 'GATEHOUSE_DATA_DIR: dataDirectory'],
  'storage.database_url': ['storage/database.test.ts', 'a database server that is', 'databaseUrl'],
  'storage.database_connections': [HERE, 'storage.database_connections'],
  'storage.remembered_people': [HERE, 'storage.remembered_people'],
  'storage.redis_url': ['storage/redis.test.ts', 'the URL of one Redis server contains', 'redis://'],
  'storage.auto_migrate': ['storage/migrate.test.ts', 'a node that may not migrate refuses to'],
  'tokens.authorization_code': [HERE, 'tokens.* set the lifetimes'],
  'tokens.access_token': [HERE, 'tokens.* set the lifetimes'],
  'tokens.machine_access_token': [HERE, 'tokens.* set the lifetimes'],
  'tokens.refresh_token': [HERE, 'tokens.* set the lifetimes'],
  'tokens.retry_window': ['many-nodes/reload.test.ts', 'a reload changes the retry window'],
  'tokens.absolute_age': [HERE, 'tokens.* set the lifetimes'],
  'sessions.idle': ['pages/sign-in/current-session.test.ts', 'a session without requests ends'],
  'sessions.absolute': ['pages/sign-in/current-session.test.ts', 'a request to renew the session extends it'],
  'sessions.shared_terminals': [
    'pages/sign-in/shared-terminals.test.ts',
    'a session there ends after 15 minutes',
    'sharedTerminals: [',
  ],
  'sign_in.passwords': ['sign-in-upstream/journey.test.ts', 'a user of a provider without a password sees'],
  'sign_in.passkeys': ['pages/passkeys/passkeys.test.ts', 'disabled passkeys are'],
  'sign_in.require': ['sign-in-upstream/required.test.ts', 'owners and admins cannot'],
  'sign_in.require_grace': ['sign-in-upstream/required.test.ts', 'owners and admins see the end'],
  'sign_in.providers': [
    'sign-in-upstream/sign-in.test.ts',
    'a sign-in with a provider uses PKCE, state and nonce',
    'startWithUpstream(',
  ],
  'limits.clients_per_person': ['pages/oauth-clients/oauth-clients.test.ts', 'the form for a client states'],
  'limits.api_keys_per_person': ['pages/api-keys.test.ts', 'a user with the maximum number of API keys'],
  'limits.api_key_days': ['pages/api-keys.test.ts', 'with limits.api_key_days the form'],
  'limits.people_per_unchecked_client': ['provider/people-limit.test.ts', 'beyond the user limit of a client'],
  'limits.sign_in_failures': [HERE, 'limits.sign_in_failures and'],
  'limits.sign_in_failures_per_address': [HERE, 'limits.sign_in_failures_per_address'],
  'limits.sign_in_failure_window': [HERE, 'limits.sign_in_failures and'],
  'limits.sign_in_failures_per_account': [HERE, 'limits.sign_in_failures_per_account and'],
  'limits.sign_in_account_window': [HERE, 'limits.sign_in_failures_per_account and'],
  'limits.client_failures': [HERE, 'limits.client_failures and'],
  'limits.client_failures_per_address': ['provider/failure-limits.test.ts', 'refused requests are'],
  'limits.client_failure_window': [HERE, 'limits.client_failures and'],
  'limits.change_streams_per_client': ['provider/introspection-changes.test.ts', 'too many'],
  'limits.waiting_sign_ins_per_address': ['provider/waiting-sign-ins.test.ts', 'at most the'],
  'mail.smtp_url': ['pages/account-mail.test.ts', 'mail announces a new', 'startsWithMail('],
  'mail.from': ['pages/account-mail.test.ts', 'mail announces a new browser, connection', 'startsWithMail('],
  'api.graphql_url': ['pages/oauth-clients/test.test.ts', 'a failing API stops', 'api: { graphqlUrl'],
  'api.example_query': ['pages/oauth-clients/test.test.ts', 'a failing API stops the client test'],
  'api.test_organizations': [
    'pages/oauth-clients/test-organizations.test.ts',
    'only organizations that the operator names can be joined',
    'testOrganizations: [on.seeded.organization.id]',
  ],
  'brand.name': ['pages/brand.test.ts', 'pages, errors and mail show the name'],
  'brand.logo': ['pages/brand.test.ts', 'the logo is served', 'logo: acme.webp'],
  'brand.logo_dark': ['pages/brand.test.ts', 'the logo is served', 'logo_dark: acme.png'],
  'brand.colour': ['pages/brand.test.ts', 'the stylesheet contains the colour'],
  'brand.home_url': ['pages/brand.test.ts', 'the footer of pages'],
  'brand.support': ['pages/brand.test.ts', 'the footer of pages'],
  'brand.privacy_url': ['pages/brand.test.ts', 'the footer of pages'],
  'brand.terms_url': ['pages/brand.test.ts', 'the footer of pages'],
  'rights.read': ['pages/brand.test.ts', 'users read the rights', 'read: {'],
  'rights.write': ['pages/brand.test.ts', 'users read the rights'],
  'rights.manage': ['pages/brand.test.ts', 'users read the rights'],
  'organizations.clients': [
    'import/import.test.ts',
    'a line with `clients` sets the policy of its organization',
    'organizations: { clients:',
  ],
  'leaks.secret_grace': ['authorizations/leaked-values.test.ts', 'a changed grace period applies to secrets'],
  'activity.retention': ['pages/activity.test.ts', 'activity entries are stored for as long as'],
  'import.prune_at_most': [
    'import/prune.test.ts',
    'the limit of removals by `--prune` comes from the settings',
    'import: { prune_at_most:',
  ],
  'import.removals_per_hour': [
    'import/pushed-lines.test.ts',
    'removals over the hourly limit are not applied',
    "removalsPerHour: '3'",
  ],
  'log.level': ['many-nodes/reload.test.ts', 'a reload changes which client address is'],
  'log.format': ['process-log.slow.ts', 'warnings are written to the log at once, even', "'words'"],
};

/** Settings without such a test, each with the reason. */
const NOT_TESTED: Readonly<Record<string, string>> = {
  demo: 'main.test.ts tests it; every service of the tests is started with false',
};

describe('each setting', () => {
  const all = [...knownSettings.values()];

  it('each setting is read by the service', () => {
    const folder = path.join(TESTS, '../src');
    const readers = readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !name.startsWith('config/'))
      .map((name) => readFileSync(path.join(folder, name), 'utf8'));
    const code = readers.join('\n').replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '');
    const unread = all.filter(({ codePath }) => !new RegExp(`\\b${codePath.at(-1)}\\b`).test(code));
    expect(unread.map(({ name }) => name)).to.deep.equal([]);
  });

  it('each setting has a test with a value other than its default', () => {
    const tested = all.filter(({ name }) => !Object.hasOwn(NOT_TESTED, name));
    expect(tested.flatMap(faultOf)).to.deep.equal([]);
    expect(Object.keys({ ...TESTED, ...NOT_TESTED })).to.have.lengthOf(all.length);
  });
});

/** Returns the faults of the setting's row in TESTED; empty if there are none. */
function faultOf({ name, path: steps, codePath, variable, defaultValue }: KnownSetting): string[] {
  const [file, title = '', setting] = TESTED[name] ?? [];
  if (file === undefined) return [`${name} has no row in TESTED`];
  // Leave out the list above, which quotes all titles: it is no test.
  const text = readFileSync(path.join(TESTS, file), 'utf8').split('\nconst NOT_TESTED').at(-1) ?? '';
  if (!text.includes(`'${title}`)) return [`${name}: ${file} has no test '${title}…'`];
  if (setting !== undefined && text.includes(setting)) return [];
  const defaults = [defaultValue, valueAt(DEFAULTS, codePath)].map(String);
  const names = [steps.at(-1), codePath.at(-1), variable].filter(Boolean).join('|');
  const literals = [...text.matchAll(new RegExp(`\\b(?:${names}): ('[^']*'|\\w+)`, 'g'))]
    .map(([, value = '']) => literalOf(value, text))
    .filter((value) => value !== undefined);
  const isOther = literals.some((value) => !defaults.includes(value));
  return isOther ? [] : [`${name}: ${file} has no value other than its default`];
}

/** The value of a literal or of a constant of the file; undefined for anything else. */
function literalOf(word: string, text: string): string | undefined {
  if (word.startsWith("'")) return word.slice(1, -1);
  if (/^(\d|true$|false$)/.test(word)) return word.replaceAll('_', '');
  const [, value] = new RegExp(`\\bconst ${word} = ([\\w* ]+);`).exec(text) ?? [];
  const factors = value?.split(' * ').map((factor) => literalOf(factor, text));
  if (factors?.length === 1) return factors[0];
  return factors && String(factors.reduce((product, factor) => product * Number(factor), 1));
}

const CONNECTIONS = 12;
const settings = {
  server: { host: '127.0.0.1', proxyHops: 1, maxConnections: CONNECTIONS },
  storage: { databaseConnections: 4, rememberedPeople: 1 },
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

/** Maximum seconds by which the clocks of the stores differ from the test clock. */
const SLACK = 10;

describeOn([postgresServer, redisServer], 'a service with other settings', () => {
  const on = startSeeded({ on: 'postgres+redis', clock: true, settings });
  const port = (): number => Number(new URL(on.issuer).port);

  it('server.host is the only address at which the service listens', async () => {
    const [error] = await once(connect(port(), '127.0.0.2'), 'error');
    expect(error).to.have.property('code', 'ECONNREFUSED');
  });

  it('server.max_connections limits the open connections, and further ones are closed', async () => {
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

  it('storage.database_connections limits the open connections', async () => {
    const { database } = on.service;
    const { promise: seen, resolve: release } = Promise.withResolvers<void>();
    const held = Array.from({ length: 7 }, () => database.transaction(() => seen));
    await eventually(() => {
      const { used, waiting } = database.connections();
      expect(used).to.equal(4);
      // The service's own queries may wait as well.
      expect(waiting).to.be.at.least(3);
    }).finally(release);
    await Promise.all(held);
  });

  it('storage.remembered_people limits the number of users in the cache', async () => {
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
    // The lowest of several counts, because the service's own queries are counted, too.
    let remembered = Number.POSITIVE_INFINITY;
    for (let times = 0; times < 5; times += 1) {
      remembered = Math.min(remembered, await queriesFor(first));
    }
    await queriesFor(second);
    expect(await queriesFor(first)).to.be.above(remembered);
  });

  it('tokens.* set the lifetimes of codes and tokens', async () => {
    const { confidential, machine, resourceServer } = on.clients;
    const isActive = async (token: unknown): Promise<unknown> =>
      (await introspect(on.issuer, resourceServer, String(token))).body.active;

    const code = await on.partner.code(confidential);
    on.clock.advance(60 + SLACK);
    expect((await exchangeCode(on.issuer, confidential, code)).body.error).to.equal('invalid_grant');

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
    // The last access token expires with its authorization.
    const last = await refresh(on.issuer, confidential, refreshToken);
    expect(Number(last.body.expires_in)).to.be.within(100 - SLACK, 100 + SLACK);
    on.clock.advance(100 + SLACK);
    expect(await isActive(tokensOf(last).accessToken)).to.equal(false);
    const old = await refresh(on.issuer, confidential, tokensOf(last).refreshToken);
    const cause = 'the authorization has reached its greatest age, connect again';
    expect(old.body).to.include({ error: 'invalid_grant', error_description: cause });
  });

  it('limits.client_failures and limits.client_failure_window limit wrong secrets', async () => {
    const wrong = { ...on.clients.machine, secret: 'wrong' };
    const left = windowOf(800);
    const answers = [];
    for (let sent = 0; sent < 3; sent += 1) {
      answers.push(await clientCredentials(on.issuer, wrong));
    }
    expect(answers.map(({ status }) => status)).to.deep.equal([401, 401, 429]);
    expect(Number(answers[2]?.headers.get('retry-after'))).to.be.within(left(), 800);
  });

  it('limits.sign_in_failures and limits.sign_in_failure_window limit wrong passwords', async () => {
    const person = await newPerson(on.service);
    const left = windowOf(700);
    const seen = await guesses(on.service, person, Array(3).fill('10.50.0.1'));
    expect(seen).to.deep.equal([401, 401, 429]);
    const right = await attempt(createPerson(on.issuer), person, '10.50.0.1');
    expect(Number(right.headers.get('retry-after'))).to.be.within(left(), 700);
  });

  it('limits.sign_in_failures_per_address counts the failures of all accounts', async () => {
    const people = [];
    for (let count = 0; count < 5; count += 1) people.push(await newPerson(on.service));
    const seen = [];
    for (const person of people) seen.push(...(await guesses(on.service, person, ['10.51.0.1'])));
    expect(seen).to.deep.equal([401, 401, 401, 401, 429]);
  });

  it('limits.sign_in_failures_per_account and limits.sign_in_account_window apply to all addresses', async () => {
    const person = await newPerson(on.service);
    const left = windowOf(1_500);
    expect(await guesses(on.service, person, spread(4, 52))).to.deep.equal([401, 401, 401, 429]);
    const right = await attempt(createPerson(on.issuer), person, '10.53.0.1');
    expect(Number(right.headers.get('retry-after'))).to.be.within(left(), 1_500);
  });
});
