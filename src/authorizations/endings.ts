/** The only place that ends access: of a connection, a user, a client or one authorization. */
import type { Logger } from 'pino';
import type { Account } from '../accounts/account.ts';
import type { Activity, Origin } from '../accounts/activity/activity.ts';
import type { Details } from '../accounts/activity/activity-words.ts';
import type { Clock } from '../base/clock.ts';
import { randomId } from '../base/random-id.ts';
import type { ClientRegistry } from '../clients/client-registry.ts';
import { type ChangeFeed, silentChangeFeed } from '../storage/change-feed.ts';
import type { CleaningJob } from '../storage/cleaning.ts';
import type { InTransaction, Queries } from '../storage/queries.ts';
import { StorageUnavailable } from '../storage/storage-unavailable.ts';
import type { TokenStore } from '../storage/token-store.ts';
import type { Authorization } from './authorization.ts';
import type { EndedConnection } from './connection-limits.ts';
import type { Connections, Whose } from './connections.ts';
import { repeatRecorded } from './repeated-ends.ts';
import type { End, MachineTokenEnd, RecordedEnd, Revocation, Revocations } from './revocations.ts';
import { isMachineToken, readValue } from './token-formats.ts';

/**
 * Ends connections with all their authorizations and approvals. Does not use the token store, so
 * the end works while that is unavailable, and stays in force if a backup is restored there later.
 *
 * @param by where the user's request came from; undefined if the operator ends them
 * @param inTransaction and `within`: see `Connections.end`
 * @returns the ended connections
 */
export type Disconnect = (
  whose: Whose,
  by?: Origin,
  inTransaction?: InTransaction<readonly EndedConnection[]>,
  within?: Queries,
) => Promise<readonly EndedConnection[]>;

export const createDisconnect =
  (connections: Pick<Connections, 'end'>, activity: Activity): Disconnect =>
  (whose, by, inTransaction, within) => {
    const cause = by ? 'person_disconnected' : 'operator_revoked';
    return connections.end(whose, cause, recordEnds(activity, by, inTransaction), within);
  };

/** Ends some of a client's connections for the operator: see `Connections.endSome`. */
export type DisconnectSome = (
  clientId: string,
  after: string | undefined,
  inTransaction: InTransaction<readonly EndedConnection[]>,
) => Promise<readonly EndedConnection[]>;

export const createDisconnectSome =
  (connections: Pick<Connections, 'endSome'>, activity: Activity): DisconnectSome =>
  (clientId, after, inTransaction) => {
    const record = recordEnds(activity, undefined, inTransaction);
    return connections.endSome(clientId, 'operator_revoked', after, record);
  };

/** Returns a job that ends connections on the date that their users have set. */
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

const recordEnds =
  (
    activity: Activity,
    by: Origin | undefined,
    inTransaction: InTransaction<readonly EndedConnection[]> | undefined,
  ): InTransaction<readonly EndedConnection[]> =>
  async (tx, ended) => {
    const entries = entriesOf(ended, by ? 'person' : 'operator');
    await activity.recordAll(entries, tx, by);
    await inTransaction?.(tx, ended);
  };

/** Ends the connections of an account in the transaction that changes it. */
export const endConnections =
  (disconnect: Disconnect, by: Origin): InTransaction<Account> =>
  async (tx, { id }) =>
    void (await disconnect({ accountId: id }, by, undefined, tx));

/**
 * Revokes authorizations and machine access tokens: records the revocation and notifies every node
 * in one step, ends the tokens in the token store, then responds. No crash undoes a revocation
 * after the response. If writing the record takes too long, a request is answered once a replica of
 * Redis has the revocation, and this process writes the record later.
 */
export interface Endings {
  /**
   * Ends one authorization immediately, on every node.
   *
   * @throws StorageUnavailable if the authorization may not have ended on every node. The service
   *   ends it later, and the client can send the request again.
   */
  end(authorization: Authorization, why: Pick<Revocation, 'cause' | 'actor' | 'origin'>): Promise<void>;
  /** Like `end`, for one machine access token. */
  endMachineToken(end: MachineTokenEnd): Promise<void>;
  /**
   * Ends an authorization or a machine token for an operator or a scanner, without a time limit.
   * Writes the record first: if that fails, nothing is ended and the call can be repeated.
   *
   * @param onFirst called once the revocation is recorded, unless it was recorded before
   */
  endRecorded(end: End, onFirst?: () => void): Promise<void>;
  /**
   * Notifies every node again if the authorization or machine token of this value was ended: an
   * earlier request may have recorded the end and failed before the nodes were notified.
   *
   * @param clientId the client that presents the value
   * @returns false if no such end of this client is recorded; then nothing is announced, because any
   *   client can make up values
   */
  announceAgain(value: string, clientId: string): Promise<boolean>;
  /**
   * Repeats all recorded revocations, for a token store that was restored from a backup.
   *
   * @param onProgress called after each batch with the number of records processed so far
   */
  repeatRecorded(
    since?: Date,
    onProgress?: (looked: number) => unknown,
  ): Promise<{ readonly looked: number; readonly ended: number }>;
  /**
   * Carries out revocations of authorizations and machine tokens that were only recorded: the node
   * that began them crashed, or the token store did not answer. Only one node at a time does this.
   *
   * @returns how many of these authorizations and tokens still existed
   */
  carryOut(): Promise<number>;
  /** Returns recent revocations whose authorizations exist again, after a restore of old data. */
  findRevived(): Promise<readonly RecordedEnd[]>;
}

/** The number of latest recorded revocations that `findRevived` checks. */
const MAX_CHECKED = 100;
/** Allowance for records that become visible later than newer ones, or that a node of a former version dated. */
const OVERLAP_MS = 120_000;

export function createEndings(parts: {
  store: TokenStore;
  revocations: Revocations;
  clock: Clock;
  /** Absent in an operator command. Notifies this node before the request is answered. */
  changes?: Pick<ChangeFeed, 'announce'>;
}): Endings {
  const { store, revocations, clock, changes = silentChangeFeed } = parts;
  const isKeptHere = store.isInDatabase;
  const node = randomId('', 16);

  /** Returns the steps that end an authorization or a machine token. */
  function stepsOf(end: End) {
    if ('machineToken' in end) {
      const { machineToken, clientId } = end;
      return {
        announceLocally: () => changes.announce('clients', clientId),
        announceEnd: () => revocations.announceMachineTokens([clientId]),
        endIt: () => store.remove('machine_token', machineToken),
        isReplicated: () => store.isReplicated('machine_token', machineToken),
      };
    }
    const { id } = end.authorization;
    return {
      announceLocally: () => changes.announce('authorizations', id),
      announceEnd: () => revocations.announceEnd(id),
      endIt: () => store.endAuthorization(id),
      isReplicated: () => store.isReplicated('authorization', id),
    };
  }

  async function endNow(end: End): Promise<void> {
    const { announceLocally, endIt, isReplicated } = stepsOf(end);
    let notNotified: unknown;
    const masters = await revocations.recordOrAnnounce(end, isKeptHere).catch((error: unknown) => {
      notNotified = error;
      return undefined;
    });
    announceLocally();
    const isRecorded = masters !== undefined;
    // Succeed even if nothing was left to end: the answer to an earlier try may have been lost. If
    // this throws, `carryOut` finishes a recorded revocation later.
    if (!isRecorded || !isKeptHere) await endIt();
    // If Redis has a new master, the revocations repeated there may not include this one.
    if (isRecorded && !store.usesOnlyMasters(masters)) throw replacedMeanwhile();
    if (notNotified) throw notNotified;
    // Without a record the revocation is only in the token store, where a failover may lose it.
    if (!isRecorded && !(await isReplicated())) throw notReplicated();
  }

  return {
    end: (authorization, why) => endNow({ authorization, ...why }),
    endMachineToken: endNow,

    async endRecorded(end, onFirst) {
      const { announceLocally, announceEnd, endIt } = stepsOf(end);
      // Record first: if only `endIt` succeeded, a repeated command would find nothing to record.
      const { masters, isFirst } = await revocations.record(end, isKeptHere);
      announceLocally();
      if (isFirst) onFirst?.();
      await endIt();
      if (!store.usesOnlyMasters(masters)) throw replacedMeanwhile();
      // Notify again: commands have long timeouts, and introspection may answer `active` before.
      await announceEnd();
    },

    async announceAgain(value, clientId) {
      const id = readValue(value)?.authorizationId;
      if (id !== undefined) return revocations.announceRecorded({ id, clientId });
      if (!isMachineToken(value)) return false;
      return revocations.announceRecorded({ machineToken: value, clientId });
    },

    repeatRecorded: (since, onProgress) => repeatRecorded({ store, revocations }, since, onProgress),

    async carryOut() {
      const turn = isKeptHere ? undefined : await revocations.takeTurn(node);
      if (turn === undefined) return 0;
      let isDone = false;
      try {
        const since = new Date(Math.min(turn.until.getTime(), turn.now.getTime()) - OVERLAP_MS);
        const { ended } = await repeatRecorded({ store, revocations }, since, () => revocations.takeTurn(node));
        isDone = true;
        return ended;
      } finally {
        await revocations.endTurn(node, isDone ? turn.now : undefined);
      }
    },

    async findRevived() {
      // Skip the latest revocations: they are in progress now, or the next call carries them out.
      const before = { at: new Date(clock() - OVERLAP_MS), id: '' };
      const batch = await revocations.latest({ limit: MAX_CHECKED, before });
      const records = await Promise.all(batch.map(({ id }) => store.readAuthorization(id)));
      return batch.filter((_, index) => records[index] !== undefined);
    },
  };
}

const notReplicated = (): StorageUnavailable =>
  new StorageUnavailable('redis', new Error('no Redis replica has confirmed the revocation'));

const replacedMeanwhile = (): StorageUnavailable =>
  new StorageUnavailable('redis', new Error('another Redis has replaced the one on which the authorization was ended'));

/** Logs an error if the token store was restored from an old backup. Never throws. */
export async function reportRevived(
  endings: Pick<Endings, 'findRevived'>,
  log: Pick<Logger, 'error' | 'warn'>,
): Promise<void> {
  try {
    const { length: alive } = await endings.findRevived();
    if (alive === 0) return;
    const remedy =
      'an older token store was restored: run `operator revoke --recorded`, which ends these ' + 'authorizations again';
    log.error({ alive, remedy }, 'authorizations that are recorded as ended are still active');
  } catch (err) {
    log.warn({ err }, 'it could not be checked whether ended authorizations are still active');
  }
}

/**
 * Suspends the client, then removes its data in batches, because a client may have too many
 * connections for one statement. If interrupted, it can be run again.
 *
 * @param inTransaction runs in the last transaction, with the returned number
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
    // From here on the client is refused everywhere; the rest only deletes its data.
    const client = await clients.suspend(id, first);
    const details = { client_id: id, client_name: client.name, cause: 'client_deleted' };
    let people = 0;
    for (;;) {
      const removed = await connections.removeSome(client, (tx, accountIds) => {
        const entries = accountIds.map((accountId) => ({
          action: 'disconnected' as const,
          actor: 'service' as const,
          accountId,
          details,
        }));
        return activity.recordAll(entries, tx);
      });
      if (removed === undefined) break;
      people += removed;
    }
    await clients.remove(id, (tx) => inTransaction?.(tx, people) ?? Promise.resolve());
    return people;
  };
