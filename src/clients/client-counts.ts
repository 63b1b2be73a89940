/** Counts the refreshes and the refused requests of each client per hour, and writes the counts in the background. */
import type { Logger } from 'pino';
import type { Clock } from '../base/clock.ts';
import { createBackgroundWriter } from '../storage/background-writer.ts';
import type { Queries } from '../storage/queries.ts';
import { StorageUnavailable } from '../storage/storage-unavailable.ts';

/** The requests of a client in the last 24 hours and in the part of an hour before these 24 hours. */
export interface ClientDay {
  /** Refresh requests that were answered with tokens. */
  readonly refreshes: number;
  /** Refused requests that are problems of the client. Any of them may have been sent by a stranger. */
  readonly refusals: number;
}

const HOUR_MS = 3_600_000;
/** Time from the first counted request to the write, so each node writes at most one row per client in this time. */
const PAUSE_MS = 15_000;
const BATCH = 500;

export function createClientCounts(parts: {
  readonly database: Queries;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'warn'>;
}) {
  const { database, clock, log } = parts;
  /** The counts to be written, keyed by client and hour. */
  const waiting = new Map<string, ClientDay & { readonly clientId: string; readonly hour: Date }>();

  async function write(): Promise<readonly []> {
    // Write in the same order on every node, so that two nodes that write the same rows do not deadlock.
    const rows = [...waiting].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
    waiting.clear();
    for (let start = 0; start < rows.length; start += BATCH) {
      try {
        await database.query(ADD, [JSON.stringify(rows.slice(start, start + BATCH))]);
      } catch (err) {
        // Stop here: each batch would wait for the database, and a page or the shutdown waits for all batches.
        const isStorage = err instanceof StorageUnavailable;
        const lost = isStorage ? rows.length - start : Math.min(BATCH, rows.length - start);
        log.warn({ err, lost }, 'requests of clients could not be counted');
        if (isStorage) break;
      }
    }
    return [];
  }

  const writer = createBackgroundWriter<object>({ pauseMs: PAUSE_MS, maxWaiting: 1, write });

  return {
    /** Counts only in memory. @param clientId of an existing client, so that the memory is bounded */
    add(clientId: string, what: keyof ClientDay): void {
      const hour = new Date(Math.floor(clock() / HOUR_MS) * HOUR_MS);
      const key = `${clientId} ${hour.toISOString()}`;
      const row = waiting.get(key) ?? { clientId, hour, refreshes: 0, refusals: 0 };
      waiting.set(key, { ...row, [what]: row[what] + 1 });
      writer.add(waiting);
    },

    /** Writes the waiting counts, and returns those of all nodes. Counts of other nodes may be 15 s old. */
    async lastDay(clientId: string): Promise<ClientDay> {
      await writer.flush();
      const [row] = await database.query<ClientDay>(LAST_DAY, [clientId, new Date(clock() - 25 * HOUR_MS)]);
      return row ?? { refreshes: 0, refusals: 0 };
    },

    close: writer.close,
  };
}

const ADD = `
  INSERT INTO client_hours AS counted (client_id, hour, refreshes, refusals)
    SELECT "clientId", hour, refreshes, refusals FROM json_to_recordset($1) AS added (
      "clientId" text, hour timestamptz, refreshes integer, refusals integer)
    JOIN clients c ON c.id = "clientId" ORDER BY "clientId", hour FOR KEY SHARE OF c
    ON CONFLICT (client_id, hour) DO UPDATE SET
      refreshes = counted.refreshes + excluded.refreshes, refusals = counted.refusals + excluded.refusals`;

const LAST_DAY = `SELECT coalesce(sum(refreshes), 0)::double precision AS refreshes,
    coalesce(sum(refusals), 0)::double precision AS refusals
  FROM client_hours WHERE client_id = $1 AND hour > $2`;
