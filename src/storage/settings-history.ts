/** The requests to reload on every node, and the history of the settings file. */
import { sendToAllNodes } from './change-feed.ts';
import type { Database, Queries } from './queries.ts';

/** Makes nodes read the latest request before their next heartbeat. */
export const RELOAD_MESSAGE = 'reload';
const MAX_ENTRIES = 20;

/** Asks every node to reload, and returns the number of the request. */
export async function requestReload(database: Queries, message?: string): Promise<number> {
  const [row] = await database.query<{ number: number }>(
    `INSERT INTO settings_reload AS known (number, message, requested_at)
      VALUES (1, $1, clock_timestamp())
      ON CONFLICT (is_only) DO UPDATE SET number = known.number + 1, message = excluded.message,
        requested_at = excluded.requested_at
      RETURNING number`,
    [message],
  );
  // Ignore a failure: the nodes find the request at their next heartbeat.
  await sendToAllNodes(database, RELOAD_MESSAGE).catch(() => {});
  return row?.number ?? 0;
}

/** `isFresh`: a node that starts now may have read its file before the request. */
export const latestReloadRequest = (database: Queries) =>
  database.query<{ number: number; message: string | null; isFresh: boolean }>(
    `SELECT number, message, requested_at > clock_timestamp() - interval '2 minutes' AS "isFresh"
      FROM settings_reload`,
  );

export interface HistoryEntry {
  readonly number: number;
  readonly hash: string;
  /** Null if the text is not kept; `notKeptBecause` then says why. */
  readonly text: string | null;
  readonly notKeptBecause: string | null;
  readonly takenAt: Date;
  readonly node: string;
  readonly message: string | null;
}

/** Records what a node has taken, unless the latest entry, or the latest of this node, is the same. */
export const recordSettings = (
  database: Database,
  { hash, node, message, text, notKeptBecause }: Omit<HistoryEntry, 'number' | 'takenAt'>,
): Promise<void> =>
  database.transaction(async (tx) => {
    // Nodes record the same text at the same moment.
    await tx.query('LOCK TABLE settings_history IN SHARE ROW EXCLUSIVE MODE');
    const known = await tx.query(
      `UPDATE settings_history SET message = coalesce(message, $3)
        WHERE hash = $1 AND (message IS NULL OR $3::text IS NULL OR message = $3)
          AND number IN ((SELECT max(number) FROM settings_history),
            (SELECT max(number) FROM settings_history WHERE node = $2))
        RETURNING number`,
      [hash, node, message],
    );
    if (known.length > 0) return;
    await tx.query(
      `INSERT INTO settings_history (number, hash, node, message, text, not_kept_because, taken_at)
        SELECT coalesce(max(number), 0) + 1, $1, $2, $3, $4, $5, clock_timestamp()
          FROM settings_history`,
      [hash, node, message, text, notKeptBecause],
    );
    await tx.query(
      'DELETE FROM settings_history WHERE number <= (SELECT max(number) FROM settings_history) - $1',
      [MAX_ENTRIES],
    );
  });

/** Returns the entries, the latest first. */
export const settingsHistory = (database: Queries): Promise<HistoryEntry[]> =>
  database.query(
    `SELECT number, hash, text, not_kept_because AS "notKeptBecause", taken_at AS "takenAt", node,
        message FROM settings_history ORDER BY number DESC`,
  );
