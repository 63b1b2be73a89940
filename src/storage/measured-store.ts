/** Measures each operation of the stores: how long it took, and whether the store answered. */
import type { OpenDatabase } from './database.ts';
import type { Queries } from './queries.ts';
import { StorageUnavailable } from './storage-unavailable.ts';
import type { TokenStore } from './token-store.ts';

/** Called at the end of an operation. `isAway` is true if the store did not answer or could not write. */
type ObserveOperation = (seconds: number, isAway: boolean) => void;

/** Called once for each kind of operation. */
export type ObserveStore = (operation: string) => ObserveOperation;

type Operation = (...args: never[]) => Promise<unknown>;

export function measuredStore(store: TokenStore, observe: ObserveStore): TokenStore {
  const { close: _, isInDatabase, ...operations } = store;
  const measured = Object.entries<Operation>(operations).map(
    ([name, operation]) => [name, timed(store, operation, observe(name))] as const,
  );
  const rest = { isInDatabase, close: () => store.close() };
  return { ...rest, ...Object.fromEntries(measured) } as unknown as TokenStore;
}

/** Reports each transaction, and each query, also those within a transaction. */
export function measuredDatabase(database: OpenDatabase, observe: ObserveStore): OpenDatabase {
  const query = observe('query');
  function transactionOf<Result>(work: (tx: Queries) => Promise<Result>): Promise<Result> {
    return database.transaction((tx) => work({ ...tx, query: timed(tx, tx.query, query) }));
  }
  return {
    ...database,
    query: timed(database, database.query, query),
    ping: timed(database, database.ping, observe('ping')),
    transaction: timed(database, transactionOf, observe('transaction')),
  };
}

/** This function is not async, so that the caller gets the same promise that the store returned. */
function timed<Given extends Operation>(store: unknown, operation: Given, observe: ObserveOperation): Given {
  const measured = (...args: Parameters<Given>): Promise<unknown> => {
    const start = performance.now();
    const pending = operation.apply(store, args);
    pending.then(
      () => observe((performance.now() - start) / 1000, false),
      (error: unknown) => observe((performance.now() - start) / 1000, error instanceof StorageUnavailable),
    );
    return pending;
  };
  // The cast is safe, because parameters and promise are unchanged.
  return measured as Given;
}
