/** The security log in the order in which it is read by cursor, and the place up to which it is out. */
import { Refusal } from '../../base/refusal.ts';
import type { Database, Queries } from '../../storage/queries.ts';
import { ACTIVITY_COLUMNS } from './activity.ts';
import { type AuditRecord, type AuditRow, auditEntry, auditRecordFrom, EMAIL } from './audit.ts';

/** A place in the log. `xact` is 0 among the entries that are older than the generation. */
interface Place {
  readonly xact: string;
  readonly id: string;
}

interface Log {
  readonly generation: string;
  readonly oldUntil: string;
}

/** The log with the place up to which it is out. */
export type HeldLog = Log & Place;

export interface Following {
  readonly record: AuditRecord;
  /** The entry as JSON, with the cursor of the place after it. */
  readonly line: ReturnType<typeof auditEntry> & {
    readonly type: 'audit';
    readonly cursor: string;
  };
  readonly place: Place;
}

export interface AuditPage {
  readonly entries: readonly Following[];
  /** The cursor for the next page, also if there are no further entries yet. */
  readonly next: string;
  readonly more: boolean;
}

export type AuditTrail = ReturnType<typeof createAuditTrail>;

export const MAX_PAGE = 1_000;
const LEASE = "clock_timestamp() + interval '10 seconds'";
const CURSOR = /^([0-9a-f]{12})-(\d{1,18})-(\d{1,18})$/;
const LOG = 'generation, old_until AS "oldUntil", xact::text AS xact, id';

export function createAuditTrail({ database }: { readonly database: Database }) {
  /** Returns the log of this database, and begins a new generation in a restored copy. */
  async function find(): Promise<HeldLog & { readonly oldest: string; readonly newest: string }> {
    for (;;) {
      const [log] = await database.query<Awaited<ReturnType<typeof find>>>(
        `SELECT ${LOG}, pg_snapshot_xmin(pg_current_snapshot())::text AS oldest,
            pg_snapshot_xmax(pg_current_snapshot())::text AS newest
          FROM audit_output WHERE origin = audit_origin()`,
      );
      if (log) return log;
      await database.transaction(beginGeneration);
    }
  }

  /** @param isSettled false to include entries that a transaction still running could precede */
  async function read(
    log: Log,
    { xact, id }: Place,
    limit: number,
    isSettled = true,
  ): Promise<Following[]> {
    const settled = isSettled
      ? 'pg_snapshot_xmin(pg_current_snapshot())'
      : "'18446744073709551615'::xid8";
    const rows = await database.query<AuditRow & { xact: string }>(
      `SELECT found.*, ${EMAIL} FROM (
          (SELECT '0'::xid8 AS place, '0' AS xact, ${ACTIVITY_COLUMNS} FROM activity
            WHERE $1::text = '0' AND id > $2 AND id <= $3 ORDER BY id LIMIT $4)
          UNION ALL
          (SELECT xact AS place, xact::text AS xact, ${ACTIVITY_COLUMNS} FROM activity
            WHERE (xact, id) > ($1::text::xid8, CASE $1 WHEN '0' THEN 0 ELSE $2 END)
              AND xact < ${settled} AND id > $3 ORDER BY activity.xact, id LIMIT $4)
        ) found ORDER BY place, id LIMIT $4`,
      [xact, id, log.oldUntil, limit],
    );
    return rows.map(({ xact: own, ...row }) => {
      const record = auditRecordFrom(row);
      const cursor = `${log.generation}-${own}-${row.id}`;
      const line = { type: 'audit' as const, cursor, ...auditEntry(record) };
      return { record, line, place: { xact: own, id: row.id } };
    });
  }

  const held = async (text: string, values: readonly unknown[]): Promise<HeldLog | undefined> =>
    (await database.query<HeldLog>(`${text} RETURNING ${LOG}`, values))[0];

  return {
    read,

    /**
     * @param after a cursor, or `start` for the oldest entry that is stored
     * @throws Refusal for a cursor that is not of this log
     */
    async page(after: string, limit: number): Promise<AuditPage> {
      const [, generation, xact = '0', id = '0'] = CURSOR.exec(after) ?? [];
      if (generation === undefined && after !== 'start') throw cursorInvalid;
      const log = await find();
      const isAhead = BigInt(xact) > BigInt(log.newest);
      if ((generation ?? log.generation) !== log.generation || isAhead) throw cursorOfAnother;
      const found = await read(log, { xact, id }, limit + 1);
      const entries = found.slice(0, limit);
      const next = entries.at(-1)?.line.cursor ?? `${log.generation}-${xact}-${id}`;
      return { entries, next, more: found.length > limit };
    },

    /** Returns the cursor after which only entries follow that are committed from now on. */
    async end(): Promise<string> {
      const { generation, oldest } = await find();
      return `${generation}-${oldest}-0`;
    },

    /** Takes or renews the lease on the log. @returns undefined while another node has the lease */
    async claim(holder: string): Promise<HeldLog | undefined> {
      await find();
      return held(
        `UPDATE audit_output SET holder = $1, expires_at = ${LEASE}
          WHERE holder IS NULL OR holder = $1 OR expires_at <= clock_timestamp()`,
        [holder],
      );
    },

    /** Stores what is out, and renews the lease. @returns undefined if another node has the lease */
    advance: (holder: string, { xact, id }: Place): Promise<HeldLog | undefined> =>
      held(`UPDATE audit_output SET xact = $2, id = $3, expires_at = ${LEASE} WHERE holder = $1`, [
        holder,
        xact,
        id,
      ]),

    release: (holder: string): Promise<unknown> =>
      database.query('UPDATE audit_output SET holder = NULL WHERE holder = $1', [holder]),

    /** Returns the time of the first entry that is not on the log yet. */
    async oldestNotOut(): Promise<Date | undefined> {
      const log = await find();
      const [first] = await read(log, log, 1, false);
      return first?.record.at;
    },
  };
}

/**
 * Begins a generation in which the present entries are ordered by id: the transactions of another
 * cluster's counter would hide new entries, or be hidden themselves.
 */
async function beginGeneration(tx: Queries): Promise<void> {
  // Do not make other writers wait behind this lock for long: the next reader tries again.
  await tx.query("SET LOCAL lock_timeout = '2s'");
  // Ends when no transaction is writing, so that every entry up to the highest id is committed.
  await tx.query('LOCK TABLE activity IN SHARE ROW EXCLUSIVE MODE');
  // Start at the first entry that may not be out yet, even if others are then on the log twice.
  await tx.query(
    `UPDATE audit_output o SET generation = left(replace(gen_random_uuid()::text, '-', ''), 12),
        origin = audit_origin(), old_until = coalesce((SELECT max(id) FROM activity), 0), xact = '0',
        id = least(id, (SELECT min(id) - 1 FROM activity a WHERE (a.xact, a.id) > (o.xact, o.id)))
      WHERE origin <> audit_origin()`,
  );
}

const AGAIN =
  'Begin at the start of the log, without a cursor; entries that you have already read have the same id.';
const cursorInvalid = new Refusal('cursor_invalid', 'This is not a cursor of the log.', AGAIN);
const cursorOfAnother = new Refusal(
  'cursor_of_another_log',
  'This cursor is of another deployment, or from before the database was restored.',
  AGAIN,
);
