/** The Redis masters on which every end is known to be done, as all nodes agree on them in PostgreSQL. */
import { setTimeout as delay } from 'node:timers/promises';
import { tellingOf } from './change-feed.ts';
import type { Database } from './queries.ts';

/** How far a master has come, by its own INFO. */
export interface MasterPosition {
  /** Its replication id: another one after each restart and each failover. */
  readonly id: string;
  readonly offset: number;
}

export interface KnownMasters {
  /** The masters on which the recorded ends have been repeated. */
  listReady(): Promise<readonly MasterPosition[]>;
  /**
   * Records masters on which the ends are about to be repeated, deletes those that they replace, and
   * tells every node. Resolves when each end that is not yet in the database knows of this.
   *
   * @param replaced.former the ids that they continued.
   * @param replaced.current the ids of all masters there are: all others are replaced. Null if a
   *   master did not answer.
   */
  startRepeat(
    masters: readonly MasterPosition[],
    replaced: {
      readonly former: readonly string[];
      readonly current: readonly string[] | null;
    },
  ): Promise<void>;
  /** Records that the ends have been repeated on these masters. */
  finishRepeat(ids: readonly string[]): Promise<void>;
  /** Keeps the offsets, so that a master that comes back with a lower one is recognized. */
  keepOffsets(masters: readonly MasterPosition[]): Promise<void>;
}

/** Milliseconds between two looks at the transactions that are waited for. */
const PAUSE = 20;
const WAIT_LIMIT = 10_000;

/**
 * Part of a statement, an expression: the ids of the masters that are ready. An end that is recorded
 * and then done on another master than these has to be done again.
 */
export const READY_MASTERS =
  '(SELECT coalesce(array_agg(replication_id), ARRAY[]::text[]) FROM redis_masters WHERE is_ready)';

export function createKnownMasters(database: Database): KnownMasters {
  const listReady = async (): Promise<readonly MasterPosition[]> => {
    // pg answers a bigint as text; a double holds every offset below 8 PiB.
    const rows = await database.query<{ id: string; offset: string }>(
      `SELECT replication_id AS id, replication_offset AS offset FROM redis_masters WHERE is_ready`,
    );
    return rows.map(({ id, offset }) => ({ id, offset: Number(offset) }));
  };

  /** The transactions that may be recording an end at this moment. */
  async function recording(): Promise<readonly string[]> {
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
      const values: unknown[] = [
        former,
        current,
        masters.map(({ id }) => id),
        masters.map(({ offset }) => offset),
      ];
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
          SELECT ${tellingOf('redis-masters', masters[0]?.id ?? '', use)}`,
        values,
      );
      // What was recorded before is repeated, and what is recorded from now on reads this change. In
      // between are the statements that began before and are not committed: they must be visible first.
      let unfinished = await recording();
      for (let waited = 0; unfinished.length > 0; waited += PAUSE) {
        if (waited > WAIT_LIMIT)
          throw new Error('a transaction that records an end does not finish');
        await delay(PAUSE);
        const now = await recording();
        unfinished = unfinished.filter((transaction) => now.includes(transaction));
      }
    },

    async finishRepeat(ids) {
      await database.query(
        'UPDATE redis_masters SET is_ready = true WHERE replication_id = ANY($1::text[])',
        [ids],
      );
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
