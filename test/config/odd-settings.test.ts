/** What operators write by mistake or out of habit: each text is refused with its remedy, or means what it says. */
import { expect } from 'chai';
import { parse } from 'yaml';
import { inspectSettings } from '../../src/config/load.ts';
import { wordsOf } from '../support/words.ts';
import { fileWith, keysOfEnvironment, problemsOf, yamlWith } from './configuration.ts';

type Environment = Readonly<Record<string, string>>;
/** The setting, what its remedy contains, and its wrong values, separated by blanks. */
type Wrong = readonly [setting: string, remedy: string, values: string];
/** The text of the file, where the first problem is (FILE is the file), what its remedy contains, and variables. */
type Refused = readonly [yaml: string, path: string, remedy: string, environment?: Environment];
/** The setting, its value, how `check-config` shows it if not as it is written, and whether it causes a warning. */
type Kept = readonly [setting: string, value: string, more?: { readonly shown?: string; readonly isWarned?: true }];
/** The text of the file, the settings in force that are no defaults, the places of warnings, and variables. */
type Accepted = readonly [yaml: string, settings: object, warnings: string, environment?: Environment];

const KEY = 'c'.repeat(32);

/** One wrong setting in each file, by what is written. */
const WRONG: readonly Wrong[] = [
  ['issuer', 'put a TLS proxy in front and write `https://auth.example.com`', 'http://auth.example.com'],
  ['issuer', '`https://127.0.0.1.example.com`', 'http://127.0.0.1.example.com'],
  [
    'issuer',
    '`https://auth.example.com`',
    `https://auth.example.com/ https://auth.example.com/auth auth.example.com https://user:pw@auth.example.com
      https://auth.example.com?x=1 https://*.example.com https://a..b https://auth.example.com.`,
  ],
  ['server.port', 'write a number from 1 to 65535', '0 "3000" 08080'],
  ['server.host', '`localhost`', '"http://localhost" localhost:3000 "*" "[::1]" 999.1.1.1'],
  ['server.proxy_hops', 'write a number from 0 to 10', '-1'],
  ['server.max_connections', 'write a number from 1 to 1000000', '0'],
  ['server.reuse_port', '`false`', 'true'],
  ['server.shutdown_delay', '`5m`', '30 6m'],
  ['storage.data_directory', '`./data`', '~/data $(pwd)/data /srv/$DATA file:///data "no" "Off" none'],
  [
    'storage.database_url',
    'write `postgres',
    `mysql://db/x postgres://db/x?sslmode=verify-full&sslmode=no postgres://u:100%@db/x postgres://a@*.x/g
      postgres://a@db:0/g postgres://db/x?sslmode=verfy-full`,
  ],
  ['storage.database_url', '% as %25', 'postgres://u:1/2@db/x'],
  ['storage.database_url', '/gatehouse`', 'postgres://db postgres://db//'],
  ['storage.redis_url', '`redis://:password@host:6379`', 'redis://gate@r redis+sentinel://gate:@h/m'],
  [
    'storage.redis_url',
    '`redis://host:6379`',
    'http://r redis+sentinel://h1 "redis://a:1,b:2" redis+cluster://a:1/x redis://:50%@redis redis://*.x redis://host:0',
  ],
  ['storage.database_connections', 'write a number from 4 to 1000', '1'],
  ['storage.auto_migrate', '`true`', '"no" no'],
  ['tokens.access_token', '`10m`', '0s 60 010m'],
  ['tokens.authorization_code', '`10m`', '11m'],
  ['tokens.retry_window', '`10m`', 'off'],
  ['tokens.absolute_age', '`365d`', 'never'],
  ['sessions.shared_terminals', '`[192.0.2.0/24]`', '10.0.0.0/8'],
  ['sign_in.passwords', '`true`', 'false'],
  ['sign_in.require', '`off`', 'passkey'],
  ['sign_in.providers', '`id`', '{}'],
  ['limits.clients_per_person', 'write a number from 0 to 100000', '-1'],
  ['limits.sign_in_failures', 'write a number from 1 to 1000000', '0'],
  ['mail.smtp_url', '`smtp://mail.example.com:587`', 'mail.example.com smtp://gate:50%@mail smtp://*.x smtp://mail:0'],
  [
    'api.graphql_url',
    '`https://api.example.com/graphql`',
    `https://me:pw@api.example/ https://api.example/#x http://localhost.evil/ http://api.example.com/graphql
      https://*.x/graphql`,
  ],
  ['api.example_query', '`"{ organizations { name } }"`', '""'],
  ['brand.colour', '`"#0b5cad"`', 'green'],
  ['brand.name', '`Acme`', '"" {"fr":"x"}'],
  ['brand.logo', 'name a PNG or WebP file of at most 100 kB (docs/op', 'missing.png'],
  ['brand.support', '`help@example.com`', 'javascript:alert(1)'],
  ['rights.admin', 'remove it', 'x'],
  ['organizations.clients', '`open`', 'Ask'],
  ['activity.retention', '`1d`', '0d'],
  ['leaks.secret_grace', '`10m`', 'forever'],
  ['import.removals_per_hour', '`10%`', '101% 010 0.1'],
  ['demo', '`true`', 'yes'],
  ['log.level', '`debug`', 'WARN'],
  ['log', '`log`', 'verbose'],
  ['loglevel', 'remove it; allowed here: issuer, server, storage,', 'info'],
  ['retry_window', '`retry_window` belongs under `tokens`', '5s'],
  ['server.issuer', 'belongs at the left margin', 'x'],
  ['server.proxyHops', 'remove it; allowed here: host, port, proxy_hops,', '1'],
];

const REFUSED: readonly Refused[] = [
  [
    'issuer: https://auth.example.com',
    'server.proxy_hops',
    'write how many of your proxies append to X-Forwarded-For, usually `1`',
  ],
  ['issuer: HTTPS://Auth.Example.com\nserver: {proxy_hops: 1}', 'issuer', '`https://auth.example.com`'],
  ['issuer: https://auth.example.com:443\nserver: {proxy_hops: 1}', 'issuer', '`https://auth.example.com`'],
  ['issuer: https://münchen.example\nserver: {proxy_hops: 1}', 'issuer', '`https://xn--mnchen-3ya.example`'],
  ['server: {port: 3001}', 'server.operators_port', '`0`'],
  ['server: {operators_host: local host}', 'server.operators_host', '`localhost`'],
  ['{}', 'server.operators_port', '`0`', { PORT: '3001' }],
  ['server: {shutdown_delay: "30 s"}', 'server.shutdown_delay', '`5m`'],
  ['storage: {data_directory: "off "}', 'storage.database_url', 'set DATABASE_URL'],
  ['storage: {data_directory: off}', 'storage.database_url', 'set DATABASE_URL'],
  ['{}', 'storage.database_url', 'set DATABASE_URL', { GATEHOUSE_DATA_DIR: 'off' }],
  [
    'tokens: {refresh_token: 400d, absolute_age: 365d}',
    'tokens.refresh_token',
    'write a duration of at most tokens.absolute_age',
  ],
  ['tokens: {refresh_token: 60s}', 'tokens.retry_window', 'shorter'],
  ['tokens: {retry_window: 31m, refresh_token: 10m}', 'tokens.retry_window', '`60s`'],
  ['sessions: {idle: 8d, absolute: 7d}', 'sessions.idle', 'write a duration of at most sessions.absolute'],
  ['sessions: {shared_terminals: [10.1.2.3/16]}', 'sessions.shared_terminals.0', '`192.0.2.0/24`'],
  ['sessions: {shared_terminals: ["10.0.0.1"]}', 'sessions.shared_terminals.0', '`192.0.2.0/24`'],
  ['sessions: {shared_terminals: ["::1/129"]}', 'sessions.shared_terminals.0', '`192.0.2.0/24`'],
  ['sign_in: {require: passkey-or-upstream, passkeys: false}', 'sign_in.require', '`off`'],
  ['mail: {smtp_url: "smtp://m"}', 'mail.from', '`gatehouse@example.com`'],
  ['api: {test_organizations: [wh_0123456789abcdef]}', 'api.test_organizations.0', '`organizations list`'],
  ['api: {test_organizations: [org_0123456789abcde]}', 'api.test_organizations.0', '`organizations list`'],
  ['api: {test_organizations: ["org_ 123456789abcdef"]}', 'api.test_organizations.0', '`organizations list`'],
  ['api: {test_organizations: [org_0123456789abcdef, 7]}', 'api.test_organizations.1', '`organizations list`'],
  ['api: {example_query: " "}', 'api.example_query', '`"{ organizations { name } }"`'],
  ['demo: true\nissuer: https://auth.example.com\nserver: {proxy_hops: 1}\n', 'demo', 'remove it'],
  ['sessions.absolute: 1d', 'sessions.absolute', 'remove it'],
  ['- a', 'FILE', '`name: value`'],
  ['', 'FILE', 'restore the file, perhaps from a full disk'],
  ['server:', 'FILE', '`{}`'],
  ['log: &a {level: info}\nserver: *a', 'server.level', '`level` belongs under `log`'],
  [
    '{}',
    'GATEHOUSE_TOKEN_KEYS, key 1 of 1',
    '`openssl rand -base64 48`',
    { GATEHOUSE_TOKEN_KEYS: 'short', GATEHOUSE_COOKIE_KEYS: KEY },
  ],
  [
    '{}',
    'DATABASE_URL',
    'unset one of the two',
    { DATABASE_URL: 'postgres://db/x', DATABASE_URL_FILE: '/etc/hostname' },
  ],
];

/** One wrong variable each, where the problem is, and what its remedy contains. */
const WRONG_VARIABLES: readonly (readonly [name: string, value: string, path: string, remedy: string])[] = [
  ['PORT', '3000x', 'server.port (from PORT)', 'write a number from 1 to 65535'],
  ['PORT', '08080', 'server.port (from PORT)', 'write a number from 1 to 65535'],
  ['DATABASE_URL', 'postgres://db', 'storage.database_url (from DATABASE_URL)', '/gatehouse`'],
  ['GATEHOUSE_TOKEN_KEY', 'x', 'GATEHOUSE_TOKEN_KEY', 'did you mean GATEHOUSE_TOKEN_KEYS?'],
  ['GATEHOUSE_DATABASE_URL', 'x', 'GATEHOUSE_DATABASE_URL', 'did you mean DATABASE_URL?'],
  ['GATEHOUSE_ISSUER_FILE', 'x', 'GATEHOUSE_ISSUER_FILE', 'set GATEHOUSE_ISSUER instead: only secrets'],
  ['DATABASE_URL', 'postgres://db/x', 'GATEHOUSE_COOKIE_KEYS', '`openssl rand -base64 48`'],
  ['DATABASE_URL_FILE', '/nonexistent', 'DATABASE_URL_FILE', 'name a file that exists and that this process may '],
  ['GATEHOUSE_OPERATORS_PORT', '70000', 'server.operators_port (from GATEHOUSE_OPERATORS_PORT)', '65535'],
  ['REDIS_URL', 'http://redis', 'storage.redis_url (from REDIS_URL)', '`redis://host:6379`'],
  ['SMTP_URL', 'mail.example.com', 'mail.smtp_url (from SMTP_URL)', '`smtp://mail.example.com:587`'],
  ['GATEHOUSE_LOG_LEVEL', 'trace', 'log.level (from GATEHOUSE_LOG_LEVEL)', '`debug`'],
  ['GATEHOUSE_ISSUER', 'http://example.com', 'issuer (from GATEHOUSE_ISSUER)', '`https://example.com`'],
  ['GATEHOUSE_CHANGES_SECRETS', 'nocolon', 'GATEHOUSE_CHANGES_SECRETS, entry 1 of 1', '`openssl rand -base64 48`'],
  ['GATEHOUSE_CHANGES_SECRETS', 'hr:short', 'GATEHOUSE_CHANGES_SECRETS, entry 1 of 1', '`openssl rand -base64 48`'],
  ['GATEHOUSE_SERVER_PORT', '1', 'GATEHOUSE_SERVER_PORT', 'did you mean PORT?'],
  ['GATEHOUSE_PORT', '1', 'GATEHOUSE_PORT', 'did you mean PORT?'],
  ['GATEHOUSE_TOKENS_RETRY_WINDOW', '1', 'GATEHOUSE_TOKENS_RETRY_WINDOW', 'has no variable'],
  ['SMTP_URL', 'smtp://m', 'mail.from', '`gatehouse@example.com`'],
  ['GATEHOUSE_COOKIE_KEYS_FILE', fileWith('\n', 'empty'), 'GATEHOUSE_COOKIE_KEYS_FILE', 'write'],
];

/** One setting in each file that is kept as it is written, or as it is shown. */
const KEPT: readonly Kept[] = [
  ['server.operators_host', '0.0.0.0'],
  ['storage.database_url', '"postgres:///x "'],
  ['storage.database_url', 'postgres://u:p@ss@db/x', { shown: 'postgres://u:***@db/x' }],
  ['storage.database_url', 'postgres://db/x?connection_limit=5', { shown: 'postgres://db/x?connection_limit=***' }],
  ['storage.database_url', 'postgres://db/x?sslmode=verify-full&application_name=a'],
  ['storage.data_directory', '/srv/share$'],
  ['storage.redis_url', 'redis://gate:pw@r', { shown: 'redis://gate:***@r' }],
  ['storage.redis_url', 'redis://r'],
  ['tokens.absolute_age', '365d'],
  ['sessions.shared_terminals', '[0.0.0.0/0]', { isWarned: true }],
  ['sessions.shared_terminals', '["::/0"]', { isWarned: true }],
  ['sessions.shared_terminals', '["::ffff:0.0.0.0/96"]', { isWarned: true }],
  ['sessions.shared_terminals', '[0.0.0.0/1, 128.0.0.0/1]', { isWarned: true }],
  ['sessions.shared_terminals', '["::ffff:10.0.0.0/104"]'],
  ['limits.client_failures_per_address', '1', { isWarned: true }],
  ['limits.sign_in_failures_per_address', '1', { isWarned: true }],
  ['brand.name', '007', { shown: '007' }],
  ['sign_in.require_grace', '0s'],
  ['mail.from', 'a@b.test', { isWarned: true }],
];

const ACCEPTED: readonly Accepted[] = [
  [
    'server: {reuse_port: true}',
    { 'server.reuse_port': true, 'storage.database_url': 'postgres://db/x' },
    '',
    { ...keysOfEnvironment, DATABASE_URL: 'postgres://db/x' },
  ],
  [
    'tokens: {refresh_token: 1h, access_token: 2h}',
    { 'tokens.access_token': '2h', 'tokens.refresh_token': '1h' },
    'tokens.refresh_token',
  ],
  [
    'mail: {from: "Gatehouse <a@b.test>", smtp_url: "smtp://m"}',
    { 'mail.smtp_url': 'smtp://m', 'mail.from': 'Gatehouse <a@b.test>' },
    '',
  ],
  [
    'mail: {smtp_url: "smtp://u:p@m:587/", from: a@b.test}',
    { 'mail.smtp_url': 'smtp://u:***@m:587/', 'mail.from': 'a@b.test' },
    '',
  ],
  [
    'mail: {smtp_url: "smtp://m:465", from: a@b.test}',
    { 'mail.smtp_url': 'smtp://m:465', 'mail.from': 'a@b.test' },
    'mail.smtp_url',
  ],
  ['{}', {}, ''],
  ['{}', { 'server.port': 3000 }, '', { PORT: ' 3000 ' }],
  ['{}', {}, '', { PORT: '', DATABASE_URL: ' ', GATEHOUSE_COOKIE_KEYS: '' }],
  [
    '{}',
    { 'storage.database_url': 'postgres://db/x' },
    'GATEHOUSE_COOKIE_KEYS, GATEHOUSE_TOKEN_KEYS',
    { GATEHOUSE_TOKEN_KEYS: KEY, GATEHOUSE_COOKIE_KEYS: KEY, DATABASE_URL: 'postgres://db/x' },
  ],
];

describe('an unusual setting is either refused with a remedy or gets the value that the operator meant', () => {
  it('a meaningless or misleading setting is refused, and the error names its place and the remedy', () => {
    const wrong = WRONG.flatMap(([setting, remedy, values]) =>
      wordsOf(values).map((value): Refused => [yamlWith(setting, value), setting, remedy, keysOfEnvironment]),
    );
    const variables = WRONG_VARIABLES.map(
      ([name, value, path, remedy]): Refused => ['{}', path, remedy, { [name]: value }],
    );
    for (const [yaml, path, remedy, environment] of [...wrong, ...REFUSED, ...variables]) {
      const [problem] = problemsOf(yaml, environment);
      const place = problem?.path.replace(fileWith(yaml), 'FILE');
      expect(place, yaml).to.equal(path);
      expect(problem?.remedy, yaml).to.contain(remedy);
    }
  });

  it('an accepted unusual setting gets the value that the operator meant, and a likely mistake causes a warning', () => {
    const kept = KEPT.map(([setting, value, { shown = parse(value), isWarned } = {}]): Accepted => {
      const warned = isWarned ? setting : '';
      return [yamlWith(setting, value), { [setting]: shown }, warned, keysOfEnvironment];
    });
    for (const [yaml, settings, warned, environment = {}] of [...kept, ...ACCEPTED]) {
      const { effectiveSettings, warnings } = inspectSettings({ environment, file: fileWith(yaml) });
      const given = effectiveSettings.filter(({ from }) => from !== 'default');
      expect(Object.fromEntries(given.map(({ name, value }) => [name, value])), yaml).to.deep.equal(settings);
      expect(warnings.map(({ path }) => path).join(), yaml).to.equal(warned);
    }
  });
});
