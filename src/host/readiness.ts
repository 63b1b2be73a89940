/** Decides whether this process can serve: stores must be available, clocks right, and no shutdown in progress. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Clock } from '../base/clock.ts';

export type Store = 'database' | 'tokens';

/**
 * `reason` is the message of the store's driver, for operators. `clockAheadMs` is how far the store's clock is ahead of
 * this node's clock; negative if it is behind.
 */
export interface StoreState {
  readonly isAway: boolean;
  readonly reason?: string;
  readonly clockAheadMs?: number;
}

export type StoreStates = Readonly<Record<Store, StoreState>>;

/** Writes to the store. @returns the time by the store's clock, in milliseconds since the epoch */
export type Probe = () => Promise<number>;

export type Readiness = ReturnType<typeof createReadiness>;

/** The timeout of a probe is shorter than 2 s, the maximum time for any request. */
const PROBE_TIMEOUT_MS = 1_800;
const RESULT_SHARED_MS = 1_000;

/**
 * @param probes each probe rejects with the reason if its store is unavailable
 * @param probes.tokens absent if tokens are in the database
 * @param timeShift returns the milliseconds to add to the time of a store's clock
 * @param onAnswer called once with each result, even if several callers share it
 */
export function createReadiness(parts: {
  readonly probes: { readonly database: Probe; readonly tokens?: Probe | undefined };
  readonly clock: Clock;
  readonly timeShift: () => number;
  readonly onAnswer: (states: StoreStates) => void;
}) {
  const { probes, clock, timeShift, onAnswer } = parts;
  let isDraining = false;
  let shared: { readonly states: Promise<StoreStates>; readonly since: number } | undefined;

  async function stateOf(probe: Probe): Promise<StoreState> {
    const waiting = new AbortController();
    const { signal } = waiting;
    const tooLate = delay(PROBE_TIMEOUT_MS, 'no answer' as const, { signal }).catch(() => 'no answer');
    const asked = clock();
    try {
      const storesTime = await Promise.race([probe(), tooLate]);
      if (typeof storesTime === 'string') return { isAway: true, reason: storesTime };
      // Assume that the store read its clock halfway between the request and its answer.
      const ours = (asked + clock()) / 2;
      return { isAway: false, clockAheadMs: storesTime + timeShift() - ours };
    } catch (error) {
      return { isAway: true, reason: reasonOf(error) };
    } finally {
      waiting.abort();
    }
  }

  /** Probes both stores now. Waits no longer than a request would. */
  async function ask(): Promise<StoreStates> {
    const database = stateOf(probes.database);
    const tokens = probes.tokens ? stateOf(probes.tokens) : database;
    const states = { database: await database, tokens: await tokens };
    onAnswer(states);
    return states;
  }

  return {
    ask,
    /** Like `ask`, but at most once a second. Callers within that second share the result. */
    stores(): Promise<StoreStates> {
      const now = performance.now();
      if (!shared || now - shared.since >= RESULT_SHARED_MS) shared = { states: ask(), since: now };
      return shared.states;
    },
    get isDraining(): boolean {
      return isDraining;
    },
    /** Makes this process not ready, so that load balancers send it no new requests. */
    startDraining(): void {
      isDraining = true;
    },
  };
}

function reasonOf(error: unknown): string {
  return error instanceof Error && 'reason' in error ? String(error.reason) : String(error);
}

const CLOCK_WARNING_MS = 5_000;
const MAX_CLOCK_DIFFERENCE_MS = 30_000;

/** Returns why the node must get no requests, with the remedy; undefined if its clock is right. */
export function clockRefusal(store: Store, { clockAheadMs = 0 }: StoreState): string | undefined {
  return Math.abs(clockAheadMs) > MAX_CLOCK_DIFFERENCE_MS ? sentence(store, clockAheadMs) : undefined;
}

/** Returns why a node cannot serve requests; undefined if it can. */
export const reasonNotReady = ({ database, tokens }: StoreStates): string | undefined =>
  storeRefusal('database', database) ?? storeRefusal('tokens', tokens);

const storeRefusal = (store: Store, state: StoreState): string | undefined =>
  state.isAway ? (state.reason ?? 'no answer') : clockRefusal(store, state);

/** Returns a listener for results. It logs when a clock becomes wrong, more wrong, or right again. */
export function createClockWatch(log: Pick<Logger, 'error' | 'warn' | 'info'>) {
  const last = new Map<Store, 'error' | 'warn' | 'info'>();

  function look(store: Store, { clockAheadMs }: StoreState): void {
    if (clockAheadMs === undefined) return;
    const level = levelOf(Math.abs(clockAheadMs));
    if (level === (last.get(store) ?? 'info')) return;
    last.set(store, level);
    const seconds = clockAheadMs / 1_000;
    if (level === 'info') log.info({ store, seconds }, 'the clocks of the store and of this node agree again');
    else log[level]({ store, seconds }, sentence(store, clockAheadMs));
  }

  return ({ database, tokens }: StoreStates): void => {
    look('database', database);
    // If tokens are in the database, both stores have the same clock: check and log it only once.
    if (tokens !== database) look('tokens', tokens);
  };
}

function levelOf(size: number): 'error' | 'warn' | 'info' {
  if (size > MAX_CLOCK_DIFFERENCE_MS) return 'error';
  return size > CLOCK_WARNING_MS ? 'warn' : 'info';
}

function sentence(store: Store, aheadMs: number): string {
  const seconds = Math.round(Math.abs(aheadMs) / 1_000);
  const direction = aheadMs > 0 ? 'ahead of' : 'behind';
  const what = store === 'database' ? 'PostgreSQL' : 'the token store';
  return (
    `the clock of ${what} is ${seconds} s ${direction} this node’s: synchronize both with ` +
    'NTP (chrony, systemd-timesyncd)'
  );
}
