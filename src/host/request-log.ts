/** One line per request, found again by the reference that the answer carries. */
import type { Middleware } from 'koa';
import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';
import { randomId } from '../random-id.ts';

/**
 * Gives the request its id (`X-Request-Id`) and logs its outcome. Never the query, a header or a
 * body: those hold codes, tokens and secrets.
 */
export function requestLog({ log, clock }: { log: Logger; clock: Clock }): Middleware {
  return async function logRequest(ctx, next) {
    const start = clock();
    const requestId = randomId('req_', 16);
    ctx.state.requestId = requestId;
    ctx.set('X-Request-Id', requestId);
    await next();
    const { method, path, status, ip } = ctx;
    log.info({ requestId, method, path, status, ip, ms: clock() - start }, 'request');
  };
}
