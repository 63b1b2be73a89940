/** Logs one line per request, with the id that the response also contains. */
import { randomUUID } from 'node:crypto';
import type { Context, Middleware } from 'koa';
import { type Logger, symbols } from 'pino';
import { withinRequest } from '../base/current-request.ts';
import { CALLER_LEFT } from '../base/refusal.ts';
import { statusOf } from './failures.ts';
import type { ObserveRequest } from './metrics/durations.ts';
import { routeOf, shownPath } from './request-checks.ts';

/** Returns an id with 64 random bits. Uses `randomUUID`, which is fast because Node caches random bytes. */
export function newRequestId(): string {
  const uuid = randomUUID();
  return `req_${uuid.slice(0, 8)}${uuid.slice(-8)}`;
}

interface RequestLogParts {
  readonly log: Logger;
  readonly observeRequest?: ObserveRequest;
  /** Paths of probes and scrapes. These are logged at `debug` unless they fail. */
  readonly quietPaths?: readonly string[];
}

export function requestLog(parts: RequestLogParts): Middleware {
  const logRequest = createRequestLog(parts);
  return (ctx, next) =>
    logRequest(ctx, () => {
      ctx.set('X-Request-Id', ctx.state.requestId);
      return next();
    });
}

/**
 * Gives each request an id, runs its work, logs its result and records its metrics. Never logs the query, a header or a
 * body, because these contain codes, tokens and secrets. The work writes values for the log to `ctx.state`
 * (request-state.ts), and the status to `ctx`.
 */
export function createRequestLog(parts: RequestLogParts) {
  const { log, observeRequest, quietPaths = [] } = parts;
  const writeLine = requestLine(log);
  return async function logRequest(ctx: Context, work: () => Promise<void>): Promise<void> {
    const start = performance.now();
    const requestId = newRequestId();
    const request = { requestId };
    Object.assign(ctx.state, request);
    // Read the network address now, because it is unknown once the caller has disconnected.
    const { method, ip } = ctx;
    try {
      await withinRequest(request, work);
    } catch (err) {
      withinRequest(request, () => answerUncaught(ctx, err, log));
    }
    const milliseconds = performance.now() - start;
    const status = ctx.res.destroyed ? CALLER_LEFT : ctx.status;
    const route = routeOf(ctx);
    observeRequest?.(route, method, status, milliseconds / 1000);
    const level = status < 400 && quietPaths.includes(ctx.path) ? 'debug' : 'info';
    if (!log.isLevelEnabled(level)) return;
    const { clientId, authorizationId: authorization, accountId, cause } = ctx.state;
    writeLine(level, {
      requestId,
      method,
      path: shownPath(ctx),
      route,
      status,
      ip,
      clientId,
      authorization,
      accountId,
      ms: Math.round(milliseconds * 1000) / 1000,
      cause,
    });
  };
}

/** The parts from which pino composes its lines. A test compares `requestLine` with pino. */
interface PinoInside {
  /** The beginning of a line for each level, such as `{"level":30`. */
  readonly [symbols.lsCacheSym]: Readonly<Record<number, string>>;
  /** The texts of `timeSym` and `chindingsSym` begin with a comma. */
  readonly [symbols.timeSym]: () => string;
  readonly [symbols.chindingsSym]: string;
  readonly [symbols.streamSym]: { lastLevel?: number; write(line: string): void };
}

/**
 * Returns a function that logs a request exactly as pino would, but in a third of the time. For nearly every request,
 * this is the only line in the log. Omits undefined fields.
 */
export function requestLine(log: Logger) {
  const inside = log as unknown as PinoInside;
  return (level: 'debug' | 'info', fields: Readonly<Record<string, string | number | undefined>>): void => {
    const number = log.levels.values[level] ?? 0;
    let line = `${inside[symbols.lsCacheSym][number]}${inside[symbols.timeSym]()}${inside[symbols.chindingsSym]}`;
    for (const name in fields) {
      const value = fields[name];
      if (value !== undefined) line += `,"${name}":${typeof value === 'string' ? JSON.stringify(value) : value}`;
    }
    const stream = inside[symbols.streamSym];
    // The process log uses `lastLevel` to decide whether to write the line immediately.
    stream.lastLevel = number;
    stream.write(`${line},"msg":"request"}\n`);
  };
}

/** Responds if even the error page failed. Koa's own answer would not contain the request id. */
function answerUncaught(ctx: Context, err: unknown, log: Logger): void {
  const { requestId } = ctx.state;
  ctx.status = statusOf(err);
  ctx.type = 'text/plain';
  if (ctx.status < 500) {
    ctx.body = `${(err as Error).message}\n`;
    return;
  }
  log.error({ requestId, err }, 'request failed');
  ctx.body = failureText(requestId);
}

/** The answer to a failed request if no error page can be shown. */
export const failureText = (requestId: string): string => `Something went wrong on our side. Reference: ${requestId}\n`;
