/** Lists the users, clients and keys with access to an organization, for its owners and admins. */

import type { Role } from '../accounts/access/reach.ts';
import {
  OPEN_POLICY,
  type OrganizationPolicy,
} from '../accounts/organizations/organization-policy.ts';
import type { Queries } from '../storage/queries.ts';

export interface OrganizationReach {
  readonly warehouses: number;
  readonly policy: OrganizationPolicy;
  readonly people: readonly ReachingPerson[];
  /** Clients that members have connected, even if a client has no access, and blocked clients. */
  readonly clients: readonly ReachingClient[];
  readonly machines: readonly ReachingMachine[];
  /** Unexpired API keys of members; empty if the organization allows no API keys. */
  readonly apiKeys: readonly ReachingKey[];
}

interface Reaching {
  readonly id: string;
  readonly name: string;
}

export interface ReachingPerson extends Reaching {
  readonly email: string;
  readonly role: Role;
  readonly isSuspended: boolean;
  readonly since: Date;
  /** Number of the organization's warehouses that the user can access. */
  readonly warehouses: number;
  /** Null if the activity log does not go back to a sign-in. */
  readonly lastSignedInAt: Date | null;
}

export interface ReachingClient extends Reaching {
  /** `waiting`: the organization asks first, and has not decided about the client (a request). */
  readonly state: 'admitted' | 'blocked' | 'declined' | 'waiting';
  /** Null if the operator provides the client. */
  readonly ownerName: string | null;
  readonly isSuspended: boolean;
  /** Names of the members who have connected the client, most recently used first. */
  readonly people: readonly string[];
  /** When the first of these members connected the client; null if no member has connected it. */
  readonly requestedAt: Date | null;
  /** The latest use by any member. */
  readonly lastUsedAt: Date | null;
  /** Null unless the client is blocked. */
  readonly blockedAt: Date | null;
  readonly blockedBy: string | null;
  /** True if the client is blocked because another client of its owner is. */
  readonly followsBar: boolean;
  /** The time of the stored decision, even if the organization is open now; null if undecided. */
  readonly decidedAt: Date | null;
  readonly decidedBy: string | null;
  /** Why the client was declined, for the people who connected the client. */
  readonly sentence: string | null;
}

export interface ReachingMachine extends Reaching {
  readonly role: Role;
  readonly isSuspended: boolean;
  readonly warehouses: number;
  readonly lastUsedAt: Date | null;
}

export interface ReachingKey extends Reaching {
  readonly lastFour: string;
  readonly personId: string;
  readonly person: string;
  readonly createdAt: Date;
  readonly lastUsedAt: Date | null;
}

/** Like `access.ts`: owners and admins can access all warehouses, viewers those they may read. */
const FROM_WAREHOUSES = `FROM warehouses w
    LEFT JOIN warehouse_rights r ON r.warehouse_id = w.id
      AND (r.account_id = m.account_id OR r.client_id = m.client_id)
    WHERE w.organization_id = m.organization_id AND (m.role IN ('owner', 'admin')
      OR (m.role = 'member' AND r.rights IS NOT NULL) OR 'read' = ANY(r.rights))`;

const WAREHOUSES = `(SELECT count(*)::integer ${FROM_WAREHOUSES}) AS warehouses`;

/** SQL condition: the limit of a connection or key allows at least part of the organization. */
const leavesSomething = (limited: 'n' | 'k'): string =>
  `(${limited}.limit_places IS NULL OR m.organization_id = ANY(${limited}.limit_places)
    OR EXISTS (SELECT ${FROM_WAREHOUSES} AND w.id = ANY(${limited}.limit_places)))`;

/** Always runs five queries. @param now API keys that expired before this time are left out */
export async function reachOfOrganization(
  database: Queries,
  organizationId: string,
  now: Date,
): Promise<OrganizationReach> {
  const [[organization], people, clients, machines, apiKeys] = await Promise.all([
    database.query<OrganizationPolicy & { warehouses: number }>(
      `SELECT asks_first AS "asksFirst", allows_api_keys AS "allowsApiKeys",
          (SELECT count(*)::integer FROM warehouses WHERE organization_id = $1) AS warehouses
        FROM organizations WHERE id = $1`,
      [organizationId],
    ),
    database.query<ReachingPerson>(
      `SELECT a.id, a.name, a.email, m.role, a.suspended_at IS NOT NULL AS "isSuspended",
          m.created_at AS since, s.at AS "lastSignedInAt", ${WAREHOUSES}
        FROM organization_memberships m JOIN accounts a ON a.id = m.account_id
        LEFT JOIN LATERAL (SELECT at FROM activity
          WHERE account_id = a.id AND action = 'signed_in' AND NOT details ? 'confirmation'
          ORDER BY id DESC LIMIT 1) s ON true
        WHERE m.organization_id = $1`,
      [organizationId],
    ),
    database.query<ReachingClient>(
      `SELECT c.id, c.name, o.name AS "ownerName", c.suspended_at IS NOT NULL AS "isSuspended",
          coalesce(n.people, '{}') AS people, n.requested_at AS "requestedAt",
          n.last_used_at AS "lastUsedAt",
          b.barred_at AS "blockedAt", a.name AS "blockedBy",
          coalesce(b.follows, false) AS "followsBar", d.decided_at AS "decidedAt",
          by.name AS "decidedBy", d.sentence,
          CASE WHEN b.client_id IS NOT NULL THEN 'blocked'
            WHEN NOT own.asks_first OR d.is_approved THEN 'admitted'
            WHEN d.client_id IS NOT NULL THEN 'declined' ELSE 'waiting' END AS state
        FROM (
          SELECT n.client_id, max(n.last_used_at) AS last_used_at, min(n.connected_at) AS requested_at,
            array_agg(a.name ORDER BY n.last_used_at DESC NULLS LAST, a.name, a.id) AS people
          FROM organization_memberships m
          JOIN connections n ON n.account_id = m.account_id AND n.ended_at IS NULL
          JOIN accounts a ON a.id = n.account_id
          WHERE m.organization_id = $1 AND ${leavesSomething('n')} GROUP BY n.client_id
        ) n
        FULL JOIN (SELECT * FROM barred_clients WHERE organization_id = $1) b
          ON b.client_id = n.client_id
        JOIN clients c ON c.id = coalesce(n.client_id, b.client_id)
        JOIN organizations own ON own.id = $1
        LEFT JOIN client_decisions d ON d.organization_id = own.id AND d.client_id = c.id
        LEFT JOIN accounts by ON by.id = d.decided_by
        LEFT JOIN accounts o ON o.id = c.owner_account_id
        LEFT JOIN accounts a ON a.id = b.barred_by`,
      [organizationId],
    ),
    database.query<ReachingMachine>(
      `SELECT c.id, c.name, m.role, c.suspended_at IS NOT NULL AS "isSuspended",
          c.last_used_at AS "lastUsedAt", ${WAREHOUSES}
        FROM organization_memberships m JOIN clients c ON c.id = m.client_id
        WHERE m.organization_id = $1`,
      [organizationId],
    ),
    database.query<ReachingKey>(
      `SELECT k.id, k.name, k.last_four AS "lastFour", a.id AS "personId", a.name AS person,
          k.created_at AS "createdAt", k.last_used_at AS "lastUsedAt"
        FROM organization_memberships m JOIN accounts a ON a.id = m.account_id
        JOIN api_keys k ON k.account_id = a.id
        JOIN organizations o ON o.id = m.organization_id AND o.allows_api_keys
        WHERE m.organization_id = $1 AND (k.expires_at IS NULL OR k.expires_at > $2)
          AND ${leavesSomething('k')}`,
      [organizationId, now],
    ),
  ]);
  const { warehouses, ...policy } = organization ?? { warehouses: 0, ...OPEN_POLICY };
  return { warehouses, policy, people, clients, machines, apiKeys };
}

/** Returns the connected clients that are not blocked and were neither approved nor declined. */
export const undecidedIn = ({ clients }: OrganizationReach): readonly ReachingClient[] =>
  clients.filter(({ state, decidedAt }) => state !== 'blocked' && decidedAt === null);

export async function membersConnectedTo(
  queries: Queries,
  organizationId: string,
  clientId: string,
): Promise<string[]> {
  const rows = await queries.query<{ id: string }>(
    `SELECT n.account_id AS id FROM connections n
      JOIN organization_memberships m ON m.account_id = n.account_id AND m.organization_id = $1
      WHERE n.client_id = $2 AND n.ended_at IS NULL`,
    [organizationId, clientId],
  );
  return rows.map(({ id }) => id);
}

/** Returns the account ids of the organization's owners and admins who are not suspended. */
export async function adminsOf(queries: Queries, organizationId: string): Promise<string[]> {
  const rows = await queries.query<{ id: string }>(
    `SELECT a.id FROM organization_memberships m JOIN accounts a ON a.id = m.account_id
      WHERE m.organization_id = $1 AND m.role IN ('owner', 'admin') AND a.suspended_at IS NULL`,
    [organizationId],
  );
  return rows.map(({ id }) => id);
}
