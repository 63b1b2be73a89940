/** Looks up, edits and deletes organizations and warehouses, which have these steps in common. */
import { Refusal, refuseViolations } from '../../base/refusal.ts';
import type { Database, InTransaction, Queries } from '../../storage/queries.ts';
import { displayName } from '../display-name.ts';
import { knownChange, type NamedRow, recordChanges, recordDeletion } from '../known-times.ts';

export type PlaceKind = 'organization' | 'warehouse';

export interface Place {
  readonly id: string;
  readonly name: string;
  /** The place's id in the system that it was imported from; null if created by hand. */
  readonly externalId: string | null;
}

export interface FoundPlace extends Place {
  /** The organization of the warehouse, or the organization itself. */
  readonly organization: { readonly id: string; readonly name: string };
}

export interface PlaceChanges {
  readonly name?: string | undefined;
  readonly externalId?: string | undefined;
}

export interface Dependents {
  readonly warehouses: number;
  /** Users with a membership in the organization, or rights in the warehouse. */
  readonly people: number;
  readonly machines: number;
}

export const MAX_DEPENDENTS = 10_000;

/** Repeats a step that met another change of the same rows: a deadlock, or a lock held for too long. */
async function retried<Rows>(step: () => Promise<Rows>): Promise<Rows> {
  for (let left = MAX_RETRIES; ; left -= 1) {
    try {
      return await step();
    } catch (error) {
      const { code } = error as { code?: string };
      if (left === 0 || (code !== '40P01' && code !== 'statement_too_long')) throw error;
    }
  }
}

const MAX_RETRIES = 3;

/** How many rows a statement deletes: each has a notification and rows that depend on it. */
const STEP = 500;

export function createPlaces(database: Database) {
  return {
    /** @throws Refusal `organization_unknown` or `warehouse_unknown` */
    find: (kind: PlaceKind, id: string): Promise<FoundPlace> => findPlace(database, kind, id),

    /**
     * Changes the name or the external id. The next import treats a place with an external id as if
     * an import had created it.
     *
     * @throws Refusal `organization_unknown`, `warehouse_unknown`, `name_invalid` or
     *   `external_id_taken`
     */
    edit: (
      kind: PlaceKind,
      id: string,
      { name, externalId }: PlaceChanges,
      inTransaction?: InTransaction<Place>,
    ): Promise<Place> =>
      refuseViolations(
        takenBy(externalId),
        change(
          kind,
          `UPDATE ${PLACES[kind].table} SET name = coalesce($2, name),
              external_id = coalesce($3, external_id)
            WHERE id = $1 RETURNING id, name, external_id AS "externalId"`,
          [id, name === undefined ? null : displayName(name), acceptedExternalId(externalId)],
          async (tx, place, at) => {
            await recordChanges(tx, at, { type: kind, [kind]: id });
            await inTransaction?.(tx, place);
          },
        ),
      ),

    /**
     * Deletes all access to the place and its warehouses, step by step, and then the place. Each step
     * is in force from the next call. If the process stops, a repeated call continues.
     *
     * @param inTransaction runs before the first step, so that the log says who began
     * @throws Refusal `organization_unknown` or `warehouse_unknown`
     */
    async remove(kind: PlaceKind, id: string, inTransaction?: InTransaction<Place>): Promise<Place> {
      const { table, isOfPlace, steps } = PLACES[kind];
      const found = 'id, name, external_id AS "externalId"';
      const select = `SELECT ${found} FROM ${table} WHERE id = $1`;
      const place = await change(kind, select, [id], async (tx, one, at) => {
        // Late lines do nothing from now on, although the steps have only begun.
        const rows = (type: PlaceKind, key: string) =>
          tx.query<NamedRow>(`SELECT id, external_id FROM ${PLACES[type].table} WHERE ${key} = $1`, [id]);
        await recordDeletion(tx, at, kind, await rows(kind, 'id'));
        if (kind === 'organization')
          await recordDeletion(tx, at, 'warehouse', await rows('warehouse', 'organization_id'));
        await inTransaction?.(tx, one);
      });
      for (const access of steps) {
        let ended: unknown[];
        do {
          ended = await retried(() =>
            database.query(
              `DELETE FROM ${access} WHERE id = ANY(ARRAY(
                  SELECT id FROM ${access} WHERE ${isOfPlace} LIMIT ${STEP})) RETURNING 1`,
              [id],
            ),
          );
        } while (ended.length > 0);
      }
      // The database also deletes what was added meanwhile, and notifies nodes of each row.
      await retried(() => database.query(`DELETE FROM ${table} WHERE id = $1`, [id]));
      return place;
    },

    /**
     * Counts the warehouses deleted with the place, and the users and clients that lose access:
     * `MAX_DEPENDENTS + 1` of these stands for any more.
     */
    async dependents(kind: PlaceKind, id: string): Promise<Dependents> {
      const { access } = PLACES[kind];
      const countOf = (subject: string): string =>
        `(SELECT count(*)::integer FROM (SELECT FROM ${access}
          WHERE ${kind}_id = $1 AND ${subject} IS NOT NULL LIMIT ${MAX_DEPENDENTS + 1}) AS counted)`;
      const [row] = await database.query<Dependents>(
        `SELECT ${countOf('account_id')} AS people, ${countOf('client_id')} AS machines,
            (SELECT count(*) FROM warehouses WHERE organization_id = $1)::integer AS warehouses`,
        [id],
      );
      return row ?? { warehouses: 0, people: 0, machines: 0 };
    },
  };

  async function change(
    kind: PlaceKind,
    statement: string,
    [id, ...values]: readonly [string, ...(string | null)[]],
    inTransaction: (tx: Queries, place: Place, at: Date) => Promise<void>,
  ): Promise<Place> {
    const { isId, unknown } = PLACES[kind];
    if (!isId(id)) throw unknown(id);
    return knownChange(database, undefined, async (tx, at) => {
      const [place] = await tx.query<Place>(statement, [id, ...values]);
      if (place === undefined) throw unknown(id);
      await inTransaction(tx, place, at);
      return place;
    });
  }
}

/** @throws Refusal `organization_unknown` or `warehouse_unknown` */
export async function findPlace(queries: Queries, kind: PlaceKind, id: string): Promise<FoundPlace> {
  const { table, isId, unknown } = PLACES[kind];
  const home = kind === 'organization' ? 'id' : 'organization_id';
  const [place] = isId(id)
    ? await queries.query<FoundPlace>(
        `SELECT it.id, it.name, it.external_id AS "externalId",
            json_build_object('id', o.id, 'name', o.name) AS organization
          FROM ${table} it JOIN organizations o ON o.id = it.${home} WHERE it.id = $1`,
        [id],
      )
    : [];
  if (place === undefined) throw unknown(id);
  return place;
}

/** Accepts visible text, as an import does (changes/line.ts). @throws Refusal `name_invalid` */
export const acceptedExternalId = (entered: string | undefined): string | null =>
  entered === undefined ? null : displayName(entered);

export const takenBy = (externalId = '') => {
  const taken = () =>
    new Refusal(
      'external_id_taken',
      `The external id ${externalId} is already used.`,
      'See `organizations list` and `warehouses list`.',
    );
  return { organizations_external_id_key: taken, warehouses_external_id_key: taken };
};

/** Check an id before a query with it: PostgreSQL throws for some invalid ids (with a NUL byte). */
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

export const PLACES = {
  organization: {
    table: 'organizations',
    access: 'organization_memberships',
    steps: ['warehouse_rights', 'organization_memberships', 'warehouses'],
    isOfPlace: 'organization_id = $1',
    isId: isOrganizationId,
    unknown: unknownOrganization,
  },
  warehouse: {
    table: 'warehouses',
    access: 'warehouse_rights',
    steps: ['warehouse_rights'],
    isOfPlace: `organization_id = (SELECT organization_id FROM warehouses WHERE id = $1)
      AND warehouse_id = $1`,
    isId: isWarehouseId,
    unknown: unknownWarehouse,
  },
} as const;
