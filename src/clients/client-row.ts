/** Reads clients with their secrets and the name of their owner, and writes when clients and secrets were last used. */
import { isClientId } from '../base/random-id.ts';
import { endedIdsFrom, endedIdsSql } from '../storage/ended-ids.ts';
import type { WriteUses } from '../storage/last-used.ts';
import { countText } from '../storage/pages.ts';
import { type Queries, type RowOf, withoutNulls } from '../storage/queries.ts';
import { type Client, type ClientLinks, type ClientSecret, clientVersion } from './client.ts';

/** A query for clients `c`, to which callers append `WHERE` and `ORDER BY`. */
export const SELECT_CLIENTS = `
  SELECT c.id, c.kind, c.name, c.owner_account_id AS "ownerAccountId", a.name AS "ownerName",
    c.owned_since AS "ownedSince", c.redirect_uris AS "redirectUris", c.native AS "isNative", c.always_asks AS "alwaysAsks",
    c.asks_for_operator AS "asksForOperator",
    c.suspended_at IS NOT NULL AS "isSuspended", c.suspended_at AS "suspendedAt", c.created_at AS "createdAt",
    c.last_used_at AS "lastUsedAt", c.generation, c.ended_through AS "endedThrough",
    c.ending_since AS "endingSince", c.renewed_at AS "renewedAt", c.leaked_secrets AS "leakedSecrets",
    c.verified_at IS NOT NULL AS "isVerified", c.verified_at AS "verifiedAt",
    json_build_object('homepage', c.homepage_url, 'support', c.support_url, 'privacy', c.privacy_url) AS links,
    (SELECT coalesce(json_agg(json_build_object('id', s.id, 'hash', s.secret_hash, 'lastFour', s.last_four,
          'createdAt', s.created_at, 'lastUsedAt', s.last_used_at, 'leakedAt', s.leaked_at,
          'refusedAt', s.refused_at) ORDER BY s.created_at, s.id), '[]')
      FROM client_secrets s WHERE s.client_id = c.id) AS secrets,
    ${endedIdsSql('SELECT e.key FROM ended_machine_tokens e WHERE e.client_id = c.id')} AS "endedTokens"
  FROM clients c LEFT JOIN accounts a ON a.id = c.owner_account_id`;

type ClientColumns = Omit<Client, 'version' | 'secrets' | 'links' | 'endedTokens'>;

export interface ClientRow extends RowOf<ClientColumns> {
  readonly links: RowOf<ClientLinks>;
  readonly endedTokens: readonly string[];
  readonly secrets: readonly SecretInJson[];
}

interface SecretInJson extends Pick<ClientSecret, 'id' | 'hash' | 'lastFour'> {
  readonly createdAt: string;
  readonly lastUsedAt: string | null;
  readonly leakedAt: string | null;
  readonly refusedAt: string | null;
}

export function clientFrom({ links, secrets, endedTokens, ...columns }: ClientRow): Client {
  const client = {
    ...withoutNulls<ClientColumns>(columns),
    links: withoutNulls<ClientLinks>(links),
    endedTokens: endedIdsFrom(endedTokens),
    secrets: secrets.map(secretFrom),
  };
  return { ...client, version: clientVersion(client) };
}

const secretFrom = ({ createdAt, lastUsedAt, leakedAt, refusedAt, ...secret }: SecretInJson): ClientSecret => ({
  ...secret,
  createdAt: new Date(createdAt),
  ...(lastUsedAt !== null && { lastUsedAt: new Date(lastUsedAt) }),
  ...(leakedAt !== null && { leakedAt: new Date(leakedAt) }),
  ...(refusedAt !== null && { refusedAt: new Date(refusedAt) }),
});

export interface OwnedClient extends Client {
  readonly connectedPeople: number;
}

/** Returns the secrets that the former owner may know, because they are older than the transfer. */
export const formerSecretsOf = ({ secrets, ownedSince }: OwnedClient): ClientSecret[] =>
  secrets.filter(({ createdAt }) => ownedSince !== undefined && createdAt <= ownedSince);

/** Maximum number of connected users that are counted. It is limited because counting reads the connections. */
export const MAX_PEOPLE = 10_000;

/** SQL: earlier generations of the client have ended. If `client` is a parameter, the subquery runs only once. */
export const endedThroughOf = (client: string): string => `(SELECT ended_through FROM clients WHERE id = ${client})`;

/**
 * SQL: the connection `n` has not been ended; its end date is not checked. `revoke --client` ends all connections of a
 * client at once by raising `ended_through`, and marks the rows later.
 *
 * @param endedThrough a column of a joined `clients`; by default, the client is looked up for each row
 */
export const isCurrentSince = (endedThrough = endedThroughOf('n.client_id')): string =>
  `(n.ended_at IS NULL AND n.client_generation >= ${endedThrough})`;

/** SQL that makes a count use the index `connections_current`, even if many ended connections are not marked yet. */
export const BY_GENERATION = 'ORDER BY n.client_generation';

/** SQL count of users, up to `MAX_PEOPLE + 1`. @param which `unmarked` also counts ended connections not marked yet */
export const countOfPeople = (client: string, which: 'current' | 'unmarked' = 'current'): string =>
  `(SELECT count(*)::integer FROM (SELECT FROM connections n
    WHERE client_id = ${client} AND ${which === 'current' ? isCurrentSince(endedThroughOf(client)) : 'n.ended_at IS NULL'}
    ${BY_GENERATION} LIMIT ${MAX_PEOPLE + 1}) AS counted)`;

export const peopleText = (count: number): string => countText(count, MAX_PEOPLE);

export const shownPeople = (count: number) => ({
  count: Math.min(count, MAX_PEOPLE),
  isMore: String(count > MAX_PEOPLE),
});

/** Reads from the database each time, because times of last use change without a notification. */
export function createOwnedClients(database: Queries) {
  async function select(where: string, values: readonly string[]): Promise<OwnedClient[]> {
    const rows = await database.query<ClientRow & Pick<OwnedClient, 'connectedPeople'>>(
      `SELECT owned.*, ${countOfPeople('owned.id')} AS "connectedPeople"
        FROM (${SELECT_CLIENTS} WHERE ${where}) owned
        ORDER BY owned."createdAt", owned.id`,
      values,
    );
    return rows.map(({ connectedPeople, ...row }) => ({ ...clientFrom(row), connectedPeople }));
  }

  return {
    listByOwner: (accountId: string): Promise<OwnedClient[]> => select('c.owner_account_id = $1', [accountId]),

    isOwnedBy: async (accountId: string, id: string, tx: Queries): Promise<boolean> => {
      const owned = 'SELECT FROM clients WHERE owner_account_id = $1 AND id = $2';
      return (await tx.query(owned, [accountId, id])).length > 0;
    },

    /** Reads the client from the database. Returns undefined if the client is unknown or belongs to another user. */
    async findByOwner(accountId: string, id: string): Promise<OwnedClient | undefined> {
      if (!isClientId(id)) return undefined;
      const [client] = await select('c.owner_account_id = $1 AND c.id = $2', [accountId, id]);
      return client;
    },
  };
}

/** Stores when clients or secrets were last used, as recorded by `storage/last-used.ts`. */
export function writeUses(database: Queries, table: 'clients' | 'client_secrets'): WriteUses {
  return async (uses) => {
    // Keep a later time that another node has written.
    await database.query(
      `UPDATE ${table} SET last_used_at = use.at
        FROM unnest($1::text[], $2::timestamptz[]) AS use (id, at)
        WHERE ${table}.id = use.id AND coalesce(${table}.last_used_at < use.at, true)`,
      [uses.map(({ id }) => id), uses.map(({ at }) => at)],
    );
  };
}
