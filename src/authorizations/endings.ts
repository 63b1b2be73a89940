/** No other file ends the access of a connection, a user, a client or a single authorization. */
import type { Activity, Origin } from '../accounts/activity/activity.ts';
import type { Details } from '../accounts/activity/activity-words.ts';
import type { Client } from '../clients/client.ts';
import type { ClientRegistry } from '../clients/client-registry.ts';
import { type ChangeFeed, silentChangeFeed } from '../storage/change-feed.ts';
import type { CleaningJob } from '../storage/cleaning.ts';
import type { InTransaction, Queries } from '../storage/queries.ts';
import type { TokenStore } from '../storage/token-store.ts';
import type { EndedConnection } from './connection-limits.ts';
import type { Connections, Whose } from './connections.ts';
import type { End, Revocations } from './revocations.ts';
import { isMachineToken, readValue } from './token-formats.ts';

export type Disconnect = ReturnType<typeof createDisconnect>;

/**
 * Ends connections with all their authorizations and approvals. Does not use the token store: this works while that
 * store is unavailable, and stays in force if a backup of that store is restored.
 *
 * @param by the network address and the browser of the user; undefined if an operator ends the connections
 * @param within see `Connections.end`
 */
export const createDisconnect =
  (connections: Pick<Connections, 'end'>, activity: Activity) =>
  (whose: Whose, by?: Origin, within?: Queries): Promise<readonly EndedConnection[]> => {
    const [cause, actor] = by ? (['person_disconnected', 'person'] as const) : BY_OPERATOR;
    const record = (tx: Queries, ended: readonly EndedConnection[]) =>
      activity.recordAll(entriesOf(ended, actor), tx, by);
    return connections.end(whose, cause, record, within);
  };

/** Ends some connections of a client for the operator: see `Connections.endSome`. */
export const createDisconnectSome =
  (connections: Pick<Connections, 'endSome'>, activity: Activity) =>
  (clientId: string, after: string | undefined, inTransaction: InTransaction<readonly EndedConnection[]>) => {
    const [cause, actor] = BY_OPERATOR;
    return connections.endSome(clientId, cause, after, async (tx, ended) => {
      await activity.recordAll(entriesOf(ended, actor), tx);
      await inTransaction(tx, ended);
    });
  };

const BY_OPERATOR = ['operator_revoked', 'operator'] as const;

export const createTimeLimitJob =
  (connections: Pick<Connections, 'endDue'>, activity: Activity): CleaningJob =>
  (limit) =>
    connections.endDue(limit, (tx, ended) =>
      activity.recordAll(entriesOf(ended, 'service', { cause: 'time_limit' }), tx),
    );

const entriesOf = (
  ended: readonly EndedConnection[],
  actor: 'person' | 'operator' | 'service',
  details: Details = {},
) =>
  ended.map(({ accountId, clientId, name }) => ({
    action: 'disconnected' as const,
    actor,
    accountId,
    details: { client_id: clientId, client_name: name, ...details },
  }));

export type Endings = ReturnType<typeof createEndings>;

/**
 * Revokes single authorizations and machine access tokens by recording the revocation in the database. Each check of a
 * token also reads this record, so a token stays refused even if its data returns to the token store.
 */
export function createEndings(parts: {
  store: TokenStore;
  revocations: Pick<Revocations, 'record' | 'find' | 'hasEndedToken' | 'announce'>;
  /** Notifies this node before the request is answered. Absent in an operator command. */
  changes?: Pick<ChangeFeed, 'announce'>;
}) {
  const { store, revocations, changes = silentChangeFeed } = parts;
  return {
    /** True if `endUnknown` adds a row for a machine token; false if it deletes the row of the token instead. */
    recordsUnknown: !store.isInDatabase,

    /**
     * Ends one authorization or one machine access token, on every node before this resolves.
     *
     * @param onFirst called once the revocation is recorded, unless an earlier call has recorded it
     * @throws StorageUnavailable if the revocation may not have been recorded; the call can be repeated
     */
    async end(end: End, onFirst?: () => void): Promise<void> {
      const isFirst = await revocations.record(end, store);
      if ('machineToken' in end) changes.announce('clients', end.clientId);
      else changes.announce('authorizations', `${end.authorization.accountId} ${end.authorization.id}`);
      if (isFirst) onFirst?.();
      if (store.isInDatabase) return;
      const removed =
        'machineToken' in end
          ? store.remove('machine_token', end.machineToken)
          : store.endAuthorization(end.authorization.id);
      // Ignore failures: the revocation is complete, and removing the stored record only frees space early.
      await removed.catch(() => {});
    },

    /** True if this value belongs to an authorization or machine token of this client that was revoked individually. */
    async hasEnded(value: string, clientId: string): Promise<boolean> {
      if (isMachineToken(value)) return revocations.hasEndedToken({ machineToken: value, clientId });
      const id = readValue(value)?.authorizationId;
      return id !== undefined && (await revocations.find(id))?.clientId === clientId;
    },

    /**
     * Revokes a token that the token store does not have. The store may have lost the token, and an API with a cached
     * answer would accept it for minutes. A token of an authorization is not recorded as revoked, because its value may
     * be forged and does not name the account. Instead, APIs are notified to drop their cached answers.
     */
    async endUnknown(value: string, { id: clientId, kind }: Pick<Client, 'id' | 'kind'>): Promise<void> {
      if (isMachineToken(value)) {
        // Only machine clients have machine tokens. Announcing another client would make APIs drop cached answers.
        if (kind !== 'machine') return;
        // Do not remove the token from Redis, because a token with this value may belong to another client.
        await revocations.record({ machineToken: value, clientId, expiresAt: undefined }, store);
        return changes.announce('clients', clientId);
      }
      const id = readValue(value)?.authorizationId;
      if (id === undefined) return;
      // The account in the key is unknown, so write `-` in its place.
      const key = `- ${id}`;
      await revocations.announce(key);
      changes.announce('authorizations', key);
    },
  };
}

/**
 * Suspends the client, then removes its data in batches, because it may have too many connections for one statement. If
 * interrupted, it can be run again.
 *
 * @param inTransaction runs in the last transaction, and receives the returned number of users
 * @param first runs in the first transaction, after the suspension
 * @returns the number of users who had the client connected
 * @throws Refusal `client_unknown`
 */
export type RemoveClient = (
  id: string,
  inTransaction?: InTransaction<number>,
  first?: InTransaction,
) => Promise<number>;

export const createClientRemoval =
  ({
    clients,
    connections,
    activity,
  }: {
    readonly clients: Pick<ClientRegistry, 'suspend' | 'remove'>;
    readonly connections: Pick<Connections, 'removeSome'>;
    readonly activity: Activity;
  }): RemoveClient =>
  async (id, inTransaction, first) => {
    // After this, the client is refused everywhere. The rest only deletes its data.
    const client = await clients.suspend(id, first);
    let people = 0;
    for (;;) {
      const removed = await connections.removeSome(client, (tx, accountIds) => {
        const ended = accountIds.map((accountId) => ({ accountId, clientId: id, name: client.name }));
        return activity.recordAll(entriesOf(ended, 'service', { cause: 'client_deleted' }), tx);
      });
      if (removed === undefined) break;
      people += removed;
    }
    await clients.remove(id, (tx) => inTransaction?.(tx, people) ?? Promise.resolve());
    return people;
  };
