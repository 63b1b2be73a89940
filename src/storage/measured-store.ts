/** The stores, timed: every operation tells how long it took and whether its store answered. */
import type { OpenDatabase } from './database.ts';
import type { Queries } from './queries.ts';
import { StorageUnavailable } from './storage-unavailable.ts';
import type { TokenStore } from './token-store.ts';

/** Told of one operation once it ended; `isAway`: the store did not answer or could not keep it. */
type ObserveOperation = (seconds: number, isAway: boolean) => void;

/** The observer of an operation, asked for once per operation. */
export type ObserveStore = (operation: string) => ObserveOperation;

type Operation = (...args: never[]) => Promise<unknown>;

/** A token store that keeps the same promises, and tells of each of its operations. */
export function measuredStore(store: TokenStore, observe: ObserveStore): TokenStore {
  const { close: _, isInDatabase, usesOnlyMasters, ...operations } = store;
  const measured = Object.entries<Operation>(operations).map(
    ([name, operation]) => [name, timed(store, operation, observe(name))] as const,
  );
  const rest = { isInDatabase, usesOnlyMasters, close: () => store.close() };
  return { ...rest, ...Object.fromEntries(measured) } as unknown as TokenStore;
}

/** The database, telling of every query, those within a transaction included, and of each transaction. */
export function measuredDatabase(database: OpenDatabase, observe: ObserveStore): OpenDatabase {
  const query = observe('query');
  function transactionOf<Result>(work: (tx: Queries) => Promise<Result>): Promise<Result> {
    return database.transaction((tx) => work({ query: timed(tx, tx.query, query) }));
  }
  return {
    ...database,
    query: timed(database, database.query, query),
    ping: timed(database, database.ping, observe('ping')),
    transaction: timed(database, transactionOf, observe('transaction')),
  };
}

/** No async function around it: the caller gets the very promise that the store gave. */
function timed<Given extends Operation>(
  store: unknown,
  operation: Given,
  observe: ObserveOperation,
): Given {
  const measured = (...args: Parameters<Given>): Promise<unknown> => {
    const start = performance.now();
    const pending = operation.apply(store, args);
    pending.then(
      () => observe((performance.now() - start) / 1000, false),
      (error: unknown) =>
        observe((performance.now() - start) / 1000, error instanceof StorageUnavailable),
    );
    return pending;
  };
  // The same parameters and the same promise: only the types that a call may add are lost above.
  return measured as Given;
}
