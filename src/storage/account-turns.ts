/** Queues the changes of an account so that they use at most one database connection. */
import type { EventEmitter } from 'node:events';
import { AccountBusy, CallerLeft } from '../base/refusal.ts';
import type { Database, InTurn, Queries } from './queries.ts';
import { isAway, StorageUnavailable } from './storage-unavailable.ts';

/** Maximum number of waiting requests of an account, because one attacker may send all of them. */
const MAX_WAITING = 10;

/**
 * Empty queues are deleted only if there are more queues than this, because a map that shrinks with each request gets a
 * new table in V8's old generation each time.
 */
const MAX_KEPT_QUEUES = 1_000;

export const createAccountTurns = (): InTurn =>
  createTurnsOf({ maxWaiting: MAX_WAITING, concernsAll: (error) => error instanceof StorageUnavailable });

interface TurnLimits {
  /** How many requests run at once; by default one. */
  readonly atOnce?: number;
  readonly maxWaiting: number;
  /** Maximum number of waiting requests of one caller, so that no caller can fill the queue. */
  readonly maxWaitingPerCaller?: number;
  readonly maxWaitMs?: number | undefined;
  /**
   * True for an error with which all waiting requests are rejected, because they would fail, too. The default is true
   * if a store does not answer.
   */
  readonly concernsAll?: (error: unknown) => boolean;
  /** Creates the error for a refused request; AccountBusy by default. */
  readonly refusal?: () => Error;
}

interface Waiting extends PromiseWithResolvers<void> {
  readonly caller: string | undefined;
}

/** The response of a waiting request. It is closed early if the caller disconnects. */
type Response = Pick<EventEmitter, 'once' | 'off'> & { readonly destroyed?: boolean };

/**
 * Runs at most `atOnce` functions for the same id at once. Further functions wait, and start in the order of the calls.
 * @returns a function that calls `work`, with true if `work` had to wait. `caller` is used with `maxWaitingPerCaller`.
 * The function throws the refusal if too many calls wait, or if this call has waited for `maxWaitMs`. It throws
 * CallerLeft if `response` is closed before `work` is called. In all these cases, `work` is not called.
 */
export function createTurnsOf(limits: TurnLimits) {
  const { atOnce = 1, maxWaiting, maxWaitingPerCaller = maxWaiting, maxWaitMs } = limits;
  const { concernsAll = isAway, refusal = () => new AccountBusy() } = limits;
  const all = new Map<string, { running: number; readonly waiting: Waiting[] }>();

  return async <Result>(
    id: string | undefined,
    work: (hasWaited: boolean) => Promise<Result>,
    caller?: string,
    response?: Response,
  ): Promise<Result> => {
    if (id === undefined) return work(false);
    requireCaller(response);
    const turns = all.get(id) ?? { running: 0, waiting: [] };
    all.set(id, turns);
    const { waiting } = turns;
    const hasToWait = turns.running === atOnce;
    if (hasToWait) {
      const own = waiting.filter((one) => one.caller === caller).length;
      if (own >= maxWaitingPerCaller) throw refusal();
      if (waiting.length >= maxWaiting) makeRoom(waiting, own, refusal);
      const turn = { caller, ...Promise.withResolvers<void>() };
      waiting.push(turn);
      await waitFor(turn, waiting, { maxWaitMs, response, refusal });
    } else {
      turns.running += 1;
    }
    try {
      requireCaller(response);
      return await work(hasToWait);
    } catch (error) {
      if (concernsAll(error)) for (const one of waiting.splice(0)) one.reject(error);
      throw error;
    } finally {
      const next = waiting.shift();
      if (next) next.resolve();
      else turns.running -= 1;
      if (turns.running === 0 && all.size > MAX_KEPT_QUEUES) all.delete(id);
    }
  };
}

/**
 * Refuses the latest request of the caller with most waiting requests, so that a few callers cannot keep others out.
 *
 * @param own how many requests of the new caller wait @throws the refusal if no other caller has more waiting requests
 */
function makeRoom(waiting: Waiting[], own: number, refusal: () => Error): void {
  const counts = new Map<string | undefined, number>();
  for (const { caller } of waiting) counts.set(caller, (counts.get(caller) ?? 0) + 1);
  const [most, count] = [...counts].reduce((one, other) => (other[1] > one[1] ? other : one));
  if (count <= own + 1) throw refusal();
  const [refused] = waiting.splice(
    waiting.findLastIndex(({ caller }) => caller === most),
    1,
  );
  refused?.reject(refusal());
}

async function waitFor(
  turn: Waiting,
  waiting: Waiting[],
  {
    maxWaitMs,
    response,
    refusal,
  }: Pick<TurnLimits, 'maxWaitMs'> & { response: Response | undefined; refusal(): Error },
): Promise<void> {
  const giveUp = (error: Error): void => {
    const at = waiting.indexOf(turn);
    if (at < 0) return;
    waiting.splice(at, 1);
    turn.reject(error);
  };
  const leave = (): void => giveUp(new CallerLeft());
  const timer = maxWaitMs === undefined ? undefined : setTimeout(() => giveUp(refusal()), maxWaitMs);
  response?.once('close', leave);
  try {
    await turn.promise;
  } finally {
    clearTimeout(timer);
    response?.off('close', leave);
  }
}

/** Refuses a request whose response is closed: no other `close` event would remove the request from the queue. */
function requireCaller(response: Response | undefined): void {
  if (response?.destroyed) throw new CallerLeft();
}

const MAX_WAITING_OF_ALL = 1_000;

/**
 * Runs at most `max` functions of all callers at once. If too many functions wait, refuses the latest function of the
 * `caller` with the most waiting functions. A refusal is StorageUnavailable `too_many_waiting`.
 */
export function createTurns(max: number, limits: Partial<Pick<TurnLimits, 'maxWaiting' | 'maxWaitMs'>> = {}) {
  const inTurn = createTurnsOf({ atOnce: max, maxWaiting: MAX_WAITING_OF_ALL, refusal: tooManyWaiting, ...limits });
  return <Result>(work: () => Promise<Result>, caller?: string): Promise<Result> => inTurn('all', work, caller);
}

const tooManyWaiting = (): StorageUnavailable =>
  new StorageUnavailable('postgresql', new Error('too many requests wait for their turn'), 'too_many_waiting');

/** Runs a transaction in the account's queue. While it waits there, it uses no connection. */
export const transactionOf = <Result>(
  database: Database,
  accountId: string | undefined,
  work: (tx: Queries) => Promise<Result>,
): Promise<Result> => database.inTurn(accountId, () => database.transaction(work));

/** Like `transactionOf`, but first locks the account's row, so that the transactions of other nodes wait as well. */
export const lockedTransactionOf = <Result>(
  database: Database,
  accountId: string,
  work: (tx: Queries) => Promise<Result>,
): Promise<Result> =>
  transactionOf(database, accountId, async (tx) => {
    await lockAccount(tx, accountId);
    return work(tx);
  });

/** Locks the rows of accounts until the transaction ends. For only one account, call this in the account's queue. */
export async function lockAccount(tx: Queries, ...accountIds: readonly string[]): Promise<void> {
  // Lock in the order of ids, so that two transactions that lock several accounts cannot deadlock.
  await tx.query('SELECT FROM accounts WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE', [accountIds]);
}
