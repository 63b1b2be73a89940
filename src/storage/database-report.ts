/** What an operator wants to know of PostgreSQL: how fast it answers, its clock, and NOTIFY. */
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { Clock } from '../base/clock.ts';
import { randomId } from '../base/random-id.ts';
import type { OpenDatabase } from './database.ts';

export interface DatabaseReport {
  readonly version: string;
  /** Of a simple query, the fastest of a few. */
  readonly milliseconds: number;
  /** How far its clock is ahead of ours; negative where it is behind. */
  readonly clockAheadMs: number;
}

const ATTEMPTS = 5;
const CHANNEL = 'gatehouse_doctor';
/** Milliseconds. Much longer than a notification takes. */
const NOTIFICATION_LIMIT = 2_000;

/** @throws StorageUnavailable */
export async function reportDatabase(database: OpenDatabase, clock: Clock) {
  const samples: DatabaseReport[] = [];
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const asked = performance.now();
    const ours = clock();
    const [row] = await database.query<{ version: string; now: string }>(
      `SELECT current_setting('server_version') AS version,
        (extract(epoch FROM clock_timestamp()) * 1000)::text AS now`,
    );
    const milliseconds = performance.now() - asked;
    samples.push({
      version: row?.version ?? '',
      milliseconds,
      clockAheadMs: Number(row?.now) - ours - milliseconds / 2,
    });
  }
  samples.sort((a, b) => a.milliseconds - b.milliseconds);
  return samples[0] as DatabaseReport;
}

/**
 * Listens on one connection and notifies on another, as the nodes do to tell each other of changes.
 *
 * @returns the milliseconds it took, or undefined when nothing came: a pooler that gives each
 *   transaction another connection loses it.
 */
export async function notificationMilliseconds(
  database: OpenDatabase,
): Promise<number | undefined> {
  const client = new pg.Client({
    ...database.connection,
    application_name: 'gatehouse doctor',
    connectionTimeoutMillis: NOTIFICATION_LIMIT,
    query_timeout: NOTIFICATION_LIMIT,
  });
  client.on('error', () => {});
  const word = randomId('', 16);
  const heard = new Promise<true>((resolve) => {
    client.on('notification', ({ payload }) => payload === word && resolve(true));
  });
  try {
    await client.connect();
    await client.query(`LISTEN ${CHANNEL}`);
    const asked = performance.now();
    await database.query('SELECT pg_notify($1, $2)', [CHANNEL, word]);
    const outcome = await Promise.race([heard, delay(NOTIFICATION_LIMIT, false, { ref: false })]);
    return outcome ? performance.now() - asked : undefined;
  } catch {
    return undefined;
  } finally {
    client.end().catch(() => {});
  }
}
