/** Revokes credentials that were found in public. */
import type { Activity, NewActivity } from '../accounts/activity/activity.ts';
import type { Details } from '../accounts/activity/activity-words.ts';
import type { ApiKeys } from '../accounts/api-keys/api-keys.ts';
import { type Clock, epochSeconds } from '../base/clock.ts';
import type { SecretKind } from '../base/random-id.ts';
import { AccountBusy, Refusal } from '../base/refusal.ts';
import type { ClientRegistry } from '../clients/client-registry.ts';
import { type LeakedSecret, refusedFrom } from '../clients/client-secrets.ts';
import { StorageUnavailable } from '../storage/storage-unavailable.ts';
import type { TokenStore } from '../storage/token-store.ts';
import type { Connections } from './connections.ts';
import type { Endings } from './endings.ts';
import type { FoundValue } from './leaked-report.ts';
import { createMachineTokens, isValidFor } from './machine-tokens.ts';
import { createTokenFormats, isFromBeforeRenewal, readValue } from './token-formats.ts';

/** Describes a valid credential that was found in public and is revoked. Does not contain the credential itself. */
export interface Leak extends Pick<FoundValue, 'kind' | 'foundAt'> {
  /** The user to whom the value belonged, or the owner of the client; absent if the operator provides the client. */
  readonly accountId?: string | undefined;
  /** Absent for an API key. */
  readonly clientId?: string;
  /** The name of the client or the API key, followed by the last four characters of a secret or key. */
  readonly name: string;
  /** The time from which a client secret is refused, after its grace period. Absent for other kinds of values. */
  readonly refusedFrom?: Date | undefined;
}

export type LeakedValues = ReturnType<typeof createLeakedValues>;

/** Maximum number of values that are revoked at once, so that a long report does not delay other requests. */
const MAX_AT_ONCE = 10;

export function createLeakedValues(parts: {
  readonly clock: Clock;
  readonly store: TokenStore;
  readonly endings: Pick<Endings, 'end'>;
  readonly clients: Pick<ClientRegistry, 'find' | 'hasEndedToken' | 'markLeaked' | 'refuseLeaked'>;
  readonly connections: Pick<Connections, 'generationOf'>;
  readonly apiKeys: Pick<ApiKeys, 'findByValue' | 'revoke'>;
  readonly activity: Pick<Activity, 'record' | 'recordAll'>;
  readonly tokenKeys: () => readonly [string, ...string[]];
  /** The setting `leaks.secret_grace`, in seconds. */
  readonly graceSeconds: () => number;
  /** Called once for each revoked value, even if the value is reported again. */
  readonly announce: (leak: Leak) => void;
}) {
  const { clock, store, endings, clients, connections, apiKeys, activity, announce } = parts;
  const machineTokens = createMachineTokens(store);
  type Leaked = Pick<NewActivity, 'actor'> & Required<Pick<NewActivity, 'details'>>;

  async function endAuthorization({ token, ...found }: FoundValue, leaked: Leaked): Promise<void> {
    const value = readValue(token);
    const record = value && (await store.readAuthorization(value.authorizationId));
    // Check the MAC: ids are in many logs, and a made-up value with such an id must not end an authorization.
    if (!record || !createTokenFormats(parts.tokenKeys()).isGenuine(value, record.secret)) return;
    const until = value.kind === 'access_token' ? value.expiresAt : record.usableUntil;
    if (until <= epochSeconds(clock)) return;
    const { accountId, clientId, generation } = record;
    const client = await clients.find(clientId);
    // Do not end the authorization: a value older than the client's renewal gives no access without the new secret.
    if (client && isFromBeforeRenewal({ value, authorization: record }, client)) return;
    const present = await connections.generationOf(accountId, clientId, generation);
    if (generation !== present) return;
    const name = client?.name ?? clientId;
    const authorization = { id: value.authorizationId, ...record };
    await endings.end({ authorization, cause: 'leaked', ...leaked }, () =>
      announce({ ...found, accountId, clientId, name }),
    );
  }

  async function endMachineToken({ token, ...found }: FoundValue, leaked: Leaked): Promise<void> {
    const stored = await machineTokens.find(token);
    const client = stored && (await clients.find(stored.clientId));
    if (!client || !(await isValidFor(clients, client, stored))) return;
    const { id: clientId, name, ownerAccountId: accountId } = client;
    const details = { ...leaked.details, client_id: clientId, client_name: name };
    const entry: NewActivity = { ...leaked, action: 'tokens_revoked', accountId, details };
    const { expiresAt } = stored;
    await endings.end({ machineToken: token, clientId, expiresAt, entry }, () =>
      announce({ ...found, accountId, clientId, name }),
    );
  }

  async function revokeApiKey({ token, ...found }: FoundValue, leaked: Leaked): Promise<void> {
    const key = await apiKeys.findByValue(token);
    if (!key || !(await apiKeys.revoke(key.accountId, key.id, undefined, leaked))) return;
    const { accountId, name, lastFour } = key;
    announce({ ...found, accountId, name: `${name} (…${lastFour})` });
  }

  async function markSecret({ token, ...found }: FoundValue, leaked: Leaked): Promise<void> {
    const secret = await clients.markLeaked(token, (tx, marked) =>
      activity.record(entryOf('client_changed', leaked, marked), tx),
    );
    if (!secret) return;
    const { clientId, name, lastFour, ownerAccountId } = secret;
    announce({
      ...found,
      accountId: ownerAccountId ?? undefined,
      clientId,
      name: `${name} (…${lastFour})`,
      refusedFrom: refusedFrom(secret, secret, parts.graceSeconds()),
    });
    await refuseDueSecrets();
  }

  const entryOf = (
    action: NewActivity['action'],
    leaked: Leaked,
    { clientId, name, lastFour, ownerAccountId }: LeakedSecret,
  ): NewActivity => ({
    ...leaked,
    action,
    accountId: ownerAccountId ?? undefined,
    details: { ...leaked.details, client_id: clientId, client_name: name, last_four: lastFour },
  });

  /** Refuses leaked secrets whose grace period has ended. They stay refused even if the period is prolonged later. */
  const refuseDueSecrets = (): Promise<number> =>
    clients.refuseLeaked(parts.graceSeconds(), (tx, refused) => {
      const leaked: Leaked = { actor: 'service', details: { cause: 'leaked' } };
      const entries = refused.map((one) => entryOf('client_secret_removed', leaked, one));
      return activity.recordAll(entries, tx);
    });

  const END: Readonly<Record<SecretKind, typeof endAuthorization>> = {
    access_token: endAuthorization,
    refresh_token: endAuthorization,
    code: endAuthorization,
    machine_token: endMachineToken,
    api_key: revokeApiKey,
    client_secret: markSecret,
  };

  return {
    /** Revokes the values that are valid. @throws Refusal `not_done` if a store failed; the call can be repeated */
    async end(found: readonly FoundValue[], actor: NewActivity['actor'], more: Details = {}): Promise<void> {
      const unique = [...new Map(found.map((value) => [value.token, value])).values()];
      // Begin with the values that need only the database, because Redis may be unavailable.
      const needsTokens = ({ kind }: FoundValue) => Number(!/^(?:api_key|client_secret)$/.test(kind));
      const values = unique.sort((one, other) => needsTokens(one) - needsTokens(other));
      try {
        for (let from = 0; from < values.length; from += MAX_AT_ONCE) {
          const results = await Promise.allSettled(
            values.slice(from, from + MAX_AT_ONCE).map((value) => {
              const where = value.foundAt && { found_at: value.foundAt };
              const details = { ...more, ...(where || {}), cause: 'leaked' };
              return END[value.kind](value, { actor, details });
            }),
          );
          // Throw only after the whole batch, so that no value is still in progress when the request is answered.
          for (const result of results) if (result.status === 'rejected') throw result.reason;
        }
      } catch (cause) {
        if (!(cause instanceof StorageUnavailable || cause instanceof AccountBusy)) throw cause;
        throw new Refusal('not_done', ...NOT_DONE, { cause });
      }
    },

    refuseDueSecrets,
  };
}

const NOT_DONE = [
  'A store did not answer: some values may still be valid.',
  'Send the same report again: values that were ended stay so, and no mail is sent twice.',
] as const;
