/** Compares two results of `accessOf` and marks what changed. */
import { byName, type Organization, type Right, type Role, type Warehouse } from './reach.ts';

/** How an organization or warehouse differs; `changed` means that its role or rights changed. */
export type Change = 'added' | 'removed' | 'changed';

export interface ComparedOrganization extends Organization {
  readonly change?: Change;
  readonly formerRole?: Role;
  readonly warehouses: readonly ComparedWarehouse[];
}

interface ComparedWarehouse extends Warehouse {
  readonly change?: Change;
  readonly formerRights?: readonly Right[];
}

/**
 * Returns the organizations of both results, sorted by name: removed organizations as in `before`,
 * all others as in `now`. Nothing is marked if `before` is undefined. New names are not marked.
 */
export function compareAccess(
  before: readonly Organization[] | undefined,
  now: readonly Organization[],
): ComparedOrganization[] {
  if (!before) return [...now];
  const earlier = new Map(before.map((organization) => [organization.id, organization]));
  const current = new Set(now.map(({ id }) => id));
  const gone = before
    .filter(({ id }) => !current.has(id))
    .map((organization) => ({ ...organization, change: 'removed' as const }));
  return [...now.map((organization) => compareOrganization(earlier.get(organization.id), organization)), ...gone].sort(
    byName,
  );
}

/** Returns how many organizations and warehouses changed, each counted once. */
export function countChanges(organizations: readonly ComparedOrganization[]): Record<Change, number> {
  const changes = { added: 0, removed: 0, changed: 0 };
  for (const { change, warehouses } of organizations) {
    if (change) changes[change] += 1;
    for (const warehouse of warehouses) if (warehouse.change) changes[warehouse.change] += 1;
  }
  return changes;
}

function compareOrganization(before: Organization | undefined, now: Organization): ComparedOrganization {
  // Do not mark the warehouses of a new organization: all of them are new.
  if (!before) return { ...now, change: 'added' };
  const earlier = new Map(before.warehouses.map((warehouse) => [warehouse.id, warehouse]));
  const current = new Set(now.warehouses.map(({ id }) => id));
  const gone = before.warehouses
    .filter(({ id }) => !current.has(id))
    .map((warehouse) => ({ ...warehouse, change: 'removed' as const }));
  return {
    ...now,
    ...(before.role !== now.role && { change: 'changed', formerRole: before.role }),
    warehouses: [
      ...now.warehouses.map((warehouse) => compareWarehouse(earlier.get(warehouse.id), warehouse)),
      ...gone,
    ].sort(byName),
  };
}

function compareWarehouse(before: Warehouse | undefined, now: Warehouse): ComparedWarehouse {
  if (!before) return { ...now, change: 'added' };
  if (before.rights.join() === now.rights.join()) return now;
  return { ...now, change: 'changed', formerRights: before.rights };
}
