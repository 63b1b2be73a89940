/** Is the process alive, and can it serve? */
import type { Context } from 'koa';

export function healthChecks(isReady: () => Promise<void>) {
  return {
    /** The process answers: restarting it would not help. */
    alive(ctx: Context): void {
      ctx.body = { status: 'ok' };
    },

    /** Every store answers: send it requests. */
    async ready(ctx: Context): Promise<void> {
      try {
        await isReady();
        ctx.body = { status: 'ready' };
      } catch (error) {
        ctx.status = 503;
        ctx.body = { status: 'not ready', reason: reasonOf(error) };
      }
    },
  };
}

function reasonOf(error: unknown): string {
  const detail = error instanceof Error && 'error_detail' in error ? error.error_detail : undefined;
  return String(detail ?? error);
}
