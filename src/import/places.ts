/** Compares organizations and warehouses of an import with the database, and writes differences. */
import { randomId } from '../base/random-id.ts';
import type { PlaceType } from '../changes/line.ts';
import type { Queries } from '../storage/queries.ts';
import {
  adopt,
  adoptedIds,
  bothIdsExist,
  columnsOf,
  type ImportActivity,
  type ImportChange,
  type ImportFacts,
  type ImportStep,
  type SetLine,
} from './change.ts';
import { compareMoves, type Move } from './moves.ts';

type PlaceLine = SetLine<'organization'> | SetLine<'warehouse'>;

interface PlaceRow {
  readonly id: string;
  /** Null if the place was created by hand. */
  readonly external_id: string | null;
  readonly name: string;
  readonly organization_id?: string;
  /** For a warehouse: the external id that its organization has after the import. */
  readonly organization?: string | null | undefined;
  /** For an organization: its policy. */
  readonly asks_first?: boolean;
}

/** The differing parts of the SQL: for a warehouse they include its organization. */
const PLACES = {
  organization: {
    table: 'organizations',
    prefix: 'org_',
    read: ', place.asks_first FROM organizations place',
    policy: ', asks_first = line.asks_first',
    owned: ', asks_first',
    owner: ', line.asks_first',
    joinOwner: '',
  },
  warehouse: {
    table: 'warehouses',
    prefix: 'wh_',
    read: `, o.id AS organization_id, o.external_id AS organization
        FROM warehouses place JOIN organizations o ON o.id = place.organization_id`,
    policy: '',
    owned: ', organization_id',
    owner: ', o.id',
    joinOwner: `JOIN organizations o ON o.id = coalesce(line.adopted_place,
      (SELECT id FROM organizations WHERE external_id = line.organization))`,
  },
} as const;

/** Matches by external id, because two organizations may have the same name. */
export const comparePlaces =
  (type: PlaceType) =>
  async (queries: Queries, lines: readonly PlaceLine[], facts: ImportFacts): Promise<ImportStep> => {
    const { table, prefix, read, owned, owner, joinOwner } = PLACES[type];
    const found = await queries.query<PlaceRow>(
      `SELECT place.id, place.external_id, place.name${read}
        WHERE place.external_id = ANY($1) OR place.id = ANY($4)
          OR $3 AND place.external_id IS NULL AND place.name = ANY($2)`,
      parametersOf(lines, facts),
    );
    const { externalIds } = facts.adopted.organization;
    const rows = found.map(({ organization_id: id, ...row }) =>
      id === undefined ? row : { ...row, organization: externalIds.get(id) ?? row.organization },
    );
    const { added, changed, known, changes } = matchPlaces(lines, rows, prefix, facts);
    const moves: Move[] = [];
    for (const [line, { id, organization = null }] of known) {
      if (line.type === 'organization' || organization === line.organization) continue;
      if (organization !== null && organization === line.former_organization) {
        moves.push({ line, row: { id, organization } });
      } else facts.problems.add(line.number, unconfirmedMove(organization));
    }
    const moving = await compareMoves(queries, moves, facts);
    const detailsOf = ({ id, name, external_id }: PlaceRow) => ({
      [`${type}_id`]: id,
      [`${type}_name`]: name,
      external_id: `${external_id}`,
    });

    return {
      changes: [...merged(changes, moving.changes)],
      async write(tx) {
        const columns = columnsOf(added, 'id', 'external_id', 'name', 'organization', 'asks_first');
        const owners = added.map((line) => ('organization' in line ? line.organization : ''));
        const inserted =
          added.length === 0
            ? []
            : await tx.query<PlaceRow>(
                `INSERT INTO ${table} (id, external_id, name, created_at${owned})
                  SELECT line.id, line.external_id, line.name, $7${owner}
                  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::boolean[], $6::text[])
                    AS line (id, external_id, name, organization, asks_first, adopted_place)
                  ${joinOwner}
                  RETURNING id, external_id, name${owned}`,
                [...columns, adoptedIds(facts, 'organization', owners), facts.now],
              );
        await update(tx, type, changed);
        return [
          ...inserted.map(({ organization_id, ...row }) =>
            record(`${type}_added`, {
              ...detailsOf(row),
              ...(organization_id !== undefined && { organization_id }),
            }),
          ),
          ...changed.map((row) => record(`${type}_changed`, detailsOf(row))),
          ...(await moving.write(tx)),
        ];
      },
    };
  };

/** A move changes who has access to the warehouse, so the file must name both organizations. */
const unconfirmedMove = (organization: string | null): string =>
  organization === null
    ? 'organization: the warehouse belongs to an organization that was not imported; give ' +
      'that organization an external_id first (organizations update), or give the warehouse ' +
      'another external_id'
    : `organization: the warehouse belongs to ${JSON.stringify(organization)}; to move it, ` +
      `add "former_organization":${JSON.stringify(organization)}`;

/** Returns one change for each place, with all of its changed fields. */
function merged(changes: readonly ImportChange[], moves: readonly ImportChange[]): ImportChange[] {
  const idOf = ({ key }: ImportChange) => ('external_id' in key ? key.external_id : undefined);
  const later = new Map(moves.map((move) => [idOf(move), move]));
  const first = changes.map((change) => {
    const move = later.get(idOf(change));
    return move ? { ...change, fields: { ...change.fields, ...move.fields } } : change;
  });
  const known = new Set(changes.map(idOf));
  const others = moves.filter((move) => idOf(move) === undefined || !known.has(idOf(move)));
  return [...first, ...others];
}

/** Query parameters: present and former external ids, names, and whether to match by name. */
function parametersOf(lines: readonly PlaceLine[], { adoptByName }: ImportFacts): unknown[] {
  const ids = lines.flatMap(({ external_id, former_external_id }) =>
    former_external_id === undefined ? [external_id] : [external_id, former_external_id],
  );
  return [ids, lines.map(({ name }) => name), adoptByName, lines.map(({ id = null }) => id)];
}

/** Adds ids to new places; finds existing places, and places with changed values. */
function matchPlaces(lines: readonly PlaceLine[], rows: readonly PlaceRow[], prefix: string, facts: ImportFacts) {
  const byExternalId = new Map(rows.map((row) => [row.external_id, row]));
  const byName = Map.groupBy(
    rows.filter((row) => row.external_id === null),
    (row) => nameIn(row),
  );
  const added: (PlaceLine & { id: string; asks_first: boolean })[] = [];
  const changed: PlaceRow[] = [];
  const known: [PlaceLine, PlaceRow][] = [];
  const changes: ImportChange[] = [];
  for (const line of lines) {
    const { type, external_id, name, number } = line;
    const key = { type, external_id: external_id ?? `${line.id}` };
    const named = rows.find(({ id }) => id === line.id);
    const own = named ?? (external_id === null ? undefined : byExternalId.get(external_id));
    const former = byExternalId.get(line.former_external_id ?? null);
    const isFormer = line.former_external_id !== undefined && former !== undefined;
    if (own && isFormer) facts.problems.add(number, bothIdsExist(`${former.external_id}`));
    const row = own ?? (isFormer ? former : adoptable(byName.get(nameIn(line)), line, facts));
    if (!row) {
      const asksFirst = type === 'organization' && policyIn(line, facts.asksFirst);
      added.push({ ...line, id: randomId(prefix, 16), asks_first: asksFirst });
      changes.push({ change: 'added', line: number, key, name });
      continue;
    }
    if (!own) adopt(facts, key, row.id);
    known.push([line, row]);
    const asks_first = row.asks_first === undefined ? undefined : policyIn(line, row.asks_first);
    const fields = {
      ...(row.external_id !== external_id && {
        external_id: [row.external_id, external_id] as const,
      }),
      ...(row.name !== name && { name: [row.name, name] as const }),
      ...(asks_first !== row.asks_first && { clients: policyChange(asks_first) }),
    };
    if (Object.keys(fields).length === 0) continue;
    changed.push({ ...row, name, external_id, ...(asks_first !== undefined && { asks_first }) });
    changes.push({ change: 'changed', line: number, key, name, fields });
  }
  return { added, changed, known, changes };
}

/** @param otherwise the policy if the line has no key `clients` */
const policyIn = (line: PlaceLine, otherwise: boolean): boolean =>
  line.type === 'organization' && line.clients !== undefined ? line.clients === 'ask' : otherwise;

const policyChange = (asksFirst = false) => (asksFirst ? (['open', 'ask'] as const) : (['ask', 'open'] as const));

/** Includes the organization: two organizations may have warehouses with the same name. */
const nameIn = (place: { readonly name: string; readonly organization?: string | null | undefined }): string =>
  JSON.stringify([place.organization, place.name]);

/** Returns the place with that name that was created by hand; adds a problem if it is ambiguous. */
function adoptable(
  rows: readonly PlaceRow[] = [],
  { type, name, number }: PlaceLine,
  facts: ImportFacts,
): PlaceRow | undefined {
  const [row, another] = rows;
  if (row === undefined) return undefined;
  const taken = facts.adopted[type].externalIds.get(row.id);
  if (another === undefined && taken === undefined) return row;
  const why =
    taken === undefined
      ? `${rows.length} ${type}s that were not imported have the name ${JSON.stringify(name)}`
      : `the line of ${JSON.stringify(taken)} has the same name, and it matches one that was ` + 'not imported';
  const how = `set the external_id on the right one first (${type}s update)`;
  facts.problems.add(number, `name: ${why}; ${how}`);
  return undefined;
}

async function update(tx: Queries, type: PlaceType, changed: readonly PlaceRow[]): Promise<void> {
  // Even an UPDATE that changes no row would make every node clear its cached access: send none.
  if (changed.length === 0) return;
  await tx.query(
    `UPDATE ${PLACES[type].table} place SET name = line.name, external_id = line.external_id
        ${PLACES[type].policy}
      FROM unnest($1::text[], $2::text[], $3::text[], $4::boolean[])
        AS line (id, name, external_id, asks_first)
      WHERE place.id = line.id`,
    columnsOf(changed, 'id', 'name', 'external_id', 'asks_first'),
  );
}

const record = (action: ImportActivity['action'], details: NonNullable<ImportActivity['details']>): ImportActivity => ({
  action,
  details,
});
