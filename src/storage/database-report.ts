/** Tells the doctor the version of PostgreSQL, who owns the tables, and how many connections are allowed. */
import type { Queries } from './queries.ts';

/** @throws StorageUnavailable */
export async function serverVersion(database: Queries): Promise<string | undefined> {
  const [row] = await database.query<{ version: string }>("SELECT current_setting('server_version') AS version");
  return row?.version;
}

/** A role that owns tables of Gatehouse and whose rights the present role does not have. */
export interface ForeignOwner {
  readonly owner: string;
  readonly tables: number;
  /** True if the present role may read the tables. A migration fails in any case: only owners may change tables. */
  readonly isReadable: boolean;
}

/** Returns the owners of tables with these names, without owners whose rights the present role has. */
export const foreignOwners = (database: Queries, names: readonly string[]): Promise<ForeignOwner[]> =>
  // A role without the right to use the schema has no current schema.
  database.query(
    `SELECT pg_get_userbyid(relowner) AS owner, count(*)::int AS tables,
        has_table_privilege(pg_class.oid, 'SELECT') AS "isReadable"
      FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
      WHERE nspname = coalesce(current_schema(), 'public') AND relkind IN ('r', 'p') AND relname = ANY($1)
        AND NOT pg_has_role(relowner, 'USAGE')
      GROUP BY relowner, "isReadable" ORDER BY owner`,
    [names],
  );

/** Returns the limits of open connections that apply to the present role, and how to raise them. */
export const connectionLimits = (
  database: Queries,
): Promise<{ readonly whose: string; readonly limit: number; readonly remedy: string }[]> =>
  database.query(
    `SELECT 'the role ' || rolname AS whose, rolconnlimit AS limit,
        format('ALTER ROLE %I CONNECTION LIMIT -1', rolname) AS remedy
      FROM pg_roles WHERE rolname = current_user AND rolconnlimit >= 0 AND NOT rolsuper
    UNION ALL SELECT 'the database ' || datname, datconnlimit, format('ALTER DATABASE %I CONNECTION LIMIT -1', datname)
      FROM pg_database WHERE datname = current_database() AND datconnlimit >= 0
    UNION ALL SELECT 'the server', current_setting('max_connections')::int
        - current_setting('superuser_reserved_connections')::int
        - coalesce(current_setting('reserved_connections', true), '0')::int, 'max_connections in postgresql.conf'`,
  );
