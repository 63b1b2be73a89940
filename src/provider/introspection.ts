/** `POST /oauth/introspect` (RFC 7662): is this token good, whose is it, what may they reach now. */
import type { Context, Middleware } from 'koa';
import type { Access } from '../accounts/access.ts';
import type { Account } from '../accounts/account.ts';
import type { AccountRegistry } from '../accounts/account-registry.ts';
import type { ApiKey } from '../accounts/api-key.ts';
import type { ApiKeys } from '../accounts/api-keys.ts';
import { connectionId } from '../accounts/connections.ts';
import type { ClientRegistry } from '../clients/client-registry.ts';
import type { LastUsed } from '../storage/last-used.ts';
import { authenticatedClient, type ClientAuthentication } from './client-authentication.ts';
import { formOf, readOAuthForm } from './form.ts';
import type { Grants, LiveToken } from './grants.ts';
import { OAuthError } from './oauth-error.ts';
import type { ProviderOutcomes } from './outcomes.ts';

/** RFC 7662 §2.2: why a token is not good is nobody's business. */
const INACTIVE = { active: false } as const;

export interface IntrospectionParts {
  readonly issuer: string;
  readonly authentication: ClientAuthentication;
  readonly grants: Grants;
  readonly clients: ClientRegistry;
  readonly accounts: AccountRegistry;
  readonly access: Access;
  readonly apiKeys: ApiKeys;
  readonly lastUsed: Pick<LastUsed<'api_key' | 'connection'>, 'note'>;
  readonly outcomes: Pick<ProviderOutcomes, 'introspected'>;
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
      const key = await parts.apiKeys.findByValue(value);
      const token = key ? undefined : await parts.grants.findAccessToken(value);
      if (token?.grantId !== undefined) ctx.state.grantId = token.grantId;
      const answer =
        (key && (await describeKey(key, ctx, parts))) ??
        (token && (await describe(token, ctx, parts)));
      parts.outcomes.introspected(answer !== undefined);
      ctx.body = answer ?? INACTIVE;
    },
  ];
}

/** RFC 7662 §2.1: the endpoint must know who asks, or it could be used to scan for tokens. */
function refusePublicClient(ctx: Context, next: () => Promise<void>): Promise<void> {
  if (authenticatedClient(ctx).kind !== 'public') return next();
  throw new OAuthError(401, 'invalid_client', 'introspection needs a client with a secret');
}

/** A key has no client: it is for the resource servers alone. */
async function describeKey(key: ApiKey, ctx: Context, parts: IntrospectionParts) {
  if (authenticatedClient(ctx).kind !== 'resource-server') return undefined;
  const account = await parts.accounts.find(key.accountId);
  if (!account || account.isSuspended) return undefined;
  parts.lastUsed.note('api_key', key.id);
  return {
    active: true,
    token_type: 'api_key',
    sub: account.id,
    ...personIn(account),
    ...(key.expiresAt && { exp: secondsOf(key.expiresAt) }),
    iat: secondsOf(key.createdAt),
    iss: parts.issuer,
    organizations: await parts.access.accessOf({ accountId: account.id }),
  };
}

const personIn = ({ email, externalId }: Account) => ({
  username: email,
  ...(externalId !== undefined && { external_id: externalId }),
});

const secondsOf = (time: Date): number => Math.floor(time.getTime() / 1000);

async function describe(token: LiveToken, ctx: Context, parts: IntrospectionParts) {
  const asker = authenticatedClient(ctx);
  const isResourceServer = asker.kind === 'resource-server';
  if (!isResourceServer && asker.id !== token.clientId) return undefined;

  const client = await parts.clients.find(token.clientId);
  if (!client || client.isSuspended) return undefined;
  if (token.generation !== undefined && token.generation < client.tokenGeneration) return undefined;
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
  if (account) {
    parts.lastUsed.note('connection', connectionId({ accountId: account.id, clientId: client.id }));
  }
  const holder = account ? { accountId: account.id } : { clientId: client.id };
  return {
    ...answer,
    ...(account && personIn(account)),
    organizations: await parts.access.accessOf(holder),
  };
}
