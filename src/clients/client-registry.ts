/** All registered clients: found on each request, added and changed by users and operators. */
import type { Clock } from '../base/clock.ts';
import { isClientId } from '../base/random-id.ts';
import { refuseViolations } from '../base/refusal.ts';
import { transactionOf } from '../storage/account-turns.ts';
import type { ChangeFeed } from '../storage/change-feed.ts';
import { createMemory } from '../storage/memory.ts';
import { mapPage, type Page, type PageRequest, pageOf } from '../storage/pages.ts';
import {
  BEYOND_LOST,
  type Database,
  type InTransaction,
  type Queries,
} from '../storage/queries.ts';
import type { Client, ClientKind } from './client.ts';
import {
  type ClientChecks,
  type ClientCreation,
  createClientCreation,
  refuseForeignAccountId,
  unknownOwner,
} from './client-creation.ts';
import { type ClientEdits, createClientEdits } from './client-edits.ts';
import {
  type ClientRow,
  clientFrom,
  createOwnedClients,
  type OwnedClients,
  SELECT_CLIENTS,
} from './client-row.ts';
import { type ClientSecrets, createClientSecrets, unknownClient } from './client-secrets.ts';

export interface ClientRegistry extends ClientCreation, ClientEdits, ClientSecrets, OwnedClients {
  /** Returns the client with its secrets, suspended or not; undefined if it does not exist. */
  find(id: string): Promise<Client | undefined>;
  /** Returns the clients as they are now, oldest first; only those that match all of `only`. */
  list(page?: PageRequest, only?: ClientFilter): Promise<Page<Client>>;
  /** Records or withdraws that the operator checked the client. @throws Refusal `client_unknown` */
  verify(id: string, isVerified: boolean, inTransaction?: InTransaction): Promise<Client>;
  /** Nothing issued to it is accepted from the next request on. @throws Refusal `client_unknown` */
  suspend(id: string, inTransaction?: InTransaction): Promise<Client>;
  /** @throws Refusal `client_unknown` */
  resume(id: string, inTransaction?: InTransaction): Promise<Client>;
  /**
   * Revokes all machine access tokens issued so far: the next request with one is refused.
   *
   * @throws Refusal `client_unknown`
   */
  endMachineTokens(id: string, inTransaction?: InTransaction): Promise<Client>;
  /**
   * The same for all machine clients: a database that was restored lacks the latest revocations.
   *
   * @param tx the transaction of the caller, which ends more than that
   */
  endEveryMachineToken(tx: Queries): Promise<void>;
  /**
   * Gives the client to another owner, or to the operator if `owner` is undefined.
   *
   * @throws Refusal `client_unknown` or `owner_unknown`
   */
  transfer(id: string, owner: string | undefined, inTransaction?: InTransaction): Promise<Client>;
  /**
   * The last step of `authorizations/client-removal.ts`; does not notify users connected to it.
   *
   * @throws Refusal `client_unknown`
   */
  remove(id: string, inTransaction?: InTransaction): Promise<void>;
}

/** Without the creation key, so that no form of the next owner finds this client. */
const TRANSFER = 'owner_account_id = $3, creation_key = NULL, verified_at = NULL';
interface ClientFilter {
  readonly kind?: ClientKind | undefined;
  readonly ownerAccountId?: string | undefined;
  readonly isSuspended?: true | undefined;
}

const CLIENT_STATE = "CASE WHEN suspended_at IS NULL THEN 'active' ELSE 'suspended' END";

export function createClientRegistry(parts: {
  readonly database: Database;
  readonly changes: ChangeFeed;
  readonly clock: Clock;
  /** Absent if only clients of the service itself are added. */
  readonly checks?: ClientChecks;
}): ClientRegistry {
  const { database, changes, clock, checks } = parts;
  const memory = createMemory<Client | undefined>({
    changes,
    clock,
    topics: ['clients'],
    // A client contains its owner's name.
    within: {
      topic: 'accounts',
      namesIn: (client) => (client?.ownerAccountId ? [client.ownerAccountId] : []),
    },
    mostMissing: 1_000,
  });

  async function read(id: string): Promise<Client | undefined> {
    const [row] = await database.query<ClientRow>(`${SELECT_CLIENTS} WHERE c.id = $1`, [id]);
    return row && clientFrom(row);
  }

  /** Reads what this node has just written: the database's notification comes a moment later. */
  async function readChanged(id: string): Promise<Client> {
    memory.forget('clients', id);
    checks?.forgetBars(id);
    const client = await read(id);
    if (client === undefined) throw unknownClient(id);
    return client;
  }

  const find = async (id: string): Promise<Client | undefined> =>
    isClientId(id) ? memory.find(id, () => read(id)) : undefined;

  /** Changes a client in its owner's turn, so that one user's changes take one connection. */
  async function changing<Result>(
    id: string,
    work: (tx: Queries) => Promise<Result>,
  ): Promise<Result> {
    if (!isClientId(id)) throw unknownClient(id);
    return transactionOf(database, (await find(id))?.ownerAccountId, work);
  }

  /** @param assignments for `SET`; `values` begin at `$3` */
  async function change(
    id: string,
    assignments: string,
    values: readonly unknown[],
    inTransaction?: InTransaction,
  ): Promise<Client> {
    await changing(id, async (tx) => {
      const changed = await tx.query(
        `UPDATE clients SET updated_at = $2, ${assignments} WHERE id = $1 RETURNING 1`,
        [id, new Date(clock()), ...values],
      );
      if (changed.length === 0) throw unknownClient(id);
      await inTransaction?.(tx);
    });
    return readChanged(id);
  }

  return {
    ...createClientCreation({ database, clock, checks, readChanged }),
    ...createClientEdits({ changing, clock, checks, read, readChanged }),
    ...createClientSecrets({ changing, database, clock, readChanged }),
    ...createOwnedClients(database),

    find,

    async list(page = {}, { kind, ownerAccountId, isSuspended } = {}) {
      const query = {
        select: `${SELECT_CLIENTS} WHERE ($1::text IS NULL OR c.kind = $1)
          AND ($2::text IS NULL OR c.owner_account_id = $2)
          AND ($3::boolean IS NULL OR c.suspended_at IS NOT NULL)`,
        order: 'created_at, id',
        cells: ['id', 'kind', 'name', "coalesce(owner_name, '(operator)')", CLIENT_STATE],
        values: [kind ?? null, ownerAccountId ?? null, isSuspended ?? null],
      };
      return mapPage(await pageOf<ClientRow>(database, query, page), clientFrom);
    },

    // Keep the time of the first suspension if the client is suspended again.
    suspend: (id, inTransaction) =>
      change(id, 'suspended_at = coalesce(suspended_at, $2)', [], inTransaction),

    verify: (id, isVerified, inTransaction) =>
      change(id, 'verified_at = $3', [isVerified ? new Date(clock()) : null], inTransaction),

    resume: (id, inTransaction) => change(id, 'suspended_at = NULL', [], inTransaction),

    endMachineTokens: (id, inTransaction) =>
      change(id, 'token_generation = token_generation + 1', [], inTransaction),

    async endEveryMachineToken(tx) {
      await tx.query(
        `UPDATE clients SET token_generation = token_generation + ${BEYOND_LOST}
          WHERE kind = 'machine'`,
      );
    },

    async transfer(id, owner, inTransaction) {
      refuseForeignAccountId(owner);
      return refuseViolations(
        { clients_owner_account_id_fkey: () => unknownOwner(owner) },
        change(id, TRANSFER, [owner ?? null], inTransaction),
      );
    },

    async remove(id, inTransaction) {
      await changing(id, async (tx) => {
        const gone = await tx.query('DELETE FROM clients WHERE id = $1 RETURNING 1', [id]);
        if (gone.length === 0) throw unknownClient(id);
        await inTransaction?.(tx);
      });
      memory.forget('clients', id);
    },
  };
}
