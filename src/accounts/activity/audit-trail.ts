/** The security log for programs that read it continuously, each from its own cursor. */
import { Refusal } from '../../base/refusal.ts';
import type { Database } from '../../storage/queries.ts';
import { ACTIVITY_COLUMNS, type ActivityRow, activityFrom } from './activity.ts';
import { auditEntry } from './audit.ts';

interface Log {
  /** Part of each cursor. It changes when the database is restored into another cluster. */
  readonly generation: string;
  /** The highest id of the entries that are older than this generation of the log. */
  readonly oldUntil: string;
  /** The oldest transaction whose entries can belong to this generation of the log. */
  readonly firstXact: string;
  /** The first transaction id that was not yet assigned. */
  readonly newest: string;
}

const CURSOR = /^([0-9a-f]{12})-(\d{1,18})-(\d{1,18})$/;

export function createAuditTrail({ database }: { readonly database: Database }) {
  async function find(isBegun = false): Promise<Log> {
    const [log] = await database.query<Log>(
      `SELECT generation, old_until AS "oldUntil", first_xact AS "firstXact",
          pg_snapshot_xmax(pg_current_snapshot()) AS newest
        FROM audit_generation WHERE origin = audit_origin()`,
    );
    if (log) return log;
    if (isBegun) throw new Error('the table audit_generation has no row: restore it from a backup');
    await beginGeneration(database);
    return find(true);
  }

  return {
    /** Cleaning job: begins a new log generation in a restored copy of the database, even if nothing reads the log. */
    async begin(): Promise<number> {
      await find();
      return 0;
    },

    /**
     * Returns entries as JSON, and the cursor for the next page, even if there are no further entries yet. Each entry
     * has its own cursor, from which a page continues with the next entry. A cursor contains the transaction and the id
     * of its entry. The transaction is 0 for entries from before this generation of the log.
     *
     * @param after a cursor, or `start` for the oldest stored entry
     * @throws Refusal for a cursor that does not belong to this log
     */
    async page(after: string, limit: number) {
      const [, given, xact = '0', id = '0'] = CURSOR.exec(after) ?? [];
      if (given === undefined && after !== 'start') throw cursorInvalid;
      const { generation, oldUntil, firstXact, newest } = await find();
      if ((given ?? generation) !== generation || BigInt(xact) > BigInt(newest)) throw cursorOfAnother;
      const rows = await database.query<ActivityRow & { xact: string }>(
        `SELECT * FROM (
            (SELECT '0'::xid8 AS xact, ${ACTIVITY_COLUMNS} FROM activity
              WHERE $1::text = '0' AND id > $2 AND id <= $3 ORDER BY id LIMIT $4)
            UNION ALL
            (SELECT xact, ${ACTIVITY_COLUMNS} FROM activity
              WHERE (xact, id) > (CASE $1 WHEN '0' THEN $5 ELSE $1 END::text::xid8,
                  CASE $1 WHEN '0' THEN 0 ELSE $2 END)
                AND xact < pg_snapshot_xmin(pg_current_snapshot()) AND id > $3
              ORDER BY xact, id LIMIT $4)
          ) found ORDER BY xact, id LIMIT $4`,
        [xact, id, oldUntil, limit + 1, firstXact],
      );
      const entries = rows.slice(0, limit).map(({ xact: place, ...row }) => {
        return { type: 'audit', cursor: `${generation}-${place}-${row.id}`, ...auditEntry(activityFrom(row)) };
      });
      const next = entries.at(-1)?.cursor ?? `${generation}-${xact}-${id}`;
      return { entries, next, more: rows.length > limit };
    },
  };
}

/**
 * Begins a generation of the log in a restored copy of the database. The transaction ids of earlier entries come from
 * another cluster. Readers sort these entries by id, because sorting by transaction could hide entries.
 */
const beginGeneration = (database: Database): Promise<void> =>
  database.transaction(async (tx) => {
    // Keep this timeout below a query's, because all writers wait for the lock. After a failure, the next read retries.
    await tx.query("SET LOCAL lock_timeout = '500ms'");
    // The lock is granted only when no transaction is writing, so every entry up to the highest id is committed.
    await tx.query('LOCK TABLE activity IN SHARE ROW EXCLUSIVE MODE');
    await tx.query(
      `UPDATE audit_generation SET generation = left(replace(gen_random_uuid()::text, '-', ''), 12),
          origin = audit_origin(), old_until = coalesce((SELECT max(id) FROM activity), 0),
          first_xact = pg_snapshot_xmin(pg_current_snapshot())
        WHERE origin <> audit_origin()`,
    );
  });

const AGAIN = 'Begin at the start of the log, without a cursor; entries that you have already read have the same id.';
const cursorInvalid = new Refusal('cursor_invalid', 'This is not a cursor of the log.', AGAIN);
const cursorOfAnother = new Refusal(
  'cursor_of_another_log',
  'This cursor is of another deployment, or from before the database was restored.',
  AGAIN,
);
