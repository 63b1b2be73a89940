/** The settings under `storage`: where state is kept. */
import { isDatabaseUrl, isRedisUrl, PASSWORDS_IN_URLS } from '../storage-urls.ts';
import { flag, text, wholeNumber } from './kinds.ts';

/** In place of a directory: nothing is kept in this process, and a database must be named. */
export const NO_DATA_DIRECTORY = 'off';

export const storage = {
  data_directory: text({
    accepts: 'a path, or off',
    example: 'the path of a directory, such as `./data`, or `off`',
  })
    .default('./data')
    .describe(
      'Directory of the embedded database and its generated secrets, relative to the directory ' +
        'of package.json; `off`: there is none, and nothing starts without a database_url.',
    ),
  database_url: text(
    {
      accepts: 'a PostgreSQL URL',
      example: `\`postgres://gatehouse@db.example.com:5432/gatehouse\`; ${PASSWORDS_IN_URLS}`,
    },
    isDatabaseUrl,
  )
    .optional()
    .describe(
      'PostgreSQL to use in place of the embedded database. Put a URL with a password into the ' +
        'environment, as DATABASE_URL. Default: embedded.',
    ),
  database_connections: wholeNumber(2, 1_000)
    .default(10)
    .describe(
      'Connections that each process may open to PostgreSQL, beside one that hears of changes.',
    ),
  remembered_people: wholeNumber(1_000, 10_000_000)
    .default(100_000)
    .describe(
      'People, and as many API keys, that each process remembers, those asked about longest ago ' +
        'forgotten first. Each takes 1.5 to 3 kB; who reaches more than ten places counts as several.',
    ),
  redis_url: text(
    {
      accepts: 'a Redis URL',
      example:
        '`redis://host:6379`, `redis+sentinel://host1:26379,host2:26379/mymaster` or ' +
        `\`redis+cluster://host1:7000,host2:7001\` (rediss for TLS); ${PASSWORDS_IN_URLS}`,
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
