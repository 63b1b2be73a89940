/** The only place that ends access: of a connection, a user, a client or one authorization. */
import type { Logger } from 'pino';
import type { Account } from '../accounts/account.ts';
import type { Activity, Origin } from '../accounts/activity/activity.ts';
import type { Clock } from '../base/clock.ts';
import { randomId } from '../base/random-id.ts';
import type { ClientRegistry } from '../clients/client-registry.ts';
import { type ChangeFeed, silentChangeFeed } from '../storage/change-feed.ts';
import type { InTransaction, Queries } from '../storage/queries.ts';
import { StorageUnavailable } from '../storage/storage-unavailable.ts';
import type { TokenStore } from '../storage/token-store.ts';
import type { Authorization } from './authorization.ts';
import type { Connections, EndedConnection, Whose } from './connections.ts';
import { repeatRecorded } from './repeated-ends.ts';
import type { End, MachineTokenEnd, RecordedEnd, Revocation, Revocations } from './revocations.ts';
import { isMachineToken, readValue } from './token-formats.ts';

/**
 * Ends connections with all their authorizations and approvals. It needs no token store: it works
 * while that is unavailable, and stays in force if a backup is restored there later.
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

const recordEnds =
  (
    activity: Activity,
    by: Origin | undefined,
    inTransaction: InTransaction<readonly EndedConnection[]> | undefined,
  ): InTransaction<readonly EndedConnection[]> =>
  async (tx, ended) => {
    const entries = ended.map(({ accountId, clientId, name }) => ({
      action: 'disconnected' as const,
      actor: by ? ('person' as const) : ('operator' as const),
      accountId,
      details: { client_id: clientId, client_name: name },
    }));
    await activity.recordAll(entries, tx, by);
    await inTransaction?.(tx, ended);
  };

/** Ends the connections of an account in the transaction that changes it. */
export const endConnections =
  (disconnect: Disconnect, by: Origin): InTransaction<Account> =>
  async (tx, { id }) =>
    void (await disconnect({ accountId: id }, by, undefined, tx));

/**
 * Ends single authorizations and machine access tokens: records the end and notifies every node in
 * one step, then ends it in the token store, then responds. Whatever crashes meanwhile, an end that
 * was answered is recorded, announced and done.
 */
export interface Endings {
  /**
   * Ends one authorization at once, on every node.
   *
   * @throws StorageUnavailable if it is not known to be ended on every node. The service finishes
   *   later what it began, and the client can send the request again.
   */
  end(
    authorization: Authorization,
    why: Pick<Revocation, 'cause' | 'actor' | 'origin'>,
  ): Promise<void>;
  /** Does the same for one machine access token. */
  endMachineToken(end: MachineTokenEnd): Promise<void>;
  /**
   * Ends either of them for an operator command. It writes the record first: if that fails, nothing
   * is ended and the command can be repeated.
   */
  endRecorded(end: End): Promise<void>;
  /**
   * Notifies every node that the authorization or machine token of this value no longer exists. An
   * earlier request may have ended it and then failed before the nodes were notified.
   *
   * @param clientId the client that presents the value.
   */
  tellGone(value: string, clientId: string): Promise<void>;
  /**
   * Ends again what is recorded as ended: for a token store that was restored from a backup.
   *
   * @param tell called after each batch with the number of records processed so far
   */
  repeatRecorded(
    since?: Date,
    tell?: (looked: number) => unknown,
  ): Promise<{ readonly looked: number; readonly ended: number }>;
  /**
   * Ends authorizations and machine tokens whose end is recorded but not carried out, because the
   * node that began it died or the token store did not answer. Only one node at a time does this.
   *
   * @returns how many of them still existed
   */
  carryOut(): Promise<number>;
  /** Returns those latest ends whose authorizations exist: an older token store was restored. */
  findRevived(): Promise<readonly RecordedEnd[]>;
}

/** `findRevived` checks this many of the latest recorded ends. */
const MAX_CHECKED = 100;
/** Clocks may differ by this, and a record may become visible this much later than a newer one. */
const OVERLAP_MS = 120_000;

export function createEndings(parts: {
  store: TokenStore;
  revocations: Revocations;
  clock: Clock;
  /** Notifies this node before the request is answered; an operator command has none. */
  changes?: Pick<ChangeFeed, 'tell'>;
}): Endings {
  const { store, revocations, clock, changes = silentChangeFeed } = parts;
  const isKeptHere = store.isInDatabase;
  const node = randomId('', 16);

  /** Returns the steps that end an authorization or a machine token. */
  function stepsOf(end: End) {
    if ('machineToken' in end) {
      const { machineToken, clientId } = end;
      return {
        tellHere: () => changes.tell('clients', clientId),
        tell: () => revocations.tellMachineTokens([clientId]),
        endIt: () => store.remove('machine_token', machineToken),
        isReplicated: () => store.isReplicated('machine_token', machineToken),
      };
    }
    const { id } = end.authorization;
    return {
      tellHere: () => changes.tell('authorizations', id),
      tell: () => revocations.tell(id),
      endIt: () => store.endAuthorization(id),
      isReplicated: () => store.isReplicated('authorization', id),
    };
  }

  async function endNow(end: End): Promise<void> {
    const { tellHere, endIt, isReplicated } = stepsOf(end);
    let untold: unknown;
    const masters = await revocations.announce(end, isKeptHere).catch((error: unknown) => {
      untold = error;
      return undefined;
    });
    tellHere();
    const isRecorded = masters !== undefined;
    // Succeeds even if nothing was left to end: the answer to an earlier try may have been lost. If
    // it throws, a recorded end is carried out in the next round.
    if (!isRecorded || !isKeptHere) await endIt();
    // If ends were being repeated on a new Redis master, this one may not have been among them.
    if (isRecorded && !store.usesOnlyMasters(masters)) throw replacedMeanwhile();
    if (untold) throw untold;
    // Without a record only the token store has the end, and a failover may lose it.
    if (!isRecorded && !(await isReplicated())) throw notReplicated();
  }

  return {
    end: (authorization, why) => endNow({ authorization, ...why }),
    endMachineToken: endNow,

    async endRecorded(end) {
      const { tell, endIt } = stepsOf(end);
      // Record first: if only the end succeeded, a repeated command would find nothing to record.
      await revocations.record(end, isKeptHere);
      await endIt();
      // Notify again: a command has long timeouts, and a node that asked in between got `valid`.
      await tell();
    },

    async tellGone(value, clientId) {
      const id = readValue(value)?.authorizationId;
      if (id !== undefined) await revocations.tell(id);
      else if (isMachineToken(value)) await revocations.tellMachineTokens([clientId]);
    },

    repeatRecorded: (since, tell) => repeatRecorded({ store, revocations }, since, tell),

    async carryOut() {
      const until = isKeptHere ? undefined : await revocations.takeTurn(node);
      if (until === undefined) return 0;
      const begun = clock();
      let isDone = false;
      try {
        const since = new Date(Math.min(until.getTime(), begun) - OVERLAP_MS);
        const { ended } = await repeatRecorded({ store, revocations }, since, () =>
          revocations.takeTurn(node),
        );
        isDone = true;
        return ended;
      } finally {
        await revocations.endTurn(node, isDone ? new Date(begun) : undefined);
      }
    },

    async findRevived() {
      // Skip the latest: they are being ended at this moment, or will be in the next round.
      const before = { at: new Date(clock() - OVERLAP_MS), id: '' };
      const batch = await revocations.latest({ limit: MAX_CHECKED, before });
      const records = await Promise.all(batch.map(({ id }) => store.readAuthorization(id)));
      return batch.filter((_, index) => records[index] !== undefined);
    },
  };
}

const notReplicated = (): StorageUnavailable =>
  new StorageUnavailable('redis', new Error('no replica has what was ended'));

const replacedMeanwhile = (): StorageUnavailable =>
  new StorageUnavailable(
    'redis',
    new Error('another Redis replaces the one on which it was ended'),
  );

/** Logs an error if the token store was restored from an old backup. Never throws. */
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
 * Ends the client and everything issued to it at once, then removes its data in batches: it may
 * have more connections than one statement has time for. If interrupted, it can be run again.
 *
 * @param inTransaction runs in the last transaction, with the number of users who had it connected
 * @returns the same number
 * @throws Refusal `client_unknown`
 */
export type RemoveClient = (id: string, inTransaction?: InTransaction<number>) => Promise<number>;

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
  async (id, inTransaction) => {
    // From here on the client is refused everywhere; the rest only cleans up.
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
    await clients.remove(id, (tx) => inTransaction?.(tx, people) ?? Promise.resolve());
    return people;
  };
