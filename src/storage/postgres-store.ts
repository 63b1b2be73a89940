/** The token store on PostgreSQL: two tables, each change one statement. */
import type { Clock } from '../clock.ts';
import { epochSeconds } from '../clock.ts';
import { sha256 } from '../random-id.ts';
import type { Database } from './queries.ts';
import { isStorableId, type StoredRecord, type TokenStore } from './token-store.ts';

interface RecordRow {
  data: unknown;
  expires_at: string;
  consumed_by: string | null;
}

interface FamilyRow {
  rotation: number;
  attempt: string;
  rotated_at: string;
  expires_at: string;
  data: unknown;
}

const WRITE = `
  INSERT INTO token_records (kind, key, uid, data, expires_at) VALUES ($1, $2, $3, $4, $5)
  ON CONFLICT (kind, key) DO UPDATE
    SET uid = excluded.uid, data = excluded.data, expires_at = excluded.expires_at, consumed_by = NULL`;

// Replaced only while it is there: a removal that comes first leaves no row to update.
const REPLACE = `
  UPDATE token_records SET data = $3, expires_at = $4, consumed_by = NULL
  WHERE kind = $1 AND key = $2 AND expires_at > $5
  RETURNING 1`;

const READ = `
  SELECT data, expires_at, consumed_by FROM token_records
  WHERE kind = $1 AND key = $2 AND expires_at > $3`;

const READ_BOTH = `
  SELECT kind, key, data, expires_at, consumed_by FROM token_records
  WHERE (kind, key) IN (($1, $2), ($3, $4)) AND expires_at > $5`;

const TAKE = `
  DELETE FROM token_records WHERE kind = $1 AND key = $2 AND expires_at > $3
  RETURNING data, expires_at, consumed_by`;

const READ_BY_UID = `
  SELECT data, expires_at, consumed_by FROM token_records
  WHERE kind = 'session' AND uid = $1 AND expires_at > $2
  ORDER BY expires_at DESC LIMIT 1`;

// Consumed only once: WHERE consumed_by IS NULL; the same attempt again succeeds again.
const CONSUME = `
  UPDATE token_records SET consumed_by = $2
  WHERE kind = 'code' AND key = $1 AND expires_at > $3
    AND (consumed_by IS NULL OR consumed_by = $2)
  RETURNING key`;

// Begun again only while it stands at its beginning: an exchange that failed may be repeated.
const START_FAMILY = `
  INSERT INTO refresh_families (key, rotation, attempt, rotated_at, expires_at, data)
  VALUES ($1, 0, '', $2, $3, $4)
  ON CONFLICT (key) DO UPDATE
    SET rotation = 0, attempt = '', rotated_at = excluded.rotated_at,
        expires_at = excluded.expires_at, data = excluded.data
    WHERE refresh_families.rotation = 0`;

const READ_FAMILY = `
  SELECT rotation, attempt, rotated_at, expires_at, data FROM refresh_families
  WHERE key = $1 AND expires_at > $2`;

// Advanced only from behind: two that arrive together wait for the row, and the second finds it moved.
const ADVANCE_FAMILY = `
  UPDATE refresh_families
  SET rotation = $2, attempt = $3, rotated_at = $4, expires_at = $5, data = $6
  WHERE key = $1 AND rotation < $2 AND expires_at > $7
  RETURNING rotation`;

// Expired rows are skipped by every read; deleting them may take its time, and never waits for one.
const REMOVE_EXPIRED = (table: string): string => `
  DELETE FROM ${table} WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM ${table} WHERE expires_at <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED))
  RETURNING 1`;

const keyOf = (id: string): string => sha256(id).slice(0, 22);

export function createPostgresStore({
  database,
  clock,
}: {
  database: Database;
  clock: Clock;
}): TokenStore {
  const write = async (
    kind: string,
    id: string,
    uid: string | null,
    data: unknown,
    expiresAt: number,
  ): Promise<void> => {
    await database.query(WRITE, [kind, keyOf(id), uid, JSON.stringify(data), expiresAt]);
  };

  const one = async <Data>(
    text: string,
    values: readonly unknown[],
  ): Promise<StoredRecord<Data> | undefined> => {
    const [row] = await database.query<RecordRow>(text, [...values, epochSeconds(clock)]);
    return recordFrom(row);
  };

  return {
    async read(kind, id) {
      return isStorableId(id) ? one(READ, [kind, keyOf(id)]) : undefined;
    },

    async readBoth(first, second) {
      // An id that cannot be stored has the hash of none that is.
      const names = [first, second].map(({ kind, id }) => [
        kind,
        isStorableId(id) ? keyOf(id) : '',
      ]);
      const values = [...names.flat(), epochSeconds(clock)];
      const rows = await database.query<RecordRow & { kind: string; key: string }>(
        READ_BOTH,
        values,
      );
      const [one, other] = names.map(([kind, key]) =>
        rows.find((row) => row.kind === kind && row.key === key),
      );
      return [recordFrom(one), recordFrom(other)];
    },

    write: (kind, id, data, expiresAt) => write(kind, id, null, data, expiresAt),

    async replace(kind, id, data, expiresAt) {
      if (!isStorableId(id)) return false;
      const values = [kind, keyOf(id), JSON.stringify(data), expiresAt, epochSeconds(clock)];
      return (await database.query(REPLACE, values)).length === 1;
    },

    async remove(kind, id) {
      if (!isStorableId(id)) return false;
      const removed = await database.query(
        'DELETE FROM token_records WHERE kind = $1 AND key = $2 AND expires_at > $3 RETURNING 1',
        [kind, keyOf(id), epochSeconds(clock)],
      );
      return removed.length === 1;
    },

    async take(kind, id) {
      return isStorableId(id) ? one(TAKE, [kind, keyOf(id)]) : undefined;
    },

    writeSession: (id, uid, data, expiresAt) => write('session', id, keyOf(uid), data, expiresAt),

    async readSessionByUid(uid) {
      return isStorableId(uid) ? one(READ_BY_UID, [keyOf(uid)]) : undefined;
    },

    async consumeCode(id, attempt) {
      if (!isStorableId(id)) return false;
      const values = [keyOf(id), attempt, epochSeconds(clock)];
      return (await database.query(CONSUME, values)).length === 1;
    },

    async startFamily(grantId, data, now, expiresAt) {
      await database.query(START_FAMILY, [keyOf(grantId), now, expiresAt, JSON.stringify(data)]);
    },

    async readFamily<Data>(grantId: string) {
      if (!isStorableId(grantId)) return undefined;
      const [row] = await database.query<FamilyRow>(READ_FAMILY, [
        keyOf(grantId),
        epochSeconds(clock),
      ]);
      if (!row) return undefined;
      return {
        rotation: row.rotation,
        rotatedAt: Number(row.rotated_at),
        expiresAt: Number(row.expires_at),
        data: row.data as Data,
      };
    },

    async advanceFamily(grantId, { rotation, attempt, data, now, expiresAt }) {
      if (!isStorableId(grantId)) return 'missing';
      const key = keyOf(grantId);
      const moved = await database.query(ADVANCE_FAMILY, [
        key,
        rotation,
        attempt,
        now,
        expiresAt,
        JSON.stringify(data),
        epochSeconds(clock),
      ]);
      if (moved.length === 1) return 'advanced';
      const [row] = await database.query<FamilyRow>(READ_FAMILY, [key, epochSeconds(clock)]);
      if (!row) return 'missing';
      return row.rotation === rotation && row.attempt === attempt ? 'advanced' : 'already';
    },

    async removeFamily(grantId) {
      if (!isStorableId(grantId)) return;
      await database.query('DELETE FROM refresh_families WHERE key = $1', [keyOf(grantId)]);
    },

    async removeExpired(limit) {
      const now = epochSeconds(clock);
      const records = await database.query(REMOVE_EXPIRED('token_records'), [now, limit]);
      const left = limit - records.length;
      const families = await database.query(REMOVE_EXPIRED('refresh_families'), [now, left]);
      return records.length + families.length;
    },

    async ping() {
      await database.query('SELECT 1');
    },

    // The pool belongs to who opened it.
    close: async () => {},
  };
}

function recordFrom<Data>(row: RecordRow | undefined): StoredRecord<Data> | undefined {
  if (!row) return undefined;
  return {
    data: row.data as Data,
    expiresAt: Number(row.expires_at),
    isConsumed: row.consumed_by !== null,
  };
}
