/** Every setting of the file: its kind, default, unit and effect. The one source of all three. */
import { z } from 'zod';
import { isSender, isSmtpUrl } from './mail-settings.ts';
import { duration, durationOrOff, flag, oneOf, text, wholeNumber } from './setting-kinds.ts';
import { isDatabaseUrl, isRedisUrl } from './storage-urls.ts';

const issuer = text({
  accepts: 'an origin',
  example: 'the public origin, such as `https://auth.example.com`',
})
  .optional()
  .describe(
    'Public origin of this service: scheme, host and port, nothing after. https, except on ' +
      'a loopback host. Default: http://localhost:<server.port>.',
  );

const hostName = { accepts: 'a host name or address', example: '`localhost` or `0.0.0.0`' };

const server = {
  host: text(hostName)
    .default('localhost')
    .describe('Address the public listener binds to; 0.0.0.0 for every interface.'),
  port: wholeNumber(1, 65_535).default(3000).describe('TCP port of the public listener.'),
  proxy_hops: wholeNumber(0, 10)
    .optional()
    .describe(
      'How many reverse proxies of yours stand in front and each append to X-Forwarded-For. 0: ' +
        'nobody does, and the header is ignored. Must be stated when the issuer is https. Default 0.',
    ),
  operators_host: text(hostName)
    .default('localhost')
    .describe('Address of the operators’ listener: /healthz, /readyz, /metrics. Keep it private.'),
  operators_port: wholeNumber(0, 65_535)
    .default(3001)
    .describe('TCP port of the operators’ listener; 0 lets the system choose a free one.'),
};

const storage = {
  data_directory: text({ accepts: 'a path', example: 'the path of a directory, such as `./data`' })
    .default('./data')
    .describe(
      'Directory of the embedded database and its generated secrets, relative to the directory ' +
        'of package.json.',
    ),
  database_url: text(
    {
      accepts: 'a PostgreSQL URL',
      example: '`postgres://gatehouse@db.example.com:5432/gatehouse`',
    },
    isDatabaseUrl,
  )
    .optional()
    .describe(
      'PostgreSQL to use in place of the embedded database. Put a URL with a password into the ' +
        'environment, as DATABASE_URL. Default: embedded.',
    ),
  redis_url: text(
    {
      accepts: 'a Redis URL',
      example:
        '`redis://host:6379`, `redis+sentinel://host1:26379,host2:26379/mymaster` or ' +
        '`redis+cluster://host1:7000,host2:7001` (rediss for TLS)',
    },
    isRedisUrl,
  )
    .optional()
    .describe(
      'Redis that keeps the tokens. Put a URL with a password into the environment, as ' +
        'REDIS_URL. Default: tokens live in the database.',
    ),
  auto_migrate: flag()
    .default(true)
    .describe('Bring the database schema up to date at start; false refuses to start instead.'),
  accept_volatile_redis: flag()
    .default(false)
    .describe('Start although Redis keeps nothing on disk: its restart then ends every token.'),
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

const limits = {
  clients_per_person: wholeNumber(0, 100_000)
    .default(25)
    .describe('OAuth clients one person may have on the profile page; 0 forbids new ones.'),
  api_keys_per_person: wholeNumber(0, 100_000)
    .default(25)
    .describe('API keys one person may have; 0 forbids new ones.'),
  sign_in_failures: wholeNumber(1, 1_000_000)
    .default(10)
    .describe('Wrong passwords per account and address within the window, before a pause.'),
  sign_in_failure_window: duration('1s', '1d')
    .prefault('15m')
    .describe('The window in which sign_in_failures are counted.'),
  client_failures: wholeNumber(1, 1_000_000)
    .default(50)
    .describe('Failed client authentications per client and address within the window.'),
  client_failure_window: duration('1s', '1d')
    .prefault('1m')
    .describe('The window in which client_failures are counted.'),
};

const mail = {
  smtp_url: text(
    {
      accepts: 'an SMTP URL',
      example: '`smtp://mail.example.com:587` (smtps:// for TLS from the first byte)',
    },
    isSmtpUrl,
  )
    .optional()
    .describe(
      'Server that takes mail for delivery. Put a URL with a password into the environment, as ' +
        'SMTP_URL. Default: no mail is sent, and there is no “Forgot password?”.',
    ),
  from: text(
    {
      accepts: 'a sender',
      example: '`gatehouse@example.com` or `Gatehouse <gatehouse@example.com>`',
    },
    isSender,
  )
    .optional()
    .describe('Who the mail is from; needed with smtp_url.'),
};

const activity = {
  retention: duration('1d', '3650d')
    .prefault('365d')
    .describe('How long the security log remembers what happened to an account.'),
};

const log = {
  level: oneOf(['debug', 'info', 'warn', 'error', 'silent'])
    .default('info')
    .describe('Least severe entry that is written.'),
};

const demo = flag()
  .optional()
  .describe(
    'Seed a demo person and organization on the first start. Only for the embedded database on ' +
      'a loopback issuer, where it is the default.',
  );

/** The headings of the file and the settings under each. */
export const sections = { server, storage, tokens, sessions, limits, mail, activity, log };

/** The YAML file: every setting optional, no other key allowed. */
export const settingsFile = z.strictObject({
  issuer,
  server: z.strictObject(server).prefault({}),
  storage: z.strictObject(storage).prefault({}),
  tokens: z.strictObject(tokens).prefault({}),
  sessions: z.strictObject(sessions).prefault({}),
  limits: z.strictObject(limits).prefault({}),
  mail: z.strictObject(mail).prefault({}),
  activity: z.strictObject(activity).prefault({}),
  demo,
  log: z.strictObject(log).prefault({}),
});

export type SettingsFile = z.output<typeof settingsFile>;
