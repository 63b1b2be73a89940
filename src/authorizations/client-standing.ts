/** How many users have connected a client, and what else people see of it before they approve it. */
import { type ClientLinks, redirectHosts } from '../clients/client.ts';
import { BY_GENERATION, endedThroughOf, isCurrentSince } from '../clients/client-row.ts';
import type { Queries } from '../storage/queries.ts';

export interface ClientStanding {
  readonly registeredAt: Date;
  /** When the current owner took over the client; null if they registered it. */
  readonly ownedSince: Date | null;
  readonly isOfOperator: boolean;
  readonly isVerified: boolean;
  /** Number of other users connected to the client. `MAX_COUNTED + 1` means more than `MAX_COUNTED`. */
  readonly people: number;
  /** True if at least one user counted in `people` is a member of one of this user's organizations. */
  readonly hasColleagues: boolean;
  readonly isConnected: boolean;
}

export type ClientStandings = ReturnType<typeof createClientStandings>;

/** The values of a client that owners and admins see before they approve it. The approval fails if any has changed. */
export interface ApprovableClient {
  readonly id: string;
  readonly name: string;
  /** Null if the operator provides the client. */
  readonly ownerName: string | null;
  /** Distinguishes owners with the same name, see `Client.ownedSince`. */
  readonly ownedSince: Date | null;
  readonly hosts: readonly string[];
  readonly links: ClientLinks;
}

/** @param lock `FOR SHARE`: no client can change until the transaction ends */
export async function approvableClients(
  queries: Queries,
  ids: readonly string[],
  lock: '' | 'FOR SHARE' = '',
): Promise<ApprovableClient[]> {
  const rows = await queries.query<Omit<ApprovableClient, 'hosts'> & { redirectUris: string[] }>(
    `SELECT id, name, (SELECT a.name FROM accounts a WHERE a.id = owner_account_id) AS "ownerName",
        owned_since AS "ownedSince", redirect_uris AS "redirectUris", json_strip_nulls(json_build_object(
          'homepage', homepage_url, 'support', support_url, 'privacy', privacy_url)) AS links
      FROM clients WHERE id = ANY($1) ORDER BY id ${lock}`,
    [ids],
  );
  return rows.map(({ redirectUris, ...row }) => ({
    ...row,
    hosts: redirectHosts({ redirectUris }),
  }));
}

export const MAX_COUNTED = 1_000;

export function createClientStandings({ database }: { readonly database: Queries }) {
  return {
    async find(clientId: string, accountId: string): Promise<ClientStanding | undefined> {
      const [row] = await database.query<ClientStanding>(
        `WITH others AS (
            SELECT account_id FROM connections n
            WHERE client_id = $1 AND account_id <> $2 AND ${isCurrentSince(endedThroughOf('$1'))}
            ${BY_GENERATION} LIMIT $3)
          SELECT created_at AS "registeredAt", owned_since AS "ownedSince",
            owner_account_id IS NULL AS "isOfOperator", verified_at IS NOT NULL AS "isVerified",
            (SELECT count(*)::integer FROM others) AS people,
            EXISTS (SELECT FROM others
              JOIN organization_memberships theirs ON theirs.account_id = others.account_id
              JOIN organization_memberships own ON own.organization_id = theirs.organization_id
              WHERE own.account_id = $2) AS "hasColleagues",
            EXISTS (SELECT FROM connections n
              WHERE account_id = $2 AND client_id = $1 AND ${isCurrentSince()}) AS "isConnected"
          FROM clients WHERE id = $1`,
        [clientId, accountId, MAX_COUNTED + 1],
      );
      return row;
    },

    approvable: (ids: readonly string[]): Promise<ApprovableClient[]> => approvableClients(database, ids),
  };
}
