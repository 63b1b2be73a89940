/** Reads clients with their owner's name and secrets, and writes when they were last used. */
import { isClientId } from '../base/random-id.ts';
import { endedIdsFrom, endedIdsSql } from '../storage/ended-ids.ts';
import type { WriteUses } from '../storage/last-used.ts';
import { countText } from '../storage/pages.ts';
import type { Queries } from '../storage/queries.ts';
import { type Client, type ClientKind, type ClientSecret, clientVersion, normalizeLinks } from './client.ts';

/** Append `WHERE` and `ORDER BY` to this query; `c` is the table of clients. */
export const SELECT_CLIENTS = `
  SELECT c.id, c.kind, c.name, c.owner_account_id, a.name AS owner_name, c.owned_since,
    c.redirect_uris, c.native, c.suspended_at, c.created_at, c.last_used_at, c.generation,
    c.ended_through, c.ending_since, c.renewed_at, c.leaked_secrets,
    c.homepage_url, c.support_url, c.privacy_url, c.verified_at, c.verified_by,
    (SELECT coalesce(json_agg(s ORDER BY s.created_at, s.id), '[]')
      FROM client_secrets s WHERE s.client_id = c.id) AS secrets,
    ${endedIdsSql('SELECT e.key FROM ended_machine_tokens e WHERE e.client_id = c.id')} AS ended_tokens
  FROM clients c LEFT JOIN accounts a ON a.id = c.owner_account_id`;

export interface ClientRow {
  readonly id: string;
  readonly kind: ClientKind;
  readonly name: string;
  readonly owner_account_id: string | null;
  readonly owner_name: string | null;
  readonly owned_since: Date | null;
  readonly redirect_uris: string[];
  readonly native: boolean;
  readonly suspended_at: Date | null;
  readonly created_at: Date;
  readonly last_used_at: Date | null;
  readonly generation: number;
  readonly ended_through: number;
  readonly ending_since: Date | null;
  readonly renewed_at: Date | null;
  readonly leaked_secrets: readonly string[];
  readonly homepage_url: string | null;
  readonly support_url: string | null;
  readonly privacy_url: string | null;
  readonly verified_at: Date | null;
  readonly verified_by: string | null;
  readonly ended_tokens: readonly string[];
  /** PostgreSQL returns them as JSON, so the times are text. */
  readonly secrets: readonly {
    readonly id: string;
    readonly secret_hash: string;
    readonly last_four: string;
    readonly created_at: string;
    readonly last_used_at: string | null;
    readonly leaked_at: string | null;
    readonly refused_at: string | null;
  }[];
}

export function clientFrom(row: ClientRow): Client {
  const client = {
    id: row.id,
    kind: row.kind,
    name: row.name,
    ...(row.owner_account_id !== null && { ownerAccountId: row.owner_account_id }),
    ...(row.owner_name !== null && { ownerName: row.owner_name }),
    ...(row.owned_since !== null && { ownedSince: row.owned_since }),
    redirectUris: row.redirect_uris,
    isNative: row.native,
    isSuspended: row.suspended_at !== null,
    ...(row.suspended_at !== null && { suspendedAt: row.suspended_at }),
    createdAt: row.created_at,
    ...(row.last_used_at !== null && { lastUsedAt: row.last_used_at }),
    generation: row.generation,
    endedThrough: row.ended_through,
    ...(row.ending_since !== null && { endingSince: row.ending_since }),
    ...(row.renewed_at !== null && { renewedAt: row.renewed_at }),
    leakedSecrets: row.leaked_secrets,
    endedTokens: endedIdsFrom(row.ended_tokens),
    links: normalizeLinks({
      homepage: row.homepage_url ?? '',
      support: row.support_url ?? '',
      privacy: row.privacy_url ?? '',
    }),
    isVerified: row.verified_at !== null,
    ...(row.verified_at !== null && { verifiedAt: row.verified_at }),
    ...(row.verified_at !== null && row.verified_by !== null && { verifiedBy: row.verified_by }),
    secrets: row.secrets.map((secret) => ({
      id: secret.id,
      hash: secret.secret_hash,
      lastFour: secret.last_four,
      createdAt: new Date(secret.created_at),
      ...(secret.last_used_at !== null && { lastUsedAt: new Date(secret.last_used_at) }),
      ...(secret.leaked_at !== null && { leakedAt: new Date(secret.leaked_at) }),
      ...(secret.refused_at !== null && { refusedAt: new Date(secret.refused_at) }),
    })),
  };
  return { ...client, version: clientVersion(client) };
}

export interface OwnedClient extends Client {
  /** `MAX_PEOPLE + 1` stands for any more. */
  readonly connectedPeople: number;
}

/** Returns the secrets that the former owner may know, because they are older than the transfer. */
export const formerSecretsOf = ({ secrets, ownedSince }: OwnedClient): ClientSecret[] =>
  secrets.filter(({ createdAt }) => ownedSince !== undefined && createdAt <= ownedSince);

/** Maximum number of connected users that are counted, because counting reads their connections. */
export const MAX_PEOPLE = 10_000;

/**
 * SQL: the connection `n` is the user's until now, whatever its end date says. `revoke --client` ends all
 * connections at once by a number of the client, and marks the rows later.
 *
 * @param client a parameter, if there is one: then its number is read once for the whole statement
 */
export const isCurrent = (client = 'n.client_id'): string =>
  `(n.ended_at IS NULL AND n.client_generation >= (SELECT ended_through FROM clients WHERE id = ${client}))`;

/**
 * SQL: makes a count use the index `connections_current`. Without this order, PostgreSQL reads the whole table if most
 * connections have ended with the client and are not marked yet.
 */
export const BY_GENERATION = 'ORDER BY n.client_generation';

/**
 * SQL: how many users have connected the client; `MAX_PEOPLE + 1` stands for any more.
 *
 * @param which `unmarked`: also those whose connection has ended with the client, but is not marked yet
 */
export const countOfPeople = (client: string, which: 'current' | 'unmarked' = 'current'): string =>
  `(SELECT count(*)::integer FROM (SELECT FROM connections n
    WHERE client_id = ${client} AND ${which === 'current' ? isCurrent(client) : 'n.ended_at IS NULL'}
    ${BY_GENERATION} LIMIT ${MAX_PEOPLE + 1}) AS counted)`;

/** Returns the result of `countOfPeople` in words. */
export const peopleText = (count: number): string => countText(count, MAX_PEOPLE);

interface OwnedRow extends ClientRow {
  readonly connected_people: number;
}

export type OwnedClients = ReturnType<typeof createOwnedClients>;

/** Never cached: the results contain last uses, whose changes are not announced. */
export function createOwnedClients(database: Queries) {
  async function select(where: string, values: readonly string[]): Promise<OwnedClient[]> {
    const rows = await database.query<OwnedRow>(
      `SELECT owned.*, ${countOfPeople('owned.id')} AS connected_people
        FROM (${SELECT_CLIENTS} WHERE ${where}) owned
        ORDER BY owned.created_at, owned.id`,
      values,
    );
    return rows.map((row) => ({
      ...clientFrom(row),
      connectedPeople: row.connected_people,
    }));
  }

  return {
    /** Returns the user's current clients from the database, oldest first. */
    listByOwner: (accountId: string): Promise<OwnedClient[]> => select('c.owner_account_id = $1', [accountId]),

    async countOfSuspendedOwners(): Promise<number> {
      const [row] = await database.query<{ count: number }>(
        `SELECT count(*)::int FROM accounts a JOIN clients c ON c.owner_account_id = a.id
          WHERE a.suspended_at IS NOT NULL`,
      );
      return row?.count ?? 0;
    },

    isOwnedBy: async (accountId: string, id: string, tx: Queries): Promise<boolean> => {
      const owned = 'SELECT FROM clients WHERE owner_account_id = $1 AND id = $2';
      return (await tx.query(owned, [accountId, id])).length > 0;
    },

    /** Reads the client from the database; undefined if it is unknown or belongs to another user. */
    async findByOwner(accountId: string, id: string): Promise<OwnedClient | undefined> {
      if (!isClientId(id)) return undefined;
      const [client] = await select('c.owner_account_id = $1 AND c.id = $2', [accountId, id]);
      return client;
    },
  };
}

/** Writes the uses that `record('client', clientId)` of `storage/last-used.ts` recorded. */
export const writeClientUses = (database: Queries): WriteUses => writeUses(database, 'clients');

/** Writes the uses that `record('client_secret', secretId)` recorded. */
export const writeSecretUses = (database: Queries): WriteUses => writeUses(database, 'client_secrets');

function writeUses(database: Queries, table: 'clients' | 'client_secrets'): WriteUses {
  return async (uses) => {
    // Keep a later use that another node has written.
    await database.query(
      `UPDATE ${table} SET last_used_at = use.at
        FROM unnest($1::text[], $2::timestamptz[]) AS use (id, at)
        WHERE ${table}.id = use.id AND coalesce(${table}.last_used_at < use.at, true)`,
      [uses.map(({ id }) => id), uses.map(({ at }) => at)],
    );
  };
}
