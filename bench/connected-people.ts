/** Fills the stores with many users who connected a client, and with authorizations of this client. */
import { createAuthorizations } from '../src/authorizations/authorization.ts';
import { systemClock } from '../src/base/clock.ts';
import { openDatabase } from '../src/storage/database.ts';
import { openTokenStore } from '../src/storage/open-token-store.ts';
import type { Database } from '../src/storage/queries.ts';
import type { TokenStore } from '../src/storage/token-store.ts';
import type { TestClient } from '../test/support/oauth.ts';
import { type Deployment, TOKEN_KEY } from './deployment.ts';

export interface ConnectedPeople {
  readonly accountIds: readonly string[];
  /** The access tokens of the first authorization of each account. */
  readonly tokens: readonly string[];
  readonly refreshTokens: readonly string[];
  readonly database: Database;
  close(): Promise<void>;
}

/** Number of members per organization, which has three warehouses; each has rights in two of them. */
const MEMBERS = 100;
/** Number of authorizations that are written in parallel. */
const BATCH = 100;
/** Multiplies the timeouts, because filling the stores may take long. */
const TIMEOUT_FACTOR = 60;
const LIFETIMES = {
  authorizationCodeSeconds: 600,
  // Must be longer than filling the stores takes.
  accessTokenSeconds: 43_200,
  refreshTokenSeconds: 86_400,
  retryWindowSeconds: 60,
};

const FILL = [
  `INSERT INTO accounts (id, email, email_key, name, created_at)
    SELECT 'acc_' || lpad(n::text, 16, '0'), email, email, 'Person ' || n, now()
    FROM generate_series(1, $1::int) n, concat('person-of-many-', n, '@example.test') email`,
  `INSERT INTO organizations (id, name, created_at)
    SELECT 'org_' || lpad(n::text, 16, '0'), 'Organization ' || n, now()
    FROM generate_series(0, $1::int / ${MEMBERS}) n`,
  `INSERT INTO warehouses (id, organization_id, name, created_at)
    SELECT 'wh_' || lpad((3 * n + w)::text, 16, '0'), 'org_' || lpad(n::text, 16, '0'),
      'Warehouse ' || w, now()
    FROM generate_series(0, $1::int / ${MEMBERS}) n, generate_series(0, 2) w`,
  `INSERT INTO organization_memberships (account_id, organization_id, role, created_at)
    SELECT 'acc_' || lpad(n::text, 16, '0'), 'org_' || lpad((n / ${MEMBERS})::text, 16, '0'),
      'member', now()
    FROM generate_series(1, $1::int) n`,
  `INSERT INTO warehouse_rights (account_id, organization_id, warehouse_id, rights)
    SELECT 'acc_' || lpad(n::text, 16, '0'), 'org_' || lpad((n / ${MEMBERS})::text, 16, '0'),
      'wh_' || lpad((3 * (n / ${MEMBERS}) + w)::text, 16, '0'), '{read,write}'
    FROM generate_series(1, $1::int) n, generate_series(0, 1) w`,
];
const CONNECT = `INSERT INTO connections
    (account_id, client_id, connected_at, approved_at, consented_name, consented_hosts)
  SELECT 'acc_' || lpad(n::text, 16, '0'), $2, now(), now(), 'Partner', '{}'
  FROM generate_series(1, $1::int) n`;

/** Returns the id of the account at this position, from 0. */
export const accountIdOf = (position: number): string => `acc_${String(position + 1).padStart(16, '0')}`;

/** Writes this many users with their organizations and rights, who are connected to the client. */
export async function fillPeople(database: Database, client: TestClient, count: number): Promise<void> {
  for (const statement of FILL) await database.query(statement, [count]);
  await database.query(CONNECT, [count, client.id]);
  for (const table of ['accounts', 'organization_memberships', 'warehouse_rights', 'connections']) {
    await database.query(`ANALYZE ${table}`);
  }
}

/** Returns a function that writes an authorization with the service's own code, and exchanges its code for tokens. */
export function issuing(store: TokenStore) {
  const authorizations = createAuthorizations({
    store,
    clients: { find: async () => undefined },
    people: { find: async () => undefined, hasEnded: async () => false },
    clock: systemClock,
    keys: [TOKEN_KEY],
    lifetimes: LIFETIMES,
  });
  type Approval = Parameters<typeof authorizations.begin>[1];
  return async (approval: Omit<Approval, 'generation' | 'clientGeneration'>) => {
    const draft = authorizations.draft();
    await authorizations.begin(draft, { ...approval, generation: 1, clientGeneration: 0 });
    const found = await authorizations.find(authorizations.codeOf(draft));
    const issued = found && (await authorizations.exchange(found.authorization));
    if (typeof issued !== 'object') throw new Error(`no token was issued: ${issued}`);
    return issued;
  };
}

/**
 * @param count the number of users
 * @param total the number of authorizations, which the users have in equal shares
 */
export async function connectPeople(
  { storage }: Pick<Deployment, 'storage'>,
  client: TestClient,
  count: number,
  total = count,
): Promise<ConnectedPeople> {
  const database = await openDatabase({ ...storage, timeoutFactor: TIMEOUT_FACTOR });
  await fillPeople(database, client, count);
  const { store } = await openTokenStore({
    ...storage,
    database,
    clock: systemClock,
    timeoutFactor: TIMEOUT_FACTOR,
  });
  const issue = issuing(store);
  const accountIds = Array.from({ length: count }, (_, position) => accountIdOf(position));

  async function authorize(number: number): Promise<void> {
    const { id: clientId, redirectUri } = client;
    const issued = await issue({ accountId: accountIdOf(number % count), clientId, redirectUri });
    if (number >= count) return;
    tokens[number] = issued.accessToken;
    refreshTokens[number] = issued.refreshToken;
  }
  const tokens: string[] = [];
  const refreshTokens: string[] = [];
  for (let first = 0; first < total; first += BATCH) {
    const size = Math.min(BATCH, total - first);
    await Promise.all(Array.from({ length: size }, (_, place) => authorize(first + place)));
  }
  return {
    accountIds,
    tokens,
    refreshTokens,
    database,
    async close() {
      await store.close();
      await database.close();
    },
  };
}
