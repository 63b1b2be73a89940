/** The latest request to reload every node. A node compares the request's number with that of its latest reload. */
import type { OperatedBy } from '../base/operated-by.ts';
import { sendToAllNodes } from './change-feed.ts';
import { numbersLost, type Queries } from './queries.ts';

/** Makes every node look for a reload request now, and not only at its next heartbeat. */
export const RELOAD_MESSAGE = 'reload';

/**
 * Asks every node to reload. Returns the numbers of this request and of the previous request.
 *
 * @throws Refusal `numbers_lost`
 */
export async function requestReload(database: Queries, by?: OperatedBy) {
  const [row] = await database.query<{ number: number; previous: number }>(
    `UPDATE lasting_numbers SET reload_previous = reload_number, reload_operator = $1, reload_reason = $2,
        reload_number = greatest(reload_number + 1, floor(extract(epoch FROM clock_timestamp()) * 1000))
      RETURNING reload_number::float8 AS number, reload_previous::float8 AS previous`,
    [by?.operator ?? null, by?.reason ?? null],
  );
  if (!row) throw numbersLost();
  // Ignore a failure: the nodes find the request at their next heartbeat.
  await sendToAllNodes(database, RELOAD_MESSAGE).catch(() => {});
  return row;
}

/**
 * `by` is the operator, if known. `isFresh` is true if the request is younger than two minutes: a node that is starting
 * may have read its file before the request.
 */
export async function latestReloadRequest(database: Queries) {
  const [row] = await database.query<{
    number: number;
    isFresh: boolean;
    operator: string | null;
    reason: string | null;
  }>(
    `SELECT reload_number::float8 AS number, reload_operator AS operator, reload_reason AS reason,
        reload_number / 1000 > extract(epoch FROM clock_timestamp()) - 120 AS "isFresh" FROM lasting_numbers`,
  );
  const { number = 0, isFresh = false, operator = null, reason = null } = row ?? {};
  const by: OperatedBy | undefined = operator === null ? undefined : { operator, reason: reason ?? undefined };
  return { number, isFresh, by };
}
