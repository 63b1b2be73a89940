/** `POST /oauth/revoke` (RFC 7009), for standard client libraries. */
import type { Middleware } from 'koa';
import { authenticatedClient, type ClientAuthentication } from './client-authentication.ts';
import { allowPageOf } from './cross-origin.ts';
import { formOf, readOAuthForm } from './form.ts';
import { endGivenBack, type GivenBackParts } from './given-back.ts';
import { OAuthError } from './oauth-error.ts';

/**
 * The steps of a revocation request, in order. Either token of an authorization ends all of it
 * (§2.1); a machine access token ends alone. `token_type_hint` is not needed to find a token.
 */
export function revocation(
  parts: GivenBackParts & { readonly authentication: ClientAuthentication },
): Middleware[] {
  const { authentication, grants } = parts;
  return [
    readOAuthForm,
    authentication.requireClient,
    async function allowClientPage(ctx, next) {
      allowPageOf(authenticatedClient(ctx), ctx);
      await next();
    },
    async function revokeToken(ctx) {
      const value = formOf(ctx).get('token');
      if (!value) throw new OAuthError(400, 'invalid_request', 'token is required');
      ctx.status = 200;
      ctx.body = '';
      const token = (await grants.findAccessToken(value)) ?? (await grants.findRefreshToken(value));
      // §2.2: an unknown token is a token that is already dead.
      if (!token) return;
      if (token.clientId !== authenticatedClient(ctx).id) {
        throw new OAuthError(400, 'invalid_grant', 'the token was issued to another client');
      }
      await endGivenBack(parts, ctx, { value, grantId: token.grantId });
    },
  ];
}
