/** The schema of the settings file: every setting is here, or in a file of this folder. */
import { z } from 'zod';
import { isHost } from '../urls.ts';
import { brand, rights } from './brand.ts';
import { api, mail, storage } from './connected.ts';
import { duration, durationOrOff, flag, oneOf, shareOrNumber, text, wholeNumber } from './kinds.ts';
import { fixed, reloadable, section } from './setting.ts';
import { sessions, signIn } from './sign-in.ts';

const issuer = fixed(
  text({
    accepts: 'an origin',
    example: 'the public origin, such as `https://auth.example.com`',
  }).exactOptional(),
  {
    isPerNode: false,
    variable: 'GATEHOUSE_ISSUER',
    about:
      'Public origin of this service: scheme, host and port, nothing after. Must be https, ' +
      'except on a loopback host. Default: http://localhost:<server.port>.',
  },
);

const hostName = () =>
  text({ accepts: 'a host name or IP address', example: '`localhost`, `0.0.0.0` or `::1`' }, isHost);

const server = section('The two listeners of the service.', {
  host: fixed(hostName().default('localhost'), {
    about:
      'Address that the public listener binds to: 0.0.0.0 for every interface, localhost ' +
      'for 127.0.0.1 and ::1 if the machine has both.',
  }),
  port: fixed(wholeNumber(1, 65_535).default(3000), {
    variable: 'PORT',
    about: 'TCP port of the public listener.',
  }),
  proxy_hops: reloadable(wholeNumber(0, 10).exactOptional(), {
    about:
      'Number of your own reverse proxies in front that each append to X-Forwarded-For. ' +
      'With 0, X-Forwarded-For is ignored. The setting is required if the issuer is https; the default is 0 otherwise.',
    example: 1,
  }),
  max_connections: fixed(wholeNumber(1, 1_000_000).default(15_000), {
    about:
      'Maximum number of open connections per process on the public listener; further connections are closed at ' +
      'once. Keep this number below the limit of open files (ulimit -n).',
  }),
  operators_host: fixed(hostName().default('localhost'), {
    about:
      'Address of the operators’ listener: /healthz, /readyz, /metrics. Keep this address private. localhost means ' +
      '127.0.0.1 and ::1 if the machine has both.',
  }),
  operators_port: fixed(wholeNumber(0, 65_535).default(3001), {
    variable: 'GATEHOUSE_OPERATORS_PORT',
    about: 'TCP port of the operators’ listener. With 0, the system chooses a free one.',
  }),
  reuse_port: fixed(flag().default(false), {
    about:
      'Let several processes of one machine share the public port; the system distributes new connections among ' +
      'them. Each process needs its own operators_port. Linux and FreeBSD only; needs a database_url.',
  }),
  shutdown_delay: reloadable(duration('0s', '5m').prefault('0s'), {
    isPerNode: true,
    about:
      'How long a stopping node still accepts requests while /readyz answers 503. Choose a longer time than your ' +
      'load balancer takes to notice, or 0s if it retries on another node.',
  }),
});

const NEW_ONES = 'for new codes and tokens only';

const tokens = section('Lifetimes of codes and tokens.', {
  authorization_code: reloadable(duration('1s', '10m').prefault('10m'), {
    reach: NEW_ONES,
    about: 'Lifetime of an authorization code; at most 10m (RFC 6749 §4.1.2).',
  }),
  access_token: reloadable(duration('1s', '1d').prefault('1h'), {
    reach: NEW_ONES,
    about: 'Lifetime of an access token; clients see it as expires_in.',
  }),
  machine_access_token: reloadable(duration('1s', '1d').prefault('1h'), {
    reach: NEW_ONES,
    about: 'Lifetime of an access token of the client credentials grant.',
  }),
  refresh_token: reloadable(duration('1s', '3650d').prefault('30d'), {
    reach: NEW_ONES,
    about: 'Lifetime of each refresh token, from the moment it is issued.',
    note:
      'Each refresh issues a new refresh token. Ends of authorizations are recorded for as long as the longest ' +
      'lifetime that any node has ever run with.',
  }),
  retry_window: reloadable(duration('0s', '1h').prefault('60s'), {
    reach: 'also for existing refresh tokens',
    about:
      'How long the previous refresh token still returns the same successor, for clients ' +
      'that lost the response. With 0s, any reuse ends the authorization.',
    note: 'The retry window also helps clients that refresh twice in parallel.',
  }),
  absolute_age: reloadable(durationOrOff('1s', '36500d').prefault('off'), {
    reach: 'for new approvals only',
    about:
      'How long after the approval an authorization ends, even if it is refreshed; `off` means never. People must ' +
      'then connect the client again.',
  }),
});

const attempts = (usual: number) => wholeNumber(1, 1_000_000).default(usual);
const owned = () => wholeNumber(0, 100_000).default(25);

/** See base/attempt-limits.ts for how attempts are counted. */
const limits = section('Limits per person, client or address.', {
  clients_per_person: reloadable(owned(), {
    about: 'Maximum number of OAuth clients per person on the profile page; 0 forbids new ones.',
  }),
  api_keys_per_person: reloadable(owned(), {
    about: 'Maximum number of API keys per person; 0 forbids new ones.',
  }),
  api_key_days: reloadable(wholeNumber(0, 365).default(0), {
    reach: 'for new API keys only',
    about:
      'Maximum lifetime of new API keys in days: people choose 30 days, 90 days or this many, as far as allowed. ' +
      'Existing keys stay valid. 0 means no limit: people choose 30, 90 or 365 days, or a key that never expires.',
  }),
  sign_in_failures: reloadable(attempts(10), {
    about:
      'Wrong passwords per account and address in 15 minutes before further attempts must wait. Each browser in ' +
      'which the account has signed in before has its own allowance of the same size.',
  }),
  sign_in_failures_per_address: reloadable(attempts(100), {
    about:
      'Wrong passwords per address in 15 minutes, for all accounts together. A browser ' +
      'in which the account has signed in before is exempt.',
  }),
  sign_in_failures_per_account: reloadable(attempts(100), {
    about:
      'Wrong passwords per account in an hour, from all addresses. A browser in which the ' +
      'account has signed in before is exempt, and a one-time link still works.',
  }),
  client_failures: reloadable(attempts(50), {
    about:
      'Failed client authentications per client and address in a minute; further attempts ' +
      'are answered 429. A correct secret is never refused.',
  }),
  client_failures_per_address: reloadable(attempts(300), {
    about:
      'Failed client authentications, invalid tokens and codes sent without a client secret, and unknown tokens that ' +
      'machine clients revoke, per address in a minute; further attempts are answered 429. Valid secrets, ' +
      'tokens and codes are never refused.',
  }),
  change_streams_per_client: reloadable(attempts(100), {
    about:
      'Maximum number of change streams per process for one resource server; further streams are answered 429. Each ' +
      'instance of a GraphQL API opens one stream; without a stream, the instance introspects on every call.',
  }),
  waiting_sign_ins_per_address: reloadable(attempts(500), {
    about:
      'Pending authorization requests per address, started within ten minutes, that wait ' +
      'for a sign-in; further requests without a session are answered 429.',
  }),
});

const organizations = section('The policy of new organizations.', {
  clients: reloadable(oneOf(['open', 'ask']).default('open'), {
    about:
      'Whether clients that members connect reach a new organization at once (`open`), or only after an owner or ' +
      'admin has approved them (`ask`). Existing organizations keep their policy.',
  }),
});

const activity = section('The security log.', {
  retention: reloadable(duration('1d', '3650d').prefault('365d'), {
    about: 'How long the security log keeps the events of an account.',
  }),
});

const leaks = section('How client secrets that were found in public are treated.', {
  secret_grace: reloadable(duration('0s', '30d').prefault('24h'), {
    reach: 'also for secrets that leaked before and are not refused yet',
    about:
      'How long a client secret is still accepted after it was reported as found in public. A ' +
      'secret of a machine client is refused at once.',
  }),
});

const imports = section('The maximum number of removals that connected systems may push.', {
  removals_per_hour: reloadable(shareOrNumber().prefault('10%'), {
    isPerNode: false,
    about:
      'How many people, memberships and rights pushed changes (POST /changes) may remove ' +
      'within an hour: a percentage of the people, but at least 50, or a number. Further lines ' +
      'are answered held_back; `gatehouse changes allow 480` lets 480 more through.',
  }),
});

const log = section('The log, which is written to standard output.', {
  level: reloadable(oneOf(['debug', 'info', 'warn', 'error', 'silent']).default('info'), {
    isPerNode: true,
    variable: 'GATEHOUSE_LOG_LEVEL',
    about: 'Lowest severity that is logged.',
  }),
});

const demo = fixed(flag().exactOptional(), {
  about:
    'Create a demo person and organization on the first start. Only with the embedded ' +
    'database and a loopback issuer. Default: true in that case, otherwise false.',
});

/** The schema of the YAML file, in the file's order. All settings are optional, and other keys are refused. */
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
  brand,
  rights,
  organizations,
  activity,
  leaks,
  import: imports,
  demo,
  log,
});

export type SettingsFile = z.output<typeof settingsFile>;
