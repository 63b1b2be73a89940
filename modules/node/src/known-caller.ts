/** A caller with a signal that fires when its access ends. */
import { isDeepStrictEqual } from 'node:util';
import type { Caller, CallerFields } from './caller.ts';

/** Milliseconds (24.8 days). Node's timers fire immediately if the delay is longer. */
const MAX_TIMER_DELAY = 2 ** 31 - 1;

/** A caller whose access has not ended yet. @param onEnd called once, before its signal fires. */
export const knownCaller = (
  fields: CallerFields,
  clock: () => number,
  onEnd: () => void = () => {},
): KnownCaller & Caller => new KnownCaller(fields, clock, onEnd) as KnownCaller & Caller;

/** A caller whose `signal` is created when the API first reads it. */
export class KnownCaller {
  declare readonly subject: string;
  declare readonly clientId?: string;
  declare readonly authorization?: string;
  declare readonly apiKey?: string;
  declare readonly expiresAt?: Date;
  declare organizations: CallerFields['organizations'];
  declare readonly withheld?: readonly string[];
  readonly #clock: () => number;
  readonly #onEnd: () => void;
  /** Undefined until the API first reads `signal`. */
  #controller: AbortController | undefined;
  #hasEnded = false;
  #timer: NodeJS.Timeout | undefined;
  /** Until this time, a recent change may be missing in the answer; undefined if no change is recent. */
  #settles: number | undefined;

  constructor(fields: CallerFields, clock: () => number, onEnd: () => void) {
    Object.assign(this, fields);
    this.#clock = clock;
    this.#onEnd = onEnd;
  }

  get signal(): AbortSignal {
    if (this.#hasEnded) return AbortSignal.abort();
    if (!this.#controller) {
      this.#controller = new AbortController();
      this.#endInTime();
    }
    return this.#controller.signal;
  }

  /** True if the API has read the signal: running work may depend on the signal. */
  get hasSignal(): boolean {
    return this.#controller !== undefined;
  }

  isVouchedFor(settles: number | undefined): void {
    this.#settles = settles;
  }

  isSame(fields: CallerFields): boolean {
    return isDeepStrictEqual({ ...this }, { ...fields });
  }

  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    // Clear the timer, which would keep the caller in memory until the token expires.
    clearTimeout(this.#timer);
    this.#onEnd();
    this.#controller?.abort();
  }

  /** Ends the caller when the token expires, or when it must be introspected before further use. */
  #endInTime(): void {
    const expiry = this.expiresAt?.getTime() ?? Number.POSITIVE_INFINITY;
    const left = Math.min(expiry, this.#settles ?? expiry) - this.#clock();
    if (left <= 0) this.end();
    else {
      const delay = Math.min(left, MAX_TIMER_DELAY);
      this.#timer = setTimeout(() => this.#endInTime(), delay).unref();
    }
  }
}
