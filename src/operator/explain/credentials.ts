/** What became of a client secret, an API key or a client ID. */

import { findSecret } from '../../clients/client-secret.ts';
import { systemClock } from '../../clock.ts';
import type { Registries } from '../registries.ts';
import type { Explanation } from './explanation.ts';
import { gone } from './holders.ts';

export async function explainClientId(
  registries: Registries,
  clientId: string,
): Promise<Explanation> {
  const client = await registries.clients.find(clientId);
  if (client) return clientState(client, {});
  const [deleted] = await registries.audit.find({ clientId, action: 'client_deleted', limit: 1 });
  if (!deleted) return gone('');
  return {
    state: 'revoked',
    why: `The client was deleted${by(deleted.actor)}, for good.`,
    client: { id: clientId },
    revokedAt: deleted.at,
  };
}

export async function explainClientSecret(
  registries: Registries,
  value: string,
): Promise<Explanation> {
  const lastFour = value.slice(-4);
  const clientId = await registries.clients.findClientIdBySecret(value);
  const client = clientId === undefined ? undefined : await registries.clients.find(clientId);
  const secret = findSecret(client, value);
  if (client && secret) {
    const { createdAt, lastUsedAt } = secret;
    const facts = { lastFour, issuedAt: createdAt, ...(lastUsedAt && { lastUsedAt }) };
    return clientState(client, facts);
  }
  const [removed] = await registries.audit.find({
    action: 'client_secret_removed',
    lastFour,
    limit: 1,
  });
  if (!removed) return { ...gone('A removed secret is not kept.'), lastFour };
  const id = String(removed.details.client_id);
  return {
    state: 'revoked',
    why: `No client has this secret. One with this end was removed${by(removed.actor)}.`,
    remedy: 'Give the client its newer secret.',
    client: (await registries.clients.find(id)) ?? { id },
    lastFour,
    revokedAt: removed.at,
  };
}

export async function explainApiKey(registries: Registries, value: string): Promise<Explanation> {
  const lastFour = value.slice(-4);
  const key = await registries.apiKeys.findKept(value);
  if (key) {
    const { accountId, createdAt, expiresAt, lastUsedAt } = key;
    const account = await registries.accounts.find(accountId);
    const about = {
      lastFour,
      account: account ?? { id: accountId },
      issuedAt: createdAt,
      ...(expiresAt && { expiresAt }),
      ...(lastUsedAt && { lastUsedAt }),
    };
    if (expiresAt && expiresAt.getTime() <= systemClock()) {
      const remedy = 'The person makes a new one on the profile page.';
      return { ...about, state: 'expired', why: `The key “${key.name}” has expired.`, remedy };
    }
    if (account?.isSuspended) {
      const remedy = `\`accounts resume ${account.email}\` makes it good again.`;
      return { ...about, state: 'account_suspended', why: 'Its person is suspended.', remedy };
    }
    const why = `The key “${key.name}” is good: introspection answers active.`;
    return { ...about, state: 'active', why };
  }
  const [revoked] = await registries.audit.find({ action: 'api_key_revoked', lastFour, limit: 1 });
  if (!revoked) return { ...gone('A key is forgotten a month after it expired.'), lastFour };
  const { accountId = '', details } = revoked;
  return {
    state: 'revoked',
    why: `No such key is there. “${details.api_key_name}”, with this end, was revoked${by(revoked.actor)}.`,
    remedy: 'The person makes a new one on the profile page.',
    account: (await registries.accounts.find(accountId)) ?? { id: accountId },
    lastFour,
    revokedAt: revoked.at,
  };
}

function clientState(
  client: NonNullable<Explanation['client']>,
  facts: Partial<Explanation>,
): Explanation {
  if ('isSuspended' in client && client.isSuspended) {
    const remedy = `\`clients resume ${client.id}\` makes it good again.`;
    return { ...facts, client, state: 'client_suspended', why: 'The client is suspended.', remedy };
  }
  return { ...facts, client, state: 'active', why: 'It is good.' };
}

const by = (actor: string): string =>
  actor === 'operator' ? ' by the operator' : actor === 'person' ? ' by a person' : '';
