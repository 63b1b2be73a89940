/** Keeps a database open as a running service does, and runs the operator command on it. */
import { systemClock } from '../../src/base/clock.ts';
import { silentChangeFeed } from '../../src/storage/change-feed.ts';
import type { OpenDatabase } from '../../src/storage/database.ts';
import { fileWith } from '../config/configuration.ts';
import { openUsualDatabase } from '../support/databases.ts';
import { operatorOn, operatorWith, refusalFrom, valueFrom, variablesOf, type Words } from './run-operator.ts';

interface RecordedChange {
  readonly action: string;
  readonly account_id: string | null;
  readonly details: Readonly<Record<string, unknown>>;
}

/** Opens a database for the suite; call it in a `describe`. @param open given by `forEachDatabase` */
export function setUpOperator(open?: () => Promise<OpenDatabase>) {
  let database: OpenDatabase;
  before('open the database', async () => {
    database = await (open ?? openUsualDatabase)();
  });
  if (!open) after('close the database', () => database.close());
  const run = (words: Words, input?: string) => operatorOn(database)(words, input);

  return {
    run,
    value: (words: Words, input?: string) => valueFrom(run, words, { input }),
    refusal: (words: Words, input?: string) => refusalFrom(run, words, input),
    /** The command of a deployment with this mail server. */
    mailing: (SMTP_URL: string) => {
      const GATEHOUSE_CONFIG = fileWith('mail: { from: Gate <gate@example.test> }');
      return operatorWith({ ...variablesOf(database), SMTP_URL, GATEHOUSE_CONFIG });
    },
    /** The arguments for registries on the same database. */
    parts: () => ({ database, changes: silentChangeFeed, clock: systemClock }),
    records: () => takeRecords(database),
  };
}

/** Returns the operators' entries in the log since the previous call, and deletes them. */
export const takeRecords = (database: OpenDatabase) =>
  database.query<RecordedChange>(
    `WITH taken AS (DELETE FROM activity WHERE actor = 'operator'
        RETURNING id, action, account_id, details)
      SELECT action, account_id, details FROM taken ORDER BY id`,
  );
