/**
 * `POST /oauth/token/refresh`: extends the browser session while a user works on a page. This is not an OAuth endpoint,
 * so it refuses requests that look like OAuth requests.
 */
import type { Context, Middleware } from 'koa';
import type { Answer, NextStep, Step } from '../../base/answer.ts';
import type { BrowserSessions } from '../../provider/browser-sessions.ts';
import { formOf, readForm } from '../../provider/form.ts';
import { OAuthError } from '../../provider/oauth-error.ts';
import { type VisitorParts, visitorOf } from '../page.ts';

const OAUTH_PARAMETERS = ['grant_type', 'refresh_token', 'client_id', 'client_secret', 'code'];

export function refreshSession(
  parts: VisitorParts & {
    readonly sessions: Pick<BrowserSessions, 'keepAlive'>;
    readonly requireSameOrigin: Middleware;
  },
): Step[] {
  return [
    refuseOtherBodies,
    readForm,
    refuseOAuth,
    parts.requireSameOrigin,
    async function keepAlive(ctx) {
      const visitor = await visitorOf(ctx, parts);
      const seconds = visitor && (await parts.sessions.keepAlive(ctx));
      if (seconds === undefined) throw new OAuthError(401, 'login_required', 'no user is signed in');
      return { body: { session_expires_in: seconds } };
    },
  ];
}

/** A client that sends a JSON body wanted the token endpoint. */
function refuseOtherBodies(ctx: Context, next: NextStep): Promise<Answer> {
  if (ctx.is('json')) throw notOAuth();
  return next();
}

function refuseOAuth(ctx: Context, next: NextStep): Promise<Answer> {
  const looksLikeOAuth =
    ctx.get('authorization') !== '' ||
    OAUTH_PARAMETERS.some((name) => formOf(ctx).has(name) || ctx.query[name] !== undefined);
  if (looksLikeOAuth) throw notOAuth();
  return next();
}

const notOAuth = (): OAuthError =>
  new OAuthError(
    400,
    'invalid_request',
    'this is not an OAuth endpoint: refresh tokens are exchanged at POST /oauth/token',
  );
