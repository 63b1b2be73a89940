/** All registered clients. Each request finds its client here; users and operators add and change clients. */
import type { Clock } from '../base/clock.ts';
import { isClientId } from '../base/random-id.ts';
import { Refusal, refuseViolations } from '../base/refusal.ts';
import { transactionOf } from '../storage/account-turns.ts';
import { createCache } from '../storage/cache.ts';
import type { ChangeFeed } from '../storage/change-feed.ts';
import { createEndedIds } from '../storage/ended-ids.ts';
import { mapPage, type Page, type PageRequest, pageOf } from '../storage/pages.ts';
import { beyondLost, type Database, type InTransaction, type Queries } from '../storage/queries.ts';
import type { Client, ClientKind } from './client.ts';
import { type ClientChecks, createClientCreation, refuseForeignAccountId, unknownOwner } from './client-creation.ts';
import { createClientEdits } from './client-edits.ts';
import { type ClientRow, clientFrom, createOwnedClients, SELECT_CLIENTS } from './client-row.ts';
import { createClientSecrets, unknownClient } from './client-secrets.ts';

export type ClientRegistry = ReturnType<typeof createClientRegistry>;

interface ClientFilter {
  readonly kind?: ClientKind | undefined;
  readonly ownerAccountId?: string | undefined;
  readonly isSuspended?: true | undefined;
}

const CLIENT_STATE = `CASE WHEN "isSuspended" THEN 'suspended' ELSE 'active' END`;

export function createClientRegistry(parts: {
  readonly database: Database;
  readonly changes: ChangeFeed;
  readonly clock: Clock;
  /** Absent if this registry creates only clients for the service's own use. */
  readonly checks?: ClientChecks;
}) {
  const { database, changes, clock, checks } = parts;
  const cache = createCache<Client | undefined>({
    changes,
    clock,
    topics: ['clients'],
    // A cached client contains its owner's name, so a change of the owner's account removes it.
    within: {
      topic: 'accounts',
      namesIn: (client) => (client?.ownerAccountId ? [client.ownerAccountId] : []),
    },
    maxMisses: 1_000,
  });

  async function read(id: string): Promise<Client | undefined> {
    const [row] = await database.query<ClientRow>(`${SELECT_CLIENTS} WHERE c.id = $1`, [id]);
    return row && clientFrom(row);
  }

  const isEnded = createEndedIds({
    changes,
    clock,
    topic: 'clients',
    async ask(key, id) {
      const ended = 'SELECT 1 FROM ended_machine_tokens WHERE client_id = $1 AND key = $2';
      const found = await database.query(ended, [id, key]);
      return found.length > 0;
    },
  });

  /** Reads a client that this node has just changed, because the notification of the database arrives later. */
  async function readChanged(id: string): Promise<Client> {
    cache.invalidate('clients', id);
    checks?.forgetClientBlocks(id);
    const client = await read(id);
    if (client === undefined) throw unknownClient(id);
    return client;
  }

  const find = async (id: string): Promise<Client | undefined> =>
    isClientId(id) ? cache.get(id, () => read(id)) : undefined;

  /** Changes a client. Changes to one owner's clients run one after another, with only one database connection. */
  async function changing<Result>(id: string, work: (tx: Queries) => Promise<Result>): Promise<Result> {
    if (!isClientId(id)) throw unknownClient(id);
    return transactionOf(database, (await find(id))?.ownerAccountId, work);
  }

  /** @param assignments for `SET`; the parameters of `values` begin at `$3` */
  async function change(
    id: string,
    assignments: string,
    values: readonly unknown[],
    inTransaction?: InTransaction,
  ): Promise<Client> {
    await changing(id, async (tx) => {
      const changed = await tx.query(`UPDATE clients SET updated_at = $2, ${assignments} WHERE id = $1 RETURNING 1`, [
        id,
        new Date(clock()),
        ...values,
      ]);
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

    /** Returns the client with its secrets, even if it is suspended; undefined if it does not exist. */
    find,

    /** Returns the clients from the database that match every condition in `only`, oldest first. */
    async list(page: PageRequest = {}, only: ClientFilter = {}): Promise<Page<Client>> {
      const { kind, ownerAccountId, isSuspended } = only;
      const query = {
        select: `${SELECT_CLIENTS} WHERE ($1::text IS NULL OR c.owner_account_id = $1)`,
        order: ['"createdAt"', 'id'],
        cells: ['id', 'kind', 'name', `coalesce("ownerName", '(operator)')`, CLIENT_STATE],
        values: [ownerAccountId ?? null],
        filters: [
          ['kind = $', kind],
          ['"isSuspended" = $', isSuspended],
        ] as const,
      };
      return mapPage(await pageOf<ClientRow>(database, query, page), clientFrom);
    },

    /** Suspends the client. A second call does not change the time. @throws Refusal `client_unknown` */
    suspend: (id: string, inTransaction?: InTransaction): Promise<Client> =>
      change(id, 'suspended_at = coalesce(suspended_at, $2)', [], inTransaction),

    verify: (id: string, isVerified: boolean, inTransaction?: InTransaction): Promise<Client> =>
      change(id, 'verified_at = $3', [isVerified ? new Date(clock()) : null], inTransaction),

    /**
     * Sets whether users must approve each request, even if they have approved the client before.
     *
     * @param by names who makes the change. An owner cannot undo what the operator has set.
     * @throws Refusal `client_unknown`, `always_ask_of_operator` or `always_ask_unused`
     */
    async setAlwaysAsks(
      id: string,
      alwaysAsks: boolean,
      by: 'owner' | 'operator',
      inTransaction?: InTransaction,
    ): Promise<Client> {
      const client = await find(id);
      if (client) requireAskable(client);
      const assignments =
        by === 'owner' ? 'always_asks = $3 OR asks_for_operator' : 'always_asks = $3, asks_for_operator = $3';
      return change(id, assignments, [alwaysAsks], async (tx) => {
        // Check the stored client instead of a cached one, because the operator may just have set the value.
        const [stored] = await tx.query('SELECT 1 FROM clients WHERE id = $1 AND always_asks = $2', [id, alwaysAsks]);
        if (!stored) throw alwaysAskOfOperator();
        await inTransaction?.(tx);
      });
    },

    resume: (id: string, inTransaction?: InTransaction): Promise<Client> =>
      change(id, 'suspended_at = NULL', [], inTransaction),

    hasEndedToken: ({ id, endedTokens }: Client, key: string): Promise<boolean> => isEnded(id, endedTokens, key),

    /**
     * Ends everything issued to the client so far, and all approvals, from the next request on. Callers then end the
     * connections with `Connections.endSome`, and call `finishRevocation`. If an earlier call was interrupted within
     * the last hour, continues that call, so that what was issued since then stays valid.
     *
     * @param inTransaction runs in the same transaction, unless this call continues an earlier one
     * @returns true if this call continues an interrupted revocation
     * @throws Refusal `client_unknown`
     */
    async revoke(id: string, inTransaction?: InTransaction): Promise<boolean> {
      const isContinued = await changing(id, async (tx) => {
        const raised = await tx.query(
          `UPDATE clients SET updated_at = $2, generation = generation + 1, ended_through = generation + 1,
              ending_since = CASE WHEN kind <> 'machine' THEN ${tx.now()} END
            WHERE id = $1 AND (ending_since IS NULL OR ending_since < ${tx.now()} - interval '1 hour')
            RETURNING 1`,
          [id, new Date(clock())],
        );
        if (raised.length > 0) await inTransaction?.(tx);
        return raised.length === 0;
      });
      await readChanged(id);
      return isContinued;
    },

    /** Call this in the same transaction that marks the client's remaining connections as ended. */
    async finishRevocation(id: string, tx: Queries): Promise<void> {
      await tx.query('UPDATE clients SET ending_since = NULL WHERE id = $1', [id]);
    },

    /** Ends the tokens of all machine clients after a restore, because the restored database lacks revocations. */
    async endEveryMachineToken(tx: Queries): Promise<void> {
      await tx.query(`UPDATE clients SET generation = ${beyondLost('generation')} WHERE kind = 'machine'`);
    },

    /** Without `owner`, gives the client to the operator. @throws Refusal `client_unknown` or `owner_unknown` */
    async transfer(id: string, owner: string | undefined, inTransaction?: InTransaction): Promise<Client> {
      refuseForeignAccountId(owner);
      const transferred = change(id, TRANSFER, [owner ?? null], async (tx) => {
        await tx.query(AFTER_EACH_SECRET, [id]);
        await checks?.withdrawApprovals(tx, id);
        await inTransaction?.(tx);
      });
      const unknown = { clients_owner_account_id_fkey: () => unknownOwner(owner) };
      return refuseViolations(unknown, transferred);
    },

    /** The last step of `RemoveClient` (authorizations/endings.ts). @throws Refusal `client_unknown` */
    async remove(id: string, inTransaction?: InTransaction): Promise<void> {
      await changing(id, async (tx) => {
        const gone = await tx.query('DELETE FROM clients WHERE id = $1 RETURNING 1', [id]);
        if (gone.length === 0) throw unknownClient(id);
        await inTransaction?.(tx);
      });
      cache.invalidate('clients', id);
    },
  };
}

/**
 * SQL assignments that transfer a client. The creation key is removed: otherwise, a form of the new owner with the same
 * key would find this client. Each transfer must change `owned_since`, because consents are compared with its value.
 */
const TRANSFER = `owner_account_id = $3, creation_key = NULL, verified_at = NULL,
  owned_since = greatest($2, owned_since + interval '1 millisecond')`;

/**
 * Makes `owned_since` no earlier than the former owner's latest secret, because another node's clock may be ahead. Only
 * a later statement sees a secret that was committed while the transfer waited.
 */
const AFTER_EACH_SECRET = `UPDATE clients SET
  owned_since = greatest(owned_since, (SELECT max(created_at) FROM client_secrets WHERE client_id = $1)) WHERE id = $1`;

const alwaysAskOfOperator = (): Refusal =>
  new Refusal(
    'always_ask_of_operator',
    'The operator has set that people approve each request of this client.',
    'Ask the operator of this service to change it.',
  );

/** @throws Refusal `always_ask_unused` if users do not approve clients of this kind, or approve each request anyway */
export function requireAskable({ kind }: Pick<Client, 'kind'>): void {
  if (kind === 'confidential') return;
  throw new Refusal(
    'always_ask_unused',
    `A ${kind} client cannot be set to always ask.`,
    kind === 'public' ? 'People approve each request of a public client anyway.' : 'No person approves this client.',
  );
}
