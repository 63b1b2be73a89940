/**
 * Counts attempts, so that guessing a password or a secret stops being worth it.
 *
 * One rule holds for every limit: it only hinders requests that have proved nothing, because an
 * attacker can use up a shared limit, from one address or from a thousand.
 *
 * - Client secrets, tokens and codes have at least 256 random bits and are compared by one hash, so
 *   they are always checked. A limit only changes the refusal (429 instead of 401); a correct value
 *   passes whatever others did, and does not count.
 * - Passwords can be guessed, so beyond a limit they are not checked. A browser in which this account
 *   has signed in before has a limit of its own, which strangers cannot use up. Any other browser gets
 *   such a limit when the user sets a password there with a one-time link.
 */

/** An attempt beyond the limit. */
export interface Over {
  /** Number of seconds until the window ends (for `Retry-After`), at least 1. */
  readonly seconds: number;
  /** True for the first attempt beyond the limit: once per key and window, across all nodes. */
  readonly isFirst: boolean;
}

/** A number of attempts per key and window, across all nodes. */
export interface AttemptLimit {
  /**
   * Counts an attempt in one atomic step. Call it before checking the attempt, so that simultaneous
   * attempts are limited like consecutive ones.
   *
   * @returns undefined if the attempt is allowed.
   */
  count(key: string): Promise<Over | undefined>;
  /** Takes back one counted attempt of this key. */
  refund(key: string): Promise<void>;
  /** Resets the window of this key. */
  forget(key: string): Promise<void>;
}

export interface AttemptLimitOptions {
  /** Unique, so that different limits never share a key. */
  readonly name: string;
  readonly attempts: number;
  /** Length of a window; it begins with the first attempt. */
  readonly windowSeconds: number;
  /**
   * What happens if the store does not answer: this process counts its own attempts, or `count` throws
   * StorageUnavailable, for requests that need the store immediately afterwards anyway.
   */
  readonly onStoreUnavailable: 'count here' | 'throw';
  /** Receives a warning when this process counts only its own attempts. */
  readonly log: { warn(details: object, message: string): void };
}

export type CreateAttemptLimit = (options: AttemptLimitOptions) => AttemptLimit;
