/** The current access of a user or machine client, which is determined at each call and not stored in tokens. */
import type { Clock } from '../../base/clock.ts';
import { isClientId } from '../../base/random-id.ts';
import { createCache } from '../../storage/cache.ts';
import type { ChangeFeed } from '../../storage/change-feed.ts';
import { type Page, type PageRequest, pageOf } from '../../storage/pages.ts';
import type { Queries } from '../../storage/queries.ts';
import { OPEN_POLICY, type OrganizationPolicies } from '../organizations/organization-policy.ts';
import { findPlace, type PlaceKind } from '../organizations/places.ts';
import { type AccessLimit, limitAccess, withoutWarehouses } from './access-limit.ts';
import { type ClientDecisions, createClientBlocks, UNDECIDED } from './client-blocks.ts';
import { createPeople, type People, type Person } from './people.ts';
import {
  type Organization,
  organizationsFrom,
  type ReachRow,
  type Right,
  type Role,
  type Subject,
  selectReach,
} from './reach.ts';

export type Access = ReturnType<typeof createAccess>;

export interface Credential {
  readonly clientId?: string;
  /** Absent for no limit. */
  readonly limit?: AccessLimit | undefined;
}

type Reach = Pick<Person, 'organizations' | 'policies'>;

export interface Member {
  readonly id: string;
  readonly kind: 'person' | 'machine';
  readonly name: string;
  /** Null for a machine client. */
  readonly email: string | null;
  readonly role: Role;
  readonly rights: readonly Right[];
  readonly isSuspended: boolean;
}

export function createAccess(parts: {
  readonly database: Queries;
  readonly changes: ChangeFeed;
  readonly clock: Clock;
  readonly people?: People;
}) {
  const { database, changes, clock, people = createPeople(parts) } = parts;
  const machines = createCache<Machine>({
    changes,
    clock,
    topics: ['access', 'bars'],
    within: { topic: 'organizations', namesIn: ({ organizations }) => organizations.map(({ id }) => id) },
  });
  const clientBlocks = createClientBlocks(parts);

  /** Uses one statement for the memberships of a machine client and the places in which it is blocked. */
  async function readMachine(id: string): Promise<Machine> {
    const rows = await database.query<ReachRow & { readonly isBlocked: boolean; readonly isOut: boolean }>(
      `SELECT reach.*, w.client_id IS NOT NULL AS "isOut", o.client_id IS NOT NULL AS "isBlocked"
        FROM (${selectReach('client_id', '$1')}) reach
        LEFT JOIN barred_in_warehouses w ON w.client_id = $1 AND w.warehouse_id = reach."warehouseId"
        LEFT JOIN barred_clients o ON o.client_id = $1 AND o.organization_id = reach."organizationId"`,
      [id],
    );
    const out = rows.flatMap(({ isOut, warehouseId }) => (isOut && warehouseId ? [warehouseId] : []));
    const open = organizationsFrom(rows.filter(({ isBlocked }) => !isBlocked));
    return { organizations: organizationsFrom(rows), admitted: withoutWarehouses(open, new Set(out)) };
  }

  const machineOf = async (id: string): Promise<Machine> =>
    isClientId(id) ? machines.get(id, () => readMachine(id)) : { organizations: [], admitted: [] };

  async function accessOf(subject: Subject): Promise<readonly Organization[]> {
    if ('accountId' in subject) return (await people.find(subject.accountId))?.organizations ?? [];
    return (await machineOf(subject.clientId)).organizations;
  }

  async function through(
    { organizations, policies }: Reach,
    { clientId, limit }: Credential,
  ): Promise<readonly Organization[]> {
    const decisions = clientId === undefined ? undefined : await clientBlocks.of(clientId);
    return within({ organizations, policies }, decisions, limit);
  }

  return {
    /** Returns organizations, sorted by name. The caller must check that the subject exists and is not suspended. */
    accessOf,
    /** Returns what a machine client can access: `accessOf` without the places in which it is blocked. */
    machineAccess: async (clientId: string): Promise<readonly Organization[]> => (await machineOf(clientId)).admitted,
    clientBlocks,
    /** Call this after the user's access has changed, because the database's notification arrives later. */
    forget: (accountId: string): void => people.forget('access', accountId),
    forgetOrganization: (id: string): void => people.forget('organizations', id),

    /**
     * Returns what a credential of a user can access: the user's current access within the user's limit. For a client,
     * omits organizations that block it, or require an approval and have not given it, and warehouses in which it is
     * blocked. For an API key, omits organizations that allow no keys. No other code decides this.
     */
    through,
    async accessThrough(accountId: string, credential: Credential): Promise<readonly Organization[]> {
      const person = await people.find(accountId);
      return person ? through(person, credential) : [];
    },

    /** Like `accessThrough`, keyed by client id. Reads all decisions about the clients by one statement. */
    async accessThroughAll(
      accountId: string,
      clients: readonly { readonly clientId: string; readonly limit: AccessLimit }[],
    ): Promise<ReadonlyMap<string, readonly Organization[]>> {
      const person = await people.find(accountId);
      const decisions = await clientBlocks.decisionsOf(
        clients.map(({ clientId }) => clientId),
        person?.organizations.map(({ id }) => id) ?? [],
      );
      return new Map(
        clients.map(({ clientId, limit }) => [
          clientId,
          person ? within(person, decisions.get(clientId) ?? UNDECIDED, limit) : [],
        ]),
      );
    },

    /**
     * Lists members of an organization, or subjects with access to a warehouse, in the order of joining.
     *
     * @param page if `role` is set, only members with this role are listed
     * @throws Refusal `organization_unknown` or `warehouse_unknown`
     */
    async reachedBy(
      kind: PlaceKind,
      id: string,
      { role, ...page }: PageRequest & { readonly role?: Role | undefined } = {},
    ): Promise<Page<Member>> {
      const { organization } = await findPlace(database, kind, id);
      const query = {
        select: `SELECT * FROM (
          SELECT m.organization_id, m.id AS membership, m.account_id, m.client_id,
            coalesce(m.account_id, m.client_id) AS id,
            CASE WHEN m.client_id IS NULL THEN 'person' ELSE 'machine' END AS kind,
            coalesce(a.name, c.name) AS name, a.email, m.role,
            CASE WHEN m.role IN ('owner', 'admin') THEN ARRAY['read', 'write', 'manage']
              WHEN m.role = 'viewer' THEN array(SELECT unnest(r.rights) INTERSECT SELECT 'read')
              ELSE coalesce(r.rights, '{}') END AS rights,
            coalesce(a.suspended_at, c.suspended_at) IS NOT NULL AS "isSuspended"
          FROM organization_memberships m
          LEFT JOIN accounts a ON a.id = m.account_id
          LEFT JOIN clients c ON c.id = m.client_id
          LEFT JOIN warehouse_rights r ON r.warehouse_id = $2
            AND (r.account_id = m.account_id OR r.client_id = m.client_id)
          WHERE m.organization_id BETWEEN $1 AND $1
        ) AS member`,
        filters: [
          ['role = $', role],
          ["(rights <> '{}') = $", kind === 'organization' ? undefined : true],
        ] as const,
        // Order by organization first, because the index for this order begins with the organization.
        order: ['organization_id', 'membership'],
        hasId: (id: string) => `(account_id = ${id} OR client_id = ${id})`,
        cells: [
          'id',
          "coalesce(email, name || ' (machine)')",
          'role',
          ...(kind === 'warehouse' ? ["array_to_string(rights, ',')"] : []),
          `CASE WHEN "isSuspended" THEN 'suspended' ELSE 'active' END`,
        ],
        values: [organization.id, id],
      };
      return pageOf<Member>(database, query, page);
    },
  };
}

/** The organizations of a machine client. `admitted` omits organizations and warehouses that block the client. */
interface Machine {
  readonly organizations: readonly Organization[];
  readonly admitted: readonly Organization[];
}

function within(
  { organizations, policies }: Reach,
  decisions: ClientDecisions | undefined,
  limit: AccessLimit | undefined,
): readonly Organization[] {
  const admitted = admittedBy(organizations, policies, decisions);
  return limit ? limitAccess(admitted, limit) : admitted;
}

/** Omits organizations and warehouses that exclude the client. `decisions` is undefined for an API key. */
function admittedBy(
  organizations: readonly Organization[],
  policies: OrganizationPolicies,
  decisions: ClientDecisions | undefined,
): readonly Organization[] {
  const within = decisions ? withoutWarehouses(organizations, decisions.warehouses) : organizations;
  if (policies.size === 0 && !decisions?.blocked.size) return within;
  return within.filter(({ id }) => {
    const { asksFirst, allowsApiKeys } = policies.get(id) ?? OPEN_POLICY;
    if (decisions === undefined) return allowsApiKeys;
    return !decisions.blocked.has(id) && (!asksFirst || decisions.approved.has(id));
  });
}
