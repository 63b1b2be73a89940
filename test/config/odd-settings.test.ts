/** What operators write by mistake or out of habit: each text is refused with its remedy, or means what it says. */
import { expect } from 'chai';
import { inspectSettings } from '../../src/config/load.ts';
import { fileWith, keysOfEnvironment, problemsOf } from './configuration.ts';

type Environment = Readonly<Record<string, string>>;
/** The text of the file, where the first problem is (FILE is the file), what its remedy contains, and variables. */
type Refused = readonly [yaml: string, path: string, remedy: string, environment?: Environment];
/** The text of the file, the settings in force that are no defaults, the places of warnings, and variables. */
type Accepted = readonly [yaml: string, settings: object, warnings: string, environment?: Environment];

const KEY = 'c'.repeat(32);

const REFUSED: readonly Refused[] = [
  [
    'issuer: https://auth.example.com',
    'server.proxy_hops',
    'write how many of your proxies append to X-Forwarded-For, usually `1`',
  ],
  ['issuer: http://auth.example.com', 'issuer', 'put a TLS proxy in front and write `https://auth.example.com`'],
  ['issuer: http://127.0.0.1.example.com', 'issuer', '`https://127.0.0.1.example.com`'],
  ['issuer: https://auth.example.com/', 'issuer', '`https://auth.example.com`'],
  ['issuer: https://auth.example.com/auth', 'issuer', '`https://auth.example.com`'],
  ['issuer: auth.example.com', 'issuer', '`https://auth.example.com`'],
  ['issuer: HTTPS://Auth.Example.com\nserver: {proxy_hops: 1}', 'issuer', '`https://auth.example.com`'],
  ['issuer: https://auth.example.com:443\nserver: {proxy_hops: 1}', 'issuer', '`https://auth.example.com`'],
  ['issuer: https://user:pw@auth.example.com', 'issuer', '`https://auth.example.com`'],
  ['issuer: https://münchen.example\nserver: {proxy_hops: 1}', 'issuer', '`https://xn--mnchen-3ya.example`'],
  ['issuer: https://auth.example.com?x=1', 'issuer', '`https://auth.example.com`'],
  ['server: {port: 0}', 'server.port', 'write a number from 1 to 65535'],
  ['server: {port: "3000"}', 'server.port', 'write a number from 1 to 65535'],
  ['server: {port: 08080}', 'server.port', 'write a number from 1 to 65535'],
  ['server: {port: 3001}', 'server.operators_port', '`0`'],
  ['server: {host: "http://localhost"}', 'server.host', '`localhost`'],
  ['server: {host: "localhost:3000"}', 'server.host', '`localhost`'],
  ['server: {host: "*"}', 'server.host', '`localhost`'],
  ['server: {proxy_hops: -1}', 'server.proxy_hops', 'write a number from 0 to 10'],
  ['server: {max_connections: 0}', 'server.max_connections', 'write a number from 1 to 1000000'],
  ['server: {reuse_port: true}', 'server.reuse_port', '`false`'],
  ['{}', 'server.operators_port', '`0`', { PORT: '3001' }],
  ['server: {shutdown_delay: 30}', 'server.shutdown_delay', '`5m`'],
  ['server: {shutdown_delay: "30 s"}', 'server.shutdown_delay', '`5m`'],
  ['server: {shutdown_delay: 6m}', 'server.shutdown_delay', '`5m`'],
  ['storage: {data_directory: ~/data}', 'storage.data_directory', '`./data`'],
  ['storage: {data_directory: "$(pwd)/data"}', 'storage.data_directory', '`./data`'],
  ['storage: {data_directory: /srv/$DATA}', 'storage.data_directory', '`./data`'],
  ['storage: {data_directory: "file:///data"}', 'storage.data_directory', '`./data`'],
  ['storage: {data_directory: "off "}', 'storage.database_url', 'set DATABASE_URL'],
  ['storage: {data_directory: "no"}', 'storage.data_directory', '`./data`'],
  ['storage: {data_directory: off}', 'storage.database_url', 'set DATABASE_URL'],
  ['{}', 'storage.database_url', 'set DATABASE_URL', { GATEHOUSE_DATA_DIR: 'off' }],
  ['storage: {database_url: mysql://db/x}', 'storage.database_url', 'write `postgres'],
  ['storage: {database_url: "postgres://u:1/2@db/x"}', 'storage.database_url', '% as %25', keysOfEnvironment],
  ['storage: {database_url: "postgres://db"}', 'storage.database_url', '/gatehouse`', keysOfEnvironment],
  ['storage: {database_url: "postgres://db//"}', 'storage.database_url', '/gatehouse`', keysOfEnvironment],
  [
    'storage: {database_url: "postgres://db/x?sslmode=verify-full&sslmode=no"}',
    'storage.database_url',
    'write `postgres',
    keysOfEnvironment,
  ],
  ['storage: {database_url: "postgres://u:100%@db/x"}', 'storage.database_url', 'write `postgres', keysOfEnvironment],
  [
    'storage: {database_url: "postgres://db/x?sslmode=verfy-full"}',
    'storage.database_url',
    'write `postgres',
    keysOfEnvironment,
  ],
  ['storage: {redis_url: "redis://gate@r"}', 'storage.redis_url', '`redis://:password@host:6379`'],
  ['storage: {redis_url: "redis+sentinel://gate:@h/m"}', 'storage.redis_url', '`redis://:password@host:6379`'],
  ['storage: {redis_url: "http://r"}', 'storage.redis_url', '`redis://host:6379`'],
  ['storage: {redis_url: "redis+sentinel://h1"}', 'storage.redis_url', '`redis://host:6379`'],
  ['storage: {redis_url: "redis://a:1,b:2"}', 'storage.redis_url', '`redis://host:6379`'],
  ['storage: {redis_url: "redis+cluster://a:1/x"}', 'storage.redis_url', '`redis://host:6379`'],
  ['storage: {redis_url: "redis://:50%@redis"}', 'storage.redis_url', '`redis://host:6379`'],
  ['storage: {database_connections: 1}', 'storage.database_connections', 'write a number from 4 to 1000'],
  ['storage: {auto_migrate: "no"}', 'storage.auto_migrate', '`true`'],
  ['storage: {auto_migrate: no}', 'storage.auto_migrate', '`true`'],
  ['tokens: {access_token: 0s}', 'tokens.access_token', '`10m`'],
  ['tokens: {access_token: 60}', 'tokens.access_token', '`10m`'],
  ['tokens: {access_token: 010m}', 'tokens.access_token', '`10m`'],
  ['tokens: {authorization_code: 11m}', 'tokens.authorization_code', '`10m`'],
  [
    'tokens: {refresh_token: 400d, absolute_age: 365d}',
    'tokens.refresh_token',
    'write a duration of at most tokens.absolute_age',
  ],
  ['tokens: {refresh_token: 60s}', 'tokens.retry_window', 'shorter'],
  ['tokens: {retry_window: off}', 'tokens.retry_window', '`10m`'],
  ['tokens: {absolute_age: never}', 'tokens.absolute_age', '`365d`'],
  ['tokens: {retry_window: 31m, refresh_token: 10m}', 'tokens.retry_window', '`60s`'],
  ['sessions: {idle: 8d, absolute: 7d}', 'sessions.idle', 'write a duration of at most sessions.absolute'],
  ['sessions: {shared_terminals: 10.0.0.0/8}', 'sessions.shared_terminals', '`[192.0.2.0/24]`'],
  ['sessions: {shared_terminals: [10.1.2.3/16]}', 'sessions.shared_terminals.0', '`192.0.2.0/24`'],
  ['sessions: {shared_terminals: ["10.0.0.1"]}', 'sessions.shared_terminals.0', '`192.0.2.0/24`'],
  ['sessions: {shared_terminals: ["::1/129"]}', 'sessions.shared_terminals.0', '`192.0.2.0/24`'],
  ['sign_in: {passwords: false}', 'sign_in.passwords', '`true`'],
  ['sign_in: {require: passkey}', 'sign_in.require', '`off`'],
  ['sign_in: {require: passkey-or-upstream, passkeys: false}', 'sign_in.require', '`off`'],
  ['sign_in: {providers: {}}', 'sign_in.providers', '`id`'],
  ['limits: {clients_per_person: -1}', 'limits.clients_per_person', 'write a number from 0 to 100000'],
  ['limits: {sign_in_failures: 0}', 'limits.sign_in_failures', 'write a number from 1 to 1000000'],
  ['mail: {smtp_url: "smtp://m"}', 'mail.from', '`gatehouse@example.com`'],
  ['mail: {smtp_url: "mail.example.com", from: a@b.test}', 'mail.smtp_url', '`smtp://mail.example.com:587`'],
  ['mail: {smtp_url: "smtp://gate:50%@mail", from: a@b.test}', 'mail.smtp_url', '`smtp://mail.example.com:587`'],
  ['api: {graphql_url: "https://me:pw@api.example/"}', 'api.graphql_url', '`https://api.example.com/graphql`'],
  ['api: {graphql_url: "https://api.example/#x"}', 'api.graphql_url', '`https://api.example.com/graphql`'],
  ['api: {graphql_url: "http://localhost.evil/"}', 'api.graphql_url', '`https://api.example.com/graphql`'],
  ['api: {graphql_url: "http://api.example.com/graphql"}', 'api.graphql_url', '`https://api.example.com/graphql`'],
  [
    'api: {graphql_url: "https://api.example.com/graphql", test_organizations: [acme]}',
    'api.test_organizations.0',
    '`organizations list`',
  ],
  ['api: {example_query: ""}', 'api.example_query', '`"{ organizations { name } }"`'],
  ['brand: {colour: green}', 'brand.colour', '`"#0b5cad"`'],
  ['brand: {name: ""}', 'brand.name', '`Acme`'],
  ['brand: {logo: missing.png}', 'brand.logo', 'name a PNG or WebP file of at most 100 kB (docs/op'],
  ['brand: {support: "javascript:alert(1)"}', 'brand.support', '`help@example.com`'],
  ['brand: {name: {fr: Porte}}', 'brand.name', '`Acme`'],
  ['rights: {admin: x}', 'rights.admin', 'remove it'],
  ['organizations: {clients: Ask}', 'organizations.clients', '`open`'],
  ['activity: {retention: 0d}', 'activity.retention', '`1d`'],
  ['leaks: {secret_grace: forever}', 'leaks.secret_grace', '`10m`'],
  ['import: {removals_per_hour: 101%}', 'import.removals_per_hour', '`10%`'],
  ['import: {removals_per_hour: 010}', 'import.removals_per_hour', '`10%`'],
  ['import: {removals_per_hour: 0.1}', 'import.removals_per_hour', '`10%`'],
  ['demo: yes', 'demo', '`true`'],
  ['demo: true\nissuer: https://auth.example.com\nserver: {proxy_hops: 1}\n', 'demo', 'remove it'],
  ['log: {level: WARN}', 'log.level', '`debug`'],
  ['log: verbose', 'log', '`log`'],
  ['loglevel: info', 'loglevel', 'remove it; allowed here: issuer, server, storage,'],
  ['retry_window: 5s', 'retry_window', '`retry_window` belongs under `tokens`'],
  ['server: {issuer: x}', 'server.issuer', 'belongs at the left margin'],
  ['server: {proxyHops: 1}', 'server.proxyHops', 'remove it; allowed here: host, port, proxy_hops,'],
  ['sessions.absolute: 1d', 'sessions.absolute', 'remove it'],
  ['- a', 'FILE', '`name: value`'],
  ['', 'FILE', 'restore the file, perhaps from a full disk'],
  ['server:', 'FILE', '`{}`'],
  ['log: &a {level: info}\nserver: *a', 'server.level', '`level` belongs under `log`'],
  ['{}', 'server.port (from PORT)', 'write a number from 1 to 65535', { PORT: '3000x' }],
  ['{}', 'server.port (from PORT)', 'write a number from 1 to 65535', { PORT: '08080' }],
  ['{}', 'storage.database_url (from DATABASE_URL)', '/gatehouse`', { DATABASE_URL: 'postgres://db' }],
  ['{}', 'GATEHOUSE_TOKEN_KEY', 'did you mean GATEHOUSE_TOKEN_KEYS?', { GATEHOUSE_TOKEN_KEY: 'x' }],
  ['{}', 'GATEHOUSE_DATABASE_URL', 'did you mean DATABASE_URL?', { GATEHOUSE_DATABASE_URL: 'x' }],
  ['{}', 'GATEHOUSE_ISSUER_FILE', 'set GATEHOUSE_ISSUER instead: only secrets', { GATEHOUSE_ISSUER_FILE: 'x' }],
  [
    '{}',
    'GATEHOUSE_TOKEN_KEYS, key 1 of 1',
    '`openssl rand -base64 48`',
    { GATEHOUSE_TOKEN_KEYS: 'short', GATEHOUSE_COOKIE_KEYS: KEY },
  ],
  ['{}', 'GATEHOUSE_COOKIE_KEYS', '`openssl rand -base64 48`', { DATABASE_URL: 'postgres://db/x' }],
  [
    '{}',
    'DATABASE_URL_FILE',
    'name a file that exists and that this process may ',
    { DATABASE_URL_FILE: '/nonexistent' },
  ],
  ['{}', 'server.operators_port (from GATEHOUSE_OPERATORS_PORT)', '65535', { GATEHOUSE_OPERATORS_PORT: '70000' }],
  ['{}', 'storage.redis_url (from REDIS_URL)', '`redis://host:6379`', { REDIS_URL: 'http://redis' }],
  ['{}', 'mail.smtp_url (from SMTP_URL)', '`smtp://mail.example.com:587`', { SMTP_URL: 'mail.example.com' }],
  ['{}', 'log.level (from GATEHOUSE_LOG_LEVEL)', '`debug`', { GATEHOUSE_LOG_LEVEL: 'trace' }],
  ['{}', 'issuer (from GATEHOUSE_ISSUER)', '`https://example.com`', { GATEHOUSE_ISSUER: 'http://example.com' }],
  [
    '{}',
    'DATABASE_URL',
    'unset one of the two',
    { DATABASE_URL: 'postgres://db/x', DATABASE_URL_FILE: '/etc/hostname' },
  ],
  [
    '{}',
    'GATEHOUSE_CHANGES_SECRETS, entry 1 of 1',
    '`openssl rand -base64 48`',
    { GATEHOUSE_CHANGES_SECRETS: 'nocolon' },
  ],
  [
    '{}',
    'GATEHOUSE_CHANGES_SECRETS, entry 1 of 1',
    '`openssl rand -base64 48`',
    { GATEHOUSE_CHANGES_SECRETS: 'hr:short' },
  ],
  ['{}', 'GATEHOUSE_SERVER_PORT', 'did you mean PORT?', { GATEHOUSE_SERVER_PORT: '1' }],
  ['{}', 'GATEHOUSE_PORT', 'did you mean PORT?', { GATEHOUSE_PORT: '1' }],
  ['{}', 'GATEHOUSE_TOKENS_RETRY_WINDOW', 'has no variable', { GATEHOUSE_TOKENS_RETRY_WINDOW: '1' }],
  ['{}', 'mail.from', '`gatehouse@example.com`', { SMTP_URL: 'smtp://m' }],
  ['{}', 'GATEHOUSE_COOKIE_KEYS_FILE', 'write', { GATEHOUSE_COOKIE_KEYS_FILE: fileWith('\n', 'empty') }],
];

const ACCEPTED: readonly Accepted[] = [
  [
    'server: {reuse_port: true}',
    { 'server.reuse_port': true, 'storage.database_url': 'postgres://db/x' },
    '',
    { ...keysOfEnvironment, DATABASE_URL: 'postgres://db/x' },
  ],
  ['server: {operators_host: 0.0.0.0}', { 'server.operators_host': '0.0.0.0' }, ''],
  ['storage: {database_url: "postgres:///x "}', { 'storage.database_url': 'postgres:///x ' }, '', keysOfEnvironment],
  [
    'storage: {database_url: "postgres://u:p@ss@db/x"}',
    { 'storage.database_url': 'postgres://u:***@db/x' },
    '',
    keysOfEnvironment,
  ],
  [
    'storage: {database_url: "postgres://db/x?connection_limit=5"}',
    { 'storage.database_url': 'postgres://db/x?connection_limit=***' },
    '',
    keysOfEnvironment,
  ],
  [
    'storage: {database_url: "postgres://db/x?sslmode=verify-full&application_name=a"}',
    { 'storage.database_url': 'postgres://db/x?sslmode=verify-full&application_name=a' },
    '',
    keysOfEnvironment,
  ],
  ['storage: {data_directory: "/srv/share$"}', { 'storage.data_directory': '/srv/share$' }, ''],
  ['storage: {redis_url: "redis://gate:pw@r"}', { 'storage.redis_url': 'redis://gate:***@r' }, ''],
  ['storage: {redis_url: "redis://r"}', { 'storage.redis_url': 'redis://r' }, ''],
  [
    'tokens: {refresh_token: 1h, access_token: 2h}',
    { 'tokens.access_token': '2h', 'tokens.refresh_token': '1h' },
    'tokens.refresh_token',
  ],
  ['tokens: {absolute_age: 365d}', { 'tokens.absolute_age': '365d' }, ''],
  [
    'sessions: {shared_terminals: [0.0.0.0/0]}',
    { 'sessions.shared_terminals': ['0.0.0.0/0'] },
    'sessions.shared_terminals',
  ],
  ['sessions: {shared_terminals: ["::/0"]}', { 'sessions.shared_terminals': ['::/0'] }, 'sessions.shared_terminals'],
  [
    'sessions: {shared_terminals: ["::ffff:0.0.0.0/96"]}',
    { 'sessions.shared_terminals': ['::ffff:0.0.0.0/96'] },
    'sessions.shared_terminals',
  ],
  [
    'sessions: {shared_terminals: [0.0.0.0/1, 128.0.0.0/1]}',
    { 'sessions.shared_terminals': ['0.0.0.0/1', '128.0.0.0/1'] },
    'sessions.shared_terminals',
  ],
  [
    'sessions: {shared_terminals: ["::ffff:10.0.0.0/104"]}',
    { 'sessions.shared_terminals': ['::ffff:10.0.0.0/104'] },
    '',
  ],
  [
    'limits: {client_failures_per_address: 1}',
    { 'limits.client_failures_per_address': 1 },
    'limits.client_failures_per_address',
  ],
  [
    'limits: {sign_in_failures_per_address: 1}',
    { 'limits.sign_in_failures_per_address': 1 },
    'limits.sign_in_failures_per_address',
  ],
  ['brand: {name: 007}', { 'brand.name': '007' }, ''],
  ['sign_in: {require_grace: 0s}', { 'sign_in.require_grace': '0s' }, ''],
  ['mail: {from: "a@b.test"}', { 'mail.from': 'a@b.test' }, 'mail.from'],
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

describe('unusual settings', () => {
  it('a setting that means nothing, or not what it seems to mean, is refused with its place and remedy', () => {
    for (const [yaml, path, remedy, environment] of REFUSED) {
      const [problem] = problemsOf(yaml, environment);
      const place = problem?.path.replace(fileWith(yaml), 'FILE');
      expect(place, yaml).to.equal(path);
      expect(problem?.remedy, yaml).to.contain(remedy);
    }
  });

  it('an unusual setting that is accepted means what it seems to mean, and a probable mistake causes a warning', () => {
    for (const [yaml, settings, warned, environment = {}] of ACCEPTED) {
      const { effectiveSettings, warnings } = inspectSettings({ environment, file: fileWith(yaml) });
      const given = effectiveSettings.filter(({ from }) => from !== 'default');
      expect(Object.fromEntries(given.map(({ name, value }) => [name, value])), yaml).to.deep.equal(settings);
      expect(warnings.map(({ path }) => path).join(), yaml).to.equal(warned);
    }
  });
});
