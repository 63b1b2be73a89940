/** Answers errors with JSON for clients and a page for users, and logs them for the operator. */
import type Koa from 'koa';
import { type Context, HttpError, type Middleware } from 'koa';
import type { Logger } from 'pino';
import type { Step } from '../base/answer.ts';
import { currentRequest } from '../base/current-request.ts';
import type { ErrorPage } from '../pages/error-page/error-page.ts';
import { errorBody, OAuthError, oauthErrorAnswer } from '../provider/oauth-error.ts';
import { shownPath } from './request-checks.ts';

/** Seconds until a retry: a recovered store is detected within 1 s, and an account's full queue empties even sooner. */
const RETRY_AFTER_SECONDS = '2';

/** Answers errors of the OAuth routes as OAuth errors in JSON. */
export function answerJsonErrors({ issuer, log }: { issuer: string; log: Logger }): Step {
  return async function jsonErrors(ctx, next) {
    try {
      return await next();
    } catch (error) {
      const answer = oauthErrorAnswer(issuer, asOAuthError(ctx, error, log));
      if (answer.status !== 503) return answer;
      // Keep the error's own `Retry-After`, which is more exact.
      return { ...answer, headers: { 'Retry-After': RETRY_AFTER_SECONDS, ...answer.headers } };
    }
  };
}

function asOAuthError(ctx: Context, error: unknown, log: Logger): OAuthError {
  if (error instanceof OAuthError) {
    if (error.status >= 500) ctx.state.cause = error.internalCause;
    return error;
  }
  const status = statusOf(error);
  if (status >= 500) logFailure(ctx, error, log);
  if (status === 503) {
    return new OAuthError(503, 'temporarily_unavailable', 'try again in a moment');
  }
  if (status < 500) return new OAuthError(status, 'invalid_request', (error as Error).message);
  return new OAuthError(500, 'server_error', 'the request could not be completed');
}

/** Answers errors outside the OAuth routes, missing pages and wrong methods. */
export function answerErrorPages(parts: { errorPage: ErrorPage; issuer: string; log: Logger }): Middleware {
  const { errorPage, issuer, log } = parts;
  const body = errorBody(issuer, 'invalid_request', 'this URL does not exist');
  const notHere = { status: 404, body };
  return async function errorPages(ctx, next) {
    try {
      await next();
      const isUnanswered = ctx.body === undefined && (ctx.status === 404 || ctx.status === 405);
      if (isUnanswered && isMissedByProgram(ctx)) Object.assign(ctx, notHere);
      else if (isUnanswered) await errorPage.show(ctx, ctx.status);
    } catch (error) {
      const status = statusOf(error);
      if (status >= 500) logFailure(ctx, error, log);
      await errorPage.show(ctx, status);
    }
    // Keep the page's own `Retry-After`, which is more exact.
    const isForLater = ctx.status === 503 || ctx.status === 429;
    if (isForLater && !ctx.response.get('Retry-After')) ctx.set('Retry-After', RETRY_AFTER_SECONDS);
  };
}

function isMissedByProgram(ctx: Context): boolean {
  const path = /^\/(oauth|\.well-known)\//.exec(ctx.path);
  if (ctx.status !== 404 || !path) return false;
  // Libraries on web pages may look for metadata that Gatehouse does not have.
  if (path[1] !== 'oauth') ctx.set('Access-Control-Allow-Origin', '*');
  ctx.vary('Accept');
  return ctx.accepts('json', 'html') === 'json';
}

/** Returns the status of an error that was meant for the caller, and 500 for every other error. */
export function statusOf(error: unknown): number {
  if (!(error instanceof Error)) return 500;
  const { status, expose } = error as Error & { status?: unknown; expose?: unknown };
  // For a status of 500 or more, `ctx.throw` sets `expose` to false.
  const isMeant = expose === true || error instanceof HttpError || error instanceof OAuthError;
  return isMeant && typeof status === 'number' ? status : 500;
}

function logFailure(ctx: Context, error: unknown, log: Logger): void {
  log.error({ requestId: ctx.state.requestId, path: shownPath(ctx), err: error }, 'request failed');
}

const CLIENT_LEFT = ['ERR_STREAM_PREMATURE_CLOSE', 'ECONNRESET', 'EPIPE'];

/** Logs errors that Koa emits after the steps of a request. Koa's own listener would print them. */
export function logKoaErrors(app: Koa, log: Logger): void {
  app.on('error', (error, ctx?: Context) => {
    // A client that disconnects during an answer, such as a stream, is no failure of the service.
    if (error.headerSent && CLIENT_LEFT.includes(error.code)) return;
    log.error({ requestId: ctx?.state.requestId ?? currentRequest()?.requestId, err: error }, 'request failed');
  });
}
