/** Is the process alive, and can it serve? */
import type { Context } from 'koa';
import type { Readiness } from './readiness.ts';

export function healthChecks(readiness: Readiness) {
  return {
    /** The process answers: restarting it would not help. */
    alive(ctx: Context): void {
      ctx.body = { status: 'ok' };
    },

    /** Every store answers, and the process stays: send it requests. Which one is away, if not. */
    async ready(ctx: Context): Promise<void> {
      const { database, tokens } = await readiness.stores();
      const isAway = database.isAway || tokens.isAway;
      if (isAway || readiness.isDraining) ctx.status = 503;
      const otherwise = isAway ? 'not ready' : 'ready';
      ctx.body = {
        status: readiness.isDraining ? 'draining' : otherwise,
        database: database.isAway ? 'away' : 'ok',
        tokens: tokens.isAway ? 'away' : 'ok',
        ...(isAway && { reason: database.reason ?? tokens.reason }),
      };
    },
  };
}
