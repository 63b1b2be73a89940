/** Creates users, their organizations, and a client of each kind, for tests that need some. */
import { hash } from '@node-rs/argon2';
import type { LinkPurpose } from '../../src/accounts/password-links/password-links.ts';
import type { ClientKind } from '../../src/clients/client.ts';
import type { Queries } from '../../src/storage/queries.ts';
import { madeOnce } from './made-once.ts';
import type { TestClient } from './oauth.ts';
import type { Credentials } from './person.ts';
import type { TestService } from './service.ts';

export interface SeededPerson extends Credentials {
  readonly accountId: string;
  readonly name: string;
}

export interface Seed {
  /** A user who works in `organization` as a member, with the rights read and write in `warehouse`. */
  readonly person: SeededPerson;
  /** A user who owns the organization `elsewhere`, and the clients that users own. */
  readonly other: SeededPerson;
  readonly organization: { readonly id: string; readonly name: string };
  readonly warehouse: { readonly id: string; readonly name: string };
  readonly elsewhere: { readonly id: string; readonly name: string };
  readonly clients: {
    /** The client that `other` registered on the profile page. */
    readonly confidential: TestClient;
    /** A client that the operator provides. */
    readonly otherConfidential: TestClient;
    readonly public: TestClient;
    readonly native: TestClient;
    /** A machine client: a member of `organization`, without rights in a warehouse. */
    readonly machine: TestClient;
    readonly resourceServer: TestClient;
  };
}

/** What is needed to fill the tables: a running service, or registries on its database. */
export type Registries = Pick<TestService, 'database' | 'accounts' | 'organizations' | 'memberships' | 'clients'>;

export const REDIRECT_URI = 'https://partner.example/callback';
const NATIVE_REDIRECT_URI = 'com.example.warehouse:/callback';

/** Fills an empty database. */
export async function seed(service: Registries): Promise<Seed> {
  const { organizations, memberships } = service;
  const person = await addPerson(service, 'Grace Person', 'grace@example.test');
  const other = await addPerson(service, 'Oscar Other', 'oscar@example.test');

  const organization = await organizations.add({ name: 'Northern Logistics' });
  const organizationId = organization.id;
  const warehouse = await organizations.addWarehouse({ organizationId, name: 'Rotterdam' });
  const elsewhere = await organizations.add({ name: 'Elsewhere Storage' });
  const { accountId } = person;
  await memberships.setRole({ accountId }, organizationId, 'member');
  await memberships.setRights({ accountId }, warehouse.id, ['read', 'write']);
  await memberships.setRole({ accountId: other.accountId }, elsewhere.id, 'owner');

  const add = (kind: ClientKind, name: string, more: NewClient = {}) => addTestClient(service, name, { kind, ...more });
  const owned = { ownerAccountId: other.accountId };
  const machine = await add('machine', 'Night Sync');
  await memberships.setRole({ clientId: machine.id }, organizationId, 'member');

  return {
    person,
    other,
    organization,
    warehouse,
    elsewhere,
    clients: {
      confidential: await add('confidential', 'Route Planner', owned),
      otherConfidential: await add('confidential', 'Stock Reports'),
      public: await add('public', 'Warehouse Map'),
      native: await add('public', 'Warehouse Phone', { redirectUris: [NATIVE_REDIRECT_URI], isNative: true }),
      machine,
      resourceServer: await add('resource-server', 'Warehouse API'),
    },
  };
}

interface NewClient {
  readonly kind?: ClientKind;
  readonly redirectUris?: readonly string[];
  readonly isNative?: boolean;
  readonly ownerAccountId?: string;
}

type NewConfidentialClient = NewClient & { readonly kind?: 'confidential' };

/** Registers a client, by default a confidential one, which uses its first redirect URI. */
export async function addTestClient(
  service: Pick<Registries, 'clients'>,
  name: string,
  more?: NewConfidentialClient,
): Promise<Required<TestClient>>;
export async function addTestClient(
  service: Pick<Registries, 'clients'>,
  name: string,
  more: NewClient,
): Promise<TestClient>;
export async function addTestClient(
  { clients }: Pick<Registries, 'clients'>,
  name: string,
  { kind = 'confidential', isNative = false, ...more }: NewClient = {},
): Promise<TestClient> {
  const isSentTo = kind === 'confidential' || kind === 'public';
  const { redirectUris = isSentTo ? [REDIRECT_URI] : [], ...owner } = more;
  const { client, secret } = await clients.add({ kind, name, isNative, redirectUris, ...owner });
  const [redirectUri = ''] = redirectUris;
  return { id: client.id, redirectUri, ...(secret !== undefined && { secret }) };
}

let people = 0;

function unusedAddress(): string {
  people += 1;
  return `person${people}@example.test`;
}

/** Adds an account that can sign in, by default with an unused address. All these accounts share one password. */
export async function addPerson(
  service: Pick<Registries, 'accounts' | 'database'>,
  name: string,
  email = unusedAddress(),
): Promise<SeededPerson> {
  const { id } = await service.accounts.add({ email, name });
  const values = [await passwordHash(), id];
  await service.database.query('UPDATE accounts SET password_hash = $1 WHERE id = $2', values);
  return { accountId: id, name, email, password: PASSWORD };
}

const PASSWORD = 'seven green forklifts';

/**
 * A hash contains its parameters, so the service checks this one at a thousandth of the cost of its
 * own hashes. Other suites test the cost of hashing, and what that cost hides.
 */
const passwordHash = madeOnce(() => hash(PASSWORD, { memoryCost: 8, timeCost: 1, parallelism: 1 }));

/** Adds accounts with nothing but a connection to this client. */
export async function connectMany(database: Queries, clientId: string, count: number): Promise<void> {
  await database.query(
    `INSERT INTO accounts (id, email, email_key, name, created_at)
      SELECT 'many_' || lpad(n::text, 6, '0'), n || '@many.test', n || '@many.test', 'Many', now()
        FROM generate_series(1, $1) AS n ON CONFLICT DO NOTHING`,
    [count],
  );
  await database.query(
    `INSERT INTO connections (account_id, client_id, connected_at, approved_at, consented_name, consented_hosts,
        generation)
      SELECT id, $1, now(), now(), 'Partner', '{}', 1 FROM accounts WHERE id LIKE 'many%' LIMIT $2
      ON CONFLICT (account_id, client_id) DO UPDATE SET ended_at = NULL, ended_cause = NULL`,
    [clientId, count],
  );
}

/** Adds an API key of this account, for 30 days. @returns the key with its value */
export async function apiKeyOf(
  { apiKeys }: Pick<TestService, 'apiKeys'>,
  { accountId }: Pick<SeededPerson, 'accountId'>,
  name = 'Export',
  more: Partial<Parameters<TestService['apiKeys']['add']>[0]> = {},
) {
  const origin = { address: '192.0.2.1', browser: 'the tests' };
  const { key, value } = await apiKeys.add({ accountId, name, expiresInDays: 30, ...more }, origin);
  return { ...key, value };
}

/** Leaves an account only its other ways to sign in. */
export async function removePassword({ database, accounts }: TestService, { accountId }: SeededPerson): Promise<void> {
  await database.query('UPDATE accounts SET password_hash = NULL WHERE id = $1', [accountId]);
  accounts.forget(accountId);
}

/** Creates a link to set this account's password, as the operator does. @returns its path */
export async function passwordLink(
  { accounts, passwordLinks }: Pick<TestService, 'accounts' | 'passwordLinks'>,
  { accountId }: Pick<SeededPerson, 'accountId'>,
  purpose: LinkPurpose = 'forgotten',
): Promise<string> {
  const account = await accounts.find(accountId);
  if (!account) throw new Error('no such account');
  const { token } = await passwordLinks.make(account, purpose, 'operator');
  return `/password?token=${token}`;
}

/** Adds a passkey of this account, with which no authenticator can sign in. @returns its id */
export async function addUnusablePasskey(
  { passkeys }: Pick<TestService, 'passkeys'>,
  accountId: string,
  credentialId: string,
): Promise<string> {
  const added = await passkeys.add({
    accountId,
    name: 'Phone',
    credentialId,
    publicKey: '',
    transports: [],
    maySync: true,
    isSynced: true,
    counter: 0,
    challenge: { text: credentialId, seconds: 1 },
    requireMayAdd: async () => {},
    origin: { address: '', browser: '' },
  });
  if (typeof added !== 'object') throw new Error(added);
  return added.id;
}
