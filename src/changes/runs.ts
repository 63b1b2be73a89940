/**
 * The running imports. The lines of each import are in a table. Of all imports on all machines, only one writes at a
 * time.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { randomId } from '../base/random-id.ts';
import { constraintOf, Refusal } from '../base/refusal.ts';
import type { CleaningJob } from '../storage/cleaning.ts';
import type { Database, Queries } from '../storage/queries.ts';

/** A running import, whose lines are stored until it is disposed. */
export interface Run extends AsyncDisposable {
  /** `imp_` and 16 random characters. The audit entries of the import contain this id. */
  readonly id: string;
  /** The start of the import, by the clock of the database. */
  readonly startedAt: Date;
  /**
   * Waits until no other import writes, and keeps others from writing.
   * @param onWait called once, if another import must end first
   */
  takeTurn(onWait?: () => void): Promise<void>;
  /**
   * Locks the run until the transaction `tx` ends, so that no other import deletes it.
   * @throws RunLost
   */
  requireHeld(tx: Queries): Promise<void>;
}

/** Thrown if the process was paused until its import expired, or if PostgreSQL lost the import's lines in a crash. */
export class RunLost extends Refusal {
  constructor() {
    super(
      'import_lost',
      'The lines of this import are no longer in the database: the import was paused for longer than 30 seconds, ' +
        'or PostgreSQL was restarted after a crash.',
      'Run the same command again.',
    );
  }
}

/** If the process of an import was killed, the next import waits for this time. */
const EXPIRY_SECONDS = 30;
const RENEWAL_MS = (EXPIRY_SECONDS * 1000) / 3;
const POLL_MS = 500;
const DELETED_AT_ONCE = 5_000;

// Use the database's clock: the clocks of two machines may differ by more than the expiry.
const EXPIRES_AT = `clock_timestamp() + interval '${EXPIRY_SECONDS} seconds'`;

export async function beginRun(database: Database): Promise<Run> {
  const id = randomId('imp_', 16);
  const [run] = await database.query<{ startedAt: Date }>(
    `INSERT INTO import_runs (id, writes, started_at, expires_at)
      VALUES ($1, false, clock_timestamp(), ${EXPIRES_AT}) RETURNING started_at AS "startedAt"`,
    [id],
  );
  const renew = (): Promise<unknown> =>
    database.query(`UPDATE import_runs SET expires_at = ${EXPIRES_AT} WHERE id = $1`, [id]);
  // Ignore a failed renewal: the next renewal extends the time as well, and each write calls `requireHeld`.
  const timer = setInterval(() => void renew().catch(() => {}), RENEWAL_MS).unref();

  return {
    id,
    startedAt: run?.startedAt ?? new Date(Number.NaN),

    async takeTurn(onWait) {
      let isWaiting = false;
      while ((await isWriting(database)) || !(await tryToTakeTurn(database, id))) {
        if (!isWaiting) onWait?.();
        isWaiting = true;
        await delay(POLL_MS);
      }
    },

    async requireHeld(tx) {
      // KEY SHARE prevents other imports from deleting the row of this run, but lets this run renew its expiry.
      const rows = await tx.query('SELECT FROM import_runs WHERE id = $1 FOR KEY SHARE', [id]);
      if (rows.length === 0) throw new RunLost();
    },

    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      try {
        await database.query('DELETE FROM import_runs WHERE id = $1', [id]);
        while ((await deleteLines(database, id, DELETED_AT_ONCE)) === DELETED_AT_ONCE);
      } catch {
        // If the deletion fails, the run expires, and the cleaning job deletes the lines.
      }
    },
  };
}

async function isWriting(database: Queries): Promise<boolean> {
  const running = 'SELECT FROM import_runs WHERE writes AND expires_at > clock_timestamp()';
  return (await database.query(running)).length > 0;
}

/** @returns false if another import has the turn */
function tryToTakeTurn(database: Database, id: string): Promise<boolean> {
  return database
    .transaction(async (tx) => {
      // The DELETE waits for an open transaction of the expired import, and keeps the row if that transaction has
      // renewed it.
      await tx.query('DELETE FROM import_runs WHERE writes AND expires_at <= clock_timestamp()');
      // If this run has expired and its row was deleted, the UPDATE finds no row, and the first write throws RunLost.
      await tx.query('UPDATE import_runs SET writes = true, started_at = clock_timestamp() WHERE id = $1', [id]);
      return true;
    })
    .catch((error: unknown) => {
      if (constraintOf(error) === 'import_runs_one_writer') return false;
      throw error;
    });
}

async function deleteLines(database: Queries, id: string, limit: number): Promise<number> {
  const rows = await database.query(
    `DELETE FROM import_lines WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM import_lines WHERE import_id = $1 LIMIT $2)) RETURNING 1`,
    [id, limit],
  );
  return rows.length;
}

/** Keep an expired run for an hour: its process may continue if no other import has begun to write. */
const EXPIRED_RUNS = "DELETE FROM import_runs WHERE expires_at <= clock_timestamp() - interval '1 hour'";

/** Finds imports that have lines but no run. Reads one index entry per import: there may be millions of lines. */
const WITHOUT_RUN = `WITH RECURSIVE imports AS (
    SELECT min(import_id) AS id FROM import_lines
    UNION ALL SELECT (SELECT min(l.import_id) FROM import_lines l WHERE l.import_id > imports.id)
      FROM imports WHERE imports.id IS NOT NULL)
  SELECT id FROM imports WHERE id IS NOT NULL AND NOT EXISTS (SELECT FROM import_runs r WHERE r.id = imports.id)`;

export const importLinesCleaning =
  ({ database }: { readonly database: Queries }): CleaningJob =>
  async (limit) => {
    await database.query(EXPIRED_RUNS);
    const [lost] = await database.query<{ id: string }>(WITHOUT_RUN);
    return lost === undefined ? 0 : deleteLines(database, lost.id, limit);
  };
