/** The decisions of organizations about a client, which hold for every user of the client. */
import type { Clock } from '../../base/clock.ts';
import { createCache } from '../../storage/cache.ts';
import type { ChangeFeed } from '../../storage/change-feed.ts';
import type { Queries } from '../../storage/queries.ts';

interface FollowingClient {
  readonly id: string;
  readonly ownerAccountId: string;
  readonly redirectUris: readonly string[];
  readonly formerRedirectUris: readonly string[];
}

/** The ids of the organizations that decided. A block wins over an approval. */
export interface ClientDecisions {
  readonly blocked: ReadonlySet<string>;
  readonly approved: ReadonlySet<string>;
}

export const UNDECIDED: ClientDecisions = { blocked: new Set(), approved: new Set() };

/** Why a client reaches nothing in an organization. */
export interface ClientExclusion {
  readonly clientId: string;
  readonly organizationId: string;
  /** `waiting`: the organization asks first, and has not decided about the client yet. */
  readonly why: 'blocked' | 'declined' | 'waiting';
  /** When the client was blocked, declined, or first connected by a member; null if never. */
  readonly at: Date | null;
  /** True if the client is blocked because another client of its owner is blocked. */
  readonly follows: boolean;
  /** Why the organization declined the client, for the people who connected the client. */
  readonly sentence: string | null;
}

export function createClientBlocks(parts: {
  readonly database: Queries;
  readonly changes: ChangeFeed;
  readonly clock: Clock;
}) {
  const { database, changes, clock } = parts;
  const cache = createCache<ClientDecisions>({
    changes,
    clock,
    topics: ['bars'],
    sizeOf: ({ blocked, approved }) => 1 + Math.floor((blocked.size + approved.size) / 100),
  });

  /** Returns, by client, which organizations block it, and which have approved it; only clients that any decided about. */
  async function decisionsOf(clientIds: readonly string[]): Promise<ReadonlyMap<string, ClientDecisions>> {
    const rows = await database.query<{ clientId: string; id: string; isApproved: boolean }>(
      `SELECT client_id AS "clientId", organization_id AS id, false AS "isApproved"
          FROM barred_clients WHERE client_id = ANY($1)
        UNION ALL SELECT client_id, organization_id, true
          FROM client_decisions WHERE client_id = ANY($1) AND is_approved`,
      [clientIds],
    );
    const idsOf = (of: typeof rows, approved: boolean) =>
      new Set(of.filter(({ isApproved }) => isApproved === approved).map(({ id }) => id));
    return new Map(
      [...Map.groupBy(rows, ({ clientId }) => clientId)].map(([clientId, of]) => [
        clientId,
        { blocked: idsOf(of, false), approved: idsOf(of, true) },
      ]),
    );
  }

  return {
    /** Stores that the organization blocks the client, and returns the block if it is new. */
    block: (
      tx: Queries,
      organizationId: string,
      clientId: string,
      { at, by }: { readonly at: Date; readonly by: string | undefined },
    ): Promise<unknown[]> =>
      tx.query(
        `WITH barred AS (
              INSERT INTO barred_clients (organization_id, client_id, barred_at, barred_by)
                SELECT $1, id, $3, $4 FROM clients WHERE id = $2
                ON CONFLICT DO NOTHING RETURNING client_id
            ), redirects AS (
              INSERT INTO barred_redirects
                (organization_id, client_id, owner_account_id, redirect_uris, barred_by)
                SELECT $1, id, owner_account_id, redirect_uris, $4
                  FROM clients JOIN barred ON id = client_id WHERE owner_account_id IS NOT NULL
                ON CONFLICT (organization_id, client_id) DO UPDATE
                  SET owner_account_id = excluded.owner_account_id,
                    redirect_uris = excluded.redirect_uris, barred_by = excluded.barred_by
            )
            SELECT FROM barred`,
        [organizationId, clientId, at, by ?? null],
      ),

    /** Deletes the block, and returns it if there was one. */
    unblock: (tx: Queries, organizationId: string, clientId: string): Promise<unknown[]> =>
      tx.query(
        // Also delete the blocks of deleted clients of the same owner, because no page lists them.
        `WITH admitted AS (
              DELETE FROM barred_clients WHERE organization_id = $1 AND client_id = $2
                RETURNING client_id
            ), redirects AS (
              DELETE FROM barred_redirects r WHERE organization_id = $1
                AND EXISTS (SELECT FROM admitted)
                AND (client_id = $2 OR (
                  owner_account_id = (SELECT owner_account_id FROM clients WHERE id = $2)
                  AND NOT EXISTS (SELECT FROM clients c WHERE c.id = r.client_id)))
            )
            SELECT FROM admitted`,
        [organizationId, clientId],
      ),

    /** Returns which organizations block this client, and which have approved it. */
    of: (clientId: string): Promise<ClientDecisions> =>
      cache.get(clientId, async () => (await decisionsOf([clientId])).get(clientId) ?? UNDECIDED),

    decisionsOf,

    /** Returns, by client, the organizations that the client does not reach, and why. */
    async exclusions(
      organizationIds: readonly string[],
      clientIds: readonly string[],
    ): Promise<ReadonlyMap<string, readonly ClientExclusion[]>> {
      const rows = await database.query<ClientExclusion>(
        `SELECT c.id AS "clientId", o.id AS "organizationId", coalesce(b.follows, false) AS follows,
            CASE WHEN b.client_id IS NULL THEN d.sentence END AS sentence,
            CASE WHEN b.client_id IS NOT NULL THEN 'blocked'
              WHEN d.client_id IS NOT NULL THEN 'declined' ELSE 'waiting' END AS why,
            coalesce(b.barred_at, d.decided_at, (SELECT min(connected_at)
              FROM member_connections WHERE organization_id = o.id AND client_id = c.id)) AS at
          FROM unnest($2::text[]) AS c (id) JOIN organizations o ON o.id = ANY($1)
          LEFT JOIN barred_clients b ON b.organization_id = o.id AND b.client_id = c.id
          LEFT JOIN client_decisions d ON d.organization_id = o.id AND d.client_id = c.id
          WHERE b.client_id IS NOT NULL OR (o.asks_first AND d.is_approved IS NOT TRUE)
          ORDER BY o.name, o.id`,
        [organizationIds, clientIds],
      );
      return Map.groupBy(rows, ({ clientId }) => clientId);
    },

    /**
     * Blocks a client in each organization that blocks another client of the same owner with one of
     * the same redirect hosts, now or at the time of that block.
     *
     * @param client `formerRedirectUris` is empty for a new client. Hosts of former URIs cause no
     *   new block, even if an organization has unblocked the client.
     * @param tx the transaction of the client's change. Call `forget` after it.
     */
    async follow(
      tx: Queries,
      { id, ownerAccountId, redirectUris, formerRedirectUris }: FollowingClient,
    ): Promise<void> {
      const former = hostsOf(formerRedirectUris);
      const hosts = hostsOf(redirectUris).filter((host) => !former.includes(host));
      if (hosts.length === 0) return;
      const blocked = await tx.query<BlockedRedirects>(
        `SELECT organization_id AS "organizationId", redirect_uris AS "redirectUris", barred_by AS by
            FROM barred_redirects WHERE owner_account_id = $1 AND client_id <> $2
          UNION ALL SELECT b.organization_id, c.redirect_uris, b.barred_by
            FROM barred_clients b JOIN clients c ON c.id = b.client_id
            WHERE c.owner_account_id = $1 AND c.id <> $2`,
        [ownerAccountId, id],
      );
      const same = blocked.filter((other) => hostsOf(other.redirectUris).some((host) => hosts.includes(host)));
      if (same.length === 0) return;
      await tx.query(
        `WITH followed AS (
            INSERT INTO barred_clients (organization_id, client_id, barred_at, barred_by, follows)
              SELECT DISTINCT ON (organization_id) organization_id, $1, $2::timestamptz, barred_by, true
                FROM unnest($3::text[], $4::text[]) AS other (organization_id, barred_by)
                ORDER BY organization_id
              ON CONFLICT DO NOTHING RETURNING organization_id, barred_by
          )
          INSERT INTO barred_redirects
            (organization_id, client_id, owner_account_id, redirect_uris, barred_by)
            SELECT organization_id, $1, $5, $6::text[], barred_by FROM followed
            ON CONFLICT DO NOTHING`,
        [
          id,
          new Date(clock()),
          same.map(({ organizationId }) => organizationId),
          same.map(({ by }) => by),
          ownerAccountId,
          redirectUris,
        ],
      );
    },

    /** Call this after a block or decision changed: the database's notification comes later. */
    forget: (clientId: string): void => cache.invalidate('bars', clientId),
  };
}

interface BlockedRedirects {
  readonly organizationId: string;
  readonly redirectUris: readonly string[];
  readonly by: string | null;
}

/**
 * Returns the hosts of redirect URIs without ports, and private-use schemes without a host. Omits
 * loopback hosts if there are others, because every developer uses those of their own computer.
 */
function hostsOf(uris: readonly string[]): readonly string[] {
  const hosts = uris.map((uri) => {
    const { protocol, hostname } = new URL(uri);
    return /^https?:$/.test(protocol) ? hostname.replace(/\.$/, '') : protocol;
  });
  const remote = hosts.filter((host) => !/^(localhost|127\.[\d.]+|\[::1\])$/.test(host));
  return remote.length > 0 ? remote : hosts;
}
