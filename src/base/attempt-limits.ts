/**
 * Limits how often passwords and secrets can be guessed.
 *
 * Attackers can use up a shared limit, even from a thousand addresses, so no limit refuses a request that has proved
 * who sends it.
 *
 * - Client secrets, tokens and codes have at least 256 random bits and are compared by one hash, so they are always
 * checked. Beyond a limit, a wrong value is refused with 429 instead of 401. A correct value is always accepted, and is
 * not counted.
 * - Passwords can be guessed, so beyond a limit they are not checked. A browser in which the account has signed in
 * before has a separate limit, which an attacker cannot use up. Another browser gets a separate limit if the user sets
 * a password there with a one-time link.
 */

export interface Over {
  /** Seconds until the window ends, at least 1, as for `Retry-After`. */
  readonly seconds: number;
  /** True only for the first attempt beyond the limit, for each key and window, on all nodes together. */
  readonly isFirst: boolean;
}

/** Limits the number of attempts for each key and window, among all nodes. */
export interface AttemptLimit {
  /**
   * Counts an attempt atomically. Call this before the password or the secret is checked, so that simultaneous attempts
   * cannot exceed the limit.
   *
   * @returns undefined if the attempt is allowed
   */
  count(key: string): Promise<Over | undefined>;
  /** Subtracts one attempt that was counted for the key. */
  refund(key: string): Promise<void>;
  /** Sets the number of attempts of the key to zero. */
  forget(key: string): Promise<void>;
}

export interface AttemptLimitOptions {
  /** Must be unique, because limits of the same name count the same attempts. */
  readonly name: string;
  readonly attempts: number;
  /** Length of a window, which begins with the first attempt. */
  readonly windowSeconds: number;
  /**
   * If the store does not answer, this process counts its own attempts, or `count` throws StorageUnavailable. Choose
   * `throw` for requests that need the same store afterwards anyway.
   */
  readonly onStoreUnavailable: 'count here' | 'throw';
}

export type CreateAttemptLimit = (options: AttemptLimitOptions) => AttemptLimit;
