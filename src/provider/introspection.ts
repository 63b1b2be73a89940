/** `POST /oauth/introspect` (RFC 7662): is this token good, whose is it, what may they reach now. */
import type { Context, Middleware } from 'koa';
import type { Access } from '../accounts/access.ts';
import type { AccountRegistry } from '../accounts/account-registry.ts';
import type { ClientRegistry } from '../clients/client-registry.ts';
import { authenticatedClient, type ClientAuthentication } from './client-authentication.ts';
import { formOf, readOAuthForm } from './form.ts';
import type { Grants, LiveToken } from './grants.ts';
import { OAuthError } from './oauth-error.ts';

/** RFC 7662 §2.2: why a token is not good is nobody's business. */
const INACTIVE = { active: false } as const;

export interface IntrospectionParts {
  readonly issuer: string;
  readonly authentication: ClientAuthentication;
  readonly grants: Grants;
  readonly clients: ClientRegistry;
  readonly accounts: AccountRegistry;
  readonly access: Access;
}

/** The steps of an introspection request, in order. */
export function introspection(parts: IntrospectionParts): Middleware[] {
  return [
    readOAuthForm,
    parts.authentication.requireClient,
    refusePublicClient,
    async function answerIntrospection(ctx) {
      const value = formOf(ctx).get('token');
      if (!value) throw new OAuthError(400, 'invalid_request', 'token is required');
      ctx.set('Cache-Control', 'no-store');
      const token = await parts.grants.findAccessToken(value);
      ctx.body = (token && (await describe(token, ctx, parts))) ?? INACTIVE;
    },
  ];
}

/** RFC 7662 §2.1: the endpoint must know who asks, or it could be used to scan for tokens. */
function refusePublicClient(ctx: Context, next: () => Promise<void>): Promise<void> {
  if (authenticatedClient(ctx).kind !== 'public') return next();
  throw new OAuthError(401, 'invalid_client', 'introspection needs a client with a secret');
}

async function describe(token: LiveToken, ctx: Context, parts: IntrospectionParts) {
  const asker = authenticatedClient(ctx);
  const isResourceServer = asker.kind === 'resource-server';
  if (!isResourceServer && asker.id !== token.clientId) return undefined;

  const client = await parts.clients.find(token.clientId);
  if (!client || client.isSuspended) return undefined;
  const account =
    token.accountId === undefined ? undefined : await parts.accounts.find(token.accountId);
  if (token.accountId !== undefined && (!account || account.isSuspended)) return undefined;

  const answer = {
    active: true,
    token_type: 'Bearer',
    client_id: token.clientId,
    // Account and client ids have prefixes of their own, so neither is taken for the other.
    sub: token.accountId ?? token.clientId,
    exp: token.expiresAt,
    iat: token.issuedAt,
    iss: parts.issuer,
  };
  // A partner learns that its own token is good; who the person is, it is not told.
  if (!isResourceServer) return answer;
  const holder = account ? { accountId: account.id } : { clientId: client.id };
  return {
    ...answer,
    ...(account && { username: account.email }),
    organizations: await parts.access.accessOf(holder),
  };
}
