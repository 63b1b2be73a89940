/** The interface to PostgreSQL for all other parts of the service. */
import { Refusal } from '../base/refusal.ts';

export interface Queries {
  /**
   * Runs one statement with `$1`-style parameters.
   * @param name for a frequent statement with a constant text: each connection then parses and plans it only once. Has
   *   no effect on the embedded database.
   * @throws StorageUnavailable if the server does not answer within the timeout
   */
  query<Row extends object>(text: string, values?: readonly unknown[], name?: string): Promise<Row[]>;
  /**
   * Returns an SQL expression for the present time by the database's clock, in milliseconds as in JavaScript. In one
   * statement, each use has one value for all rows, but two uses may differ. Use it for times that several nodes write,
   * because nodes may have wrong clocks.
   */
  now(): string;
}

/**
 * Runs `work` when no other work of this account is running in this process. Without this, parallel requests of one
 * user would wait for each other's row locks, each with a connection of the pool, and leave no connection for other
 * users. `work` must not call this again for the same account.
 * @param accountId undefined if no user causes the work, which then runs immediately
 * @throws AccountBusy without running `work`, if too many requests are already waiting
 */
export type InTurn = <Result>(accountId: string | undefined, work: () => Promise<Result>) => Promise<Result>;

/** Writes in the transaction of a change, so that both writes are committed or neither is. */
export type InTransaction<Value = void> = (tx: Queries, value: Value) => Promise<void>;

export interface Database extends Queries {
  /** Call `inTurn` around each transaction that a user can cause, or use `transactionOf`. */
  readonly inTurn: InTurn;
  /** True for PGlite in the data directory; such a deployment has only one node. */
  readonly embedded: boolean;
  /** Commits when `work` resolves, rolls back when it throws. */
  transaction<Result>(work: (tx: Queries) => Promise<Result>): Promise<Result>;
  close(): Promise<void>;
}

/** A row whose columns are named like the properties of `Value`. The column of an optional property may be null. */
export type RowOf<Value> = {
  readonly [Name in keyof Value]-?: undefined extends Value[Name]
    ? Exclude<Value[Name], undefined> | null
    : Value[Name];
};

/** Omits each property whose column is null. */
export const withoutNulls = <Value extends object>(row: RowOf<Value>): Value =>
  Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null)) as Value;

/** `use` adds a parameter of a statement and returns its placeholder, such as `$1`. */
export function createParameters() {
  const values: unknown[] = [];
  return { values, use: (value: unknown): string => `$${values.push(value)}` };
}

/**
 * SQL for a new generation above all earlier ones, even those lost by restored backups. The new generation is the
 * current time in seconds. Other changes add only 1 to a generation, so no generation overtakes the clock.
 */
export const beyondLost = (generation: string): string =>
  `greatest(${generation} + 1, (extract(epoch FROM clock_timestamp()) - 1700000000)::integer)`;

/**
 * SQL that inserts the lost row again, with numbers higher than the lost ones. So all tokens and sessions end, and
 * nothing that had ended becomes valid again.
 */
const LOST_NUMBERS =
  'INSERT INTO lasting_numbers (first_generation, session_generation) ' +
  'VALUES (extract(epoch FROM now())::integer - 1700000000, extract(epoch FROM now())::bigint * 1000000)';

/**
 * Raises a number, or a time, that is never lowered.
 *
 * @param to SQL for the new value, which may use the column
 * @throws Refusal `numbers_lost` if the row is missing, because then the value would not rise
 */
export async function raise(
  queries: Pick<Queries, 'query'>,
  number: 'first_generation' | 'session_generation' | 'refresh_lifetime_seconds' | 'imported_at',
  to: string,
  values: readonly unknown[] = [],
): Promise<void> {
  const sql = `UPDATE lasting_numbers SET ${number} = greatest(${number}, ${to}) RETURNING 1`;
  if ((await queries.query(sql, values)).length === 0) throw numbersLost();
}

export const numbersLost = (): Refusal =>
  new Refusal(
    'numbers_lost',
    'The table lasting_numbers has lost its row, which records what has ended.',
    `Run \`${LOST_NUMBERS}\` in the database, then try again.`,
  );
