/** Every client there is: found on each request, added and changed by people and operators. */
import type { Clock } from '../clock.ts';
import { randomId } from '../random-id.ts';
import { Refusal, refuseViolations } from '../refusal.ts';
import type { ChangeFeed } from '../storage/change-feed.ts';
import { createMemory } from '../storage/memory.ts';
import type { Alongside, Database, Queries } from '../storage/queries.ts';
import { type Client, hasSecret, isClientId } from './client.ts';
import { type RemovalOptions, removeSuspendedClient } from './client-removal.ts';
import { type ClientRow, clientFrom, SELECT_CLIENTS } from './client-row.ts';
import { type ClientDraft, normalizeClientName, refuseInvalidClient } from './client-rules.ts';
import { newClientSecret } from './client-secret.ts';
import {
  type ClientSecrets,
  createClientSecrets,
  insertSecret,
  unknownClient,
} from './client-secrets.ts';
import { createOwnedClients, type OwnedClients } from './owned-clients.ts';

export interface ClientRegistry extends ClientSecrets, OwnedClients {
  /** The client with its secrets, suspended or not; undefined when there is none. */
  find(id: string): Promise<Client | undefined>;
  /** Every client as it is now, oldest first. */
  list(): Promise<Client[]>;
  /**
   * Registers a client. `secret` is its value, for the only time; public clients have none.
   * `alongside` is told its id.
   *
   * @throws Refusal `client_invalid` (with every problem), `owner_unknown` or `clients_limit`
   */
  add(
    client: NewClient,
    alongside?: Alongside<string>,
  ): Promise<{ client: Client; secret?: string }>;
  /**
   * Changes what people see and where they are sent back to, and nothing else of the client.
   *
   * @throws Refusal `client_invalid` (with every problem) or `client_unknown`
   */
  edit(id: string, changes: ClientChanges, alongside?: Alongside): Promise<Client>;
  /** From the next request on nothing issued to the client is accepted. @throws Refusal `client_unknown` */
  suspend(id: string, alongside?: Alongside): Promise<Client>;
  /** @throws Refusal `client_unknown` */
  resume(id: string, alongside?: Alongside): Promise<Client>;
  /**
   * Gives the client to another owner, or to the operator where there is none.
   *
   * @throws Refusal `client_unknown` or `owner_unknown`
   */
  transfer(id: string, owner: string | undefined, alongside?: Alongside): Promise<Client>;
  /**
   * Ends the client and everything issued to it at once, then removes what it leaves behind.
   *
   * @returns how many people had it connected.
   * @throws Refusal `client_unknown`
   */
  remove(id: string, options: RemovalOptions): Promise<number>;
}

export interface NewClient extends ClientDraft {
  /** Absent where the operator provides the client. */
  readonly ownerAccountId?: string | undefined;
  /** How many clients the owner may have, this one among them; absent where nobody counts. */
  readonly mostOfOwner?: number;
}

export type ClientChanges = Pick<ClientDraft, 'name' | 'redirectUris'>;

const ACCOUNT_ID = /^acc_[A-Za-z0-9_-]{16}$/;

export function createClientRegistry(parts: {
  readonly database: Database;
  readonly changes: ChangeFeed;
  readonly clock: Clock;
}): ClientRegistry {
  const { database, changes, clock } = parts;
  // Accounts, because a client carries its owner's name.
  const memory = createMemory<Client | undefined>(changes, ['clients', 'accounts']);

  async function read(id: string): Promise<Client | undefined> {
    const [row] = await database.query<ClientRow>(`${SELECT_CLIENTS} WHERE c.id = $1`, [id]);
    return row && clientFrom(row);
  }

  /** What was just written, for whoever wrote it: the notification takes a moment longer. */
  async function readChanged(id: string): Promise<Client> {
    memory.forget();
    const client = await read(id);
    if (client === undefined) throw unknownClient(id);
    return client;
  }

  /** @param assignments of `SET`, with the values from `$3` on. */
  async function change(
    id: string,
    assignments: string,
    values: readonly unknown[],
    alongside?: Alongside,
  ): Promise<Client> {
    if (!isClientId(id)) throw unknownClient(id);
    await database.transaction(async (tx) => {
      const changed = await tx.query(
        `UPDATE clients SET updated_at = $2, ${assignments} WHERE id = $1 RETURNING 1`,
        [id, new Date(clock()), ...values],
      );
      if (changed.length === 0) throw unknownClient(id);
      await alongside?.(tx);
    });
    return readChanged(id);
  }

  const suspend: ClientRegistry['suspend'] = (id, alongside) =>
    // Suspended twice, a client stays suspended since the first time.
    change(id, 'suspended_at = coalesce(suspended_at, $2)', [], alongside);

  return {
    ...createClientSecrets({ database, clock, readChanged }),
    ...createOwnedClients(database),

    async find(id) {
      return isClientId(id) ? memory.find(id, () => read(id)) : undefined;
    },

    async list() {
      const rows = await database.query<ClientRow>(`${SELECT_CLIENTS} ORDER BY c.created_at, c.id`);
      return rows.map(clientFrom);
    },

    async add({ ownerAccountId: owner, mostOfOwner, ...draft }, alongside) {
      refuseInvalidClient(draft);
      if (owner !== undefined && !ACCOUNT_ID.test(owner)) throw unknownOwner(owner);
      const id = randomId('gate_ci_', 22);
      const secret = hasSecret(draft.kind) ? newClientSecret() : undefined;
      const now = new Date(clock());
      await refuseViolations(
        { clients_owner_account_id_fkey: () => unknownOwner(owner) },
        database.transaction(async (tx) => {
          if (owner !== undefined && mostOfOwner !== undefined) {
            await refuseMoreThan(mostOfOwner, owner, tx);
          }
          await tx.query(
            `INSERT INTO clients (id, kind, name, owner_account_id, redirect_uris, native,
                created_at, updated_at)
              VALUES ($1, $2, $3, $4, $5, $6, $7, $7)`,
            [
              id,
              draft.kind,
              normalizeClientName(draft.name),
              owner ?? null,
              draft.redirectUris,
              draft.isNative,
              now,
            ],
          );
          if (secret) await insertSecret(tx, id, secret, now);
          await alongside?.(tx, id);
        }),
      );
      const client = await readChanged(id);
      return { client, ...(secret && { secret: secret.value }) };
    },

    async edit(id, { name, redirectUris }, alongside) {
      const client = isClientId(id) ? await read(id) : undefined;
      if (!client) throw unknownClient(id);
      // By the rules of its kind, which never changes.
      refuseInvalidClient({ ...client, name, redirectUris });
      const values = [normalizeClientName(name), redirectUris];
      return change(id, 'name = $3, redirect_uris = $4', values, alongside);
    },

    suspend,
    resume: (id, alongside) => change(id, 'suspended_at = NULL', [], alongside),

    async transfer(id, owner, alongside) {
      if (owner !== undefined && !ACCOUNT_ID.test(owner)) throw unknownOwner(owner);
      return refuseViolations(
        { clients_owner_account_id_fkey: () => unknownOwner(owner) },
        change(id, 'owner_account_id = $3', [owner ?? null], alongside),
      );
    },

    async remove(id, options) {
      // From here on it is refused everywhere; what follows only tidies up.
      await suspend(id);
      const people = await removeSuspendedClient(database, id, options);
      memory.forget();
      return people;
    },
  };
}

async function refuseMoreThan(most: number, owner: string, tx: Queries): Promise<void> {
  // Of two that are added at the same moment the second waits here, and counts the first.
  await tx.query('SELECT FROM accounts WHERE id = $1 FOR NO KEY UPDATE', [owner]);
  const owned = await tx.query('SELECT FROM clients WHERE owner_account_id = $1', [owner]);
  if (owned.length < most) return;
  throw new Refusal(
    'clients_limit',
    `You have ${owned.length} OAuth clients, and ${most} is the most one person can have.`,
    'Delete one that is not needed any more.',
  );
}

function unknownOwner(accountId: string | undefined): Refusal {
  return new Refusal(
    'owner_unknown',
    `There is no account ${accountId} that could own the client.`,
    'Add the account first, or leave out the owner.',
  );
}
