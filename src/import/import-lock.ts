/** Allows one import at a time across all machines: a table row says which one is running. */
import { setTimeout as delay } from 'node:timers/promises';
import { randomId } from '../base/random-id.ts';
import { Refusal } from '../base/refusal.ts';
import type { Database, Queries } from '../storage/queries.ts';

/** A running import, shown to an operator whose own import waits for it. */
export interface RunningImport {
  readonly startedAt: Date;
  /** The operator who started the import, with the process and the machine. */
  readonly startedBy: string;
}

/** Held from the comparison to the last write; once it is disposed, another import can start. */
export interface ImportLock extends AsyncDisposable {
  /**
   * Keeps the lock until this transaction ends.
   *
   * @throws ImportLockLost
   */
  requireHeld(tx: Queries): Promise<void>;
}

export interface ImportLockOptions {
  readonly startedBy: string;
  /** Called once for each import to wait for; if absent, `lockImports` throws instead. */
  readonly onWait?: ((running: RunningImport) => void) | undefined;
}

/** Thrown if this process was paused until its lock expired and another import could start. */
export class ImportLockLost extends Error {}

/** How long the next import waits if the process of a running one was killed. */
const EXPIRY_SECONDS = 30;
const RENEWAL_MS = (EXPIRY_SECONDS * 1000) / 3;
const POLL_MS = 500;

// Use the database's clock: the clocks of two machines may differ by more than the expiry.
const EXPIRES_AT = `clock_timestamp() + interval '${EXPIRY_SECONDS} seconds'`;

/**
 * Waits until no other import is running, and keeps others from starting.
 *
 * @throws Refusal `import_running` if another import runs and `onWait` is absent.
 */
export async function lockImports(database: Database, { startedBy, onWait }: ImportLockOptions): Promise<ImportLock> {
  const holder = randomId('', 16);
  let waitsFor: number | undefined;
  for (;;) {
    const running = await findRunning(database);
    if (running === undefined && (await tryLock(database, { holder, startedBy }))) {
      return createLock(database, holder);
    }
    if (running !== undefined) {
      if (onWait === undefined) throw importRunning(running);
      if (running.startedAt.getTime() !== waitsFor) onWait(running);
      waitsFor = running.startedAt.getTime();
    }
    await delay(POLL_MS);
  }
}

async function findRunning(database: Queries): Promise<RunningImport | undefined> {
  const [row] = await database.query<RunningImport>(
    `SELECT started_at AS "startedAt", started_by AS "startedBy" FROM running_import
      WHERE expires_at > clock_timestamp()`,
  );
  return row;
}

/** @returns false if another import started first. */
async function tryLock(
  database: Database,
  { holder, startedBy }: { readonly holder: string; readonly startedBy: string },
): Promise<boolean> {
  return database.transaction(async (tx) => {
    // Waits for an open transaction of the expired import, and keeps the row if that renewed it.
    await tx.query('DELETE FROM running_import WHERE expires_at <= clock_timestamp()');
    const rows = await tx.query(
      `INSERT INTO running_import (holder, started_by, started_at, expires_at)
        VALUES ($1, $2, clock_timestamp(), ${EXPIRES_AT}) ON CONFLICT DO NOTHING RETURNING 1`,
      [holder, startedBy],
    );
    return rows.length === 1;
  });
}

function createLock(database: Database, holder: string): ImportLock {
  const renew = (): Promise<unknown> =>
    database.query(`UPDATE running_import SET expires_at = ${EXPIRES_AT} WHERE holder = $1`, [holder]);
  // Ignore a failed renewal: the next one makes up for it, and each write calls `requireHeld`.
  const timer = setInterval(() => void renew().catch(() => {}), RENEWAL_MS).unref();
  return {
    async requireHeld(tx) {
      // KEY SHARE blocks the deletion with which another import starts, but not the renewals.
      const rows = await tx.query('SELECT 1 FROM running_import WHERE holder = $1 FOR KEY SHARE', [holder]);
      if (rows.length === 0) throw new ImportLockLost();
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      // Ignore a failure: the lock expires by itself.
      await database.query('DELETE FROM running_import WHERE holder = $1', [holder]).catch(() => {});
    },
  };
}

const importRunning = ({ startedAt, startedBy }: RunningImport): Refusal =>
  new Refusal(
    'import_running',
    `Another import is running, since ${startedAt.toISOString()}, by ${startedBy}.`,
    'Run it again when that import has ended, or without --no-wait.',
  );
