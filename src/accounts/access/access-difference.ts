/** Compares two results of `accessOf` and marks what changed. */
import { byName, type Organization, type Right, type Role, type Warehouse } from './reach.ts';

/** Since the earlier result; `changed` if the role or the rights did. */
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
 * Returns everything of either result, sorted by name: as it is in `now`, or as it was if it is
 * gone. Without an earlier result nothing is marked as changed. A new name is no change of access.
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
  return [
    ...now.map((organization) => compareOrganization(earlier.get(organization.id), organization)),
    ...gone,
  ].sort(byName);
}

/** Returns how many organizations and warehouses changed, each counted once. */
export function countChanges(
  organizations: readonly ComparedOrganization[],
): Record<Change, number> {
  const changes = { added: 0, removed: 0, changed: 0 };
  for (const { change, warehouses } of organizations) {
    if (change) changes[change] += 1;
    for (const warehouse of warehouses) if (warehouse.change) changes[warehouse.change] += 1;
  }
  return changes;
}

function compareOrganization(
  before: Organization | undefined,
  now: Organization,
): ComparedOrganization {
  // Do not mark its warehouses: all of them are new with it.
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
