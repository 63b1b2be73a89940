/** Runs the changes of an account, or of a client, one after the other: they use at most one connection. */
import { AccountBusy } from '../base/refusal.ts';
import type { Database, InTurn, Queries } from './queries.ts';
import { isAway, StorageUnavailable } from './storage-unavailable.ts';

/** The waiting requests of each account: one person, or an attacker with one account, sends them all. */
const MAX_WAITING = 10;

type Waiting = PromiseWithResolvers<void>;

/** The turns of one thing that many users change, such as a client. */
export const createSharedTurns = (maxWaiting: number): InTurn => createTurnsOf(maxWaiting, isAway);

export const createAccountTurns = (): InTurn =>
  createTurnsOf(MAX_WAITING, (error) => error instanceof StorageUnavailable);

/**
 * @param maxWaiting how many requests wait for each id, in addition to the running one
 * @param concernsAll true if the waiting requests would fail like this, too: one by one, and too late
 */
function createTurnsOf(maxWaiting: number, concernsAll: (error: unknown) => boolean): InTurn {
  /** The waiting requests, in order, of each id with running work. */
  const queues = new Map<string, Waiting[]>();

  return async (id, work) => {
    if (id === undefined) return work();
    const queue = queues.get(id) ?? [];
    if (queues.has(id)) {
      if (queue.length >= maxWaiting) throw new AccountBusy();
      const turn: Waiting = Promise.withResolvers();
      queue.push(turn);
      await turn.promise;
    } else {
      queues.set(id, queue);
    }
    try {
      return await work();
    } catch (error) {
      if (concernsAll(error)) for (const one of queue.splice(0)) one.reject(error);
      throw error;
    } finally {
      const next = queue.shift();
      if (next) next.resolve();
      else queues.delete(id);
    }
  };
}

/** Any user of the service may be among these requests. */
const MAX_WAITING_OF_ALL = 1_000;

/**
 * Runs at most `max` functions at once. Further ones wait and start in the order of their calls; if
 * `maxWaiting` wait, the next one is refused with StorageUnavailable `too_many_waiting`, and so is one that
 * has waited for `maxWaitMs`. If a store does not answer, those that wait fail at once: they would fail
 * like this, too, one by one and too late.
 */
export function createTurns(
  max: number,
  { maxWaiting = MAX_WAITING_OF_ALL, maxWaitMs }: { readonly maxWaiting?: number; readonly maxWaitMs?: number } = {},
) {
  const waiting: Waiting[] = [];
  let free = max;

  function giveUp(turn: Waiting): void {
    const at = waiting.indexOf(turn);
    if (at < 0) return;
    waiting.splice(at, 1);
    turn.reject(tooManyWaiting());
  }

  return async <Result>(work: () => Promise<Result>): Promise<Result> => {
    if (waiting.length >= maxWaiting) throw tooManyWaiting();
    if (free > 0) free -= 1;
    else {
      const turn: Waiting = Promise.withResolvers();
      waiting.push(turn);
      const timer = maxWaitMs === undefined ? undefined : setTimeout(() => giveUp(turn), maxWaitMs);
      await turn.promise.finally(() => clearTimeout(timer));
    }
    try {
      return await work();
    } catch (error) {
      if (isAway(error)) for (const one of waiting.splice(0)) one.reject(error);
      throw error;
    } finally {
      const next = waiting.shift();
      if (next) next.resolve();
      else free += 1;
    }
  };
}

const tooManyWaiting = (): StorageUnavailable =>
  new StorageUnavailable('postgresql', new Error('too many requests wait for their turn'), 'too_many_waiting');

/** Runs a transaction in the account's turn, so it takes no connection while it waits. */
export const transactionOf = <Result>(
  database: Database,
  accountId: string | undefined,
  work: (tx: Queries) => Promise<Result>,
): Promise<Result> => database.inTurn(accountId, () => database.transaction(work));

/** Like `transactionOf`, but first locks the account's row, so that other nodes wait as well. */
export const lockedTransactionOf = <Result>(
  database: Database,
  accountId: string,
  work: (tx: Queries) => Promise<Result>,
): Promise<Result> =>
  transactionOf(database, accountId, async (tx) => {
    await lockAccount(tx, accountId);
    return work(tx);
  });

/** Locks the rows of accounts until the transaction ends. Call it in the account's turn, or for several accounts. */
export async function lockAccount(tx: Queries, ...accountIds: readonly string[]): Promise<void> {
  // In one order: two transactions that lock several accounts do not wait for each other.
  await tx.query('SELECT FROM accounts WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE', [accountIds]);
}
