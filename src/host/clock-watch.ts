/** Whether this node's clock and those of its stores tell the same time: tokens expire by them. */
import type { Logger } from 'pino';
import type { Store, StoreState, StoreStates } from './readiness.ts';

/** Milliseconds: from here on an operator is told. */
const WORTH_TELLING = 5_000;
/** Milliseconds: from here on a node is not ready. */
const TOO_MUCH = 30_000;

/** Why a node must take no requests, with the remedy; undefined while its clock will do. */
export function clockRefusal(store: Store, { clockAheadMs = 0 }: StoreState): string | undefined {
  return Math.abs(clockAheadMs) > TOO_MUCH ? sentence(store, clockAheadMs) : undefined;
}

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
