/** Every setting of the file: its kind, default, unit and effect. The one source of all three. */
import { z } from 'zod';
import { isHost } from '../urls.ts';
import { api, mail, storage } from './connected.ts';
import { duration, durationOrOff, flag, oneOf, shareOrNumber, text, wholeNumber } from './kinds.ts';
import { signIn } from './sign-in.ts';

const issuer = text({
  accepts: 'an origin',
  example: 'the public origin, such as `https://auth.example.com`',
})
  .optional()
  .describe(
    'Public origin of this service: scheme, host and port, nothing after. https, except on ' +
      'a loopback host. Default: http://localhost:<server.port>.',
  );

const hostName = () =>
  text(
    { accepts: 'a host name or IP address', example: '`localhost`, `0.0.0.0` or `::1`' },
    isHost,
  );

const server = {
  host: hostName()
    .default('localhost')
    .describe(
      'Address the public listener binds to: 0.0.0.0 for every interface, localhost for 127.0.0.1 and ' +
        '::1, where the machine has both.',
    ),
  port: wholeNumber(1, 65_535).default(3000).describe('TCP port of the public listener.'),
  proxy_hops: wholeNumber(0, 10)
    .optional()
    .describe(
      'How many reverse proxies of yours stand in front and each append to X-Forwarded-For. 0: ' +
        'nobody does, and the header is ignored. Must be stated when the issuer is https. ' +
        'Default: 0.',
    ),
  max_connections: wholeNumber(1, 1_000_000)
    .default(15_000)
    .describe(
      'Connections that each process keeps open on the public listener; further ones are closed ' +
        'at once. Keep it below the limit of open files (ulimit -n).',
    ),
  operators_host: hostName()
    .default('localhost')
    .describe(
      'Address of the operators’ listener: /healthz, /readyz, /metrics. Keep it private. localhost ' +
        'is 127.0.0.1 and ::1, where the machine has both.',
    ),
  operators_port: wholeNumber(0, 65_535)
    .default(3001)
    .describe('TCP port of the operators’ listener; 0 lets the system choose a free one.'),
  reuse_port: flag()
    .default(false)
    .describe(
      'Several processes of this machine, each with an operators_port of its own, share the public ' +
        'port: the system spreads new connections over them. For Linux and FreeBSD; needs a ' +
        'database by URL.',
    ),
  shutdown_delay: duration('0s', '5m')
    .prefault('0s')
    .describe(
      'How long a node that was told to end still takes requests while /readyz says 503. Longer ' +
        'than your load balancer takes to notice; 0s where it tries another node by itself.',
    ),
};

const tokens = {
  authorization_code: duration('1s', '10m')
    .prefault('10m')
    .describe('Lifetime of an authorization code; at most 10m (RFC 6749 §4.1.2).'),
  access_token: duration('1s', '1d')
    .prefault('1h')
    .describe('Lifetime of an access token, told to clients as expires_in.'),
  machine_access_token: duration('1s', '1d')
    .prefault('1h')
    .describe('Lifetime of an access token of the client credentials grant.'),
  refresh_token: duration('1s', '3650d')
    .prefault('30d')
    .describe('Lifetime of a refresh token, counted from its own issue.'),
  retry_window: duration('0s', '1h')
    .prefault('60s')
    .describe(
      'How long the predecessor of a refresh token still answers with the same successor, for ' +
        'clients that lost the response; 0s is strict: any second use ends the grant.',
    ),
  absolute_age: durationOrOff('1s', '36500d')
    .prefault('365d')
    .describe('When a chain of refreshes ends, counted from the approval; `off`: never.'),
};

const sessions = {
  idle: duration('1m', '365d')
    .prefault('12h')
    .describe('A browser session ends after this time without a request.'),
  absolute: duration('1m', '365d')
    .prefault('7d')
    .describe('A browser session ends this long after the sign-in, used or not.'),
};

const attempts = (usual: number) => wholeNumber(1, 1_000_000).default(usual);
const owned = () => wholeNumber(0, 100_000).default(25);
const window = (usual: string) => duration('1s', '1d').prefault(usual);

/** How they are counted: attempt-limits.ts. */
const limits = {
  clients_per_person: owned().describe(
    'OAuth clients one person may have on the profile page; 0 forbids new ones.',
  ),
  api_keys_per_person: owned().describe('API keys one person may have; 0 forbids new ones.'),
  sign_in_failures: attempts(10).describe(
    'Wrong passwords per account and address within the window, before a pause; as many again ' +
      'for each browser in which the account has signed in before.',
  ),
  sign_in_failures_per_address: attempts(100).describe(
    'Wrong passwords per address, whoever they are for, within the window. A browser in which ' +
      'the account has signed in before is not held up.',
  ),
  sign_in_failure_window: window('15m').describe(
    'The window in which sign_in_failures and sign_in_failures_per_address are counted.',
  ),
  sign_in_failures_per_account: attempts(100).describe(
    'Wrong passwords per account, from wherever they come, within sign_in_account_window. A ' +
      'browser in which the account has signed in before is not held up, and a one-time link ' +
      'lets the person in.',
  ),
  sign_in_account_window: window('1h').describe(
    'The window in which sign_in_failures_per_account are counted.',
  ),
  client_failures: attempts(50).describe(
    'Failed client authentications per client and address within the window; further ones are ' +
      'answered 429. A right secret is never refused.',
  ),
  client_failures_per_address: attempts(300).describe(
    'Failed client authentications, and wrong tokens and codes of who shows no secret, per ' +
      'address within the window, before 429. What is right is never refused.',
  ),
  client_failure_window: window('1m').describe(
    'The window in which client_failures and client_failures_per_address are counted.',
  ),
  change_streams_per_client: attempts(100).describe(
    'Streams of changes that each process keeps open for one resource server; further ones are ' +
      'answered 429. Each instance of a GraphQL API keeps one; without it, it asks at each call.',
  ),
  waiting_sign_ins_per_address: attempts(500).describe(
    'Authorization requests per address, begun within ten minutes, that wait for a sign-in; further ' +
      'ones of who is not signed in are told to wait (429).',
  ),
};

const activity = {
  retention: duration('1d', '3650d')
    .prefault('365d')
    .describe('How long the security log remembers what happened to an account.'),
};

const imports = {
  prune_at_most: shareOrNumber()
    .prefault('10%')
    .describe(
      'How much `import --prune` may remove of each kind (organizations, warehouses, accounts, ' +
        'memberships, rights) before it is refused: a percentage of what was imported, rounded up, ' +
        'or a number. Only 100% removes all of a kind. --prune-at-most overrides it for one import.',
    ),
};

const log = {
  level: oneOf(['debug', 'info', 'warn', 'error', 'silent'])
    .default('info')
    .describe('Least severe entry that is written.'),
  format: oneOf(['numbers', 'words'])
    .default('numbers')
    .describe(
      'How each line says its level and time: `numbers` (`"level":30,"time":1767225600000`) or ' +
        '`words` (`"level":"info","time":"2026-01-01T00:00:00.000Z"`).',
    ),
};

const demo = flag()
  .optional()
  .describe(
    'Seed a demo person and organization on the first start. Only for the embedded database on ' +
      'a loopback issuer. Default: true there, false elsewhere.',
  );

/** The headings of the file and the settings under each. */
export const sections = {
  server,
  storage,
  tokens,
  sessions,
  sign_in: signIn,
  limits,
  mail,
  api,
  activity,
  import: imports,
  log,
};

/** Where a change of a setting is seen: `reload` at once, `restart` at the next start. */
export type Effect = 'reload' | 'restart';

/**
 * For each setting, or for all under a heading. `restart` is what was opened, bound or filled at the
 * start. The issuer too: partners, proxies and browsers know the service by it, and a slip would
 * turn all of them away in the same second.
 */
export const effects = {
  issuer: 'restart',
  server: {
    host: 'restart',
    port: 'restart',
    proxy_hops: 'reload',
    max_connections: 'restart',
    operators_host: 'restart',
    operators_port: 'restart',
    reuse_port: 'restart',
    shutdown_delay: 'reload',
  } satisfies Record<keyof typeof server, Effect>,
  storage: 'restart',
  tokens: 'reload',
  sessions: 'reload',
  sign_in: 'reload',
  limits: 'reload',
  mail: 'reload',
  api: 'reload',
  activity: 'reload',
  import: 'reload',
  demo: 'restart',
  log: { level: 'reload', format: 'restart' },
} as const satisfies Record<keyof SettingsFile, Effect | Readonly<Record<string, Effect>>>;

const NEW_ONES = 'for those issued from then on; the others keep their end';
const OPEN_SESSIONS = 'also for sessions that are open';

/** What a reload changes for what is there already, where `effects` leaves that open. */
export const reachOfReload: ReadonlyMap<string, string> = new Map(
  Object.entries({
    tokens: {
      authorization_code: NEW_ONES,
      access_token: NEW_ONES,
      machine_access_token: NEW_ONES,
      refresh_token: NEW_ONES,
      retry_window: 'also for refresh tokens that are out',
      absolute_age: 'for approvals from then on; the others keep their end',
    } satisfies Record<keyof typeof tokens, string>,
    sessions: {
      idle: OPEN_SESSIONS,
      absolute: OPEN_SESSIONS,
    } satisfies Record<keyof typeof sessions, string>,
  }).flatMap(([section, settings]) =>
    Object.entries(settings).map(([key, reach]): [string, string] => [`${section}.${key}`, reach]),
  ),
);

/** The YAML file: every setting optional, no other key allowed. */
export const settingsFile = z.strictObject({
  issuer,
  server: z.strictObject(server).prefault({}).describe('The two listeners of the service.'),
  storage: z.strictObject(storage).prefault({}).describe('Where state is kept.'),
  tokens: z.strictObject(tokens).prefault({}).describe('How long codes and tokens live.'),
  sessions: z.strictObject(sessions).prefault({}).describe('How long browser sessions live.'),
  sign_in: z.strictObject(signIn).prefault({}).describe('How people come in.'),
  limits: z
    .strictObject(limits)
    .prefault({})
    .describe('What one person, client or address may do.'),
  mail: z.strictObject(mail).prefault({}).describe('How mail leaves.'),
  api: z.strictObject(api).prefault({}).describe('The GraphQL API that the tokens are for.'),
  activity: z.strictObject(activity).prefault({}).describe('The security log.'),
  import: z
    .strictObject(imports)
    .prefault({})
    .describe('What `import` may do without being asked.'),
  demo,
  log: z.strictObject(log).prefault({}).describe('What is written to standard output.'),
});

export type SettingsFile = z.output<typeof settingsFile>;
