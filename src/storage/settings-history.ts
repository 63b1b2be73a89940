/** The requests to reload on every node, and the history of the settings file. */
import { sendToAllNodes } from './change-feed.ts';
import type { Database, Queries } from './queries.ts';

/** Makes nodes read the latest request before their next heartbeat. */
export const RELOAD_MESSAGE = 'reload';
const MAX_ENTRIES = 20;

/** Asks every node to reload. Returns the number of the request, and of the one before. */
export async function requestReload(database: Queries, message: string | null) {
  const [row] = await database.query<{ number: number; previous: number }>(
    `INSERT INTO settings_reload AS known (number, previous, message)
      VALUES (floor(extract(epoch FROM clock_timestamp()) * 1000), 0, $1)
      ON CONFLICT (is_only) DO UPDATE SET number = greatest(known.number + 1, excluded.number),
        previous = known.number, message = excluded.message
      RETURNING number::float8, previous::float8`,
    [message],
  );
  // Ignore a failure: the nodes find the request at their next heartbeat.
  await sendToAllNodes(database, RELOAD_MESSAGE).catch(() => {});
  return row;
}

/** `isFresh`: a node that starts now may have read its file before the request. */
export async function latestReloadRequest(database: Queries) {
  const [row] = await database.query<{ number: number; message: string | null; isFresh: boolean }>(
    `SELECT number::float8, message,
        number / 1000 > extract(epoch FROM clock_timestamp()) - 120 AS "isFresh" FROM settings_reload`,
  );
  return row ?? { number: 0, message: null, isFresh: false };
}

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
