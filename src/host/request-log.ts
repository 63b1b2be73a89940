/** One line per request, found again by the reference that the answer carries. */
import { randomUUID } from 'node:crypto';
import type { Middleware } from 'koa';
import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';

/**
 * Gives the request its id (`X-Request-Id`) and logs its outcome. Never the query, a header or a
 * body: those hold codes, tokens and secrets.
 */
export function requestLog({ log, clock }: { log: Logger; clock: Clock }): Middleware {
  return async function logRequest(ctx, next) {
    const start = clock();
    // The one source of randomness that Node keeps a supply of: this is asked for with each request.
    const requestId = `req_${randomUUID().replaceAll('-', '').slice(0, 16)}`;
    ctx.state.requestId = requestId;
    ctx.set('X-Request-Id', requestId);
    await next();
    const { method, path, status, ip } = ctx;
    log.info({ requestId, method, path, status, ip, ms: clock() - start }, 'request');
  };
}
