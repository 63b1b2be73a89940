/** The security log in the order in which it is read by cursor, and the place up to which it is out. */
import { Refusal } from '../../base/refusal.ts';
import type { Database, Queries } from '../../storage/queries.ts';
import { ACTIVITY_COLUMNS } from './activity.ts';
import { type AuditRecord, type AuditRow, auditEntry, auditRecordFrom, EMAIL } from './audit.ts';

/** A place in the log of this database. */
export interface Place {
  /** Changes when the database is restored into another cluster. */
  readonly generation: string;
  /** Entries up to this id are older than the generation. */
  readonly oldUntil: string;
  /** No entry of the generation has an earlier transaction. */
  readonly firstXact: string;
  /** The transaction of the entry before this place; 0 among the old entries. */
  readonly xact: string;
  readonly id: string;
}

export interface Following {
  readonly record: AuditRecord;
  /** The entry as JSON, with the cursor of the place after it. */
  readonly line: ReturnType<typeof auditEntry> & { type: 'audit'; cursor: string };
}

export type AuditTrail = ReturnType<typeof createAuditTrail>;

export const MAX_PAGE = 1_000;
const LEASE = "clock_timestamp() + interval '10 seconds'";
const CURSOR = /^([0-9a-f]{12})-(\d{1,18})-(\d{1,18})$/;
const PLACE = 'generation, old_until AS "oldUntil", first_xact AS "firstXact", xact, id';
/** How many entries one statement reads in search of the first that is not out. */
const LATER_ENTRIES = 10_000;

export function createAuditTrail({ database }: { readonly database: Database }) {
  /** Returns the place up to which the log is out. Begins a new generation in a restored copy. */
  async function find(isBegun = false): Promise<Place & { readonly newest: string }> {
    const [log] = await database.query<Awaited<ReturnType<typeof find>>>(
      `SELECT ${PLACE}, pg_snapshot_xmax(pg_current_snapshot()) AS newest
        FROM audit_output WHERE origin = audit_origin()`,
    );
    if (log) return log;
    if (isBegun) throw new Error('the table audit_output has no row: restore it from a backup');
    await beginGeneration(database);
    return find(true);
  }

  /** @param until `xmax` to include entries that a transaction still running could precede */
  async function read(
    { generation, oldUntil, firstXact, xact, id }: Place,
    limit: number,
    until: 'xmin' | 'xmax' = 'xmin',
  ): Promise<Following[]> {
    const rows = await database.query<AuditRow & { xact: string }>(
      `SELECT found.*, ${EMAIL} FROM (
          (SELECT '0'::xid8 AS xact, ${ACTIVITY_COLUMNS} FROM activity
            WHERE $1::text = '0' AND id > $2 AND id <= $3 ORDER BY id LIMIT $4)
          UNION ALL
          (SELECT xact, ${ACTIVITY_COLUMNS} FROM activity
            WHERE (xact, id) > (CASE $1 WHEN '0' THEN $5 ELSE $1 END::text::xid8,
                CASE $1 WHEN '0' THEN 0 ELSE $2 END)
              AND xact < pg_snapshot_${until}(pg_current_snapshot()) AND id > $3
            ORDER BY xact, id LIMIT $4)
        ) found ORDER BY xact, id LIMIT $4`,
      [xact, id, oldUntil, limit, firstXact],
    );
    return rows.map(({ xact: place, ...row }) => {
      const record = auditRecordFrom(row);
      const cursor = `${generation}-${place}-${row.id}`;
      return { record, line: { type: 'audit', cursor, ...auditEntry(record) } };
    });
  }

  const moved = async (text: string, values: readonly string[]): Promise<Place | undefined> =>
    (await database.query<Place>(`UPDATE audit_output ${text} RETURNING ${PLACE}`, values))[0];

  return {
    read,

    /**
     * Returns entries, and the cursor for the next page, also if there are no further entries yet.
     *
     * @param after a cursor, or `start` for the oldest entry that is stored
     * @throws Refusal for a cursor that is not of this log
     */
    async page(after: string, limit: number) {
      const [, generation, xact = '0', id = '0'] = CURSOR.exec(after) ?? [];
      if (generation === undefined && after !== 'start') throw cursorInvalid;
      const log = await find();
      const isAhead = BigInt(xact) > BigInt(log.newest);
      if ((generation ?? log.generation) !== log.generation || isAhead) throw cursorOfAnother;
      const found = await read({ ...log, xact, id }, limit + 1);
      const entries = found.slice(0, limit);
      const next = entries.at(-1)?.line.cursor ?? `${log.generation}-${xact}-${id}`;
      return { entries, next, more: found.length > limit };
    },

    /** Acquires or renews the lease, which only one node has. @returns undefined if another node has it */
    async claim(holder: string): Promise<Place | undefined> {
      await find();
      return moved(
        `SET holder = $1, expires_at = ${LEASE}
          WHERE holder IS NULL OR holder = $1 OR expires_at <= clock_timestamp()`,
        [holder],
      );
    },

    /**
     * Stores that the log is out up to `cursor`, and renews the lease.
     *
     * @returns undefined if another node has the lease, or if the database was restored since `claim`
     */
    advance: (holder: string, cursor: string): Promise<Place | undefined> =>
      moved(
        `SET xact = $3::text::xid8, id = $4, expires_at = ${LEASE}
          WHERE holder = $1 AND generation = $2 AND origin = audit_origin()`,
        [holder, ...cursor.split('-')],
      ),

    release: (holder: string): Promise<unknown> =>
      database.query('UPDATE audit_output SET holder = NULL WHERE holder = $1', [holder]),

    /** Returns the time of the first entry that is not on the log yet. */
    async oldestNotOut(): Promise<Date | undefined> {
      const [first] = await read(await find(), 1, 'xmax');
      return first?.record.at;
    },
  };
}

/**
 * Begins a generation in which the present entries are ordered by id: the transactions of another
 * cluster's counter would hide new entries, or be hidden themselves.
 */
async function beginGeneration(database: Database): Promise<void> {
  const [restored] = await database.query<Place>(`SELECT ${PLACE} FROM audit_output WHERE origin <> audit_origin()`);
  if (!restored) return;
  // Before the lock, for which every sign-in waits. Entries that are added meanwhile have higher ids.
  const first = await firstNotOut(database, restored);
  await database.transaction(async (tx) => {
    // Less than a statement may take on a node: every writer waits behind this lock, and the next reader tries again.
    await tx.query("SET LOCAL lock_timeout = '500ms'");
    // The lock is granted only when no transaction is writing, so every entry up to the highest id is committed.
    await tx.query('LOCK TABLE activity IN SHARE ROW EXCLUSIVE MODE');
    await tx.query(
      `UPDATE audit_output SET generation = left(replace(gen_random_uuid()::text, '-', ''), 12),
          origin = audit_origin(), old_until = coalesce((SELECT max(id) FROM activity), 0), xact = '0',
          id = least(id, $1::bigint - 1), first_xact = pg_snapshot_xmin(pg_current_snapshot())
        WHERE generation = $2`,
      [first, restored.generation],
    );
  });
}

type Later = Pick<Place, 'xact' | 'id'> & { first: string | null; count: number };

/**
 * Returns the lowest id of the entries that may not be out yet, even if others are then on the log
 * twice. Reads them in pages, because their number has no limit, but a statement has a time limit.
 */
async function firstNotOut(database: Queries, place: Place): Promise<string | null> {
  let { xact, id } = place;
  // The log is still among the entries from before this generation, which are ordered by id only.
  if (xact === '0') return null;
  let first: string | null = null;
  for (;;) {
    // The transactions of entries up to `oldUntil` are of a still older cluster and say nothing.
    const [last]: Later[] = await database.query<Later>(
      `WITH later AS MATERIALIZED (SELECT xact, id FROM activity
          WHERE (xact, id) > ($1::text::xid8, $2::bigint)
          ORDER BY xact, id LIMIT ${LATER_ENTRIES})
        SELECT xact, id, (SELECT count(*)::int FROM later) AS count,
            least($4, (SELECT min(id) FROM later WHERE id > $3)) AS first
          FROM later ORDER BY xact DESC, id DESC LIMIT 1`,
      [xact, id, place.oldUntil, first],
    );
    first = last?.first ?? first;
    if (!last || last.count < LATER_ENTRIES) return first;
    ({ xact, id } = last);
  }
}

const AGAIN = 'Begin at the start of the log, without a cursor; entries that you have already read have the same id.';
const cursorInvalid = new Refusal('cursor_invalid', 'This is not a cursor of the log.', AGAIN);
const cursorOfAnother = new Refusal(
  'cursor_of_another_log',
  'This cursor is of another deployment, or from before the database was restored.',
  AGAIN,
);
