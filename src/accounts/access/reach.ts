/** The access of a user or machine client, computed from memberships and rights. */
import { isClientId } from '../../base/random-id.ts';
import { isAccountId } from '../account.ts';

export type Role = 'owner' | 'admin' | 'member' | 'viewer';

export const isAdmin = (role: Role | undefined): boolean => role === 'owner' || role === 'admin';
export type Right = 'read' | 'write' | 'manage';

/** An organization as introspection responses contain it. */
export interface Organization {
  readonly id: string;
  /** The organization's id in the system that it was imported from; absent if created manually. */
  readonly external_id?: string;
  readonly name: string;
  readonly role: Role;
  /** Only warehouses in which the subject has a right. */
  readonly warehouses: readonly Warehouse[];
}

export interface Warehouse {
  readonly id: string;
  readonly external_id?: string;
  readonly name: string;
  readonly rights: readonly Right[];
}

export const ROLES: readonly Role[] = ['owner', 'admin', 'member', 'viewer'];
export const RIGHTS: readonly Right[] = ['read', 'write', 'manage'];

/** Returns a query for `ReachRow`s. @param id SQL expression for the id of the subject */
export const selectReach = (column: SubjectColumn[0], id: string): string =>
  `SELECT m.role, o.id AS "organizationId", o.name AS "organizationName", o.external_id AS "organizationExternalId",
      o.asks_first AS "asksFirst", o.allows_api_keys AS "allowsApiKeys", w.id AS "warehouseId",
      w.name AS "warehouseName", w.external_id AS "warehouseExternalId", r.rights
    FROM organization_memberships m
    JOIN organizations o ON o.id = m.organization_id AND o.ended_at IS NULL
    LEFT JOIN (
      warehouses w LEFT JOIN warehouse_rights r ON r.warehouse_id = w.id AND r.${column} = ${id}
    ) ON w.organization_id = m.organization_id AND w.ended_at IS NULL
      AND (m.role IN ('owner', 'admin') OR r.rights IS NOT NULL)
    WHERE m.${column} = ${id}`;

export interface ReachRow {
  readonly role: Role;
  readonly organizationId: string;
  readonly organizationName: string;
  readonly organizationExternalId: string | null;
  readonly asksFirst: boolean;
  readonly allowsApiKeys: boolean;
  /** Null if no warehouse of the organization is accessible; the result then has one row for the organization. */
  readonly warehouseId: string | null;
  readonly warehouseName: string | null;
  readonly warehouseExternalId: string | null;
  readonly rights: Right[] | null;
}

export function organizationsFrom(rows: readonly ReachRow[]): Organization[] {
  const organizations = Map.groupBy(rows, ({ organizationId }) => organizationId);
  return [...organizations.values()]
    .flatMap(([first, ...others]) => (first ? [organizationFrom(first, [first, ...others])] : []))
    .sort(byName);
}

function organizationFrom(
  { organizationId: id, organizationName: name, organizationExternalId, role }: ReachRow,
  rows: readonly ReachRow[],
): Organization {
  const warehouses = rows
    .map((row) => ({
      ...named(row.warehouseId ?? '', row.warehouseExternalId, row.warehouseName ?? ''),
      rights: rightsOf(role, row),
    }))
    .filter(({ rights }) => rights.length > 0)
    .sort(byName);
  return { ...named(id, organizationExternalId, name), role, warehouses };
}

const named = (id: string, external_id: string | null, name: string) =>
  external_id === null ? { id, name } : { id, external_id, name };

const rightsOf = (role: Role, row: ReachRow): readonly Right[] =>
  row.warehouseId === null ? [] : rightsBy(role, row.rights);

/** Returns the stored rights that the role allows, in the order of `RIGHTS`. An owner or admin has all rights. */
export function rightsBy(role: Role, rights: readonly Right[] | null): readonly Right[] {
  if (role === 'owner' || role === 'admin') return RIGHTS;
  const most = role === 'viewer' ? (['read'] as const) : RIGHTS;
  return most.filter((right) => rights?.includes(right));
}

/** The holder of memberships: a user, or a machine client, which acts for itself. */
export type Subject = { readonly accountId: string } | { readonly clientId: string };

export type SubjectColumn = readonly ['account_id' | 'client_id', string];

/** Returns undefined if the id is malformed. */
export function subjectColumn(subject: Subject): SubjectColumn | undefined {
  if ('accountId' in subject) {
    return isAccountId(subject.accountId) ? ['account_id', subject.accountId] : undefined;
  }
  return isClientId(subject.clientId) ? ['client_id', subject.clientId] : undefined;
}

/** Compares names in the same way on every node and in every database. */
export const collator = new Intl.Collator('en', { numeric: true });

export function byName(
  a: { readonly id: string; readonly name: string },
  b: { readonly id: string; readonly name: string },
): number {
  return collator.compare(a.name, b.name) || (a.id < b.id ? -1 : 1);
}
