/** What a person or a machine client may reach right now: computed at each call, kept in no token. */
import type { Clock } from '../clock.ts';
import type { ChangeFeed } from '../storage/change-feed.ts';
import { createMemory } from '../storage/memory.ts';
import type { Queries } from '../storage/queries.ts';
import { byName } from './by-name.ts';
import { PLACES, type PlaceKind } from './places.ts';
import { type Subject, type SubjectColumn, subjectColumn } from './subject.ts';

export type Role = 'owner' | 'admin' | 'member' | 'viewer';
export type Right = 'read' | 'write' | 'manage';

/** As introspection shows it. */
export interface Organization {
  readonly id: string;
  /** In the system it was imported from; absent for one made by hand. */
  readonly external_id?: string;
  readonly name: string;
  readonly role: Role;
  /** Only those with at least one right. */
  readonly warehouses: readonly Warehouse[];
}

export interface Warehouse {
  readonly id: string;
  readonly external_id?: string;
  readonly name: string;
  /** In the order of `RIGHTS`. */
  readonly rights: readonly Right[];
}

export const ROLES: readonly Role[] = ['owner', 'admin', 'member', 'viewer'];
export const RIGHTS: readonly Right[] = ['read', 'write', 'manage'];

export interface Access {
  /**
   * The organizations and warehouses by name. Whether the subject exists or is suspended is for
   * the caller to ask: an unknown one reaches nothing.
   */
  accessOf(subject: Subject): Promise<readonly Organization[]>;
  /**
   * The other way round: who is in the organization, or reaches the warehouse, people first, by name.
   *
   * @throws Refusal `organization_unknown` or `warehouse_unknown`
   */
  reachedBy(kind: PlaceKind, id: string): Promise<readonly Member[]>;
}

export interface Member {
  readonly id: string;
  readonly kind: 'person' | 'machine';
  readonly name: string;
  /** Of a person. */
  readonly email?: string;
  readonly role: Role;
  /** In the warehouse that was asked for. */
  readonly rights: readonly Right[];
  readonly isSuspended: boolean;
}

export function createAccess(parts: {
  readonly database: Queries;
  readonly changes: ChangeFeed;
  readonly clock: Clock;
}): Access {
  const { database } = parts;
  const memory = createMemory<readonly Organization[]>({ ...parts, topic: 'access' });

  async function read([column, id]: SubjectColumn): Promise<Organization[]> {
    const rows = await database.query<AccessRow>(
      `SELECT m.role, o.id AS organization_id, o.name AS organization_name,
          o.external_id AS organization_external_id, w.id AS warehouse_id,
          w.name AS warehouse_name, w.external_id AS warehouse_external_id, r.rights
        FROM organization_memberships m
        JOIN organizations o ON o.id = m.organization_id
        LEFT JOIN (
          warehouses w LEFT JOIN warehouse_rights r ON r.warehouse_id = w.id AND r.${column} = $1
        ) ON w.organization_id = m.organization_id
          AND (m.role IN ('owner', 'admin') OR r.rights IS NOT NULL)
        WHERE m.${column} = $1`,
      [id],
    );
    return organizationsFrom(rows);
  }

  return {
    async accessOf(subject) {
      const column = subjectColumn(subject);
      return column === undefined ? [] : memory.find(column[1], () => read(column));
    },

    async reachedBy(kind, id) {
      const { isId, table, unknown } = PLACES[kind];
      const column = kind === 'organization' ? 'id' : 'organization_id';
      const [place] = isId(id)
        ? await database.query<{ home: string }>(
            `SELECT ${column} AS home FROM ${table} WHERE id = $1`,
            [id],
          )
        : [];
      if (place === undefined) throw unknown(id);
      const rows = await database.query<MemberRow>(
        `SELECT coalesce(m.account_id, m.client_id) AS id, m.client_id IS NOT NULL AS is_machine,
            coalesce(a.name, c.name) AS name, a.email, m.role, r.rights,
            coalesce(a.suspended_at, c.suspended_at) IS NOT NULL AS is_suspended
          FROM organization_memberships m
          LEFT JOIN accounts a ON a.id = m.account_id
          LEFT JOIN clients c ON c.id = m.client_id
          LEFT JOIN warehouse_rights r ON r.warehouse_id = $2
            AND (r.account_id = m.account_id OR r.client_id = m.client_id)
          WHERE m.organization_id = $1`,
        [place.home, id],
      );
      const members = rows.map(memberFrom).sort(byName);
      const isAsked = ({ rights }: Member): boolean => kind === 'organization' || rights.length > 0;
      return ['person', 'machine'].flatMap((one) =>
        members.filter((member) => member.kind === one && isAsked(member)),
      );
    },
  };
}

interface MemberRow {
  readonly id: string;
  readonly is_machine: boolean;
  readonly name: string;
  readonly email: string | null;
  readonly role: Role;
  readonly rights: Right[] | null;
  readonly is_suspended: boolean;
}

const memberFrom = (row: MemberRow): Member => ({
  id: row.id,
  kind: row.is_machine ? 'machine' : 'person',
  name: row.name,
  ...(row.email !== null && { email: row.email }),
  role: row.role,
  rights: rightsBy(row.role, row.rights),
  isSuspended: row.is_suspended,
});

interface AccessRow {
  readonly role: Role;
  readonly organization_id: string;
  readonly organization_name: string;
  readonly organization_external_id: string | null;
  /** Null in the one row of an organization in which nothing can be reached. */
  readonly warehouse_id: string | null;
  readonly warehouse_name: string | null;
  readonly warehouse_external_id: string | null;
  readonly rights: Right[] | null;
}

function organizationsFrom(rows: readonly AccessRow[]): Organization[] {
  const organizations = Map.groupBy(rows, (row) => row.organization_id);
  return [...organizations.values()]
    .flatMap(([first, ...others]) => (first ? [organizationFrom(first, [first, ...others])] : []))
    .sort(byName);
}

function organizationFrom(
  { organization_id: id, organization_name: name, organization_external_id, role }: AccessRow,
  rows: readonly AccessRow[],
): Organization {
  const warehouses = rows
    .map((row) => ({
      id: row.warehouse_id ?? '',
      ...externalId(row.warehouse_external_id),
      name: row.warehouse_name ?? '',
      rights: rightsOf(role, row),
    }))
    .filter(({ rights }) => rights.length > 0)
    .sort(byName);
  return { id, ...externalId(organization_external_id), name, role, warehouses };
}

const externalId = (id: string | null): { external_id?: string } =>
  id === null ? {} : { external_id: id };

const rightsOf = (role: Role, row: AccessRow): readonly Right[] =>
  row.warehouse_id === null ? [] : rightsBy(role, row.rights);

/** @param rights given in the warehouse. */
function rightsBy(role: Role, rights: readonly Right[] | null): readonly Right[] {
  if (role === 'owner' || role === 'admin') return RIGHTS;
  const given = RIGHTS.filter((right) => rights?.includes(right));
  return role === 'viewer' ? given.filter((right) => right === 'read') : given;
}
