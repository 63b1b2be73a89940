/** The decisions of organizations about a client, which apply to every user of the client. */
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

/** Ids of the organizations that decided about a client. A block has priority over an approval. */
export interface ClientDecisions {
  readonly blocked: ReadonlySet<string>;
  readonly warehouses: ReadonlySet<string>;
  readonly approved: ReadonlySet<string>;
}

export const UNDECIDED: ClientDecisions = { blocked: new Set(), warehouses: new Set(), approved: new Set() };

export interface ClientExclusion {
  readonly clientId: string;
  readonly organizationId: string;
  /** Null if the client is excluded from the whole organization. */
  readonly warehouseId: string | null;
  /** `waiting`: the organization must approve clients first, and has not yet decided about this client. */
  readonly why: 'blocked' | 'declined' | 'waiting' | 'warehouse';
  /** When the client was blocked or declined, or first connected by a member; null if never. */
  readonly at: Date | null;
  /** True if the client is blocked because another client of its owner is blocked. */
  readonly follows: boolean;
  /** Why the organization declined the client, for the users who have connected it. */
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
    sizeOf: ({ blocked, warehouses, approved }) => {
      return 1 + Math.floor((blocked.size + warehouses.size + approved.size) / 100);
    },
  });

  /** Returns decisions, keyed by client id. Without `organizationIds`, a client may have thousands of decisions. */
  async function decisionsOf(
    clientIds: readonly string[],
    organizationIds?: readonly string[],
  ): Promise<ReadonlyMap<string, ClientDecisions>> {
    const rows = await database.query<{ clientId: string; id: string; kind: keyof ClientDecisions }>(
      `SELECT client_id AS "clientId", organization_id AS id, 'blocked' AS kind
          FROM barred_clients WHERE client_id = ANY($1) AND (organization_id = ANY($2::text[]) OR $2::text[] IS NULL)
        UNION ALL SELECT client_id, warehouse_id, 'warehouses'
          FROM barred_in_warehouses JOIN warehouses w ON w.id = warehouse_id
          WHERE client_id = ANY($1) AND (w.organization_id = ANY($2::text[]) OR $2::text[] IS NULL)
        UNION ALL SELECT client_id, organization_id, 'approved' FROM client_decisions
          WHERE client_id = ANY($1) AND is_approved AND (organization_id = ANY($2::text[]) OR $2::text[] IS NULL)`,
      [clientIds, organizationIds ?? null],
    );
    return new Map(
      [...Map.groupBy(rows, ({ clientId }) => clientId)].map(([clientId, of]) => {
        const idsOf = (which: keyof ClientDecisions) =>
          new Set(of.filter(({ kind }) => kind === which).map(({ id }) => id));
        return [
          clientId,
          { blocked: idsOf('blocked'), warehouses: idsOf('warehouses'), approved: idsOf('approved') },
        ] as const;
      }),
    );
  }

  return {
    /** Blocks the client in the organization. Returns one row if the block is new. */
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

    unblock: (tx: Queries, organizationId: string, clientId: string): Promise<unknown[]> =>
      tx.query(
        // Also delete the blocks of the owner's deleted clients, because no page lists them.
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

    /** Blocks the client in this warehouse, but not the owner's other clients. Returns one row if the block is new. */
    blockIn: (
      tx: Queries,
      organizationId: string,
      warehouseId: string,
      clientId: string,
      { at, by }: { readonly at: Date; readonly by: string | undefined },
    ): Promise<unknown[]> =>
      tx.query(
        // The lock waits for a move of the warehouse in progress. A later move waits for this lock, and sees the block.
        `WITH own AS (SELECT id FROM warehouses
            WHERE id = $2 AND organization_id = $1 AND ended_at IS NULL FOR KEY SHARE)
          INSERT INTO barred_in_warehouses (warehouse_id, client_id, barred_at, barred_by)
            SELECT own.id, c.id, $4, $5 FROM own, clients c WHERE c.id = $3
            ON CONFLICT DO NOTHING RETURNING client_id`,
        [organizationId, warehouseId, clientId, at, by ?? null],
      ),

    unblockIn: (tx: Queries, organizationId: string, warehouseId: string, clientId: string): Promise<unknown[]> =>
      tx.query(
        `DELETE FROM barred_in_warehouses WHERE client_id = $3 AND warehouse_id =
            (SELECT id FROM warehouses WHERE id = $2 AND organization_id = $1) RETURNING client_id`,
        [organizationId, warehouseId, clientId],
      ),

    of: (clientId: string): Promise<ClientDecisions> =>
      cache.get(clientId, async () => (await decisionsOf([clientId])).get(clientId) ?? UNDECIDED),

    decisionsOf,

    /** Returns, keyed by client id, the organizations and warehouses to which each client has no access, and why. */
    async exclusions(
      organizationIds: readonly string[],
      clientIds: readonly string[],
    ): Promise<ReadonlyMap<string, readonly ClientExclusion[]>> {
      const rows = await database.query<ClientExclusion>(
        `SELECT c.id AS "clientId", o.id AS "organizationId", NULL AS "warehouseId",
            coalesce(b.follows, false) AS follows,
            CASE WHEN b.client_id IS NULL THEN d.sentence END AS sentence,
            CASE WHEN b.client_id IS NOT NULL THEN 'blocked'
              WHEN d.client_id IS NOT NULL THEN 'declined' ELSE 'waiting' END AS why,
            coalesce(b.barred_at, d.decided_at, (SELECT min(connected_at)
              FROM member_connections WHERE organization_id = o.id AND client_id = c.id)) AS at,
            o.name
          FROM unnest($2::text[]) AS c (id) JOIN organizations o ON o.id = ANY($1)
          LEFT JOIN barred_clients b ON b.organization_id = o.id AND b.client_id = c.id
          LEFT JOIN client_decisions d ON d.organization_id = o.id AND d.client_id = c.id
          WHERE b.client_id IS NOT NULL OR (o.asks_first AND d.is_approved IS NOT TRUE)
          UNION ALL SELECT b.client_id, o.id, w.id, false, NULL, 'warehouse', b.barred_at, o.name
            FROM barred_in_warehouses b JOIN warehouses w ON w.id = b.warehouse_id AND w.ended_at IS NULL
            JOIN organizations o ON o.id = w.organization_id AND o.id = ANY($1)
            WHERE b.client_id = ANY($2::text[])
          ORDER BY name, "organizationId", "warehouseId" NULLS FIRST`,
        [organizationIds, clientIds],
      );
      return Map.groupBy(rows, ({ clientId }) => clientId);
    },

    /**
     * Blocks a client in each organization that blocks another client of the same owner with the same redirect host.
     * Compares new hosts of the client with the hosts that the other client has now, or had when it was blocked.
     *
     * @param client `formerRedirectUris` is empty for a new client. Hosts of these former URIs are not compared,
     * because the organization may have unblocked the client.
     * @param tx the transaction of the client's change. Call `forget` after it.
     */
    async follow(
      tx: Queries,
      { id, ownerAccountId, redirectUris, formerRedirectUris }: FollowingClient,
    ): Promise<void> {
      const former = hostsOf(formerRedirectUris);
      const hosts = hostsOf(redirectUris).filter((host) => !former.includes(host));
      if (hosts.length === 0) return;
      const blocked = await tx.query<{
        readonly organizationId: string;
        readonly redirectUris: readonly string[];
        readonly by: string | null;
      }>(
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

    /** Call this after a block or decision has changed, because the database's notification arrives later. */
    forget: (clientId: string): void => cache.invalidate('bars', clientId),
  };
}

/** Returns hosts (without ports) and private-use schemes. Omits loopback hosts if there are other hosts. */
function hostsOf(uris: readonly string[]): readonly string[] {
  const hosts = uris.map((uri) => {
    const { protocol, hostname } = new URL(uri);
    return /^https?:$/.test(protocol) ? hostname.replace(/\.$/, '') : protocol;
  });
  const remote = hosts.filter((host) => !/^(localhost|127\.[\d.]+|\[::1\])$/.test(host));
  return remote.length > 0 ? remote : hosts;
}
