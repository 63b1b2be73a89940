/** The only place that ends: all of a connection, a person or a client, or one authorization. */
import type { Logger } from 'pino';
import type { Account } from '../accounts/account.ts';
import type { Activity, Origin } from '../accounts/activity/activity.ts';
import type { ClientRegistry } from '../clients/client-registry.ts';
import { type ChangeFeed, silentChangeFeed } from '../storage/change-feed.ts';
import type { Alongside, Queries } from '../storage/queries.ts';
import type { TokenStore } from '../storage/token-store.ts';
import type { Authorization } from './authorization.ts';
import type { Connections, EndedConnection, Whose } from './connections.ts';
import type { RecordedEnd, Revocation, Revocations } from './revocations.ts';

/**
 * Ends connections with all their authorizations, and forgets what was approved. It asks no token
 * store: it holds with that one away, and over whatever is restored there later.
 *
 * @param by the person from there; without it, it is the operator.
 * @param alongside and `within` as of `Connections.end`.
 * @returns what was connected.
 */
export type Disconnect = (
  whose: Whose,
  by?: Origin,
  alongside?: Alongside<readonly EndedConnection[]>,
  within?: Queries,
) => Promise<readonly EndedConnection[]>;

export const createDisconnect =
  (connections: Pick<Connections, 'end'>, activity: Activity): Disconnect =>
  (whose, by, alongside, within) => {
    const cause = by ? 'person_disconnected' : 'operator_revoked';
    const record: Alongside<readonly EndedConnection[]> = async (tx, ended) => {
      const entries = ended.map(({ accountId, clientId, name }) => ({
        action: 'disconnected' as const,
        actor: by ? ('person' as const) : ('operator' as const),
        accountId,
        details: { client_id: clientId, client_name: name },
      }));
      await activity.recordAll(entries, tx, by);
      await alongside?.(tx, ended);
    };
    return connections.end(whose, cause, record, within);
  };

/** Ends the connections of an account in the transaction that changes it. */
export const endConnections =
  (disconnect: Disconnect, by: Origin): Alongside<Account> =>
  async (tx, { id }) =>
    void (await disconnect({ accountId: id }, by, undefined, tx));

export interface Endings {
  /**
   * Ends one authorization at once, on every node: its record is removed in one step, and why is
   * recorded a moment later.
   *
   * @throws StorageUnavailable when nobody knows whether it is ended; it is then ended later.
   */
  end(
    authorization: Authorization,
    why: Pick<Revocation, 'cause' | 'actor' | 'origin'>,
  ): Promise<void>;
  /** The same for a command, which waits until it is recorded, and may be repeated where it fails. */
  endRecorded(
    authorization: Authorization,
    why: Pick<Revocation, 'cause' | 'actor'>,
  ): Promise<void>;
  /** Tells who remembers answers about machine tokens of this client that one of them is ended. */
  noteMachineToken(clientId: string): void;
  /**
   * Records one that the store ended itself, in the step that found it replayed.
   *
   * @param isHeard false where the answer to that step was lost: then only once it is seen to be gone.
   */
  noteReplay(
    authorization: Authorization,
    kind: 'code' | 'refresh_token',
    origin: Origin,
    isHeard?: boolean,
  ): void;
  /**
   * Ends again what is recorded as ended: for a token store that was restored from a backup.
   *
   * @param tell is told after each batch how many were looked at.
   */
  repeatRecorded(
    since?: Date,
    tell?: (looked: number) => void,
  ): Promise<{ readonly looked: number; readonly ended: number }>;
  /** Of the latest recorded ends those that are alive: then an older token store was restored. */
  findRevived(): Promise<readonly RecordedEnd[]>;
}

/** Records that are looked at together. */
const BATCH = 100;

export function createEndings(parts: {
  store: TokenStore;
  revocations: Revocations;
  /** Tells this node before the request is answered; a command has none. */
  changes?: Pick<ChangeFeed, 'tell'>;
}): Endings {
  const { store, revocations, changes = silentChangeFeed } = parts;
  /** A test belongs to no connection, and nobody asks why it ended. */
  const isTest = ({ generation }: Authorization): boolean => generation === undefined;

  return {
    async end(authorization, why) {
      const { id } = authorization;
      // Also where it says that there was none: the answer to who ended it may have been lost.
      const endIt = (): Promise<boolean> => store.endAuthorization(id).then(() => true);
      const note = (first?: typeof endIt) => {
        changes.tell('authorizations', id);
        if (!isTest(authorization)) revocations.note({ authorization, ...why }, first);
      };
      try {
        await endIt();
      } catch (error) {
        // It may be done all the same, and nobody would be told.
        note(endIt);
        throw error;
      }
      note();
    },

    async endRecorded(authorization, why) {
      // Before: who repeats what failed half-way finds nothing alive that could be recorded.
      if (!isTest(authorization)) await revocations.record({ authorization, ...why });
      await store.endAuthorization(authorization.id);
      // Whoever asked in between was told that it is good.
      await revocations.tell(authorization.id);
    },

    noteMachineToken(clientId) {
      changes.tell('clients', clientId);
      revocations.noteMachineToken(clientId);
    },

    noteReplay(authorization, kind, origin, isHeard = true) {
      const { id } = authorization;
      changes.tell('authorizations', id);
      if (isTest(authorization)) return;
      const cause = kind === 'code' ? 'code_replayed' : 'refresh_token_replayed';
      const isGone = async () => (await store.readAuthorization(id)) === undefined;
      const told = { authorization, cause, actor: 'service', origin } as const;
      revocations.note(told, isHeard ? undefined : isGone);
    },

    async repeatRecorded(since, tell) {
      let looked = 0;
      let ended = 0;
      let before: RecordedEnd | undefined;
      for (;;) {
        const batch = await revocations.latest({ limit: BATCH, since, before });
        const alive = await Promise.all(batch.map(({ id }) => store.endAuthorization(id)));
        ended += alive.filter(Boolean).length;
        const revived = batch.filter((_, index) => alive[index]);
        await Promise.all(revived.map(({ id }) => revocations.tell(id)));
        looked += batch.length;
        before = batch.at(-1);
        if (batch.length > 0) tell?.(looked);
        if (batch.length < BATCH) return { looked, ended };
      }
    },

    async findRevived() {
      const batch = await revocations.latest({ limit: BATCH });
      const records = await Promise.all(batch.map(({ id }) => store.readAuthorization(id)));
      return batch.filter((_, index) => records[index] !== undefined);
    },
  };
}

/** Tells the operator of a token store that was restored from a backup. Never throws. */
export async function reportRevived(
  endings: Pick<Endings, 'findRevived'>,
  log: Pick<Logger, 'error' | 'warn'>,
): Promise<void> {
  try {
    const { length: alive } = await endings.findRevived();
    if (alive === 0) return;
    const remedy =
      'an older token store was restored: `operator revoke --recorded` ends them again';
    log.error({ alive, remedy }, 'authorizations are alive that are recorded as ended');
  } catch (err) {
    log.warn({ err }, 'whether ended authorizations are alive was not looked at');
  }
}

/**
 * Ends the client and everything issued to it at once, then removes what it leaves behind. It may
 * have more connections than one statement may take time for; broken off in between, the removal
 * can be begun again.
 *
 * @param alongside told how many people had it connected.
 * @returns how many people had it connected.
 * @throws Refusal `client_unknown`
 */
export type RemoveClient = (id: string, alongside?: Alongside<number>) => Promise<number>;

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
  async (id, alongside) => {
    // From here on it is refused everywhere; what follows only tidies up.
    const client = await clients.suspend(id);
    const details = { client_id: id, client_name: client.name, cause: 'client_deleted' };
    let people = 0;
    let removed: readonly string[];
    do {
      removed = await connections.removeSome(client, (tx, accountIds) => {
        const entries = accountIds.map((accountId) => ({
          action: 'disconnected' as const,
          actor: 'service' as const,
          accountId,
          details,
        }));
        return activity.recordAll(entries, tx);
      });
      people += removed.length;
    } while (removed.length > 0);
    await clients.remove(id, (tx) => alongside?.(tx, people) ?? Promise.resolve());
    return people;
  };
