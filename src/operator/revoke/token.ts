/** Revokes one token, together with its authorization if it has one. */
import { readValue } from '../../authorizations/token-formats.ts';
import { FORMS, type ValueKind } from '../../base/random-id.ts';
import { Refusal } from '../../base/refusal.ts';
import { shapeOf } from '../../base/value-faults.ts';
import type { Report } from '../command/operator.ts';
import type { Registries } from '../registries.ts';

export async function revokeToken(registries: Registries, value: string): Promise<Report> {
  const { kind, faults } = shapeOf(value);
  if (kind === undefined || faults.length > 0) throw malformed(faults);
  return REVOKE[kind](registries, value);
}

type Revoke = (registries: Registries, value: string) => Promise<Report>;

const REVOKE: Readonly<Record<ValueKind, Revoke>> = {
  access_token: (registries, value) => endAuthorization(registries, 'access_token', value),
  refresh_token: (registries, value) => endAuthorization(registries, 'refresh_token', value),
  code: (registries, value) => endAuthorization(registries, 'code', value),
  machine_token: endMachineToken,
  api_key: endApiKey,
  client_secret: () => Promise.reject(notAToken('client_secret')),
  client_id: () => Promise.reject(notAToken('client_id')),
};

/** Ends the authorization of any token, even of a replaced one. Verifies no MAC, because operators are trusted. */
async function endAuthorization(registries: Registries, kind: ValueKind, value: string): Promise<Report> {
  const id = readValue(value)?.authorizationId;
  const store = await registries.tokenStore();
  const record = id === undefined ? undefined : await store.readAuthorization(id);
  // Also check the recorded revocations: a token store restored from a backup may still have a revoked authorization.
  const ended = id === undefined ? undefined : await registries.revocations.find(id);
  if (id === undefined || !record || ended) throw notActive(kind, ended?.at);
  const { accountId, clientId } = record;
  const account = await registries.accounts.find(accountId);
  const client = await registries.clients.find(clientId);
  const why = { cause: 'operator_revoked', actor: 'operator' } as const;
  await (await registries.endings()).end({ authorization: { id, ...record }, ...why });
  return {
    value: {
      kind,
      revoked: true,
      account_id: accountId,
      email: account?.email ?? null,
      client_id: clientId,
      client_name: client?.name ?? null,
    },
    text:
      `Ended the authorization of ${account?.email ?? accountId} for ${client?.name ?? clientId}: its access tokens, ` +
      'refresh tokens and code. Other authorizations of the same person and client are unchanged.',
  };
}

async function endMachineToken(registries: Registries, value: string): Promise<Report> {
  const machineTokens = await registries.machineTokens();
  const token = await machineTokens.find(value);
  if (!token) throw notActive('machine_token');
  const { clientId, expiresAt } = token;
  if (await registries.revocations.hasEndedToken({ machineToken: value, clientId })) throw notActive('machine_token');
  const client = await registries.clients.find(clientId);
  const endings = await registries.endings();
  const details = { client_id: clientId, ...(client && { client_name: client.name }), cause: 'operator_revoked' };
  const accountId = client?.ownerAccountId;
  const entry = { action: 'tokens_revoked', actor: 'operator', accountId, details } as const;
  await endings.end({ machineToken: value, clientId, expiresAt, entry });
  return {
    value: { kind: 'machine_token', revoked: true, client_id: clientId, client_name: client?.name ?? null },
    text: `Ended the access token of the machine client ${client?.name ?? clientId}.`,
  };
}

async function endApiKey({ accounts, apiKeys }: Registries, value: string): Promise<Report> {
  const key = await apiKeys.findKept(value);
  if (!key || !(await apiKeys.revoke(key.accountId, key.id))) throw notActive('api_key');
  const account = await accounts.find(key.accountId);
  return {
    value: {
      kind: 'api_key',
      revoked: true,
      account_id: key.accountId,
      email: account?.email ?? null,
      api_key_id: key.id,
      api_key_name: key.name,
    },
    text: `Revoked the API key “${key.name}” of ${account?.email ?? key.accountId}.`,
  };
}

const malformed = (faults: readonly string[]): Refusal =>
  new Refusal(
    'token_malformed',
    `The value ${faults.join('; it ')}: nothing was revoked.`,
    'Copy the whole value again.',
  );

const notAToken = (kind: ValueKind): Refusal =>
  new Refusal(
    'not_a_token',
    `This is a ${FORMS[kind].name}, not a token: nothing was revoked.`,
    '`revoke --client` ends all tokens of a client; `clients rotate-secret` and `remove-secret` replace a secret.',
  );

/** @param endedAt when the authorization of the token was ended, perhaps by an earlier run of this command */
const notActive = (kind: ValueKind, endedAt?: Date): Refusal =>
  new Refusal(
    'token_not_alive',
    `There is no active ${FORMS[kind].name} with this value: nothing was revoked.`,
    endedAt
      ? `Its authorization ended at ${endedAt.toISOString()}: see \`show\`.`
      : 'The token may have ended already: see `show`.',
  );
