/** When clients and their secrets were last used: the columns that `storage/last-used.ts` fills. */
import type { WriteUses } from '../storage/last-used.ts';
import type { Queries } from '../storage/queries.ts';

/** For `note('client', clientId)`. */
export const writeClientUses = (database: Queries): WriteUses => writeUses(database, 'clients');

/** For `note('client_secret', secretId)`. */
export const writeSecretUses = (database: Queries): WriteUses =>
  writeUses(database, 'client_secrets');

function writeUses(database: Queries, table: 'clients' | 'client_secrets'): WriteUses {
  return async (uses) => {
    // Another node may have seen a later use.
    await database.query(
      `UPDATE ${table} SET last_used_at = use.at
        FROM unnest($1::text[], $2::timestamptz[]) AS use (id, at)
        WHERE ${table}.id = use.id AND coalesce(${table}.last_used_at < use.at, true)`,
      [uses.map(({ id }) => id), uses.map(({ at }) => at)],
    );
  };
}
