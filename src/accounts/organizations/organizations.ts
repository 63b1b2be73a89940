/** Organizations and their warehouses: what access is about. */
import type { Clock } from '../../clock.ts';
import { randomId } from '../../random-id.ts';
import { refuseViolations } from '../../refusal.ts';
import { byName, mapPage, type Page, type PageRequest, pageOf } from '../../storage/pages.ts';
import type { Alongside, Database } from '../../storage/queries.ts';
import { displayName } from '../display-name.ts';
import {
  acceptedExternalId,
  createPlaces,
  isOrganizationId,
  type Places,
  takenBy,
  unknownOrganization,
} from './places.ts';

export interface WarehouseRecord {
  readonly id: string;
  readonly name: string;
  readonly organizationId: string;
  readonly createdAt: Date;
  /** In the system it was imported from; absent for one made by hand. */
  readonly externalId?: string;
}

export interface OrganizationRecord {
  readonly id: string;
  readonly name: string;
  readonly createdAt: Date;
  readonly externalId?: string;
  /** How many it has. */
  readonly warehouses: number;
}

export interface ListedWarehouse extends WarehouseRecord {
  readonly organizationName: string;
}

export interface Organizations extends Places {
  /** By name. */
  list(page?: PageRequest): Promise<Page<OrganizationRecord>>;
  /**
   * By the name of the organization, and by its own.
   *
   * @param organizationId only those of this one.
   * @throws Refusal `organization_unknown`
   */
  listWarehouses(page?: PageRequest, organizationId?: string): Promise<Page<ListedWarehouse>>;
  /** @throws Refusal `name_invalid` or `external_id_taken` */
  add(
    organization: { readonly name: string; readonly externalId?: string | undefined },
    alongside?: Alongside<OrganizationRecord>,
  ): Promise<OrganizationRecord>;
  /** @throws Refusal `name_invalid`, `organization_unknown` or `external_id_taken` */
  addWarehouse(
    warehouse: {
      readonly organizationId: string;
      readonly name: string;
      readonly externalId?: string | undefined;
    },
    alongside?: Alongside<WarehouseRecord>,
  ): Promise<WarehouseRecord>;
}

export function createOrganizations(parts: {
  readonly database: Database;
  readonly clock: Clock;
}): Organizations {
  const { database, clock } = parts;
  const places = createPlaces(database);

  return {
    ...places,

    async list(page = {}) {
      const query = {
        select: `SELECT o.id, o.name, o.created_at, o.external_id,
          (SELECT count(*)::integer FROM warehouses w WHERE w.organization_id = o.id) AS warehouses
          FROM organizations o`,
        order: `${byName('name')}, id`,
        cells: ['id', 'name', 'warehouses::text', 'external_id'],
      };
      return mapPage(await pageOf<OrganizationRow>(database, query, page), organizationFrom);
    },

    async listWarehouses(page = {}, organizationId) {
      if (organizationId !== undefined) await places.find('organization', organizationId);
      const query = {
        select: `SELECT w.id, w.name, w.organization_id, w.created_at, w.external_id,
            o.name AS organization_name
          FROM warehouses w JOIN organizations o ON o.id = w.organization_id
          WHERE $1::text IS NULL OR o.id = $1`,
        order: `${byName('organization_name')}, organization_id, ${byName('name')}, id`,
        cells: ['id', 'name', 'organization_name', 'external_id'],
        values: [organizationId ?? null],
      };
      return mapPage(await pageOf<WarehouseRow>(database, query, page), (row) => ({
        ...warehouseFrom(row),
        organizationName: row.organization_name,
      }));
    },

    async add({ name: entered, externalId }, alongside) {
      const organization = {
        id: randomId('org_', 16),
        name: displayName(entered),
        createdAt: new Date(clock()),
        ...acceptedExternalId(externalId),
        warehouses: 0,
      };
      await refuseViolations(
        takenBy(externalId),
        database.transaction(async (tx) => {
          const { id, name, createdAt } = organization;
          await tx.query(
            'INSERT INTO organizations (id, name, created_at, external_id) VALUES ($1, $2, $3, $4)',
            [id, name, createdAt, organization.externalId ?? null],
          );
          await alongside?.(tx, organization);
        }),
      );
      return organization;
    },

    async addWarehouse({ organizationId, name: entered, externalId }, alongside) {
      if (!isOrganizationId(organizationId)) throw unknownOrganization(organizationId);
      const warehouse = {
        id: randomId('wh_', 16),
        name: displayName(entered),
        organizationId,
        createdAt: new Date(clock()),
        ...acceptedExternalId(externalId),
      };
      await refuseViolations(
        {
          ...takenBy(externalId),
          warehouses_organization_id_fkey: () => unknownOrganization(organizationId),
        },
        database.transaction(async (tx) => {
          await tx.query(
            `INSERT INTO warehouses (id, organization_id, name, created_at, external_id)
              VALUES ($1, $2, $3, $4, $5)`,
            [
              warehouse.id,
              organizationId,
              warehouse.name,
              warehouse.createdAt,
              warehouse.externalId ?? null,
            ],
          );
          await alongside?.(tx, warehouse);
        }),
      );
      return warehouse;
    },
  };
}

interface OrganizationRow {
  readonly id: string;
  readonly name: string;
  readonly created_at: Date;
  readonly external_id: string | null;
  readonly warehouses: number;
}

const organizationFrom = (row: OrganizationRow): OrganizationRecord => ({
  id: row.id,
  name: row.name,
  createdAt: row.created_at,
  ...(row.external_id !== null && { externalId: row.external_id }),
  warehouses: row.warehouses,
});

interface WarehouseRow extends Omit<OrganizationRow, 'warehouses'> {
  readonly organization_id: string;
  readonly organization_name: string;
}

function warehouseFrom(row: WarehouseRow): WarehouseRecord {
  const { id, name, organization_id: organizationId, created_at: createdAt, external_id } = row;
  return {
    id,
    name,
    organizationId,
    createdAt,
    ...(external_id !== null && { externalId: external_id }),
  };
}
