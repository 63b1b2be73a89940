/** The Redis masters that are known to have every revocation; PostgreSQL has the list. */
import { setTimeout as delay } from 'node:timers/promises';
import { announcementSql } from './change-feed.ts';
import type { Database } from './queries.ts';

/** The replication position of a master, from its INFO. */
export interface MasterPosition {
  /** The replication id: a new one after each restart and each failover. */
  readonly id: string;
  readonly offset: number;
}

export interface KnownMasters {
  /** Returns the masters on which the recorded revocations have been repeated. */
  listReady(): Promise<readonly MasterPosition[]>;
  /**
   * Records masters on which the revocations are about to be repeated, deletes the masters that
   * they replace, and notifies every node. Resolves when each revocation that is not committed yet
   * will see this change.
   *
   * @param replaced.former the replication ids that the masters had before their promotion.
   * @param replaced.current the ids of all masters at present: any other was replaced. Null if a
   *   master did not answer.
   */
  startRepeat(
    masters: readonly MasterPosition[],
    replaced: {
      readonly former: readonly string[];
      readonly current: readonly string[] | null;
    },
  ): Promise<void>;
  /** Records that the revocations have been repeated on these masters. */
  finishRepeat(ids: readonly string[]): Promise<void>;
  /** Stores the offsets, so that a master that returns with a lower offset is recognized. */
  keepOffsets(masters: readonly MasterPosition[]): Promise<void>;
}

const POLL_PAUSE_MS = 20;
const WAIT_TIMEOUT_MS = 10_000;

/**
 * SQL expression: the ids of the masters that are ready. A revocation that was carried out on any
 * other master must be repeated.
 */
export const READY_MASTERS =
  '(SELECT coalesce(array_agg(replication_id), ARRAY[]::text[]) FROM redis_masters WHERE is_ready)';

export function createKnownMasters(database: Database): KnownMasters {
  const listReady = async (): Promise<readonly MasterPosition[]> => {
    // pg returns a bigint as text; a number holds every offset below 8 PiB.
    const rows = await database.query<{ id: string; offset: string }>(
      `SELECT replication_id AS id, replication_offset AS offset FROM redis_masters WHERE is_ready`,
    );
    return rows.map(({ id, offset }) => ({ id, offset: Number(offset) }));
  };

  /** Returns the transactions that may be recording a revocation at this moment. */
  async function listRecording(): Promise<readonly string[]> {
    const rows = await database.query<{ transaction: string }>(
      `SELECT DISTINCT virtualtransaction AS transaction FROM pg_locks
        WHERE relation IN ('ended_authorizations'::regclass, 'ended_machine_tokens'::regclass)
          AND mode = 'RowExclusiveLock' AND granted`,
    );
    return rows.map(({ transaction }) => transaction);
  }

  return {
    listReady,

    async startRepeat(masters, { former, current }) {
      const values: unknown[] = [former, current, masters.map(({ id }) => id), masters.map(({ offset }) => offset)];
      const use = (value: unknown): string => `$${values.push(value)}`;
      await database.query(
        `WITH replaced AS (
            DELETE FROM redis_masters
            WHERE replication_id = ANY($1::text[]) OR replication_id <> ALL($2::text[])),
          met AS (
            INSERT INTO redis_masters (replication_id, replication_offset)
            SELECT * FROM unnest($3::text[], $4::bigint[])
            ON CONFLICT (replication_id) DO UPDATE
              SET is_ready = false, replication_offset = excluded.replication_offset)
          SELECT ${announcementSql('redis-masters', masters[0]?.id ?? '', use)}`,
        values,
      );
      // Committed revocations will be repeated, and new ones see this change. Wait for older
      // statements that are not committed yet: the repeat could not see their revocations.
      let unfinished = await listRecording();
      for (let waited = 0; unfinished.length > 0; waited += POLL_PAUSE_MS) {
        if (waited > WAIT_TIMEOUT_MS) throw new Error('a transaction that records a revocation does not complete');
        await delay(POLL_PAUSE_MS);
        const now = await listRecording();
        unfinished = unfinished.filter((transaction) => now.includes(transaction));
      }
    },

    async finishRepeat(ids) {
      await database.query('UPDATE redis_masters SET is_ready = true WHERE replication_id = ANY($1::text[])', [ids]);
    },

    async keepOffsets(masters) {
      await database.query(
        `UPDATE redis_masters SET replication_offset = seen.at
          FROM unnest($1::text[], $2::bigint[]) AS seen (id, at)
          WHERE replication_id = seen.id AND is_ready AND replication_offset < seen.at`,
        [masters.map(({ id }) => id), masters.map(({ offset }) => offset)],
      );
    },
  };
}
