/** `POST /oauth/token/revoke`: the holder of an access token ends the authorization it came from. */
import type { Context, Middleware, Next } from 'koa';
import { isApiKey } from '../accounts/api-key.ts';
import type { ClientRegistry } from '../clients/client-registry.ts';
import { allowPageOf } from './cross-origin.ts';
import type { FailureLimits } from './failure-limits.ts';
import { formOf, readForm } from './form.ts';
import { OAuthError } from './oauth-error.ts';
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
      if (ctx.get('origin')) allowPageOf(await clients.find(token.clientId), ctx);
      await token.end(ctx);
      ctx.status = 204;
    },
  ];
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
  if (!header) throw unauthorized('an access token is required in the Authorization header');
  if (isElsewhere) {
    throw new OAuthError(400, 'invalid_request', 'the access token must be sent one way only');
  }
  if (!/^bearer /i.test(header)) {
    throw new OAuthError(400, 'invalid_request', 'the Authorization header must be Bearer');
  }
  return next();
}

const bearerOf = (ctx: Context): string => ctx.get('authorization').slice('bearer '.length).trim();

const unauthorized = (description: string): OAuthError =>
  new OAuthError(401, 'invalid_token', description, { 'WWW-Authenticate': 'Bearer' });

function invalidToken(description: string): OAuthError {
  const challenge = `Bearer error="invalid_token", error_description="${description}"`;
  return new OAuthError(401, 'invalid_token', description, { 'WWW-Authenticate': challenge });
}
