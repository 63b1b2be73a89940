/** A database that the suite keeps open as a running service does, and the command beside it. */
import { systemClock } from '../../src/base/clock.ts';
import { silentChangeFeed } from '../../src/storage/change-feed.ts';
import type { OpenDatabase } from '../../src/storage/database.ts';
import { openTestDatabase } from '../support/databases.ts';
import { operatorOn, refusalFrom, valueFrom, type Words } from './run-operator.ts';

interface RecordedChange {
  readonly action: string;
  readonly account_id: string | null;
  readonly details: Readonly<Record<string, unknown>>;
}

/** To be called in a `describe`. @param open of `forEachDatabase`, in place of an embedded one. */
export function besideDatabase(open?: () => Promise<OpenDatabase>) {
  let database: OpenDatabase;
  before('open the database', async () => {
    database = await (open?.() ?? openTestDatabase('embedded'));
  });
  if (!open) after('close the database', () => database.close());
  const run = (words: Words, input?: string) => operatorOn(database)(words, input);

  return {
    run,
    value: (words: Words, input?: string) => valueFrom(run, words, { input }),
    refusal: (words: Words, input?: string) => refusalFrom(run, words, input),
    /** What registries on the same database are made of. */
    parts: () => ({ database, changes: silentChangeFeed, clock: systemClock }),
    records: () => takeRecords(database),
  };
}

/** What operators changed since it was last asked. */
export const takeRecords = (database: OpenDatabase) =>
  database.query<RecordedChange>(
    `WITH taken AS (DELETE FROM activity WHERE actor = 'operator'
        RETURNING id, action, account_id, details)
      SELECT action, account_id, details FROM taken ORDER BY id`,
  );
