/** `POST /oauth/revoke` (RFC 7009), for standard client libraries. */
import type { Context, Middleware } from 'koa';
import type { Authorizations } from '../authorizations/authorization.ts';
import type { Endings } from '../authorizations/endings.ts';
import type { MachineTokens } from '../authorizations/machine-tokens.ts';
import { authenticatedClient, type ClientAuthentication } from './client-authentication.ts';
import { allowPages, refuseForeignPage } from './cross-origin.ts';
import { formOf, readOAuthForm } from './form.ts';
import { OAuthError } from './oauth-error.ts';

/**
 * The steps of a revocation request, in order. Either token of an authorization ends all of it
 * (§2.1); a machine access token ends alone. `token_type_hint` is not needed to find a token.
 */
export function revocation(
  parts: RevocationParts & { readonly authentication: ClientAuthentication },
): Middleware[] {
  const { authentication } = parts;
  return [
    allowPages,
    readOAuthForm,
    authentication.requireClient,
    refuseForeignPage,
    async function revokeToken(ctx) {
      const value = formOf(ctx).get('token');
      if (!value) throw new OAuthError(400, 'invalid_request', 'token is required');
      const token = await findToken(value, parts);
      if (token && token.clientId !== authenticatedClient(ctx).id) {
        throw new OAuthError(400, 'invalid_grant', 'the token was issued to another client');
      }
      // §2.2: an unknown token is a token that is already dead.
      await token?.end(ctx);
      // Ignored by clients (§2.2); but there are libraries that want JSON of every answer.
      ctx.body = {};
    },
  ];
}

export interface RevocationParts {
  readonly authorizations: Pick<Authorizations, 'find'>;
  readonly machineTokens: MachineTokens;
  readonly endings: Pick<Endings, 'end' | 'noteMachineToken'>;
}

/** A token that is there, as whoever presents it may end it. */
export interface PresentedToken {
  readonly clientId: string;
  readonly kind: 'access_token' | 'refresh_token';
  /** With its authorization, or alone where it has none. */
  end(ctx: Context): Promise<void>;
}

/** The token behind a value; undefined for what is none, or dead. */
export async function findToken(
  value: string,
  { authorizations, machineTokens, endings }: RevocationParts,
): Promise<PresentedToken | undefined> {
  const machineToken = await machineTokens.find(value);
  if (machineToken) {
    const { clientId } = machineToken;
    const end = async (): Promise<void> => {
      try {
        await machineTokens.end(value);
      } finally {
        // Also where nobody knows whether it is ended. Not recorded: a machine may get another one
        // the next moment, so it may do what it might.
        endings.noteMachineToken(clientId);
      }
    };
    return { clientId, kind: 'access_token', end };
  }
  const found = await authorizations.find(value);
  if (!found || found.value.kind === 'code') return undefined;
  const { authorization } = found;
  return {
    clientId: authorization.clientId,
    kind: found.value.kind,
    async end(ctx) {
      ctx.state.authorizationId = authorization.id;
      const origin = { address: ctx.ip, browser: ctx.get('user-agent') };
      await endings.end(authorization, { cause: 'client_revoked', actor: 'client', origin });
    },
  };
}
