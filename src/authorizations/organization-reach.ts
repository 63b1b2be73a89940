/** Lists the users, clients and keys with access to an organization, for its owners and admins. */

import type { Right, Role } from '../accounts/access/reach.ts';
import {
  OPEN_POLICY,
  type OrganizationPolicy,
} from '../accounts/organizations/organization-policy.ts';
import type { Queries } from '../storage/queries.ts';
import { hasEnded } from './consents.ts';

export interface OrganizationReach {
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
  /** In the chosen warehouse, unordered, with duplicates; meaningless if none was chosen. */
  readonly rights: readonly Right[] | null;
}

export interface ReachingPerson extends Reaching {
  readonly email: string;
  readonly role: Role;
  readonly isSuspended: boolean;
  readonly since: Date;
  /** Number of the organization's warehouses that the user can access; null for all of them. */
  readonly warehouses: number | null;
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
  readonly warehouses: number | null;
  readonly lastUsedAt: Date | null;
}

export interface ReachingKey extends Reaching {
  readonly lastFour: string;
  readonly personId: string;
  readonly person: string;
  readonly createdAt: Date;
  readonly lastUsedAt: Date | null;
}

/** SQL expression, like `access.ts`: which rights the membership `m` has of those stored in `r`. */
const rights = (isReadOnly = 'false'): string =>
  `CASE WHEN m.role IN ('owner', 'admin')
        THEN CASE WHEN ${isReadOnly} THEN '{read}' ELSE '{read,write,manage}' END::text[]
      WHEN m.role = 'member' AND NOT ${isReadOnly} THEN r.rights
      WHEN 'read' = ANY(r.rights) THEN '{read}' END`;

/** SQL join: the rights of the member `m` in the chosen warehouse `$2`. */
const RIGHTS_THERE = `LEFT JOIN warehouse_rights r ON r.organization_id = $1
      AND r.warehouse_id = $2 AND r.account_id = m.account_id`;

/** Like `RIGHTS_THERE`; if no warehouse is chosen, counts the warehouses with rights instead. */
const rightsCounted = (subject: 'account_id' | 'client_id'): string =>
  `LEFT JOIN (SELECT ${subject}, min(rights) AS rights, count(*)::integer AS held,
      count(*) FILTER (WHERE 'read' = ANY(rights))::integer AS readable
    FROM warehouse_rights WHERE organization_id = $1 AND (warehouse_id = $2 OR $2::text IS NULL)
    GROUP BY ${subject}) r ON r.${subject} = m.${subject}`;

const WAREHOUSES = `CASE m.role WHEN 'member' THEN coalesce(r.held, 0)
      WHEN 'viewer' THEN coalesce(r.readable, 0) END AS warehouses`;

/** SQL condition: the membership reaches the chosen warehouse, if one is chosen. */
const reachesChosen = (isReadOnly?: string): string =>
  `($2::text IS NULL OR (${rights(isReadOnly)}) IS NOT NULL)`;

/** SQL condition: a connection or key reaches the chosen warehouse or, if none is chosen, any. */
const leavesSomething = (limited: 'n' | 'k'): string =>
  `(${limited}.limit_places IS NULL OR ${limited}.limit_places && ARRAY[$1::text, $2]
    OR ($2::text IS NULL AND EXISTS (SELECT FROM warehouses w LEFT JOIN warehouse_rights r
      ON r.warehouse_id = w.id AND r.account_id = m.account_id WHERE w.organization_id = $1
        AND w.id = ANY(${limited}.limit_places) AND (${rights()}) IS NOT NULL)))
    AND ($2::text IS NULL OR a.suspended_at IS NULL)
    AND ${reachesChosen(`${limited}.limit_read_only`)}`;

/**
 * Always runs five queries.
 *
 * @param now API keys and connections that ended before this time are left out
 * @param warehouseId of a chosen warehouse: leaves out what has no access to it, such as blocked
 *   clients, and the clients and API keys of suspended people
 */
export async function reachOfOrganization(
  database: Queries,
  organizationId: string,
  now: Date,
  warehouseId: string | null = null,
): Promise<OrganizationReach> {
  const values = [organizationId, warehouseId];
  const [[policy = OPEN_POLICY], people, clients, machines, apiKeys] = await Promise.all([
    database.query<OrganizationPolicy>(
      `SELECT asks_first AS "asksFirst", allows_api_keys AS "allowsApiKeys"
        FROM organizations WHERE id = $1`,
      [organizationId],
    ),
    database.query<ReachingPerson>(
      `SELECT a.id, a.name, a.email, m.role, a.suspended_at IS NOT NULL AS "isSuspended",
          ${rights()} AS rights, m.created_at AS since, s.at AS "lastSignedInAt", ${WAREHOUSES}
        FROM organization_memberships m JOIN accounts a ON a.id = m.account_id
        ${rightsCounted('account_id')}
        LEFT JOIN LATERAL (SELECT at FROM activity
          WHERE account_id = a.id AND action = 'signed_in' AND NOT details ? 'confirmation'
          ORDER BY id DESC LIMIT 1) s ON true
        WHERE m.organization_id = $1 AND ${reachesChosen()}`,
      values,
    ),
    database.query<ReachingClient>(
      `SELECT c.id, c.name, o.name AS "ownerName", c.suspended_at IS NOT NULL AS "isSuspended",
          coalesce(n.people, '{}') AS people, n.rights, n.requested_at AS "requestedAt",
          n.last_used_at AS "lastUsedAt",
          b.barred_at AS "blockedAt", a.name AS "blockedBy",
          coalesce(b.follows, false) AS "followsBar", d.decided_at AS "decidedAt",
          by.name AS "decidedBy", d.sentence,
          CASE WHEN b.client_id IS NOT NULL THEN 'blocked'
            WHEN NOT own.asks_first OR d.is_approved THEN 'admitted'
            WHEN d.client_id IS NOT NULL THEN 'declined' ELSE 'waiting' END AS state
        FROM (
          SELECT n.client_id, string_to_array(string_agg(
              DISTINCT array_to_string(${rights('n.limit_read_only')}, ','), ','), ',') AS rights,
            max(n.last_used_at) AS last_used_at, min(n.connected_at) AS requested_at,
            array_agg(a.name ORDER BY n.last_used_at DESC NULLS LAST, a.name, a.id) AS people
          FROM organization_memberships m
          JOIN connections n ON n.account_id = m.account_id AND NOT ${hasEnded('$3')}
          JOIN accounts a ON a.id = n.account_id ${RIGHTS_THERE}
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
      [...values, now],
    ),
    database.query<ReachingMachine>(
      `SELECT c.id, c.name, m.role, c.suspended_at IS NOT NULL AS "isSuspended",
          ${rights()} AS rights, c.last_used_at AS "lastUsedAt", ${WAREHOUSES}
        FROM organization_memberships m JOIN clients c ON c.id = m.client_id
        ${rightsCounted('client_id')} WHERE m.organization_id = $1 AND ${reachesChosen()}`,
      values,
    ),
    database.query<ReachingKey>(
      `SELECT ${rights('k.limit_read_only')} AS rights, k.id, k.name, k.last_four AS "lastFour",
          a.id AS "personId", a.name AS person,
          k.created_at AS "createdAt", k.last_used_at AS "lastUsedAt"
        FROM organization_memberships m JOIN accounts a ON a.id = m.account_id
        JOIN api_keys k ON k.account_id = a.id
        JOIN organizations o ON o.id = m.organization_id AND o.allows_api_keys ${RIGHTS_THERE}
        WHERE m.organization_id = $1 AND (k.expires_at IS NULL OR k.expires_at > $3)
          AND ${leavesSomething('k')}`,
      [...values, now],
    ),
  ]);
  const admitted = clients.filter(({ state }) => warehouseId === null || state === 'admitted');
  return { policy, people, clients: admitted, machines, apiKeys };
}

/** Returns the rights of these members by the id of the warehouse, with one query. */
export const rightsOfMembers = (
  queries: Queries,
  organizationId: string,
  accountIds: readonly string[],
): Promise<{ id: string; rights: Readonly<Record<string, readonly Right[] | null>> }[]> =>
  queries.query(
    `SELECT m.account_id AS id, json_object_agg(w.id, ${rights()}) AS rights
      FROM organization_memberships m JOIN warehouses w ON w.organization_id = m.organization_id
      LEFT JOIN warehouse_rights r ON r.warehouse_id = w.id AND r.account_id = m.account_id
      WHERE m.organization_id = $1 AND m.account_id = ANY($2) GROUP BY m.account_id`,
    [organizationId, accountIds],
  );

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
