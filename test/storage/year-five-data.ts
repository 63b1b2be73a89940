/**
 * Fills a database like that of a deployment in its fifth year, for `year-five.slow.ts`: its large tables, and the
 * parts of them that belong to one organization, client or action, have more rows than a statement may read, but not
 * many more. What a statement may read as a whole, so that a list that does is not seen here: clients, organizations,
 * warehouses, the sessions and keys of one user, and the problems of one client.
 */
import pg from 'pg';
import type { Seed } from '../support/seed.ts';

const ACCOUNTS = 26_000;
/** Users of the popular client. */
const PEOPLE = 25_000;
const CLIENTS = 1_000;
/** Organizations with a warehouse and owners of their own. */
const PLACES = 8_000;
const MEMBERS = 25_000;
/** Sessions and API keys of the heavy user. */
const OF_ONE = 10_000;
const ENDED = 25_000;

/** SQL: the id of the account, client, … with this number. */
const account = (n: string): string => `'acc_' || lpad((${n})::text, 16, '0')`;
const client = (n: string): string => `'gate_ci_' || lpad((${n})::text, 22, '0')`;
const request = (n: string): string => `'req_' || lpad((${n})::text, 16, '0')`;
const ago = (n: string, unit: string): string => `now() - (${n}) * interval '1 ${unit}'`;

export const IDS = {
  /** A user with few entries. */
  account: 'acc_0000000000020100',
  /** A client whose users have all disconnected it. */
  leftClient: 'gate_ci_0000000000000000000007',
  /** A client with few connections. */
  client: 'gate_ci_0000000000000000000911',
  /** An organization with `MEMBERS` members. */
  organization: `org_${'1'.repeat(16)}`,
  warehouse: `wh_${'1'.repeat(16)}`,
  key: 'key_0000000000000007',
  request: 'req_0000000000000777',
} as const;

/**
 * @param popular the client that everyone uses
 * @param heavy a user with as many sessions, keys and entries as one user can get
 * @param owner owns the largest organization
 * @returns lists of statements: each list in its order, all lists at the same time
 */
const tables = (popular: string, heavy: string, owner: string): string[][] => [
  [
    `INSERT INTO accounts (id, email, email_key, name, password_hash, created_at, external_id)
      SELECT ${account('n')}, n || '@many.test', n || '@many.test', 'Person ' || n, 'none', ${ago('n', 'minute')},
          CASE WHEN n % 10 <> 0 THEN 'many ' || n END
        FROM generate_series(1, ${ACCOUNTS}) AS n`,
    `INSERT INTO clients (id, kind, name, redirect_uris, native, created_at, updated_at, owner_account_id)
      SELECT ${client('n')}, 'confidential', 'Client ' || n, '{https://many.test/callback}', false,
          ${ago('n', 'hour')}, now(), CASE WHEN n % 100 <> 0 THEN ${account('n')} END
        FROM generate_series(1, ${CLIENTS}) AS n`,
    `INSERT INTO client_secrets (id, client_id, secret_hash, last_four, created_at)
      SELECT 'sec_' || lpad(n::text, 16, '0'), ${client('n')}, 'none', '0000', now()
        FROM generate_series(1, ${CLIENTS}) AS n`,
    `INSERT INTO organizations (id, name, created_at)
      SELECT 'org_' || lpad(n::text, 16, '0'), 'Organization ' || n, now() FROM generate_series(1, ${PLACES}) AS n
      UNION ALL SELECT '${IDS.organization}', 'Largest Logistics', now()`,
    "UPDATE organizations SET name_key = lower(replace(name, ' ', ''))",
    `INSERT INTO warehouses (id, organization_id, name, created_at)
      SELECT 'wh_' || lpad(n::text, 16, '0'), 'org_' || lpad(n::text, 16, '0'), 'Warehouse ' || n, now()
        FROM generate_series(1, ${PLACES}) AS n
      UNION ALL SELECT '${IDS.warehouse}', '${IDS.organization}', 'Largest', now()`,
    `INSERT INTO organization_memberships (account_id, organization_id, role, created_at)
      SELECT ${account('n')}, '${IDS.organization}', 'member', now() FROM generate_series(1, ${MEMBERS}) AS n
      UNION ALL VALUES ('${owner}', '${IDS.organization}', 'owner', now()), ('${heavy}', '${IDS.organization}', 'member', now())
      UNION ALL SELECT ${account(`1 + n % ${ACCOUNTS}`)}, 'org_' || lpad((1 + n % ${PLACES})::text, 16, '0'), 'owner', now()
        -- If an organization had half of all members, PostgreSQL would read them all to delete its own.
        FROM generate_series(1, 30000) AS n`,
    `INSERT INTO warehouse_rights (account_id, organization_id, warehouse_id, rights)
      SELECT ${account('n')}, '${IDS.organization}', '${IDS.warehouse}', '{read}' FROM generate_series(1, ${MEMBERS}) AS n`,
    "INSERT INTO known_files VALUES ('nightly', now() - interval '1 hour')",
    `INSERT INTO known_times (thing, account_id, organization_id, warehouse_id, as_of, by_import, file_id)
      SELECT 'account ' || id, id, NULL, NULL, now() - interval '1 day', external_id IS NOT NULL,
          CASE WHEN external_id IS NOT NULL THEN 'nightly' END FROM accounts
      UNION ALL SELECT concat_ws(' ', 'membership', account_id, organization_id), account_id, organization_id, NULL,
          now() - interval '1 day', id % 2 = 0, CASE WHEN id % 2 = 0 THEN 'nightly' END FROM organization_memberships
      UNION ALL SELECT concat_ws(' ', 'warehouse_rights', account_id, warehouse_id), account_id, organization_id,
          warehouse_id, now() - interval '1 day', true, 'nightly' FROM warehouse_rights ON CONFLICT DO NOTHING`,
    `INSERT INTO known_times (thing, as_of, by_import, ended_as_of, expires_at)
      SELECT 'deleted account external gone ' || n, now(), false, now(), now() + interval '30 days'
        FROM generate_series(1, ${ENDED}) AS n`,
    `INSERT INTO browser_sessions (uid, account_id, cookie_hash, generation, begun_at, address, browser)
      SELECT 'session-' || n, '${heavy}', 'hash', 0, ${ago('n', 'minute')}, '192.0.2.1', 'Firefox'
        FROM generate_series(1, ${OF_ONE}) AS n
      UNION ALL SELECT 'other-' || n, ${account('n')}, 'hash', 0, ${ago('n', 'second')}, '192.0.2.1', 'Firefox'
        FROM generate_series(1, 22000) AS n`,
    `INSERT INTO api_keys (id, account_id, name, key_hash, last_four, created_at, expires_at)
      SELECT 'key_' || lpad(n::text, 16, '0'),
          CASE WHEN n <= ${OF_ONE} THEN '${heavy}' ELSE ${account(`1 + n % ${PEOPLE}`)} END,
          'Key ' || n, 'hash-' || n, lpad((n % 10000)::text, 4, '0'), ${ago('n', 'second')},
          now() + n * interval '119 seconds' - interval '732 hours'
        FROM generate_series(1, 36000) AS n`,
    // Users with 25 problems of each of their clients, a quarter of those that are kept.
    `INSERT INTO client_requests (client_id, at, step, error, cause, auth_method, request_id, share)
      SELECT ${client(`1 + n % ${CLIENTS}`)}, ${ago('n', 'second')}, 'token', 'invalid_grant',
          'cause ' || n % 7, 'basic', ${request('n')}, 'client'
        FROM generate_series(1, ${CLIENTS * 25}) AS n`,
  ],
  [
    // One client that everyone uses, one that `ENDED` users have left, and the rest.
    `INSERT INTO connections (account_id, client_id, connected_at, approved_at, consented_name, consented_hosts,
        ended_at, ended_cause, limit_until)
      SELECT ${account('n')}, '${popular}', ${ago('n', 'minute')}, ${ago('n', 'minute')}, 'Route Planner',
          '{partner.example}'::text[], NULL::timestamptz, NULL, CASE WHEN n % 100 = 0 THEN now() + n * interval '1 minute' END
        FROM generate_series(1, ${PEOPLE}) AS n
      UNION ALL SELECT ${account('n')}, '${IDS.leftClient}', ${ago('n', 'minute')}, ${ago('n', 'minute')}, 'Client 7',
          '{many.test}', now(), 'person_disconnected', NULL FROM generate_series(1, ${ENDED}) AS n
      UNION ALL SELECT ${account(`1 + n % ${PEOPLE}`)}, ${client('100 + n % 900')},
          ${ago('n', 'second')}, ${ago('n', 'second')}, 'Client', '{many.test}',
          CASE WHEN n % 5 = 0 THEN now() END, CASE WHEN n % 5 = 0 THEN 'person_disconnected' END, NULL
        FROM generate_series(1, ${PEOPLE}) AS n
      UNION ALL SELECT '${heavy}', ${client('n')}, now(), now(), 'Client', '{many.test}', NULL, NULL, NULL
        FROM generate_series(1, 300) AS n
      UNION ALL SELECT '${heavy}', '${popular}', now(), now(), 'Route Planner', '{many.test}', NULL, NULL, NULL`,
    `INSERT INTO ended_authorizations (id, at, cause, account_id, client_id, forgotten_at)
      SELECT lpad(n::text, 22, '0'), ${ago('n * 230', 'second')}, 'client_revoked',
          CASE WHEN n % 5 = 0 THEN '${heavy}' ELSE ${account(`1 + n % ${PEOPLE}`)} END, '${popular}',
          ${ago('n * 230', 'second')} + interval '31 days'
        FROM generate_series(1, 26000) AS n`,
    `INSERT INTO activity (at, account_id, actor, action, details, address, browser, request_id)
      SELECT ${ago('110000 - n', 'second')} - interval '1 minute',
          CASE WHEN n / 5 % 5 = 0 THEN '${heavy}' ELSE ${account(`1 + n % ${PEOPLE}`)} END,
          CASE WHEN n % 5 = 0 THEN 'client' ELSE 'person' END,
          CASE n % 5 WHEN 0 THEN 'tokens_revoked' WHEN 1 THEN 'connected' WHEN 2 THEN 'sign_in_failed'
            WHEN 3 THEN 'api_key_revoked'
            ELSE 'signed_in' END,
          CASE WHEN n % 5 = 3 THEN jsonb_build_object('api_key_id', 'key_' || n, 'last_four', '0000')
            WHEN n % 5 < 2 THEN jsonb_build_object('client_id', '${popular}', 'client_name', 'Route Planner')
            ELSE '{}'::jsonb END,
          '192.0.2.1', 'Firefox', ${request('n')}
        FROM generate_series(1, 110000) AS n`,
    `INSERT INTO authorizations (key, account_id, client_id, generation, secret, redirect_uri_hash, approved_at,
        rotation, attempt, rotated_at, confirmed, usable_until, forgotten_at)
      SELECT 'authorization-' || n, ${account(`1 + n % ${PEOPLE}`)}, '${popular}', 1, 's', 'h', 0, 1, 'a', 0, true,
          4000000000, CASE WHEN n % 50 = 0 THEN 1 ELSE 4000000000 END
        FROM generate_series(1, ${PEOPLE}) AS n`,
  ],
];

/** Fills the table that triggers keep, because `fill` disables triggers. */
const MEMBER_CONNECTIONS = `INSERT INTO member_connections
  SELECT m.organization_id, n.client_id, n.account_id, n.connected_at
  FROM connections n JOIN organization_memberships m ON m.account_id = n.account_id WHERE n.ended_at IS NULL`;

/** Adds the rows to a seeded database, without its triggers, which would announce each row. */
export async function fill(databaseUrl: string, { clients, person, other }: Seed): Promise<void> {
  const run = async (statements: readonly string[]): Promise<void> => {
    const connection = new pg.Client({ connectionString: databaseUrl });
    await connection.connect();
    try {
      for (const statement of statements) await connection.query(statement);
    } finally {
      await connection.end();
    }
  };
  const lists = tables(clients.confidential.id, person.accountId, other.accountId);
  const unheard = 'SET session_replication_role = replica';
  await Promise.all(lists.map((statements) => run([unheard, ...statements])));
  await run([unheard, MEMBER_CONNECTIONS]);
  await run(['VACUUM ANALYZE']);
}
