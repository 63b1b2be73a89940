/** Is the process alive, and can it serve? */
import type { Context } from 'koa';
import { clockRefusal } from './clock-watch.ts';
import type { Readiness, Store, StoreState } from './readiness.ts';

export function healthChecks(readiness: Readiness) {
  return {
    /** The process answers: restarting it would not help. */
    alive(ctx: Context): void {
      ctx.body = { status: 'ok' };
    },

    /** Every store keeps what it is given, and the process stays: send it requests. Why not, if not. */
    async ready(ctx: Context): Promise<void> {
      const { database, tokens } = await readiness.stores();
      const reason = refusal('database', database) ?? refusal('tokens', tokens);
      if (reason !== undefined || readiness.isDraining) ctx.status = 503;
      const otherwise = reason === undefined ? 'ready' : 'not ready';
      ctx.body = {
        status: readiness.isDraining ? 'draining' : otherwise,
        database: inOneWord('database', database),
        tokens: inOneWord('tokens', tokens),
        ...(reason !== undefined && { reason }),
      };
    },
  };
}

const refusal = (store: Store, state: StoreState): string | undefined =>
  state.isAway ? (state.reason ?? 'no answer') : clockRefusal(store, state);

function inOneWord(store: Store, state: StoreState): string {
  if (state.isAway) return 'away';
  return clockRefusal(store, state) === undefined ? 'ok' : 'clock differs';
}
