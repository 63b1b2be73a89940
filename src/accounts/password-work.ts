/** Bounds what comparing passwords may cost this process, however many strangers sign in at once. */
import { availableParallelism } from 'node:os';

/**
 * One comparison keeps a core busy for about 65 ms (password.ts). One core stays free for everybody
 * else, and one of libuv's four threads for files and names.
 */
const AT_ONCE = Math.min(3, Math.max(1, availableParallelism() - 1));
/** Strangers who may wait: with one core for it they are done within about four seconds. */
const MOST_WAITING = 64;

/** There are so many that this one would wait too long: nothing was compared. */
export class TooManyPasswords extends Error {
  readonly code = 'too_many_passwords';

  constructor() {
    super('too many passwords are being compared at the moment');
    this.name = 'TooManyPasswords';
  }
}

/** `known`: somebody who has shown before who they are. They go first, and are never sent away. */
export type Rank = 'known' | 'stranger';

type Start = () => void;
const waiting: Readonly<Record<Rank, Start[]>> = { known: [], stranger: [] };
let running = 0;

/**
 * Runs `work` when it is its turn.
 *
 * @throws TooManyPasswords for a stranger when too many wait already.
 */
export async function inTurn<Result>(work: () => Promise<Result>, rank: Rank): Promise<Result> {
  if (running >= AT_ONCE) {
    if (rank === 'stranger' && waiting.stranger.length >= MOST_WAITING) {
      throw new TooManyPasswords();
    }
    await new Promise<void>((start) => waiting[rank].push(start));
  } else {
    running += 1;
  }
  try {
    return await work();
  } finally {
    const next = waiting.known.shift() ?? waiting.stranger.shift();
    // Its place goes to the next one, so that nobody comes in between.
    if (next) next();
    else running -= 1;
  }
}
