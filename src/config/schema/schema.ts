/** The schema of the settings file: every setting is here, in connected.ts or in sign-in.ts. */
import { z } from 'zod';
import { isHost } from '../urls.ts';
import { api, mail, storage } from './connected.ts';
import { duration, durationOrOff, flag, oneOf, shareOrNumber, text, wholeNumber } from './kinds.ts';
import { fixed, reloadable, section } from './setting.ts';
import { signIn } from './sign-in.ts';

const issuer = fixed(
  text({
    accepts: 'an origin',
    example: 'the public origin, such as `https://auth.example.com`',
  }).exactOptional(),
  {
    isPerNode: false,
    variable: 'GATEHOUSE_ISSUER',
    about:
      'Public origin of this service: scheme, host and port, nothing after. https, except on ' +
      'a loopback host. Default: http://localhost:<server.port>.',
  },
);

const hostName = () =>
  text(
    { accepts: 'a host name or IP address', example: '`localhost`, `0.0.0.0` or `::1`' },
    isHost,
  );

const server = section('The two listeners of the service.', {
  host: fixed(hostName().default('localhost'), {
    about:
      'Address the public listener binds to: 0.0.0.0 for every interface, localhost for 127.0.0.1 and ' +
      '::1, where the machine has both.',
  }),
  port: fixed(wholeNumber(1, 65_535).default(3000), {
    variable: 'PORT',
    about: 'TCP port of the public listener.',
  }),
  proxy_hops: reloadable(wholeNumber(0, 10).exactOptional(), {
    about:
      'How many reverse proxies of yours stand in front and each append to X-Forwarded-For. 0: ' +
      'nobody does, and the header is ignored. Must be stated when the issuer is https. ' +
      'Default: 0.',
    example: 1,
  }),
  max_connections: fixed(wholeNumber(1, 1_000_000).default(15_000), {
    about:
      'Connections that each process keeps open on the public listener; further ones are closed ' +
      'at once. Keep it below the limit of open files (ulimit -n).',
  }),
  operators_host: fixed(hostName().default('localhost'), {
    about:
      'Address of the operators’ listener: /healthz, /readyz, /metrics. Keep it private. localhost ' +
      'is 127.0.0.1 and ::1, where the machine has both.',
  }),
  operators_port: fixed(wholeNumber(0, 65_535).default(3001), {
    variable: 'GATEHOUSE_OPERATORS_PORT',
    about: 'TCP port of the operators’ listener; 0 lets the system choose a free one.',
  }),
  reuse_port: fixed(flag().default(false), {
    about:
      'Several processes of this machine, each with an operators_port of its own, share the public ' +
      'port: the system spreads new connections over them. For Linux and FreeBSD; needs a ' +
      'database by URL.',
  }),
  shutdown_delay: reloadable(duration('0s', '5m').prefault('0s'), {
    isPerNode: true,
    about:
      'How long a node that was told to end still takes requests while /readyz says 503. Longer ' +
      'than your load balancer takes to notice; 0s where it tries another node by itself.',
  }),
});

const NEW_ONES = 'for those issued from then on; the others keep their end';

const tokens = section('How long codes and tokens live.', {
  authorization_code: reloadable(duration('1s', '10m').prefault('10m'), {
    reach: NEW_ONES,
    about: 'Lifetime of an authorization code; at most 10m (RFC 6749 §4.1.2).',
  }),
  access_token: reloadable(duration('1s', '1d').prefault('1h'), {
    reach: NEW_ONES,
    about: 'Lifetime of an access token, told to clients as expires_in.',
  }),
  machine_access_token: reloadable(duration('1s', '1d').prefault('1h'), {
    reach: NEW_ONES,
    about: 'Lifetime of an access token of the client credentials grant.',
  }),
  refresh_token: reloadable(duration('1s', '3650d').prefault('30d'), {
    reach: NEW_ONES,
    about: 'Lifetime of a refresh token, counted from its own issue.',
    note: 'Each refresh issues a new one.',
  }),
  retry_window: reloadable(duration('0s', '1h').prefault('60s'), {
    reach: 'also for refresh tokens that are out',
    about:
      'How long the predecessor of a refresh token still answers with the same successor, for ' +
      'clients that lost the response; 0s is strict: any second use ends the grant.',
    note: 'Also for clients that refreshed twice at once.',
  }),
  absolute_age: reloadable(durationOrOff('1s', '36500d').prefault('365d'), {
    reach: 'for approvals from then on; the others keep their end',
    about: 'When a chain of refreshes ends, counted from the approval; `off`: never.',
  }),
});

const OPEN_SESSIONS = 'also for sessions that are open';

const sessions = section('How long browser sessions live.', {
  idle: reloadable(duration('1m', '365d').prefault('12h'), {
    reach: OPEN_SESSIONS,
    about: 'A browser session ends after this time without a request.',
  }),
  absolute: reloadable(duration('1m', '365d').prefault('7d'), {
    reach: OPEN_SESSIONS,
    about: 'A browser session ends this long after the sign-in, used or not.',
  }),
});

const attempts = (usual: number) => wholeNumber(1, 1_000_000).default(usual);
const owned = () => wholeNumber(0, 100_000).default(25);
const window = (usual: string) => duration('1s', '1d').prefault(usual);

/** See base/attempt-limits.ts for how attempts are counted. */
const limits = section('What one person, client or address may do.', {
  clients_per_person: reloadable(owned(), {
    about: 'OAuth clients one person may have on the profile page; 0 forbids new ones.',
  }),
  api_keys_per_person: reloadable(owned(), {
    about: 'API keys one person may have; 0 forbids new ones.',
  }),
  sign_in_failures: reloadable(attempts(10), {
    about:
      'Wrong passwords per account and address within the window, before a pause; as many again ' +
      'for each browser in which the account has signed in before.',
  }),
  sign_in_failures_per_address: reloadable(attempts(100), {
    about:
      'Wrong passwords per address, whoever they are for, within the window. A browser in which ' +
      'the account has signed in before is not held up.',
  }),
  sign_in_failure_window: reloadable(window('15m'), {
    about: 'The window in which sign_in_failures and sign_in_failures_per_address are counted.',
  }),
  sign_in_failures_per_account: reloadable(attempts(100), {
    about:
      'Wrong passwords per account, from wherever they come, within sign_in_account_window. A ' +
      'browser in which the account has signed in before is not held up, and a one-time link ' +
      'lets the person in.',
  }),
  sign_in_account_window: reloadable(window('1h'), {
    about: 'The window in which sign_in_failures_per_account are counted.',
  }),
  client_failures: reloadable(attempts(50), {
    about:
      'Failed client authentications per client and address within the window; further ones are ' +
      'answered 429. A right secret is never refused.',
  }),
  client_failures_per_address: reloadable(attempts(300), {
    about:
      'Failed client authentications, and wrong tokens and codes of who shows no secret, per ' +
      'address within the window, before 429. What is right is never refused.',
  }),
  client_failure_window: reloadable(window('1m'), {
    about: 'The window in which client_failures and client_failures_per_address are counted.',
  }),
  change_streams_per_client: reloadable(attempts(100), {
    about:
      'Streams of changes that each process keeps open for one resource server; further ones are ' +
      'answered 429. Each instance of a GraphQL API keeps one; without it, it asks at each call.',
  }),
  waiting_sign_ins_per_address: reloadable(attempts(500), {
    about:
      'Authorization requests per address, begun within ten minutes, that wait for a sign-in; further ' +
      'ones of who is not signed in are told to wait (429).',
  }),
});

const activity = section('The security log.', {
  retention: reloadable(duration('1d', '3650d').prefault('365d'), {
    about: 'How long the security log remembers what happened to an account.',
  }),
});

const imports = section('What `import` may do without being asked.', {
  prune_at_most: reloadable(shareOrNumber().prefault('10%'), {
    isPerNode: true,
    about:
      'How much `import --prune` may remove of each kind (organizations, warehouses, accounts, ' +
      'memberships, rights) before it is refused: a percentage of what was imported, rounded up, ' +
      'or a number. Only 100% removes all of a kind. --prune-at-most overrides it for one import.',
  }),
});

const log = section('What is written to standard output.', {
  level: reloadable(oneOf(['debug', 'info', 'warn', 'error', 'silent']).default('info'), {
    isPerNode: true,
    variable: 'GATEHOUSE_LOG_LEVEL',
    about: 'Least severe entry that is written.',
  }),
  format: fixed(oneOf(['numbers', 'words']).default('numbers'), {
    about:
      'How each line says its level and time: `numbers` (`"level":30,"time":1767225600000`) or ' +
      '`words` (`"level":"info","time":"2026-01-01T00:00:00.000Z"`).',
  }),
});

const demo = fixed(flag().exactOptional(), {
  about:
    'Seed a demo person and organization on the first start. Only for the embedded database on ' +
    'a loopback issuer. Default: true there, false elsewhere.',
});

/** The YAML file, in its order. All settings are optional, and no other keys are allowed. */
export const settingsFile = z.strictObject({
  issuer,
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
  demo,
  log,
});

export type SettingsFile = z.output<typeof settingsFile>;
