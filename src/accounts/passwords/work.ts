/** Limits the cost of hashing passwords in this process, and shares the capacity fairly. */
import { availableParallelism } from 'node:os';
import { networkOf } from '../../base/network-address.ts';
import { emailKey } from '../email.ts';

/**
 * One hash keeps a core busy for about 65 ms (password.ts). One core stays free for all other work. One of libuv's four
 * threads stays free for files and host names.
 */
const AT_ONCE = Math.min(3, Math.max(1, availableParallelism() - 1));
/**
 * Maximum number of requests per queue. The hashes of two full queues take about three seconds. Even a machine that is
 * four times slower finishes them before the listener closes the waiting connections (host/listeners.ts).
 */
const MAX_WAITING = 24 * AT_ONCE;

/** Maximum number of entries in `served` per queue. All entries are searched whenever a hash starts. */
const MAX_SERVED = 1_000;

/**
 * Thrown without hashing if too many requests wait, or if this request was dropped in favor of a caller with fewer
 * waiting requests. `isOwn`: another request for this account or network address is waiting or in progress.
 */
export class TooManyPasswords extends Error {
  readonly code = 'too_many_passwords';
  readonly seconds = 5;
  readonly isOwn: boolean;

  constructor({ isOwn }: { isOwn: boolean }) {
    super('too many passwords are being hashed at the moment');
    this.name = 'TooManyPasswords';
    this.isOwn = isOwn;
  }
}

/** `known`: this user has been authenticated in this browser before. */
type Rank = 'known' | 'stranger';

/** A request to hash a password. The rank, the email and the network address determine when the hashing starts. */
export interface PasswordTurn {
  /** `stranger` by default. */
  readonly rank?: Rank;
  /** The email address of the account, in any spelling. The account need not exist. */
  readonly email: string;
  /** The network address of the caller; absent for an operator command. */
  readonly address?: string;
}

export type TakeTurn = <Result>(turn: PasswordTurn, work: () => Promise<Result>) => Promise<Result>;

interface Waiting {
  /** The round in which the request is served. Lower rounds come first. */
  readonly round: number;
  readonly account: string;
  readonly parties: readonly string[];
  start(): void;
  refuse(error: TooManyPasswords): void;
}

interface Line {
  readonly waiting: Waiting[];
  round: number;
  /** For each account and address, the round in which it was last served, oldest first. Finished rounds are removed. */
  readonly served: Map<string, number>;
}

/**
 * Decides which hash starts next. Each account and each address is served once per round, and each of its further
 * requests waits one more round. Known users and strangers have separate queues that are served alternately. An account
 * never has more than one hash in progress. If a queue is full, one request is refused: the new one, or the last
 * request of the caller with the most waiting requests.
 */
export function createTurns(limits: {
  readonly atOnce: number;
  /** Maximum number of waiting requests per queue. */
  readonly maxWaiting: number;
}): TakeTurn {
  const emptyLine = (): Line => ({ waiting: [], round: 0, served: new Map() });
  const lines: Readonly<Record<Rank, Line>> = { known: emptyLine(), stranger: emptyLine() };
  const inProgress = new Set<Waiting>();
  let lastRank: Rank = 'known';

  /** Adds a request. If the queue is then too long, refuses its last request, which may be the new one. */
  function enter(line: Line, one: Waiting): void {
    const behind = line.waiting.findIndex(({ round }) => round > one.round);
    line.waiting.splice(behind < 0 ? line.waiting.length : behind, 0, one);
    if (line.waiting.length <= limits.maxWaiting) return;
    const last = line.waiting.pop();
    if (!last) return;
    const others = [...line.waiting, ...inProgress];
    const isOwn = others.some((other) => sharesParty(other, last.parties));
    last.refuse(new TooManyPasswords({ isOwn }));
  }

  function roundOf({ waiting, round, served }: Line, parties: readonly string[]): number {
    const last = Math.max(
      ...parties.map((party) => served.get(party) ?? -1),
      waiting.findLast((one) => sharesParty(one, parties))?.round ?? -1,
    );
    return Math.max(round, last + 1);
  }

  function startNext(): void {
    while (inProgress.size < limits.atOnce) {
      const others = lastRank === 'known' ? 'stranger' : 'known';
      if (!startFirst(others) && !startFirst(lastRank)) return;
    }
  }

  function startFirst(rank: Rank): boolean {
    const line = lines[rank];
    const busy = [...inProgress].map(({ account }) => account);
    const index = line.waiting.findIndex(({ account }) => !busy.includes(account));
    const [next] = index < 0 ? [] : line.waiting.splice(index, 1);
    if (!next) return false;
    inProgress.add(next);
    lastRank = rank;
    line.round = Math.max(line.round, next.round);
    for (const party of next.parties) {
      line.served.delete(party);
      line.served.set(party, next.round);
    }
    let tooMany = line.served.size - MAX_SERVED;
    for (const [party, round] of line.served) {
      if (round < line.round || tooMany > 0) line.served.delete(party);
      tooMany -= 1;
    }
    next.start();
    return true;
  }

  return async ({ rank = 'stranger', email, address }, work) => {
    const account = emailKey(email);
    const parties = [account, ...(address === undefined ? [] : [`at ${networkOf(address)}`])];
    const line = lines[rank];
    const waited = Promise.withResolvers<void>();
    const { resolve: start, reject: refuse } = waited;
    const one: Waiting = { round: roundOf(line, parties), account, parties, start, refuse };
    enter(line, one);
    startNext();
    await waited.promise;
    try {
      return await work();
    } finally {
      inProgress.delete(one);
      startNext();
    }
  };
}

const sharesParty = (one: Waiting, parties: readonly string[]): boolean =>
  one.parties.some((party) => parties.includes(party));

/** One instance for the whole process, because all callers use the same processor cores. */
export const inTurn: TakeTurn = createTurns({ atOnce: AT_ONCE, maxWaiting: MAX_WAITING });
