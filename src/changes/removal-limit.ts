/** Limits how many records pushed lines can remove within an hour, on all nodes together. */
import type { Clock } from '../base/clock.ts';
import { type CleaningJob, expiryJob, refusalsExpiryJob } from '../storage/cleaning.ts';
import type { Queries } from '../storage/queries.ts';

export type RemovalLimit = ReturnType<typeof createRemovalLimit>;

const HOUR_MS = 3_600_000;
/** The minimum number of removals that a percentage allows: 10 % of a few people would otherwise allow hardly any. */
const MIN_OF_SHARE = 50;

/** @param parts.limit `import.removals_per_hour`: a percentage of the people, or a number */
export function createRemovalLimit(parts: { readonly clock: Clock; readonly limit: () => string }) {
  const { clock, limit } = parts;

  /** @param tx must have the lock that serializes changes, so that no other batch reads the count at the same time */
  async function left(tx: Queries, wanted: number): Promise<number> {
    const share = limit().endsWith('%') ? Number.parseInt(limit(), 10) : undefined;
    const [row] = await tx.query<{ removed: number; people: number }>(
      // Counting people is slow: count no more than the limit needs, and none if `MIN_OF_SHARE` allows the removals.
      `SELECT removed, (SELECT count(*) FROM (SELECT FROM accounts WHERE suspended_at IS NULL
          LIMIT CASE WHEN removed + $2 > $3 AND $4 > 0 THEN ceil((removed + $2) * 100.0 / $4) ELSE 0 END) x)::int AS people
        FROM (SELECT coalesce(sum(removals), 0)::int AS removed
          FROM pushed_removals WHERE at > $1) AS hour`,
      [new Date(clock() - HOUR_MS), wanted, MIN_OF_SHARE, share ?? 0],
    );
    const { removed = 0, people = 0 } = row ?? {};
    const allowed = share === undefined ? Number(limit()) : Math.max(MIN_OF_SHARE, Math.ceil((people * share) / 100));
    return allowed - removed;
  }

  return {
    /** Returns how many more removals are allowed. If the result is `wanted` or more, the real number may be higher. */
    left,
    record: (tx: Queries, removals: number) => recordRemovals(tx, clock, removals),
  };
}

/** @param removals the number to record. A negative number allows additional removals for an hour. */
export async function recordRemovals(tx: Queries, clock: Clock, removals: number): Promise<void> {
  await tx.query('INSERT INTO pushed_removals (at, removals) VALUES ($1, $2)', [new Date(clock()), removals]);
}

/** Deletes the counts of removals after an hour, and the times of removed records after 30 days. */
export const pushedChangesCleaning = (parts: { readonly database: Queries; readonly clock: Clock }): CleaningJob => {
  const removals = expiryJob(parts, [{ table: 'pushed_removals', column: 'at' }], HOUR_MS);
  const times = refusalsExpiryJob(parts.database, [{ table: 'known_times', column: 'expires_at' }]);
  return async (limit) => (await removals(limit)) + (await times(limit));
};
