/** The token store on PostgreSQL. Each change is one statement. */
import { type Clock, epochSeconds } from '../base/clock.ts';
import { deleteExpired } from './cleaning.ts';
import { createPostgresAuthorizations } from './postgres-authorizations.ts';
import type { Database } from './queries.ts';
import { isStorableId, keyOf, type RecordKind, type StoredRecord, type TokenStore } from './token-store.ts';

const WRITE = `
  INSERT INTO token_records (kind, key, uid, data, expires_at) VALUES ($1, $2, $3, $4, $5)
  ON CONFLICT (kind, key) DO UPDATE
    SET uid = excluded.uid, data = excluded.data, expires_at = excluded.expires_at`;

// Do not use an upsert, which would restore a record that another request has just removed.
const REPLACE = `
  UPDATE token_records SET data = $3, expires_at = $4
  WHERE kind = $1 AND key = $2 AND expires_at > $5
  RETURNING 1`;

const READ = `
  SELECT data, expires_at FROM token_records WHERE kind = $1 AND key = $2 AND expires_at > $3`;

const TAKE = `
  DELETE FROM token_records WHERE kind = $1 AND key = $2 AND expires_at > $3
  RETURNING data, expires_at`;

const READ_BY_UID = `
  SELECT data, expires_at FROM token_records
  WHERE kind = 'session' AND uid = $1 AND expires_at > $2
  ORDER BY expires_at DESC LIMIT 1`;

// Tables whose expired rows are deleted; until then, every read skips these rows.
const EXPIRING = [
  { table: 'token_records', column: 'expires_at' },
  { table: 'authorizations', column: 'forgotten_at' },
];

/**
 * Returns SQL that removes a record, for use in a larger statement.
 * @param use adds a parameter to that statement and returns its placeholder
 */
export const removalOf = (kind: RecordKind | 'authorization', id: string, use: (value: unknown) => string): string =>
  kind === 'authorization'
    ? `DELETE FROM authorizations WHERE key = ${use(keyOf(id))}`
    : `DELETE FROM token_records WHERE kind = ${use(kind)} AND key = ${use(keyOf(id))}`;

export function createPostgresStore(parts: { database: Database; clock: Clock; timeShift?: () => number }): TokenStore {
  const { database, clock, timeShift = () => 0 } = parts;
  const write = async (
    kind: string,
    id: string,
    uid: string | null,
    data: unknown,
    expiresAt: number,
  ): Promise<void> => {
    await database.query(WRITE, [kind, keyOf(id), uid, JSON.stringify(data), expiresAt]);
  };

  const replace: TokenStore['replace'] = async (kind, id, data, expiresAt) => {
    if (!isStorableId(id)) return false;
    const values = [kind, keyOf(id), JSON.stringify(data), expiresAt, epochSeconds(clock)];
    return (await database.query(REPLACE, values)).length === 1;
  };

  const readOne = async <Data>(text: string, values: readonly unknown[]): Promise<StoredRecord<Data> | undefined> => {
    const [row] = await database.query<{ data: Data; expires_at: string }>(text, [...values, epochSeconds(clock)]);
    return row && { data: row.data, expiresAt: Number(row.expires_at) };
  };

  return {
    isInDatabase: true,
    ...createPostgresAuthorizations({ database, clock, timeShift }),

    async read(kind, id) {
      return isStorableId(id) ? readOne(READ, [kind, keyOf(id)]) : undefined;
    },

    write: (kind, id, data, expiresAt) => write(kind, id, null, data, expiresAt),

    replace,

    async remove(kind, id) {
      return isStorableId(id) && (await readOne(TAKE, [kind, keyOf(id)])) !== undefined;
    },

    async take(kind, id) {
      return isStorableId(id) ? readOne(TAKE, [kind, keyOf(id)]) : undefined;
    },

    writeSession: (id, uid, data, expiresAt) => write('session', id, keyOf(uid), data, expiresAt),

    replaceSession: (id, _uid, data, expiresAt) => replace('session', id, data, expiresAt),

    async readSessionByUid(uid) {
      return isStorableId(uid) ? readOne(READ_BY_UID, [keyOf(uid)]) : undefined;
    },

    removeExpired: (limit) => deleteExpired(database, EXPIRING, epochSeconds(clock), limit),

    async ping() {
      await database.query('SELECT 1');
    },

    // The pool is closed by the caller that opened it.
    close: async () => {},
  };
}
