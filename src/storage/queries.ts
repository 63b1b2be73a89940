/** What the rest of the service may ask of PostgreSQL: one query, or several in one transaction. */
export interface Queries {
  /**
   * Runs one statement with `$1`-style parameters.
   *
   * @param name of a statement that is asked all day, always with this text: each connection has it
   *   parsed once. Without effect in a transaction, and on the embedded database.
   * @throws StorageUnavailable when the server does not answer within the time limit.
   */
  query<Row extends object>(
    text: string,
    values?: readonly unknown[],
    name?: string,
  ): Promise<Row[]>;
}

/**
 * Runs `work` when no other work of this account is under way in this process. Without it, parallel
 * requests of one person would wait for each other's row locks, each with a connection of the pool,
 * and leave none for other people. Work in a turn must not ask for another turn of its account.
 *
 * @param accountId undefined for what no person does: `work` then runs at once.
 * @throws AccountBusy when too many wait already; nothing was done then.
 */
export type InTurn = <Result>(
  accountId: string | undefined,
  work: () => Promise<Result>,
) => Promise<Result>;

/** Runs in the transaction of a change: what it writes is kept with the change or not at all. */
export type Alongside<Value = void> = (tx: Queries, value: Value) => Promise<void>;

export interface Database extends Queries {
  /** Take it before a transaction that a person can cause, or use `transactionOf`. */
  readonly inTurn: InTurn;
  /** True for PGlite in the data directory, which has one node. */
  readonly embedded: boolean;
  /** Commits when `work` resolves, rolls back when it throws. */
  transaction<Result>(work: (tx: Queries) => Promise<Result>): Promise<Result>;
  close(): Promise<void>;
}

/**
 * Added to a generation it is beyond every one that the lost part of the history may have given out:
 * nobody ends anything so often.
 */
export const BEYOND_LOST = 1_000_000;
