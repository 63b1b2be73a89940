/** Explains a client secret, an API key, a client ID or a machine access token, and its holders. */
import { limitSentence } from '../../accounts/access/access-limit.ts';
import type { Account } from '../../accounts/account.ts';
import type { AuditRecord } from '../../accounts/activity/audit.ts';
import type { ApiKey } from '../../accounts/api-keys/api-key.ts';
import { isFromLeakedSecret, isValidFor } from '../../authorizations/machine-tokens.ts';
import { systemClock } from '../../base/clock.ts';
import type { Client } from '../../clients/client.ts';
import { findSecret, refusedFrom } from '../../clients/client-secrets.ts';
import type { Registries } from '../registries.ts';
import type { Explanation } from './explanation.ts';

export type Facts = Partial<Explanation>;

export const atSeconds = (seconds: number): Date => new Date(seconds * 1000);

export async function explainClientId(registries: Registries, clientId: string): Promise<Explanation> {
  const client = await registries.clients.find(clientId);
  if (client) return clientState(client, {});
  const [deleted] = await registries.audit.find({ clientId, action: 'client_deleted', limit: 1 });
  if (!deleted) return unknownValue('');
  return {
    state: 'revoked',
    why: `The client was deleted${by(deleted.actor)}, for good.`,
    client: { id: clientId },
    revokedAt: deleted.at,
  };
}

export async function explainClientSecret(registries: Registries, value: string): Promise<Explanation> {
  const lastFour = value.slice(-4);
  const clientId = await registries.clients.findClientIdBySecret(value);
  const client = clientId === undefined ? undefined : await registries.clients.find(clientId);
  const secret = findSecret(client, value);
  if (client && secret) {
    const { createdAt, lastUsedAt } = secret;
    const facts = { lastFour, issuedAt: createdAt, ...(lastUsedAt && { lastUsedAt }) };
    const until = refusedFrom(client, secret, registries.settings.leaks.secretGraceSeconds);
    if (!until) return clientState(client, facts);
    const isRefused = until.getTime() <= systemClock();
    const when = `${isRefused ? 'refused since' : 'accepted until'} ${until.toISOString()}`;
    return {
      ...clientState(client, facts),
      ...(isRefused && { state: 'revoked', revokedAt: until }),
      why: `The secret was found in public: it is ${when}.`,
      remedy: 'Add another secret, and configure the client with it.',
    };
  }
  const [removed] = await registries.audit.find({
    action: 'client_secret_removed',
    lastFour,
    limit: 1,
  });
  if (!removed) return { ...unknownValue('Removed client secrets are not stored.'), lastFour };
  const id = String(removed.details.client_id);
  return {
    state: 'revoked',
    why: `No client has this secret. A secret with the same last characters was removed${by(removed.actor)}.`,
    remedy: 'Configure the client with its newer secret.',
    client: (await registries.clients.find(id)) ?? { id },
    lastFour,
    revokedAt: removed.at,
  };
}

export async function explainApiKey(registries: Registries, value: string): Promise<Explanation> {
  const lastFour = value.slice(-4);
  const key = await registries.apiKeys.findKept(value);
  if (key) return apiKeyState(registries, key);
  const [revoked] = await registries.audit.find({ action: 'api_key_revoked', lastFour, limit: 1 });
  if (revoked) return revokedApiKey(registries, revoked);
  return { ...unknownValue('A key is deleted a month after it expires.'), lastFour };
}

export async function explainApiKeyId(registries: Registries, id: string): Promise<Explanation> {
  const key = await registries.apiKeys.findById(id);
  if (key) return apiKeyState(registries, key);
  const ends = await registries.audit.find({ action: 'api_key_revoked', limit: MAX_REVOKED });
  const revoked = ends.find(({ details }) => details.api_key_id === id);
  if (revoked) return revokedApiKey(registries, revoked);
  return {
    state: 'unknown',
    why: 'There is no API key with this ID. A key is deleted a month after it expires.',
  };
}

/** Maximum number of revoked keys to search, far more than are needed. */
const MAX_REVOKED = 10_000;

async function apiKeyState(registries: Registries, key: ApiKey): Promise<Explanation> {
  const { accountId, createdAt, expiresAt, lastUsedAt, lastFour, name } = key;
  const account = await registries.accounts.find(accountId);
  const about = {
    lastFour,
    account: account ?? { id: accountId },
    issuedAt: createdAt,
    ...(expiresAt && { expiresAt }),
    ...(lastUsedAt && { lastUsedAt }),
  };
  if (expiresAt && expiresAt.getTime() <= systemClock()) {
    const remedy = 'The person can create a new one on the profile page.';
    return { ...about, state: 'expired', why: `The key “${name}” has expired.`, remedy };
  }
  if (account?.isSuspended) return { ...about, ...accountSuspended(account) };
  const all = await registries.access.accessOf({ accountId });
  const allowing = await registries.access.accessThrough(accountId, {});
  const refusing = all.filter(({ id }) => allowing.every((one) => one.id !== id));
  const why = [
    `The key “${name}” is valid: introspection answers active.`,
    ...reachesNothing('Organizations allow no API keys', refusing),
    limitSentence(key),
  ]
    .join(' ')
    .trim();
  const remedy = `\`api-keys revoke ${key.id}\` revokes the key.`;
  return { ...about, state: 'active', why, remedy };
}

async function revokedApiKey(
  { accounts }: Registries,
  { accountId = '', details, actor, at }: AuditRecord,
): Promise<Explanation> {
  return {
    state: 'revoked',
    why: `The key “${details.api_key_name}” with the same last characters was revoked${by(actor)}.`,
    remedy: 'The person can create a new one on the profile page.',
    account: (await accounts.find(accountId)) ?? { id: accountId },
    lastFour: String(details.last_four),
    revokedAt: at,
  };
}

function clientState(client: NonNullable<Explanation['client']>, facts: Partial<Explanation>): Explanation {
  if ('isSuspended' in client && client.isSuspended) {
    return { ...facts, client, ...clientSuspended(client) };
  }
  return { ...facts, client, state: 'active', why: 'This value is valid.' };
}

export const by = (actor: string): string =>
  actor === 'operator' ? ' by the operator' : actor === 'person' ? ' by a person' : '';

export async function explainMachineToken(registries: Registries, value: string): Promise<Explanation> {
  const token = await (await registries.machineTokens()).find(value);
  if (!token) {
    return unknownValue('A machine access token is deleted when it expires or is revoked on its own.');
  }
  const { clientId, issuedAt, expiresAt } = token;
  const facts = { issuedAt: atSeconds(issuedAt), expiresAt: atSeconds(expiresAt) };
  return explainParties(registries, { clientId }, facts, async (client) => {
    if (await isValidFor(registries.clients, client, token)) {
      return { state: 'active', why: 'This token is valid: introspection answers active.' };
    }
    if (token.generation >= client.generation) {
      const isLeaked = isFromLeakedSecret(client, token);
      const why = isLeaked
        ? 'The secret with which it was got was found in public.'
        : 'The token was revoked on its own.';
      return { state: 'revoked', why };
    }
    if (token.generation >= client.endedThrough) return renewedSince(client);
    const action = 'client_tokens_revoked';
    const [ended] = await registries.audit.find({ clientId, action, limit: 1 });
    return {
      state: 'revoked',
      why: 'The operator ended all tokens of the client.',
      remedy: 'The client can get a new token with its secret.',
      ...(ended && { revokedAt: ended.at }),
    };
  });
}

/** Explains a value that was issued before the client was renewed. */
export const renewedSince = ({ renewedAt }: Client): Explanation => ({
  state: 'revoked',
  why: 'It was issued before the client was renewed after a theft.',
  remedy: 'The client gets new tokens with its new secret, and with its refresh tokens if it acts for people.',
  ...(renewedAt && { revokedAt: renewedAt }),
});

/** Explains a deleted or suspended client or account; else returns `explainActive`'s result. */
export async function explainParties(
  registries: Registries,
  parties: { readonly accountId?: string; readonly clientId: string },
  facts: Facts,
  explainActive: (client: Client) => Promise<Explanation>,
): Promise<Explanation> {
  const { account, client } = await findParties(registries, parties);
  const about = { ...facts, ...(account && { account }), client };
  if (!('name' in client)) {
    return { ...about, state: 'revoked', why: 'The client was deleted.' };
  }
  if (client.isSuspended) return { ...about, ...clientSuspended(client) };
  if (account && !('email' in account)) {
    return { ...about, state: 'revoked', why: 'The account of the person was deleted.' };
  }
  if (account?.isSuspended) return { ...about, ...accountSuspended(account) };
  const found = { ...about, ...(await explainActive(client)) };
  if (found.state !== 'active' || !account) return found;
  const excluding = await excludingOrganizations(registries, account.id, client.id);
  const connected = await registries.connections.find(account.id, client.id);
  const sentences = [found.why, excluding, limitSentence(connected?.limit ?? {})];
  return { ...found, why: sentences.filter(Boolean).join(' ') };
}

const reachesNothing = (because: string, where: readonly { readonly name: string }[]): string[] =>
  where.length === 0 ? [] : [`${because}: it reaches nothing in ${where.map(({ name }) => name).join(', ')}.`];

/** Returns sentences about the person's organizations that the client does not reach, if any. */
async function excludingOrganizations({ access }: Registries, accountId: string, clientId: string): Promise<string> {
  const all = await access.accessOf({ accountId });
  const ids = all.map(({ id }) => id);
  const excluded = (await access.clientBlocks.exclusions(ids, [clientId])).get(clientId) ?? [];
  const named = (isBlocked: boolean) =>
    all.filter(({ id }) => excluded.some((one) => one.organizationId === id && (one.why === 'blocked') === isBlocked));
  return [
    ...reachesNothing('Organizations block the client', named(true)),
    ...reachesNothing('Organizations ask first and have not approved the client', named(false)),
  ].join(' ');
}

export const accountSuspended = ({ email, suspendedAt }: Account) =>
  ({
    state: 'account_suspended',
    why: 'The person is suspended.',
    remedy: `\`accounts resume ${email}\` ends the suspension.`,
    ...(suspendedAt && { suspendedAt }),
  }) as const;

const clientSuspended = ({ id, suspendedAt }: Client) =>
  ({
    state: 'client_suspended',
    why: 'The client is suspended.',
    remedy: `\`clients resume ${id}\` ends the suspension.`,
    ...(suspendedAt && { suspendedAt }),
  }) as const;

export async function findParties(
  { accounts, clients }: Registries,
  { accountId, clientId }: { readonly accountId?: string; readonly clientId: string },
) {
  const account = accountId === undefined ? undefined : ((await accounts.find(accountId)) ?? { id: accountId });
  return {
    ...(account && { account }),
    client: (await clients.find(clientId)) ?? { id: clientId },
  };
}

/** @param forgotten a sentence that says when such a value is forgotten */
export const unknownValue = (forgotten: string): Explanation => ({
  state: 'unknown',
  why:
    `Nothing is known about this value. ${forgotten} Otherwise it was never issued here, or ` +
    'one of its characters is wrong.',
  remedy: 'Check that it was copied completely, and that it comes from a client of this deployment.',
});
