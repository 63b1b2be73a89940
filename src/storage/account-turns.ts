/** One account's changes run one after the other, so that they never hold more than one connection. */
import { AccountBusy } from '../base/refusal.ts';
import type { Database, InTurn, Queries } from './queries.ts';
import { StorageUnavailable } from './storage-unavailable.ts';

/** Requests of one account that wait, in addition to the one under way. */
const MAX_WAITING = 10;

type Waiting = PromiseWithResolvers<void>;

export function createAccountTurns(): InTurn {
  /** The requests that wait, in order, for each account with work under way. */
  const queues = new Map<string, Waiting[]>();

  return async (accountId, work) => {
    if (accountId === undefined) return work();
    const queue = queues.get(accountId) ?? [];
    if (queues.has(accountId)) {
      if (queue.length >= MAX_WAITING) throw new AccountBusy();
      const turn: Waiting = Promise.withResolvers();
      queue.push(turn);
      await turn.promise;
    } else {
      queues.set(accountId, queue);
    }
    try {
      return await work();
    } catch (error) {
      // The others would run into the same time limit one by one, and answer much too late.
      if (error instanceof StorageUnavailable) for (const one of queue.splice(0)) one.reject(error);
      throw error;
    } finally {
      const next = queue.shift();
      if (next) next.resolve();
      else queues.delete(accountId);
    }
  };
}

/** A transaction in the account's turn: the connection is taken when the turn has come. */
export const transactionOf = <Result>(
  database: Database,
  accountId: string | undefined,
  work: (tx: Queries) => Promise<Result>,
): Promise<Result> => database.inTurn(accountId, () => database.transaction(work));

/** Like `transactionOf`, and other nodes wait as well: the account's row is locked first. */
export const lockedTransactionOf = <Result>(
  database: Database,
  accountId: string,
  work: (tx: Queries) => Promise<Result>,
): Promise<Result> =>
  transactionOf(database, accountId, async (tx) => {
    await lockAccount(tx, accountId);
    return work(tx);
  });

/** Locks the account's row until the transaction ends. Call it in the account's turn only. */
export async function lockAccount(tx: Queries, accountId: string): Promise<void> {
  await tx.query('SELECT FROM accounts WHERE id = $1 FOR NO KEY UPDATE', [accountId]);
}
