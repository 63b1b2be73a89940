/** The settings in the sections `storage`, `mail` and `api`. Section `api` is about the API that accepts the tokens. */
import { z } from 'zod';
import { parseSender } from '../../texts/mailbox.ts';
import { isLoopbackOrigin } from '../issuer.ts';
import { hasHost, isDatabaseUrl, isDecodable, isRedisUrl, PASSWORDS_IN_URLS } from '../urls.ts';
import { expectations, flag, text, wholeNumber } from './kinds.ts';
import { fixed, reloadable, section } from './setting.ts';

/** The value that turns the data directory off. A database URL is then required. */
export const NO_DATA_DIRECTORY = 'off';

/** Refuses `~`, `$HOME` and `${…}`, because no shell expands them. Refuses URLs, and words such as `none` for `off`. */
function isDirectoryPath(directory: string): boolean {
  return (
    directory === NO_DATA_DIRECTORY || !/^~|\0|(^|\/)\$|\$[{(]|:\/\/|^(off|no|none|false|disabled)$/i.test(directory)
  );
}

export const storage = section('Where state is stored.', {
  data_directory: fixed(
    text(
      {
        accepts: 'a path, or off',
        example: 'the path of a directory, such as `./data` or `/var/lib/gatehouse`, or `off`',
      },
      isDirectoryPath,
    ).default('./data'),
    {
      variable: 'GATEHOUSE_DATA_DIR',
      about:
        'Directory of the embedded database and its generated secrets, relative to the ' +
        'directory of package.json (in GATEHOUSE_DATA_DIR: to the working directory). `off` ' +
        'disables the embedded database: the service then starts only with a database_url.',
    },
  ),
  database_url: fixed(
    text(
      {
        accepts: 'a PostgreSQL URL with the name of a database',
        example: `\`postgres://gatehouse@db.example.com:5432/gatehouse\`; ${PASSWORDS_IN_URLS}`,
      },
      isDatabaseUrl,
    ).exactOptional(),
    {
      variable: 'DATABASE_URL',
      mayHoldPassword: true,
      about:
        'PostgreSQL to use in place of the embedded database. Put a URL with a password into the ' +
        'environment, as DATABASE_URL. Default: embedded.',
    },
  ),
  database_connections: fixed(wholeNumber(4, 1_000).default(10), {
    about: 'Maximum number of connections that each process opens to PostgreSQL, plus one that listens for changes.',
    note: 'Keep the total over all processes of all nodes below max_connections of PostgreSQL.',
  }),
  remembered_people: fixed(wholeNumber(1_000, 10_000_000).default(100_000), {
    about:
      'How many people, and as many API keys, each process caches; those that it loaded longest ago are evicted first. ' +
      'Each entry takes 1 to 3 kB; an entry with ten or more places counts as several.',
  }),
  redis_url: fixed(
    text(
      {
        accepts: 'a Redis URL',
        example:
          '`redis://host:6379`, `redis://:password@host:6379`, `redis+sentinel://host1:26379,host2:26379/mymaster` or ' +
          `\`redis+cluster://host1:7000,host2:7001\` (rediss for TLS); ${PASSWORDS_IN_URLS}`,
      },
      isRedisUrl,
    ).exactOptional(),
    {
      variable: 'REDIS_URL',
      mayHoldPassword: true,
      about:
        'Redis that stores the tokens. Put a URL with a password into the environment, as ' +
        'REDIS_URL. Default: tokens are stored in the database.',
      note:
        'Either one server, redis+sentinel://host1:26379,host2:26379/mymaster or ' +
        'redis+cluster://host1:7000,host2:7001. Use rediss in place of redis for TLS.',
    },
  ),
  auto_migrate: fixed(flag().default(true), {
    about: 'Migrate the database schema at start. If false, the service refuses to start with an outdated schema.',
  }),
});

export const mail = section('How mail is sent.', {
  smtp_url: reloadable(
    text(
      {
        accepts: 'an SMTP URL',
        example: `\`smtp://mail.example.com:587\` (smtps:// for TLS from the first byte); ${PASSWORDS_IN_URLS}`,
      },
      isSmtpUrl,
    ).exactOptional(),
    {
      variable: 'SMTP_URL',
      mayHoldPassword: true,
      about:
        'Mail server that delivers our mail. Put a URL with a password into the environment, as SMTP_URL. Default: ' +
        'no mail is sent, and there is no “Forgot password?”.',
      note: 'Use smtps:// for TLS from the first byte. With a mail server, links to set a password are mailed, too.',
    },
  ),
  from: reloadable(
    text(
      {
        accepts: 'a sender',
        example: '`gatehouse@example.com` or `Gatehouse <gatehouse@example.com>`',
      },
      (sender) => parseSender(sender) !== undefined,
    ).exactOptional(),
    {
      about: 'Sender of the mail. Required with smtp_url.',
      note: 'An address, or "Name <address>".',
    },
  ),
});

/** True for `smtp://` (STARTTLS if the server offers it) or `smtps://` with one server and an optional login. */
function isSmtpUrl(url: string): boolean {
  const form = /^smtps?:\/\/[^/?#]+\/?$/;
  return form.test(url) && URL.canParse(url) && isDecodable(url) && hasHost(url);
}

const ORGANIZATION = { accepts: 'an organization id', example: 'an id from `organizations list`' };

/** Describes what `isPageUrl` accepts, for messages. */
export const PAGE_URL = 'an https URL (http on a loopback host) without a login';

/** The GraphQL API that the tokens are for, as shown to developers of clients. */
export const api = section('The GraphQL API that accepts the tokens.', {
  graphql_url: reloadable(
    text(
      {
        accepts: `${PAGE_URL} or a fragment`,
        example: '`https://api.example.com/graphql`',
      },
      isApiUrl,
    ).exactOptional(),
    {
      mayHoldPassword: true,
      about:
        'URL of your GraphQL API, as partners reach it. Owners of clients see it, and their sample programs call it. ' +
        'Default: none.',
    },
  ),
  example_query: reloadable(
    text({ accepts: 'a GraphQL query', example: '`"{ organizations { name } }"`' }).default('{__typename}'),
    {
      about:
        'The query that the sample programs send. Choose one that every ' +
        'caller may run and that shows what your API offers.',
    },
  ),
  test_organizations: reloadable(
    z
      .array(text(ORGANIZATION, (id) => /^org_[A-Za-z0-9_-]{16}$/.test(id)))
      .max(20)
      .register(expectations, { accepts: 'a list of at most 20 organization ids', example: '`[]`' })
      .exactOptional(),
    {
      about:
        'Organizations with made-up stock. On the page Connect of a client, its owner may join ' +
        'them as a viewer who can read every warehouse, and leave again. Default: none.',
    },
  ),
});

/** Requires TLS or a loopback host, because clients send access tokens to this URL (RFC 6750 §5.3). */
function isApiUrl(url: string): boolean {
  return isPageUrl(url) && !url.includes('#');
}

/** True for an https URL without a login; on a loopback host also for an http URL. */
export function isPageUrl(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, origin, username, password } = new URL(url);
  const isPrivate = protocol === 'https:' || (protocol === 'http:' && isLoopbackOrigin(origin));
  return isPrivate && hasHost(url) && username === '' && password === '';
}
