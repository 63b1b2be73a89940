import type { OperatedBy } from '../base/operated-by.ts';
import { sendToAllNodes } from './change-feed.ts';
import type { Queries } from './queries.ts';

/** Makes every node look for a request now, and not only at its next heartbeat. */
export const RELOAD_MESSAGE = 'reload';

/** Asks every node to reload. Returns the numbers of this request and of the previous request. */
export async function requestReload(database: Queries, by?: OperatedBy) {
  const [row] = await database.query<{ number: number; previous: number }>(
    `INSERT INTO settings_reload AS known (number, previous, operator, reason)
      VALUES (floor(extract(epoch FROM clock_timestamp()) * 1000), 0, $1, $2)
      ON CONFLICT (is_only) DO UPDATE SET number = greatest(known.number + 1, excluded.number),
        previous = known.number, operator = excluded.operator, reason = excluded.reason
      RETURNING number::float8, previous::float8`,
    [by?.operator ?? null, by?.reason ?? null],
  );
  // Ignore a failure: the nodes find the request at their next heartbeat.
  await sendToAllNodes(database, RELOAD_MESSAGE).catch(() => {});
  return row;
}

/**
 * `by` is the operator, if known. `isFresh` is true if a node that starts now may have read its file before the
 * request.
 */
export async function latestReloadRequest(database: Queries) {
  const [row] = await database.query<{
    number: number;
    isFresh: boolean;
    operator: string | null;
    reason: string | null;
  }>(
    `SELECT number::float8, operator, reason,
        number / 1000 > extract(epoch FROM clock_timestamp()) - 120 AS "isFresh" FROM settings_reload`,
  );
  const { number = 0, isFresh = false, operator = null, reason = null } = row ?? {};
  const by: OperatedBy | undefined = operator === null ? undefined : { operator, reason: reason ?? undefined };
  return { number, isFresh, by };
}
