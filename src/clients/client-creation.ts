/** Registers clients. A form that is sent twice registers only one client. */
import type { Clock } from '../base/clock.ts';
import { message } from '../base/message.ts';
import { ACCOUNT_ID, newValue } from '../base/random-id.ts';
import { Refusal, refuseViolations } from '../base/refusal.ts';
import { lockAccount } from '../storage/account-turns.ts';
import type { Database, InTransaction, Queries } from '../storage/queries.ts';
import { nameProblem } from '../texts/name-rules.ts';
import { type Client, hasSecret } from './client.ts';
import {
  type ClientDraft,
  invalidClient,
  type Naming,
  normalizeClientName,
  refuseInvalidClient,
} from './client-rules.ts';
import { insertSecret, newClientSecret } from './client-secrets.ts';

interface NewClient extends ClientDraft {
  /** Absent if the operator provides the client. */
  readonly ownerAccountId?: string | undefined;
  /** Maximum number of the owner's clients, including the new one; absent for no limit. */
  readonly maxOfOwner?: number;
  readonly naming?: Naming;
}

export interface ClientChecks {
  /** True if users could confuse the name with another. @param tx the transaction of the change */
  isNameTaken(tx: Queries, name: string, ownerAccountId: string | undefined): Promise<boolean>;
  /** Blocks the client in organizations that have blocked another client of its owner with the same hosts. */
  followClientBlocks(
    tx: Queries,
    client: {
      readonly id: string;
      readonly ownerAccountId: string;
      readonly redirectUris: readonly string[];
      readonly formerRedirectUris: readonly string[];
    },
  ): Promise<void>;
  /** Deletes the organizations' approvals of the client, so that it needs new ones. */
  withdrawApprovals(tx: Queries, clientId: string): Promise<unknown>;
  /** Clears a client's cached blocks and approvals. Call this after a transaction that changed blocks or approvals. */
  forgetClientBlocks(clientId: string): void;
}

export async function refuseTakenName(
  tx: Queries,
  checks: ClientChecks | undefined,
  client: Pick<NewClient, 'name' | 'ownerAccountId' | 'naming' | 'redirectUris'>,
): Promise<void> {
  const { name, ownerAccountId, naming = 'by its owner', redirectUris } = client;
  if (!checks || naming !== 'by its owner') return;
  if (!(await checks.isNameTaken(tx, normalizeClientName(name), ownerAccountId))) return;
  // Report the same problem for every taken name, so that it does not reveal which organizations exist.
  throw invalidClient([nameProblem('taken')], redirectUris);
}

export interface CreationForm {
  readonly key: string;
  /** Called before the client is stored, so that the secret can be shown even if the database's answer is lost. */
  keep(clientId: string, secret: string): Promise<unknown>;
}

export function createClientCreation(parts: {
  readonly database: Database;
  readonly clock: Clock;
  readonly checks?: ClientChecks | undefined;
  readonly readChanged: (id: string) => Promise<Client>;
}) {
  const { database, clock, checks, readChanged } = parts;

  async function create(
    { ownerAccountId: owner, maxOfOwner, naming = 'by its owner', ...draft }: NewClient,
    form: CreationForm | undefined,
    inTransaction: InTransaction<string> | undefined,
  ): Promise<{ client: Client; secret?: string }> {
    refuseInvalidClient(draft, naming);
    refuseForeignAccountId(owner);
    const id = newValue('client_id');
    const secret = hasSecret(draft.kind) ? newClientSecret() : undefined;
    const now = new Date(clock());
    const insert = (): Promise<string> =>
      database.transaction(async (tx) => {
        // The second of two parallel registrations waits here, and then finds the client of the first one.
        if (owner !== undefined) await lockAccount(tx, owner);
        const before = owner && form && (await findCreated(tx, owner, form.key));
        if (before) return before;
        if (owner !== undefined && maxOfOwner !== undefined) {
          await refuseMoreThan(maxOfOwner, owner, tx);
        }
        await refuseTakenName(tx, checks, { ...draft, ownerAccountId: owner, naming });
        await tx.query(
          `INSERT INTO clients (id, kind, name, owner_account_id, redirect_uris, native,
              created_at, updated_at, creation_key)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $7, $8)`,
          [
            id,
            draft.kind,
            normalizeClientName(draft.name),
            owner ?? null,
            draft.redirectUris,
            draft.isNative,
            now,
            form?.key ?? null,
          ],
        );
        if (secret) await insertSecret(tx, id, secret, now);
        if (owner !== undefined) {
          const { redirectUris } = draft;
          const client = { id, ownerAccountId: owner, redirectUris, formerRedirectUris: [] };
          await checks?.followClientBlocks(tx, client);
        }
        await inTransaction?.(tx, id);
        return id;
      });
    const made = await refuseViolations(
      { clients_owner_account_id_fkey: () => unknownOwner(owner) },
      database.inTurn(owner, async () => {
        if (secret) await form?.keep(id, secret.value);
        return insert();
      }),
    );
    const client = await readChanged(made);
    return { client, ...(secret && { secret: secret.value }) };
  }

  return {
    /**
     * Registers a client. Only this result contains the value of its secret; a public client has no secret.
     * `inTransaction` receives the client's id.
     *
     * @throws Refusal `client_invalid` (with every problem), `owner_unknown` or `clients_limit`; AccountBusy
     */
    add: (client: NewClient, inTransaction?: InTransaction<string>): Promise<{ client: Client; secret?: string }> =>
      create(client, undefined, inTransaction),
    /** Like `add`, but a form that is sent again returns the client that its owner has created with this key. */
    addOnce: async (
      client: NewClient & { readonly ownerAccountId: string },
      form: CreationForm,
      inTransaction?: InTransaction<string>,
    ): Promise<Client> => (await create(client, form, inTransaction)).client,
  };
}

async function findCreated(tx: Queries, owner: string, key: string): Promise<string | undefined> {
  const [client] = await tx.query<{ id: string }>(
    'SELECT id FROM clients WHERE owner_account_id = $1 AND creation_key = $2',
    [owner, key],
  );
  return client?.id;
}

async function refuseMoreThan(max: number, owner: string, tx: Queries): Promise<void> {
  const owned = await tx.query('SELECT FROM clients WHERE owner_account_id = $1', [owner]);
  if (owned.length < max) return;
  const [said, remedy] =
    max === 0
      ? ['The operator of this service does not allow new OAuth clients.', 'Ask the operator.']
      : [`You have reached the limit of ${max} clients.`, 'Delete one that is not needed any more.'];
  const problems = [{ code: 'clients_limit', message: said, text: message('oauth-clients.full', { limit: max }) }];
  throw new Refusal('clients_limit', said, remedy, { problems });
}

export function refuseForeignAccountId(owner: string | undefined): void {
  if (owner !== undefined && !ACCOUNT_ID.test(owner)) throw unknownOwner(owner);
}

export function unknownOwner(accountId: string | undefined): Refusal {
  return new Refusal(
    'owner_unknown',
    `There is no account ${accountId} that could own the client.`,
    'Add the account first, or leave the owner out.',
  );
}
