/** Limits what hashing passwords may cost this process, and shares it fairly. */
import { availableParallelism } from 'node:os';
import { networkOf } from '../../base/network-address.ts';
import { emailKey } from '../email.ts';

/**
 * One hash keeps a core busy for about 65 ms (password.ts). One core stays free for all other work,
 * and one of libuv's four threads for files and host names.
 */
const AT_ONCE = Math.min(3, Math.max(1, availableParallelism() - 1));
/**
 * Per line. Both lines together are done within about three seconds, and even on a machine that is
 * four times slower before the listener closes a waiting connection (host/listeners.ts).
 */
const MAX_WAITING = 24 * AT_ONCE;

/** Per line. A round does not end while all callers are new, and each start searches them all. */
const MAX_SERVED = 1_000;

/**
 * Too many passwords wait already, or this one had to make room for a caller with fewer waiting:
 * nothing was hashed. `isOwn`: others of the same account or address wait or are being hashed.
 */
export class TooManyPasswords extends Error {
  readonly code = 'too_many_passwords';
  /** The time in which a full line is done, about. */
  readonly seconds = 5;
  readonly isOwn: boolean;

  constructor({ isOwn }: { isOwn: boolean }) {
    super('too many passwords are being hashed at the moment');
    this.name = 'TooManyPasswords';
    this.isOwn = isOwn;
  }
}

/** `known`: a user who has been authenticated before. */
type Rank = 'known' | 'stranger';

/** The account and the address that a hash is made for, which decide when it is made. */
export interface PasswordTurn {
  /** `stranger` by default. */
  readonly rank?: Rank;
  /** That of the account, in any spelling; the account need not exist. */
  readonly email: string;
  /** Where the request came from; absent if no network is in between. */
  readonly address?: string;
}

export type TakeTurn = <Result>(turn: PasswordTurn, work: () => Promise<Result>) => Promise<Result>;

interface Waiting {
  /** Requests of a smaller round are served first. */
  readonly round: number;
  readonly account: string;
  /** The account and the address, each of which has one turn in each round. */
  readonly parties: readonly string[];
  start(): void;
  refuse(error: TooManyPasswords): void;
}

interface Line {
  /** The next one first. */
  readonly waiting: Waiting[];
  /** The round of the hash that was started last. */
  round: number;
  /** The round in which each party had its last turn, latest last; without rounds that are over. */
  readonly served: Map<string, number>;
}

/**
 * Hands out turns. An account has one turn in each round, and so has an address: each further
 * request waits one more round, behind all first requests. Known users and strangers have separate
 * lines that take turns, so neither waits for more than one of the other. There is never more than
 * one hash of an account under way.
 *
 * A full line refuses the last one: the newcomer, or the last one of the caller that has most.
 */
export function createTurns(limits: {
  readonly atOnce: number;
  /** Per line. */
  readonly maxWaiting: number;
}): TakeTurn {
  const emptyLine = (): Line => ({ waiting: [], round: 0, served: new Map() });
  const lines: Readonly<Record<Rank, Line>> = { known: emptyLine(), stranger: emptyLine() };
  const underWay = new Set<Waiting>();
  let lastRank: Rank = 'known';

  /** Refuses the last one if the line is too long, which may be the new one. */
  function enter(line: Line, one: Waiting): void {
    const behind = line.waiting.findIndex(({ round }) => round > one.round);
    line.waiting.splice(behind < 0 ? line.waiting.length : behind, 0, one);
    if (line.waiting.length <= limits.maxWaiting) return;
    const last = line.waiting.pop();
    if (!last) return;
    const others = [...line.waiting, ...underWay];
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
    while (underWay.size < limits.atOnce) {
      const others = lastRank === 'known' ? 'stranger' : 'known';
      if (!startFirst(others) && !startFirst(lastRank)) return;
    }
  }

  /** @returns false if no hash of this rank can begin now. */
  function startFirst(rank: Rank): boolean {
    const line = lines[rank];
    const busy = [...underWay].map(({ account }) => account);
    const index = line.waiting.findIndex(({ account }) => !busy.includes(account));
    const [next] = index < 0 ? [] : line.waiting.splice(index, 1);
    if (!next) return false;
    underWay.add(next);
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
      underWay.delete(one);
      startNext();
    }
  };
}

const sharesParty = (one: Waiting, parties: readonly string[]): boolean =>
  one.parties.some((party) => parties.includes(party));

/** One for the whole process, because all callers share its cores. */
export const inTurn: TakeTurn = createTurns({ atOnce: AT_ONCE, maxWaiting: MAX_WAITING });
