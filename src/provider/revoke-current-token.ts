/** `POST /oauth/token/revoke`: the holder of an access token ends the authorization it came from. */
import type { Context, Middleware, Next } from 'koa';
import { isApiKey } from '../accounts/api-keys/api-key.ts';
import type { ClientRegistry } from '../clients/client-registry.ts';
import { allowPages, requireOwnPage } from './cross-origin.ts';
import type { FailureLimits } from './failure-limits.ts';
import { formOf, readForm } from './form.ts';
import { OAuthError, printable } from './oauth-error.ts';
import { findToken, type RevocationParts } from './revocation.ts';

/** The steps of the request, in order. Nothing is revoked unless all of them pass. */
export function revokeCurrentToken(
  parts: RevocationParts & {
    readonly clients: ClientRegistry;
    readonly failures: Pick<FailureLimits, 'answerOf'>;
  },
): Middleware[] {
  const { clients, failures } = parts;
  return [
    allowPages,
    challengeRefused,
    readForm,
    refuseTokenParameter,
    requireBearer,
    async function revoke(ctx) {
      const value = bearerOf(ctx);
      if (isApiKey(value)) throw invalidToken('API keys are revoked on the profile page');
      const token = await findToken(value, parts);
      if (token?.kind !== 'access_token') {
        const refusal = invalidToken('the access token is unknown, expired or revoked');
        throw await failures.answerOf(ctx, refusal);
      }
      ctx.state.clientId = token.clientId;
      if (ctx.get('origin')) requireOwnPage(await clients.find(token.clientId), ctx);
      await token.end(ctx);
      ctx.status = 204;
    },
  ];
}

/** RFC 6750 §3: each refusal of what was sent carries a challenge, which says why (§3.1). */
async function challengeRefused(ctx: Context, next: Next): Promise<void> {
  try {
    await next();
  } catch (error) {
    if (error instanceof OAuthError && (error.status === 400 || error.status === 401)) {
      const description = printable(error.description);
      const reason = `error="${error.code}", error_description="${description}"`;
      // What the refusal says itself is written after this.
      ctx.set('WWW-Authenticate', `Bearer ${reason}`);
    }
    throw error;
  }
}

/** Somebody who means RFC 7009 is told so, before anything is revoked. */
function refuseTokenParameter(ctx: Context, next: Next): Promise<void> {
  if (!formOf(ctx).has('token') && ctx.query.token === undefined) return next();
  throw new OAuthError(
    400,
    'invalid_request',
    'this endpoint revokes the token in the Authorization header; use /oauth/revoke to send one',
  );
}

function requireBearer(ctx: Context, next: Next): Promise<void> {
  const header = ctx.get('authorization');
  const isElsewhere = formOf(ctx).has('access_token') || ctx.query.access_token !== undefined;
  // RFC 6750 §3.1: a request without credentials gets the challenge without an error code. A token
  // in a form or a query (§2.2, §2.3) is no credential here: those end up in logs.
  // So does one with another scheme.
  if (!BEARER.test(header)) {
    throw unauthorized('an access token is required in the Authorization header, as Bearer');
  }
  if (isElsewhere) {
    throw new OAuthError(400, 'invalid_request', 'the access token must be sent one way only');
  }
  return next();
}

/** RFC 6750 §2.1, after what RFC 9110 §5.5 lets stand around the value of a header. */
const BEARER = /^bearer +([^ \t]+)$/i;

const bearerOf = (ctx: Context): string => BEARER.exec(ctx.get('authorization'))?.[1] ?? '';

const unauthorized = (description: string): OAuthError =>
  new OAuthError(401, 'invalid_token', description, { 'WWW-Authenticate': 'Bearer' });

const invalidToken = (description: string): OAuthError =>
  new OAuthError(401, 'invalid_token', description);
