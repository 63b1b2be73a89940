/** Adds, lists, edits and deletes organizations and their warehouses. */
import { displayName } from '../accounts/display-name.ts';
import { type FoundPlace, findPlace, type Place, type PlaceKind } from '../accounts/organizations/places.ts';
import { randomId } from '../base/random-id.ts';
import { Refusal, refuseViolations } from '../base/refusal.ts';
import type { CleaningJob } from '../storage/cleaning.ts';
import { byName, type Page, type PageRequest, pageOf } from '../storage/pages.ts';
import type { Database, InTransaction, Queries } from '../storage/queries.ts';
import { isAway } from '../storage/storage-unavailable.ts';
import { BY_INDEX, type Changes, createChanges, isTooLong, RETRIED_SHARE, retried } from './engine.ts';
import { HOME_ENDED_AT, PREFIXES } from './stage.ts';
import { recordDeletions } from './times.ts';

export interface PlaceChanges {
  readonly name?: string | undefined;
  readonly externalId?: string | undefined;
}

type NewPlace = PlaceChanges & { readonly name: string; readonly organizationId?: string };

export interface Dependents {
  readonly warehouses: number;
  /** How many users are members of the organization, or have rights in the warehouse. */
  readonly people: number;
  readonly machines: number;
}

export const MAX_DEPENDENTS = 10_000;

/** Maximum number of rows per DELETE. Keep it low: each row also sends a notification, and deletes dependent rows. */
const STEP = 500;

interface ListedPlace {
  readonly id: string;
  readonly name: string;
  readonly external_id: string | null;
  readonly created_at: Date;
}

export interface ListedOrganization extends ListedPlace {
  /** The policy for clients and API keys, in words that operators search for. */
  readonly policy: string;
  readonly warehouses: number;
}

export interface ListedWarehouse extends ListedPlace {
  readonly organization_name: string;
}

/** The columns have the names of the keys that `--json` prints. */
const LISTED = {
  organization: `SELECT o.id, o.id AS organization_id, o.name, o.external_id,
      CASE WHEN o.asks_first THEN 'ask' ELSE 'open' END AS clients,
      CASE WHEN o.allows_api_keys THEN 'allow' ELSE 'refuse' END AS api_keys, o.created_at,
      CASE WHEN o.asks_first THEN 'ask' ELSE 'open' END
        || CASE WHEN o.allows_api_keys THEN '' ELSE ', no API keys' END AS policy,
      (SELECT count(*)::integer FROM warehouses w WHERE w.organization_id = o.id AND w.ended_at IS NULL) AS warehouses
    FROM organizations o WHERE o.ended_at IS NULL`,
  warehouse: `SELECT w.id, w.id AS warehouse_id, w.organization_id, w.name, w.external_id, w.created_at,
      o.name AS organization_name
    FROM warehouses w JOIN organizations o ON o.id = w.organization_id
    WHERE w.ended_at IS NULL AND o.ended_at IS NULL`,
} as const;

export type Organizations = ReturnType<typeof createOrganizations>;

export function createOrganizations(parts: {
  readonly database: Database;
  readonly engine?: Changes;
  /** True if a new organization must approve clients first. */
  readonly asksFirst?: boolean;
}) {
  const { database, engine = createChanges(parts), asksFirst = false } = parts;

  async function add<Listed>(
    kind: PlaceKind,
    { name: entered, externalId, organizationId }: NewPlace,
    inTransaction?: InTransaction<Listed>,
  ): Promise<Listed> {
    const id = randomId(PREFIXES[kind], 16);
    const home = organizationId === undefined ? { asks_first: asksFirst } : { organization_id: organizationId };
    const set = { name: displayName(entered), external_id: acceptedExternalId(externalId), ...home };
    return refuseViolations(
      takenBy(externalId),
      engine.transaction(async (tx, now) => {
        if (organizationId !== undefined) await findPlace(tx, 'organization', organizationId);
        await engine.make(tx, now, [{ type: kind, id, adds: true, organization_id: organizationId, set }]);
        const [listed] = await tx.query(`SELECT * FROM (${LISTED[kind]}) listed WHERE id = $1`, [id]);
        await inTransaction?.(tx, listed as Listed);
        return listed as Listed;
      }),
    );
  }

  return {
    /**
     * @param options.withEnded true to also find organizations and warehouses whose deletion has begun
     * @throws Refusal `organization_unknown` or `warehouse_unknown`
     */
    find: (kind: PlaceKind, id: string, options?: { readonly withEnded?: boolean }): Promise<FoundPlace> =>
      findPlace(database, kind, id, options),

    /**
     * Changes the name or the external id. If the record gets an external id, the next import treats the record like
     * one that an import created.
     * @throws Refusal `organization_unknown`, `warehouse_unknown`, `name_invalid` or `external_id_taken`
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
     * Ends the organization or warehouse at once, and then deletes all access to it step by step. If the process stops,
     * a repeated call or a job of the service continues.
     * @param inTransaction runs before the first step of the first call only: the log must name the person who began
     * the deletion
     * @throws Refusal `organization_unknown` or `warehouse_unknown`
     */
    async remove(kind: PlaceKind, id: string, inTransaction?: InTransaction<Place>): Promise<Place> {
      const place = await retried(() =>
        engine.transaction(async (tx, now) => {
          const found = placeOf(await findPlace(tx, kind, id, { withEnded: true }));
          const ended = await end(tx, now, kind, ['id', id]);
          if (kind === 'organization') await end(tx, now, 'warehouse', ['organization_id', id]);
          if (ended.length > 0) await inTransaction?.(tx, found);
          return found;
        }),
      );
      await removeSteps(engine, kind, id);
      return place;
    },

    /**
     * Counts the warehouses that would be deleted with the record, and the users and clients that would lose access. A
     * count of `MAX_DEPENDENTS + 1` means more than `MAX_DEPENDENTS`.
     */
    async dependents(kind: PlaceKind, id: string): Promise<Dependents> {
      const { access } = REMOVAL[kind];
      const countOf = (subject: string): string =>
        `(SELECT count(*)::integer FROM (SELECT FROM ${access}
          WHERE ${kind}_id = $1 AND ${subject} IS NOT NULL LIMIT ${MAX_DEPENDENTS + 1}) AS counted)`;
      const [row] = await database.query<Dependents>(
        `SELECT ${countOf('account_id')} AS people, ${countOf('client_id')} AS machines,
            (SELECT count(*) FROM warehouses WHERE organization_id = $1 AND ended_at IS NULL)::integer AS warehouses`,
        [id],
      );
      return row ?? { warehouses: 0, people: 0, machines: 0 };
    },

    list: (page: PageRequest = {}): Promise<Page<ListedOrganization>> => {
      const cells = ['id', 'name', 'warehouses::text', 'policy', 'external_id'];
      return pageOf(database, { select: LISTED.organization, order: [byName('name'), 'id'], cells }, page);
    },

    /** Sorts by the id of the organization, then by name. @throws Refusal `organization_unknown` */
    async listWarehouses(page: PageRequest = {}, organizationId?: string): Promise<Page<ListedWarehouse>> {
      if (organizationId !== undefined) await findPlace(database, 'organization', organizationId);
      const query = {
        select: `${LISTED.warehouse} AND ($1::text IS NULL OR o.id = $1)`,
        order: ['organization_id', byName('name'), 'id'],
        cells: ['id', 'name', 'organization_name', 'external_id'],
        values: [organizationId ?? null],
      };
      return pageOf(database, query, page);
    },

    /** @throws Refusal `name_invalid` or `external_id_taken` */
    add: (place: Omit<NewPlace, 'organizationId'>, inTransaction?: InTransaction<ListedOrganization>) =>
      add('organization', place, inTransaction),

    /** @throws Refusal `name_invalid`, `organization_unknown` or `external_id_taken` */
    addWarehouse: (
      place: NewPlace & { readonly organizationId: string },
      inTransaction?: InTransaction<ListedWarehouse>,
    ) => add('warehouse', place, inTransaction),
  };
}

/** Marks at most `size` organizations or warehouses as ended, frees external ids, and records the deletions. */
async function end(
  tx: Queries,
  now: Date,
  kind: PlaceKind,
  [column, id]: readonly [column: 'id' | 'organization_id', id: string],
  size = STEP,
): Promise<unknown[]> {
  const { table, began } = REMOVAL[kind];
  const places = await tx.query<{ id: string; external_id: string | null; at: Date }>(
    `SELECT id, external_id, coalesce(${began}, $2::timestamptz) AS at FROM ${table} t
      WHERE ${column} = $1 AND ended_at IS NULL LIMIT ${size}`,
    [id, now],
  );
  const [first] = places;
  if (first === undefined) return [];
  const { at } = first;
  await recordDeletions(tx, at, kind, places);
  const ids = places.map((place) => place.id);
  return tx.query(`UPDATE ${table} SET ended_at = $2, external_id = NULL WHERE id = ANY($1) RETURNING 1`, [ids, at]);
}

/**
 * Deletes the rows that depend on an ended organization or warehouse in steps, and finally its own row.
 * @param limit how many rows to delete, approximately. `until` is a time of `performance.now()` at which to stop.
 * @returns how many rows were deleted
 */
async function removeSteps(
  engine: Changes,
  kind: PlaceKind,
  id: string,
  { limit, until } = { limit: Infinity, until: Infinity },
): Promise<number> {
  const { table, steps } = REMOVAL[kind];
  let size = STEP;
  // Takes the lock that serializes changes, so that no other writer uses a row that is being deleted.
  const step = (work: (tx: Queries, now: Date) => Promise<unknown[]>): Promise<unknown[]> =>
    retried(() =>
      engine.transaction(async (tx, now) => {
        // Reduce the step only if its own statements time out: a timeout while waiting for the lock does not depend on
        // the step's size.
        const rows = await work(tx, now).catch((error: unknown) => {
          if (isTooLong(error)) size = Math.ceil(size / RETRIED_SHARE);
          throw error;
        });
        size = Math.min(STEP, Math.ceil(size * 1.25));
        return rows;
      }),
    );
  const deletion = (rows: string, isOfPlace: string) => async (tx: Queries) => {
    await tx.query(`SELECT ${BY_INDEX}`);
    const some = `ARRAY(SELECT ctid FROM ${rows} WHERE ${isOfPlace} LIMIT ${size})`;
    return tx.query(`DELETE FROM ${rows} WHERE ctid = ANY(${some}) RETURNING 1`, [id]);
  };
  const endWarehouses = (tx: Queries, now: Date) => end(tx, now, 'warehouse', ['organization_id', id], size);
  let removed = 0;
  for (const work of [
    ...(kind === 'organization' ? [endWarehouses] : []),
    ...steps.map(([rows, isOfPlace]) => deletion(rows, isOfPlace)),
  ]) {
    let ended: unknown[];
    do {
      if (removed >= limit || performance.now() >= until) return removed;
      ended = await step(work);
      removed += ended.length;
    } while (ended.length > 0);
  }
  await step((tx) => tx.query(`DELETE FROM ${table} WHERE id = $1 RETURNING 1`, [id]));
  return removed;
}

/** After this time the job begins no further step, because the other cleaning jobs wait for this job. */
const JOB_MS = 5_000;

const PLACES_AT_ONCE = 10;

/** Continues deletions whose process stopped. A record that cannot be deleted does not delay the others. */
export function endedPlacesCleaning({ database, engine }: { database: Database; engine: Changes }): CleaningJob {
  /** The ids whose deletion failed. The next rounds begin with the other ids. */
  const failed = { organization: new Set<string>(), warehouse: new Set<string>() };
  return async (limit) => {
    const until = performance.now() + JOB_MS;
    let removed = 0;
    let failure: unknown;
    for (const kind of ['organization', 'warehouse'] as const) {
      const { table, isDue } = REMOVAL[kind];
      const ended = await database.query<{ id: string }>(
        `SELECT id FROM ${table} t WHERE ended_at < clock_timestamp() - interval '5 minutes' AND ${isDue}
            AND id <> ALL($1) ORDER BY ended_at LIMIT ${PLACES_AT_ONCE}`,
        [[...failed[kind]]],
      );
      if (ended.length < PLACES_AT_ONCE) failed[kind].clear();
      for (const { id } of ended) {
        try {
          removed += await removeSteps(engine, kind, id, { limit: limit - removed, until });
        } catch (error) {
          if (isAway(error)) throw error;
          failure ??= error;
          failed[kind].add(id);
        }
      }
    }
    if (failure !== undefined) throw failure;
    return removed;
  };
}

const placeOf = ({ id, name, externalId }: FoundPlace): Place => ({ id, name, externalId });

/** Accepts the same texts as an import (changes/line.ts). @throws Refusal `name_invalid` */
const acceptedExternalId = (entered: string | undefined): string | null =>
  entered === undefined ? null : displayName(entered);

const takenBy = (externalId: string | undefined) => {
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
    began: 'NULL',
    isDue: 'true',
    access: 'organization_memberships',
    steps: ['warehouse_rights', 'organization_memberships', 'known_times', 'warehouses'].map(
      (rows) => [rows, 'organization_id = $1'] as const,
    ),
  },
  warehouse: {
    table: 'warehouses',
    /** The warehouses of a deleted organization end with it, although their rows are deleted later. */
    began: HOME_ENDED_AT,
    /** The deletion of an organization also deletes its warehouses. */
    isDue: 'NOT EXISTS (SELECT FROM organizations o WHERE o.id = t.organization_id AND o.ended_at IS NOT NULL)',
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
