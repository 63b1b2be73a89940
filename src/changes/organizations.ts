/** Organizations and their warehouses, to which users have access. */
import { displayName } from '../accounts/display-name.ts';
import type { OrganizationPolicy } from '../accounts/organizations/organization-policy.ts';
import { isOrganizationId, type Place, unknownOrganization } from '../accounts/organizations/places.ts';
import { randomId } from '../base/random-id.ts';
import { refuseViolations } from '../base/refusal.ts';
import { byName, type Page, type PageRequest, pageOf } from '../storage/pages.ts';
import type { Database, InTransaction } from '../storage/queries.ts';
import { type Changes, createChanges } from './engine.ts';
import { acceptedExternalId, createPlaces, takenBy } from './places.ts';

export interface WarehouseRecord extends Place {
  readonly organizationId: string;
  readonly createdAt: Date;
}

export interface OrganizationRecord extends Place, OrganizationPolicy {
  readonly createdAt: Date;
  readonly warehouses: number;
}

export interface ListedWarehouse extends WarehouseRecord {
  readonly organizationName: string;
}

/** SQL expression for the text of `policyText`, so that operators can search for this text. */
const POLICY = `CASE WHEN o.asks_first THEN 'ask' ELSE 'open' END
  || CASE WHEN o.allows_api_keys THEN '' ELSE ', no API keys' END`;

/** Describes the policy for operators, such as `ask, no API keys`. */
export const policyText = ({ asksFirst, allowsApiKeys }: OrganizationPolicy): string =>
  `${asksFirst ? 'ask' : 'open'}${allowsApiKeys ? '' : ', no API keys'}`;

export type Organizations = ReturnType<typeof createOrganizations>;

export function createOrganizations(parts: {
  readonly database: Database;
  readonly engine?: Changes;
  /** True if new organizations ask first. */
  readonly asksFirst?: boolean;
}) {
  const { database, engine = createChanges(parts), asksFirst = false } = parts;
  const places = createPlaces({ database, engine });

  return {
    ...places,

    /** Lists organizations by name. */
    async list(page: PageRequest = {}): Promise<Page<OrganizationRecord>> {
      const query = {
        select: `SELECT o.id, o.name, o.created_at AS "createdAt", o.external_id AS "externalId",
          o.asks_first AS "asksFirst", o.allows_api_keys AS "allowsApiKeys", ${POLICY} AS policy,
          (SELECT count(*)::integer FROM warehouses w WHERE w.organization_id = o.id) AS warehouses
          FROM organizations o`,
        order: [byName('name'), 'id'],
        cells: ['id', 'name', 'warehouses::text', 'policy', '"externalId"'],
      };
      return pageOf<OrganizationRecord>(database, query, page);
    },

    /**
     * Lists warehouses by the id of their organization, then by their own name.
     *
     * @param organizationId only warehouses of this organization.
     * @throws Refusal `organization_unknown`
     */
    async listWarehouses(page: PageRequest = {}, organizationId?: string): Promise<Page<ListedWarehouse>> {
      if (organizationId !== undefined) await places.find('organization', organizationId);
      const query = {
        select: `SELECT w.id, w.name, w.organization_id AS "organizationId",
            w.created_at AS "createdAt", w.external_id AS "externalId", o.name AS "organizationName"
          FROM warehouses w JOIN organizations o ON o.id = w.organization_id
          WHERE $1::text IS NULL OR o.id = $1`,
        order: ['"organizationId"', byName('name'), 'id'],
        cells: ['id', 'name', '"organizationName"', '"externalId"'],
        values: [organizationId ?? null],
      };
      return pageOf<ListedWarehouse>(database, query, page);
    },

    /** @throws Refusal `name_invalid` or `external_id_taken` */
    async add(
      { name: entered, externalId }: { readonly name: string; readonly externalId?: string | undefined },
      inTransaction?: InTransaction<OrganizationRecord>,
    ): Promise<OrganizationRecord> {
      const id = randomId('org_', 16);
      const name = displayName(entered);
      const external_id = acceptedExternalId(externalId);
      return refuseViolations(
        takenBy(externalId),
        engine.transaction(async (tx, now) => {
          await engine.make(tx, now, [
            { type: 'organization', id, adds: true, set: { name, external_id, asks_first: asksFirst } },
          ]);
          const policy = { asksFirst, allowsApiKeys: true };
          const organization = { id, name, createdAt: now, externalId: external_id, warehouses: 0, ...policy };
          await inTransaction?.(tx, organization);
          return organization;
        }),
      );
    },

    /** @throws Refusal `name_invalid`, `organization_unknown` or `external_id_taken` */
    async addWarehouse(
      {
        organizationId,
        name: entered,
        externalId,
      }: {
        readonly organizationId: string;
        readonly name: string;
        readonly externalId?: string | undefined;
      },
      inTransaction?: InTransaction<WarehouseRecord>,
    ): Promise<WarehouseRecord> {
      if (!isOrganizationId(organizationId)) throw unknownOrganization(organizationId);
      const id = randomId('wh_', 16);
      const name = displayName(entered);
      const external_id = acceptedExternalId(externalId);
      return refuseViolations(
        {
          ...takenBy(externalId),
          warehouses_organization_id_fkey: () => unknownOrganization(organizationId),
        },
        engine.transaction(async (tx, now) => {
          const home = { organization_id: organizationId };
          await engine.make(tx, now, [
            { type: 'warehouse', id, adds: true, ...home, set: { name, external_id, ...home } },
          ]);
          const warehouse = { id, name, organizationId, createdAt: now, externalId: external_id };
          await inTransaction?.(tx, warehouse);
          return warehouse;
        }),
      );
    },
  };
}
