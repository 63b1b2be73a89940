/** Organizations and their warehouses: what access is about. */
import type { Clock } from '../clock.ts';
import { randomId } from '../random-id.ts';
import { refuseViolations } from '../refusal.ts';
import type { Alongside, Database } from '../storage/queries.ts';
import { byName } from './by-name.ts';
import { displayName } from './display-name.ts';
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
  readonly warehouses: readonly WarehouseRecord[];
}

export interface Organizations extends Places {
  /** Every organization with its warehouses, by name. */
  list(): Promise<OrganizationRecord[]>;
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

  return {
    ...createPlaces(database),

    async list() {
      const organizations = await database.query<OrganizationRow>(
        'SELECT id, name, created_at, external_id FROM organizations',
      );
      const warehouses = await database.query<WarehouseRow>(
        'SELECT id, name, organization_id, created_at, external_id FROM warehouses',
      );
      const byOrganization = Map.groupBy(warehouses, (row) => row.organization_id);
      return organizations
        .map(({ id, name, created_at: createdAt, external_id }) => ({
          id,
          name,
          createdAt,
          ...(external_id !== null && { externalId: external_id }),
          warehouses: (byOrganization.get(id) ?? []).map(warehouseFrom).sort(byName),
        }))
        .sort(byName);
    },

    async add({ name: entered, externalId }, alongside) {
      const organization = {
        id: randomId('org_', 16),
        name: displayName(entered),
        createdAt: new Date(clock()),
        ...acceptedExternalId(externalId),
        warehouses: [],
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
}

interface WarehouseRow extends OrganizationRow {
  readonly organization_id: string;
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
