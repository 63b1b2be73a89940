/** The present access of a user or machine client: determined at each call, stored in no token. */
import type { Clock } from '../../base/clock.ts';
import { isClientId } from '../../base/random-id.ts';
import type { ChangeFeed } from '../../storage/change-feed.ts';
import { createMemory } from '../../storage/memory.ts';
import { byName, type Page, type PageRequest, pageOf } from '../../storage/pages.ts';
import type { Queries } from '../../storage/queries.ts';
import { createBars } from '../organizations/bars.ts';
import { findPlace, type PlaceKind } from '../organizations/places.ts';
import { createPeople, type People } from './people.ts';
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

export interface Member {
  readonly id: string;
  readonly kind: 'person' | 'machine';
  readonly name: string;
  /** Null for a machine client. */
  readonly email: string | null;
  readonly role: Role;
  /** In the requested warehouse. */
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
  const machines = createMemory<readonly Organization[]>({
    changes,
    clock,
    topics: ['access'],
    within: { topic: 'organizations', namesIn: (reached) => reached.map(({ id }) => id) },
  });
  const bars = createBars(parts);

  async function readMachine(id: string): Promise<Organization[]> {
    return organizationsFrom(await database.query<ReachRow>(selectReach('client_id', '$1'), [id]));
  }

  async function accessOf(subject: Subject): Promise<readonly Organization[]> {
    if ('accountId' in subject) return (await people.find(subject.accountId))?.organizations ?? [];
    const { clientId: id } = subject;
    return isClientId(id) ? machines.find(id, () => readMachine(id)) : [];
  }

  async function through(
    clientId: string,
    reached: readonly Organization[],
  ): Promise<readonly Organization[]> {
    const barred = await bars.of(clientId);
    return barred.size === 0 ? reached : reached.filter(({ id }) => !barred.has(id));
  }

  return {
    /**
     * Returns organizations and warehouses by name. The caller must check whether the subject
     * exists or is suspended: an unknown one has access to nothing.
     */
    accessOf,
    bars,
    /** Call it after a change of this access: the database's notification comes a moment later. */
    forget: (accountId: string): void => people.forget('access', accountId),

    /** Returns a user's access through a client: nothing of the organizations that block it. */
    async accessThrough(clientId: string, accountId: string): Promise<readonly Organization[]> {
      return through(clientId, await accessOf({ accountId }));
    },
    /** Like `accessThrough`, for access that is already known. */
    through,

    /**
     * Lists members of an organization, or those with access to a warehouse: users first, by name.
     *
     * @param page `role`: only members with this role.
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
          SELECT coalesce(m.account_id, m.client_id) AS id,
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
          WHERE m.organization_id = $1 AND ($3::text IS NULL OR m.role = $3)
        ) AS member WHERE ${kind === 'organization'} OR rights <> '{}'`,
        order: `kind DESC, ${byName('name')}, id`,
        // The columns that operators see.
        cells: [
          'id',
          "coalesce(email, name || ' (machine)')",
          'role',
          ...(kind === 'warehouse' ? ["array_to_string(rights, ',')"] : []),
          `CASE WHEN "isSuspended" THEN 'suspended' ELSE 'active' END`,
        ],
        values: [organization.id, id, role ?? null],
      };
      return pageOf<Member>(database, query, page);
    },
  };
}
