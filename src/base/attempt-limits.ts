/**
 * Counts attempts, so that guessing a password or a secret stops being worth it.
 *
 * One rule holds for every limit: a limit stands only in the way of who has proved nothing, for
 * anybody can use up what others need, from the same address or from a thousand.
 *
 * - Client secrets, tokens and codes have at least 256 random bits and are compared by one hash, so
 *   nothing is won by refusing to look. A limit only replaces the refusal (429 for 401); what is
 *   right passes whatever others did, and costs the limits nothing.
 * - Passwords can be guessed, so past a limit they are not looked at. A browser in which this
 *   account has signed in before has a limit of its own and none of those that strangers use up;
 *   where there is none, a one-time link to set a password makes it such a browser.
 */

/** An attempt that is one too many. */
export interface Over {
  /** Until the window ends, at least 1. */
  readonly seconds: number;
  /** True for the first one too many of a window: once for each key, over all nodes. */
  readonly isFirst: boolean;
}

/** How many attempts a key has in each window, over all nodes together. */
export interface AttemptLimit {
  /**
   * Counts an attempt in one atomic step. Counted before they are looked at, attempts that come at
   * once are as limited as those that come one by one.
   *
   * @returns undefined as long as the attempt is allowed.
   */
  count(key: string): Promise<Over | undefined>;
  /** An attempt that was counted was none after all. */
  giveBack(key: string): Promise<void>;
  /** The window of this key begins anew. */
  forget(key: string): Promise<void>;
}

export interface AttemptLimitOptions {
  /** Keys of limits with different names are different keys. */
  readonly name: string;
  readonly attempts: number;
  /** From the first attempt on. */
  readonly windowSeconds: number;
  /**
   * When the store of the limits does not answer: this process counts for itself, or throws
   * StorageUnavailable, for what would need the store a moment later anyway.
   */
  readonly whenAway: 'count here' | 'throw';
  /** Told when the attempts can be counted in this process only. */
  readonly log: { warn(details: object, message: string): void };
}

export type CreateAttemptLimit = (options: AttemptLimitOptions) => AttemptLimit;
