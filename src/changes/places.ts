/** Edits and deletes organizations and warehouses, which have these steps in common. */
import { displayName } from '../accounts/display-name.ts';
import { type FoundPlace, findPlace, type Place, type PlaceKind } from '../accounts/organizations/places.ts';
import { Refusal, refuseViolations } from '../base/refusal.ts';
import type { Database, InTransaction } from '../storage/queries.ts';
import { type Changes, retried } from './engine.ts';
import { recordDeletions } from './times.ts';

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

/** Pauses before a step is repeated that met another change of the same rows. */
const RETRY_PAUSES_MS = [100, 400, 1_000];

/** How many rows a statement deletes: each has a notification and rows that depend on it. */
const STEP = 500;

export function createPlaces({ database, engine }: { readonly database: Database; readonly engine: Changes }) {
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
    async edit(
      kind: PlaceKind,
      id: string,
      { name, externalId }: PlaceChanges,
      inTransaction?: InTransaction<Place>,
    ): Promise<Place> {
      const set = {
        ...(name !== undefined && { name: displayName(name) }),
        ...(externalId !== undefined && { external_id: acceptedExternalId(externalId) }),
      };
      return refuseViolations(
        takenBy(externalId),
        engine.transaction(async (tx, now) => {
          const { organization } = await findPlace(tx, kind, id);
          const ids = { id, ...(kind === 'warehouse' && { organization_id: organization.id }) };
          await engine.make(tx, now, [{ type: kind, ...ids, set }]);
          const place = placeOf(await findPlace(tx, kind, id));
          await inTransaction?.(tx, place);
          return place;
        }),
      );
    },

    /**
     * Deletes all access to the place and its warehouses, step by step, and then the place. Each step
     * is in force from the next call. If the process stops, a repeated call continues.
     *
     * @param inTransaction runs before the first step, so that the log says who began
     * @throws Refusal `organization_unknown` or `warehouse_unknown`
     */
    async remove(kind: PlaceKind, id: string, inTransaction?: InTransaction<Place>): Promise<Place> {
      const { table, steps } = REMOVAL[kind];
      const place = await engine.transaction(async (tx, now) => {
        const found = placeOf(await findPlace(tx, kind, id));
        // Late lines do nothing from now on, although the steps have only begun.
        const ofPlace = kind === 'organization' ? 'organization_id' : 'id';
        const warehouses = await tx.query<{ id: string; external_id: string | null }>(
          `SELECT id, external_id FROM warehouses WHERE ${ofPlace} = $1`,
          [id],
        );
        await recordDeletions(tx, now, 'warehouse', warehouses);
        if (kind === 'organization') {
          await recordDeletions(tx, now, kind, [{ id, external_id: found.externalId }]);
        }
        await inTransaction?.(tx, found);
        return found;
      });
      // With the lock of all changes, so that no other writer meets a row that is being deleted.
      const step = (statement: string): Promise<unknown[]> =>
        retried(RETRY_PAUSES_MS, () => engine.transaction((tx) => tx.query(`${statement} RETURNING 1`, [id])));
      for (const [rows, isOfPlace] of steps) {
        const some = `ARRAY(SELECT ctid FROM ${rows} WHERE ${isOfPlace} LIMIT ${STEP})`;
        while ((await step(`DELETE FROM ${rows} WHERE ctid = ANY(${some})`)).length > 0);
      }
      await step(`DELETE FROM ${table} WHERE id = $1`);
      return place;
    },

    /**
     * Counts the warehouses deleted with the place, and the users and clients that lose access:
     * `MAX_DEPENDENTS + 1` of these stands for any more.
     */
    async dependents(kind: PlaceKind, id: string): Promise<Dependents> {
      const { access } = REMOVAL[kind];
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
}

const placeOf = ({ id, name, externalId }: FoundPlace): Place => ({ id, name, externalId });

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

const REMOVAL = {
  organization: {
    table: 'organizations',
    access: 'organization_memberships',
    steps: ['warehouse_rights', 'organization_memberships', 'warehouses', 'known_times'].map(
      (rows) => [rows, 'organization_id = $1'] as const,
    ),
  },
  warehouse: {
    table: 'warehouses',
    access: 'warehouse_rights',
    steps: [
      [
        'warehouse_rights',
        'organization_id = (SELECT organization_id FROM warehouses WHERE id = $1) AND warehouse_id = $1',
      ],
      ['known_times', 'warehouse_id = $1'],
    ],
  },
} as const;
