/** Can this process serve: which store is away, whose clock is wrong, and is it about to end? */
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Clock } from '../base/clock.ts';

export type Store = 'database' | 'tokens';

/**
 * `reason`: what the store's driver said, for operators. `clockAheadMs`: how far its clock is ahead
 * of this node's; negative where it is behind.
 */
export interface StoreState {
  readonly isAway: boolean;
  readonly reason?: string;
  readonly clockAheadMs?: number;
}

export type StoreStates = Readonly<Record<Store, StoreState>>;

/** Has a store keep something. @returns milliseconds since the epoch, as the store's clock says. */
export type Probe = () => Promise<number>;

export interface Readiness {
  /** Asks both stores now, and waits for neither longer than a request would. */
  ask(): Promise<StoreStates>;
  /** Like `ask`, but at most once a second: callers within it share one answer. */
  stores(): Promise<StoreStates>;
  readonly isDraining: boolean;
  /** From now on this process is not ready: a load balancer is to send it nothing new. */
  startDraining(): void;
}

/** Milliseconds. Less than the 2 s within which every request is answered. */
const PATIENCE = 1_800;
/** Milliseconds for which several who ask share one answer. */
const SHARED = 1_000;

/**
 * @param probes each rejects with the reason where its store is away.
 * @param probes.tokens absent where tokens are kept in the database.
 * @param timeShift milliseconds to add to what a store's clock says.
 * @param onAnswer told of each answer that is not shared.
 */
export function createReadiness(parts: {
  readonly probes: { readonly database: Probe; readonly tokens?: Probe | undefined };
  readonly clock: Clock;
  readonly timeShift: () => number;
  readonly onAnswer: (states: StoreStates) => void;
}): Readiness {
  const { probes, clock, timeShift, onAnswer } = parts;
  let isDraining = false;
  let shared: { readonly states: Promise<StoreStates>; readonly since: number } | undefined;

  async function stateOf(probe: Probe): Promise<StoreState> {
    const waiting = new AbortController();
    const { signal } = waiting;
    const tooLate = delay(PATIENCE, 'no answer' as const, { signal }).catch(() => 'no answer');
    const asked = clock();
    try {
      const storesTime = await Promise.race([probe(), tooLate]);
      if (typeof storesTime === 'string') return { isAway: true, reason: storesTime };
      // Its answer is taken to be as old as half of the way there and back.
      const ours = (asked + clock()) / 2;
      return { isAway: false, clockAheadMs: storesTime + timeShift() - ours };
    } catch (error) {
      return { isAway: true, reason: reasonOf(error) };
    } finally {
      waiting.abort();
    }
  }

  async function ask(): Promise<StoreStates> {
    const database = stateOf(probes.database);
    const tokens = probes.tokens ? stateOf(probes.tokens) : database;
    const states = { database: await database, tokens: await tokens };
    onAnswer(states);
    return states;
  }

  return {
    ask,
    stores() {
      const now = performance.now();
      if (!shared || now - shared.since >= SHARED) shared = { states: ask(), since: now };
      return shared.states;
    },
    get isDraining() {
      return isDraining;
    },
    startDraining() {
      isDraining = true;
    },
  };
}

function reasonOf(error: unknown): string {
  return error instanceof Error && 'reason' in error ? String(error.reason) : String(error);
}

/** Milliseconds: from here on an operator is told. */
const WORTH_TELLING = 5_000;
/** Milliseconds: from here on a node is not ready. */
const TOO_MUCH = 30_000;

/** Why a node must take no requests, with the remedy; undefined while its clock will do. */
export function clockRefusal(store: Store, { clockAheadMs = 0 }: StoreState): string | undefined {
  return Math.abs(clockAheadMs) > TOO_MUCH ? sentence(store, clockAheadMs) : undefined;
}

/** Why a node can serve no requests: a store is away or its clock differs; undefined if it can. */
export const reasonNotReady = ({ database, tokens }: StoreStates): string | undefined =>
  storeRefusal('database', database) ?? storeRefusal('tokens', tokens);

const storeRefusal = (store: Store, state: StoreState): string | undefined =>
  state.isAway ? (state.reason ?? 'no answer') : clockRefusal(store, state);

/** Logs when a clock goes wrong or worse, and when it is right again. To be told of each answer. */
export function createClockWatch(log: Pick<Logger, 'error' | 'warn' | 'info'>) {
  const last = new Map<Store, 'error' | 'warn' | 'info'>();

  function look(store: Store, { clockAheadMs }: StoreState): void {
    if (clockAheadMs === undefined) return;
    const level = levelOf(Math.abs(clockAheadMs));
    if (level === (last.get(store) ?? 'info')) return;
    last.set(store, level);
    const seconds = clockAheadMs / 1_000;
    if (level === 'info') log.info({ store, seconds }, 'its clock and this node’s agree again');
    else log[level]({ store, seconds }, sentence(store, clockAheadMs));
  }

  return ({ database, tokens }: StoreStates): void => {
    look('database', database);
    // Where both are one, one line says it.
    if (tokens !== database) look('tokens', tokens);
  };
}

function levelOf(size: number): 'error' | 'warn' | 'info' {
  if (size > TOO_MUCH) return 'error';
  return size > WORTH_TELLING ? 'warn' : 'info';
}

function sentence(store: Store, aheadMs: number): string {
  const seconds = Math.round(Math.abs(aheadMs) / 1_000);
  const direction = aheadMs > 0 ? 'ahead of' : 'behind';
  const what = store === 'database' ? 'PostgreSQL' : 'the token store';
  return `the clock of ${what} is ${seconds} s ${direction} this node’s: let NTP (chrony, systemd-timesyncd) set both`;
}
