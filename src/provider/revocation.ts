/** Lets clients revoke tokens: `POST /oauth/revoke` (RFC 7009) and `POST /oauth/token/revoke`. */
import type { Context } from 'koa';
import { isApiKey } from '../accounts/api-keys/api-key.ts';
import type { Authorizations, Found } from '../authorizations/authorization.ts';
import type { Endings } from '../authorizations/endings.ts';
import type { MachineTokens } from '../authorizations/machine-tokens.ts';
import { isFromBeforeRenewal } from '../authorizations/token-formats.ts';
import type { Answer, NextStep, Step } from '../base/answer.ts';
import { requestOrigin } from '../base/request-state.ts';
import type { ClientRegistry } from '../clients/client-registry.ts';
import { authenticatedClient, type ClientAuthentication } from './client-authentication.ts';
import { allowPages, isFromPage, requireOwnPage } from './cross-origin.ts';
import type { FailureLimits } from './failure-limits.ts';
import { formOf, readForm, readOAuthForm } from './form.ts';
import { OAuthError, printable } from './oauth-error.ts';

/**
 * The steps of `POST /oauth/revoke`, for standard client libraries. Revoking a token of an authorization ends the whole
 * authorization (RFC 7009 §2.1); revoking a machine token ends only that token. Ignores `token_type_hint`.
 */
export function revocation(parts: RevocationParts & { readonly authentication: ClientAuthentication }): Step[] {
  const { authentication, failures } = parts;

  /**
   * Limits how many unknown tokens public and machine clients may send; for other clients, an unknown token counts as
   * already revoked (RFC 7009 §2.2). Attackers can use the id of a public client to guess tokens, and each unknown
   * token of a machine client is recorded. If tokens are in the database, machine clients are not limited: no unknown
   * token is recorded, and an ended token is unknown, too.
   */
  async function limitUnknown(ctx: Context): Promise<void> {
    const { kind } = authenticatedClient(ctx);
    if (kind !== 'public' && !(kind === 'machine' && parts.endings.recordsUnknown)) return;
    const unknown = new OAuthError(400, 'invalid_request', 'the token is unknown');
    const refusal = await failures.answerOf(ctx, unknown);
    if (refusal !== unknown) throw refusal;
  }

  return [
    allowPages,
    readOAuthForm,
    authentication.requireRevokingClient,
    async function revokeToken(ctx) {
      const value = formOf(ctx).get('token');
      if (!value) throw new OAuthError(400, 'invalid_request', 'token is required');
      const client = authenticatedClient(ctx);
      const { id: clientId } = client;
      const token = await findToken(value, parts);
      if (token && token.clientId !== clientId) {
        throw new OAuthError(400, 'invalid_grant', 'the token was issued to another client');
      }
      if (token) await token.end(ctx);
      // A client that received no answer repeats its request, so a token that has already ended is no error.
      else if (!(await parts.endings.hasEnded(value, clientId))) {
        await limitUnknown(ctx);
        await parts.endings.endUnknown(value, client);
      }
      // Clients ignore the body (RFC 7009 §2.2), but some libraries expect JSON in every response.
      return { body: {} };
    },
  ];
}

interface RevocationParts {
  readonly authorizations: Pick<Authorizations, 'find'>;
  readonly machineTokens: MachineTokens;
  readonly endings: Pick<Endings, 'end' | 'hasEnded' | 'endUnknown' | 'recordsUnknown'>;
  readonly failures: Pick<FailureLimits, 'answerOf'>;
}

interface PresentedToken {
  readonly clientId: string;
  readonly kind: 'access_token' | 'refresh_token';
  /** The authorization of the token; absent for a machine token, which has none. */
  readonly found?: Found;
  /** Ends the token's authorization, or only the token if it has none. */
  end(ctx: Context): Promise<void>;
}

/** Returns the token with this value; undefined if the token is unknown, has expired, or was individually revoked. */
async function findToken(
  value: string,
  { authorizations, machineTokens, endings }: RevocationParts,
): Promise<PresentedToken | undefined> {
  const machineToken = await machineTokens.find(value);
  if (machineToken) {
    const { clientId, expiresAt } = machineToken;
    const end = (): Promise<void> => endings.end({ machineToken: value, clientId, expiresAt });
    return { clientId, kind: 'access_token', end };
  }
  const found = await authorizations.find(value);
  if (!found || found.value.kind === 'code') return undefined;
  const { authorization } = found;
  return {
    clientId: authorization.clientId,
    kind: found.value.kind,
    found,
    async end(ctx) {
      ctx.state.authorizationId = authorization.id;
      const why = { cause: 'client_revoked', actor: 'client', origin: requestOrigin(ctx) } as const;
      await endings.end({ authorization, ...why });
    },
  };
}

/** The steps of `POST /oauth/token/revoke`, which ends the authorization of the access token in the request. */
export function revokeCurrentToken(
  parts: RevocationParts & {
    readonly clients: ClientRegistry;
  },
): Step[] {
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
      const client = token && (await clients.find(token.clientId));
      if (token?.kind !== 'access_token' || (client && token.found && isFromBeforeRenewal(token.found, client))) {
        const refusal = invalidToken('the access token is unknown, expired or revoked');
        throw isFromPage(ctx) ? refusal : await failures.answerOf(ctx, refusal);
      }
      ctx.state.clientId = token.clientId;
      if (isFromPage(ctx)) requireOwnPage(client, ctx);
      await token.end(ctx);
      return { body: undefined };
    },
  ];
}

/** Adds the challenge of RFC 6750 §3 to each refusal, with the reason (§3.1). */
async function challengeRefused(ctx: Context, next: NextStep): Promise<Answer> {
  try {
    return await next();
  } catch (error) {
    if (error instanceof OAuthError && (error.status === 400 || error.status === 401)) {
      const description = printable(error.description);
      const reason = `error="${error.code}", error_description="${description}"`;
      // A refusal with its own challenge sets this header later, and so replaces the value.
      ctx.set('WWW-Authenticate', `Bearer ${reason}`);
    }
    throw error;
  }
}

/** Refuses requests that are meant for `POST /oauth/revoke`. Runs before anything is revoked. */
function refuseTokenParameter(ctx: Context, next: NextStep): Promise<Answer> {
  if (!formOf(ctx).has('token') && ctx.query.token === undefined) return next();
  throw new OAuthError(
    400,
    'invalid_request',
    'this endpoint revokes the token in the Authorization header; use /oauth/revoke for a ' + 'token parameter',
  );
}

function requireBearer(ctx: Context, next: NextStep): Promise<Answer> {
  const header = ctx.get('authorization');
  const isElsewhere = formOf(ctx).has('access_token') || ctx.query.access_token !== undefined;
  // RFC 6750 §3.1: requests without credentials or with another scheme get the challenge without an error code. Tokens
  // in forms or queries (§2.2, §2.3) are not accepted, because those end up in logs.
  if (!BEARER.test(header)) {
    const description = 'an access token is required in the Authorization header, as Bearer';
    throw new OAuthError(401, 'invalid_token', description, { 'WWW-Authenticate': 'Bearer' });
  }
  if (isElsewhere) {
    throw new OAuthError(400, 'invalid_request', 'the access token must be sent in only one place');
  }
  return next();
}

/** Matches the header of RFC 6750 §2.1, without the whitespace that RFC 9110 §5.5 allows around a header's value. */
const BEARER = /^bearer +([^ \t]+)$/i;

export const bearerOf = (ctx: Context): string => BEARER.exec(ctx.get('authorization'))?.[1] ?? '';

const invalidToken = (description: string): OAuthError => new OAuthError(401, 'invalid_token', description);
