/** Runs the changes of an account, or of a client, one after the other: they use at most one connection. */
import type { EventEmitter } from 'node:events';
import { AccountBusy } from '../base/refusal.ts';
import type { Database, InTurn, Queries } from './queries.ts';
import { isAway, StorageUnavailable } from './storage-unavailable.ts';

/** The waiting requests of each account: one person, or an attacker with one account, sends them all. */
const MAX_WAITING = 10;

type Waiting = PromiseWithResolvers<void>;

/** The turns of one thing that many users change, such as a client. */
export const createSharedTurns = (maxWaiting: number): InTurn => createTurnsOf({ maxWaiting, concernsAll: isAway });

export const createAccountTurns = (): InTurn =>
  createTurnsOf({ maxWaiting: MAX_WAITING, concernsAll: (error) => error instanceof StorageUnavailable });

/** The requests that wait for one id. */
interface TurnsOfOne {
  /** In addition to the running one. */
  readonly maxWaiting: number;
  /** Of one caller, so that no caller keeps all others out. */
  readonly maxWaitingPerCaller?: number;
  readonly maxWaitMs?: number;
  /** True if the waiting requests would fail like this, too: one by one, and too late. */
  readonly concernsAll: (error: unknown) => boolean;
}

/**
 * @returns `caller` is counted if `maxWaitingPerCaller` is set. `work` was not run if it throws AccountBusy.
 */
export function createTurnsOf({ maxWaiting, maxWaitingPerCaller, maxWaitMs, concernsAll }: TurnsOfOne) {
  /** The waiting requests, in order, of each id with running work. */
  const queues = new Map<string, (Waiting & { readonly caller: string | undefined })[]>();

  return async <Result>(id: string | undefined, work: () => Promise<Result>, caller?: string): Promise<Result> => {
    if (id === undefined) return work();
    const queue = queues.get(id) ?? [];
    if (queues.has(id)) {
      const own = queue.filter((one) => one.caller === caller).length;
      if (own >= (maxWaitingPerCaller ?? maxWaiting)) throw new AccountBusy();
      if (queue.length >= maxWaiting) makeRoom(queue, own);
      const turn = { caller, ...Promise.withResolvers<void>() };
      queue.push(turn);
      await within(maxWaitMs, turn, queue, () => new AccountBusy());
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

/**
 * Refuses the latest of the caller with the most waiting requests: few callers cannot keep all others out.
 *
 * @param own how many of the new caller are waiting @throws AccountBusy if no caller has more than that
 */
function makeRoom(queue: (Waiting & { readonly caller: string | undefined })[], own: number): void {
  const counts = new Map<string | undefined, number>();
  for (const { caller } of queue) counts.set(caller, (counts.get(caller) ?? 0) + 1);
  const [most, count] = [...counts].reduce((one, other) => (other[1] > one[1] ? other : one));
  if (count <= own + 1) throw new AccountBusy();
  const [refused] = queue.splice(
    queue.findLastIndex(({ caller }) => caller === most),
    1,
  );
  refused?.reject(new AccountBusy());
}

/** The response of a waiting request: it closes early if the caller disconnects. */
type Caller = Pick<EventEmitter, 'once' | 'off'>;

/** Waits for the turn. After this time, or if its caller leaves, it leaves the queue and is refused. */
async function within<Turn extends Waiting>(
  maxWaitMs: number | undefined,
  turn: Turn,
  queue: Turn[],
  refusal: () => Error,
  caller?: Caller,
): Promise<void> {
  const giveUp = (): void => {
    const at = queue.indexOf(turn);
    if (at < 0) return;
    queue.splice(at, 1);
    turn.reject(refusal());
  };
  const timer = maxWaitMs === undefined ? undefined : setTimeout(giveUp, maxWaitMs);
  caller?.once('close', giveUp);
  try {
    await turn.promise;
  } finally {
    clearTimeout(timer);
    caller?.off('close', giveUp);
  }
}

/** Any user of the service may be among these requests. */
const MAX_WAITING_OF_ALL = 1_000;

/**
 * Runs at most `max` functions at once. Further ones wait and start in the order of their calls; if
 * `maxWaiting` wait, the next one is refused (default: with StorageUnavailable `too_many_waiting`), and so is
 * one that has waited for `maxWaitMs`, or whose caller disconnects meanwhile. If a store does not answer, those that wait fail at once: they would fail
 * like this, too, one by one and too late.
 */
export function createTurns(
  max: number,
  {
    maxWaiting = MAX_WAITING_OF_ALL,
    maxWaitMs,
    refusal = tooManyWaiting,
  }: { readonly maxWaiting?: number; readonly maxWaitMs?: number; readonly refusal?: () => Error } = {},
) {
  const waiting: Waiting[] = [];
  let free = max;

  return async <Result>(work: (hasWaited: boolean) => Promise<Result>, caller?: Caller): Promise<Result> => {
    if (waiting.length >= maxWaiting) throw refusal();
    const hasToWait = free === 0;
    if (hasToWait) {
      const turn: Waiting = Promise.withResolvers();
      waiting.push(turn);
      await within(maxWaitMs, turn, waiting, refusal, caller);
    } else {
      free -= 1;
    }
    try {
      return await work(hasToWait);
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
