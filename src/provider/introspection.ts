/** `POST /oauth/introspect` (RFC 7662): returns a token's state, user, client and access. */
import type { Context } from 'koa';
import type { Access } from '../accounts/access/access.ts';
import type { People, Person } from '../accounts/access/people.ts';
import type { Organization } from '../accounts/access/reach.ts';
import type { Account } from '../accounts/account.ts';
import type { ApiKey } from '../accounts/api-keys/api-key.ts';
import type { ApiKeys } from '../accounts/api-keys/api-keys.ts';
import type { Authorizations, Found } from '../authorizations/authorization.ts';
import { connectionId } from '../authorizations/consents.ts';
import { isValidFor, type MachineToken, type MachineTokens } from '../authorizations/machine-tokens.ts';
import type { PresentedAccessToken } from '../authorizations/token-formats.ts';
import type { Answer, NextStep, Step } from '../base/answer.ts';
import type { ClientRegistry } from '../clients/client-registry.ts';
import type { LastUsed } from '../storage/last-used.ts';
import { authenticatedClient, type ClientAuthentication } from './client-authentication.ts';
import { formOf, readOAuthForm } from './form.ts';
import { OAuthError } from './oauth-error.ts';
import type { ProviderOutcomes } from './outcomes.ts';

/** RFC 7662 §2.2: the answer does not say why a token is inactive. */
const INACTIVE = { active: false } as const;

export interface IntrospectionParts {
  readonly issuer: string;
  readonly authentication: ClientAuthentication;
  readonly authorizations: Authorizations;
  readonly machineTokens: MachineTokens;
  readonly clients: ClientRegistry;
  readonly people: Pick<People, 'find'>;
  readonly access: Access;
  readonly apiKeys: ApiKeys;
  readonly lastUsed: Pick<LastUsed<'api_key' | 'connection'>, 'record'>;
  readonly outcomes: Pick<ProviderOutcomes, 'introspected'>;
}

export function introspection(parts: IntrospectionParts): Step[] {
  return [
    readOAuthForm,
    parts.authentication.requireClient,
    refusePublicClient,
    async function answerIntrospection(ctx) {
      const value = formOf(ctx).get('token');
      if (!value) throw new OAuthError(400, 'invalid_request', 'token is required');
      const answer = await describeToken(value, ctx, parts);
      parts.outcomes.introspected(answer !== undefined);
      return { body: answer ?? INACTIVE };
    },
  ];
}

/** Refuses public clients, which have no secret: any caller could search for tokens (RFC 7662 §2.1). */
function refusePublicClient(ctx: Context, next: NextStep): Promise<Answer> {
  if (authenticatedClient(ctx).kind !== 'public') return next();
  throw new OAuthError(401, 'invalid_client', 'introspection needs a client with a secret');
}

/**
 * Returns the introspection response for the authenticated client; undefined if the token is not active. The type
 * declares only those members of the response (RFC 7662 §2.2) that this service itself reads.
 */
export async function describeToken(
  value: string,
  ctx: Context,
  parts: IntrospectionParts,
): Promise<
  { readonly sub: string; readonly client_id?: string; readonly organizations?: readonly object[] } | undefined
> {
  const key = await parts.apiKeys.findByValue(value);
  if (key) return describeKey(key, ctx, parts);
  const machineToken = await parts.machineTokens.find(value);
  if (machineToken) return describeMachine(machineToken, ctx, parts);
  const found = await parts.authorizations.find(value);
  return isAccessToken(found) ? describe(found, ctx, parts) : undefined;
}

const isAccessToken = (found: Found | undefined): found is Found<PresentedAccessToken> =>
  found?.value.kind === 'access_token';

/** An API key does not belong to a client, so only resource servers may introspect it. */
async function describeKey(key: ApiKey, ctx: Context, parts: IntrospectionParts) {
  if (authenticatedClient(ctx).kind !== 'resource-server') return undefined;
  const person = await parts.people.find(key.accountId);
  if (!person || person.account.isSuspended) return undefined;
  const { account } = person;
  parts.lastUsed.record('api_key', key.id);
  return {
    active: true,
    token_type: 'api_key',
    api_key: key.id,
    sub: account.id,
    ...personIn(account),
    ...(key.expiresAt && { exp: secondsOf(key.expiresAt) }),
    iat: secondsOf(key.createdAt),
    iss: parts.issuer,
    ...organizationsIn(person, await parts.access.through(person, { limit: key })),
  };
}

/**
 * Also lists, as `withheld`, the organizations of the user that a policy excludes from this answer. A change of the
 * policy is announced only with the organization's id, and must invalidate the cached answer.
 */
function organizationsIn({ policies }: Pick<Person, 'policies'>, reached: readonly Organization[]) {
  const ids = new Set(policies.size > 0 ? reached.map(({ id }) => id) : []);
  const withheld = [...policies.keys()].filter((id) => !ids.has(id));
  return { organizations: reached, ...(withheld.length > 0 && { withheld }) };
}

/** Returns the earlier of the two times: an answer must not be cached beyond the end of the connection. */
const endOf = (expiresAt: number, until: Date | null | undefined): number =>
  until ? Math.min(expiresAt, secondsOf(until)) : expiresAt;

const personIn = ({ email, externalId }: Account) => ({
  username: email,
  ...(externalId !== undefined && { external_id: externalId }),
});

const secondsOf = (time: Date): number => Math.floor(time.getTime() / 1000);

function mayAsk(ctx: Context, clientId: string): boolean {
  const asker = authenticatedClient(ctx);
  return asker.kind === 'resource-server' || asker.id === clientId;
}

async function describeMachine(token: MachineToken, ctx: Context, parts: IntrospectionParts) {
  const { clientId, expiresAt: exp, issuedAt: iat } = token;
  if (!mayAsk(ctx, clientId)) return undefined;
  const client = await parts.clients.find(clientId);
  if (!client || client.isSuspended) return undefined;
  if (!(await isValidFor(parts.clients, client, token))) return undefined;
  const times = { exp, iat, iss: parts.issuer };
  // Account and client ids have different prefixes, so `sub` is never ambiguous.
  const answer = {
    active: true,
    token_type: 'Bearer',
    client_id: clientId,
    sub: clientId,
    ...times,
  };
  if (authenticatedClient(ctx).kind !== 'resource-server') return answer;
  return { ...answer, organizations: await parts.access.machineAccess(clientId) };
}

async function describe(
  found: Found<PresentedAccessToken>,
  ctx: Context,
  { access, authorizations, lastUsed, issuer }: IntrospectionParts,
) {
  const { value, authorization } = found;
  const { id, accountId, clientId } = authorization;
  ctx.state.authorizationId = id;
  if (!mayAsk(ctx, clientId)) return undefined;
  const parties = await authorizations.resolveParties(found);
  if (typeof parties === 'string') return undefined;
  authorizations.confirmUse(found);
  const { account, limit } = parties;
  const answer = {
    active: true,
    token_type: 'Bearer',
    client_id: clientId,
    sub: accountId,
    exp: endOf(value.expiresAt, limit?.until),
    iat: value.issuedAt,
    iss: issuer,
  };
  // A client other than a resource server learns that its own token is active, but not who the user is.
  if (authenticatedClient(ctx).kind !== 'resource-server') return answer;
  lastUsed.record('connection', connectionId({ accountId, clientId }));
  return {
    ...answer,
    authorization: id,
    ...personIn(account),
    ...organizationsIn(parties, await access.through(parties, { clientId, limit })),
  };
}
