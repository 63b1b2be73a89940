/** Finds organizations and warehouses by their ids. */
import { Refusal } from '../../base/refusal.ts';
import type { Queries } from '../../storage/queries.ts';

export type PlaceKind = 'organization' | 'warehouse';

export interface Place {
  readonly id: string;
  readonly name: string;
  /** The id in the system that the place was imported from; null if it was created manually. */
  readonly externalId: string | null;
}

export interface FoundPlace extends Place {
  readonly organization: { readonly id: string; readonly name: string };
}

/** `withEnded` also finds a place that is being deleted. @throws Refusal `organization_unknown`, `warehouse_unknown` */
export async function findPlace(
  queries: Queries,
  kind: PlaceKind,
  id: string,
  { withEnded = false }: { readonly withEnded?: boolean } = {},
): Promise<FoundPlace> {
  const { table, isId, unknown } = PLACES[kind];
  const home = kind === 'organization' ? 'id' : 'organization_id';
  const [place] = isId(id)
    ? await queries.query<FoundPlace>(
        `SELECT it.id, it.name, it.external_id AS "externalId",
            json_build_object('id', o.id, 'name', o.name) AS organization
          FROM ${table} it JOIN organizations o ON o.id = it.${home} WHERE it.id = $1
          AND ($2 OR (it.ended_at IS NULL AND o.ended_at IS NULL))`,
        [id, withEnded],
      )
    : [];
  if (place === undefined) throw unknown(id);
  return place;
}

/** Check an id with this before a query, because PostgreSQL throws for ids with a NUL byte. */
export const isOrganizationId = (id: string): boolean => /^org_[A-Za-z0-9_-]{16}$/.test(id);
export const isWarehouseId = (id: string): boolean => /^wh_[A-Za-z0-9_-]{16}$/.test(id);

export function unknownOrganization(id: string): Refusal {
  return new Refusal(
    'organization_unknown',
    `There is no organization ${id}.`,
    'See the list of organizations, or add it first.',
  );
}

export function unknownWarehouse(id: string): Refusal {
  return new Refusal(
    'warehouse_unknown',
    `There is no warehouse ${id}.`,
    'See the list of warehouses, or add it first.',
  );
}

const PLACES = {
  organization: {
    table: 'organizations',
    isId: isOrganizationId,
    unknown: unknownOrganization,
  },
  warehouse: {
    table: 'warehouses',
    isId: isWarehouseId,
    unknown: unknownWarehouse,
  },
} as const;
