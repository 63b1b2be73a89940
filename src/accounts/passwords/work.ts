/** Bounds what hashing passwords may cost this process, and shares it out fairly. */
import { availableParallelism } from 'node:os';
import { networkOf } from '../../base/network-address.ts';
import { emailKey } from '../email.ts';

/**
 * One hash keeps a core busy for about 65 ms (password.ts). One core stays free for everybody else,
 * and one of libuv's four threads for files and names.
 */
const AT_ONCE = Math.min(3, Math.max(1, availableParallelism() - 1));
/**
 * In each line. Both lines together are done within about three seconds, and on a machine that is
 * four times slower still before the listener gives a connection up (host/listeners.ts).
 */
const MOST_WAITING = 24 * AT_ONCE;

/** Of each line. A round has no end while everybody who comes is new, and all are looked through. */
const MOST_SERVED = 1_000;

/**
 * Too many wait already, or came before whoever has fewer waiting: nothing was hashed.
 * `isOwn` says that it was for what waits for this account or from this address already.
 */
export class TooManyPasswords extends Error {
  readonly code = 'too_many_passwords';
  /** After which a full line is over, about. */
  readonly seconds = 5;
  readonly isOwn: boolean;

  constructor({ isOwn }: { isOwn: boolean }) {
    super('too many passwords are being hashed at the moment');
    this.name = 'TooManyPasswords';
    this.isOwn = isOwn;
  }
}

/** `known`: somebody who has shown before who they are. */
type Rank = 'known' | 'stranger';

/** For whom a hash is made, which decides when it is made. */
export interface PasswordTurn {
  /** A stranger unless it says otherwise. */
  readonly rank?: Rank;
  /** Of the account, in any spelling; there need be no such account. */
  readonly email: string;
  /** Where the request came from; absent where no network is in between. */
  readonly address?: string;
}

export type TakeTurn = <Result>(turn: PasswordTurn, work: () => Promise<Result>) => Promise<Result>;

interface Waiting {
  /** Of the turns of its line; smaller ones come first. */
  readonly round: number;
  readonly account: string;
  /** The account, and the address: whose turns are counted. */
  readonly parties: readonly string[];
  start(): void;
  refuse(error: TooManyPasswords): void;
}

interface Line {
  /** The next ones first. */
  readonly waiting: Waiting[];
  /** Of the one that was started last. */
  round: number;
  /** In which each party had its last turn, the latest last; none that is over. */
  readonly served: Map<string, number>;
}

/**
 * Hands out turns. In each round an account has one, and so has an address: whoever asks for more
 * waits a round for each, behind everybody who asks for the first. Known people and strangers stand
 * in lines of their own that take turns with each other, so neither waits for more than one of the
 * other. Of one account there is never more than one hash under way.
 *
 * A line that is full sends away who would be last: the newcomer, or the last one of who has most.
 */
export function createTurns(limits: {
  readonly atOnce: number;
  /** In each of the two lines. */
  readonly mostWaiting: number;
}): TakeTurn {
  const emptyLine = (): Line => ({ waiting: [], round: 0, served: new Map() });
  const lines: Readonly<Record<Rank, Line>> = { known: emptyLine(), stranger: emptyLine() };
  const underWay = new Set<Waiting>();
  let lastRank: Rank = 'known';

  /** Refuses whoever is too much, which may be the one that came. */
  function enter(line: Line, one: Waiting): void {
    const behind = line.waiting.findIndex(({ round }) => round > one.round);
    line.waiting.splice(behind < 0 ? line.waiting.length : behind, 0, one);
    if (line.waiting.length <= limits.mostWaiting) return;
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

  /** @returns false where nobody of this rank can begin now. */
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
    let tooMany = line.served.size - MOST_SERVED;
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

/** For all of this process: its cores are the same whoever asks. */
export const inTurn: TakeTurn = createTurns({ atOnce: AT_ONCE, mostWaiting: MOST_WAITING });
