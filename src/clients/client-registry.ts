/** Every client there is: found on each request, added and suspended by people and operators. */
import type { Clock } from '../clock.ts';
import { randomId } from '../random-id.ts';
import { Refusal, refuseViolations } from '../refusal.ts';
import type { ChangeFeed } from '../storage/change-feed.ts';
import { createMemory } from '../storage/memory.ts';
import type { Database, Queries } from '../storage/queries.ts';
import { type Client, hasSecret } from './client.ts';
import { type ClientRow, clientFrom, SELECT_CLIENTS } from './client-row.ts';
import { type ClientDraft, normalizeClientName, refuseInvalidClient } from './client-rules.ts';
import { newClientSecret } from './client-secret.ts';

export interface ClientRegistry {
  /** The client with its secrets, suspended or not; undefined when there is none. */
  find(id: string): Promise<Client | undefined>;
  /** Every client as it is now, oldest first. */
  list(): Promise<Client[]>;
  /**
   * Registers a client. `secret` is its value, for the only time; public clients have none.
   *
   * @throws Refusal `client_invalid` (with every problem) or `owner_unknown`.
   */
  add(client: NewClient): Promise<{ client: Client; secret?: string }>;
  /** From the next request on nothing issued to the client is accepted. @throws Refusal `client_unknown` */
  suspend(id: string): Promise<Client>;
  /** @throws Refusal `client_unknown` */
  resume(id: string): Promise<Client>;
}

export interface NewClient extends ClientDraft {
  /** Absent where the operator provides the client. */
  readonly ownerAccountId?: string | undefined;
}

/** Other ids exist nowhere, and some (with a NUL byte) PostgreSQL would answer with an error. */
const CLIENT_ID = /^gate_ci_[A-Za-z0-9_-]{22}$/;
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

  async function setSuspendedAt(id: string, suspendedAt: Date | null): Promise<Client> {
    if (!CLIENT_ID.test(id)) throw unknownClient(id);
    // Suspended twice, a client stays suspended since the first time.
    await database.query(
      `UPDATE clients SET updated_at = $3,
          suspended_at = CASE WHEN $2::timestamptz IS NULL THEN NULL ELSE coalesce(suspended_at, $2) END
        WHERE id = $1`,
      [id, suspendedAt, new Date(clock())],
    );
    return readChanged(id);
  }

  return {
    async find(id) {
      return CLIENT_ID.test(id) ? memory.find(id, () => read(id)) : undefined;
    },

    async list() {
      const rows = await database.query<ClientRow>(`${SELECT_CLIENTS} ORDER BY c.created_at, c.id`);
      return rows.map(clientFrom);
    },

    async add(draft) {
      refuseInvalidClient(draft);
      const owner = draft.ownerAccountId;
      if (owner !== undefined && !ACCOUNT_ID.test(owner)) throw unknownOwner(owner);
      const id = randomId('gate_ci_', 22);
      const secret = hasSecret(draft.kind) ? newClientSecret() : undefined;
      const now = new Date(clock());
      await refuseViolations(
        { clients_owner_account_id_fkey: () => unknownOwner(owner) },
        database.transaction(async (tx) => {
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
        }),
      );
      const client = await readChanged(id);
      return { client, ...(secret && { secret: secret.value }) };
    },

    suspend: (id) => setSuspendedAt(id, new Date(clock())),
    resume: (id) => setSuspendedAt(id, null),
  };
}

async function insertSecret(
  tx: Queries,
  clientId: string,
  secret: ReturnType<typeof newClientSecret>,
  createdAt: Date,
): Promise<void> {
  await tx.query(
    `INSERT INTO client_secrets (id, client_id, secret_hash, last_four, created_at)
      VALUES ($1, $2, $3, $4, $5)`,
    [secret.id, clientId, secret.hash, secret.lastFour, createdAt],
  );
}

function unknownClient(id: string): Refusal {
  return new Refusal('client_unknown', `There is no client ${id}.`, 'List the clients to find it.');
}

function unknownOwner(accountId: string | undefined): Refusal {
  return new Refusal(
    'owner_unknown',
    `There is no account ${accountId} that could own the client.`,
    'Add the account first, or leave out the owner.',
  );
}
