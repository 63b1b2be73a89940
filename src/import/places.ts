/** Organizations and warehouses of an import: compared with those that there are, and written. */
import { randomId } from '../base/random-id.ts';
import type { Queries } from '../storage/queries.ts';
import {
  adopt,
  type ImportActivity,
  type ImportChange,
  type ImportFacts,
  type ImportStep,
  twoOfThem,
} from './change.ts';
import type { LineOf } from './line.ts';
import { compareMoves, type Move } from './moves.ts';
import type { Numbered } from './source.ts';

type OrganizationLine = Numbered<LineOf<'organization'>>;
type WarehouseLine = Numbered<LineOf<'warehouse'>>;

interface PlaceRow {
  readonly id: string;
  /** Null of one that was made by hand. */
  readonly external_id: string | null;
  readonly name: string;
}

/** Known by their external ids: two organizations may have one name. */
export async function compareOrganizations(
  queries: Queries,
  lines: readonly OrganizationLine[],
  facts: ImportFacts,
): Promise<ImportStep> {
  const rows = await queries.query<PlaceRow>(
    `SELECT id, external_id, name FROM organizations
      WHERE external_id = ANY($1) OR $3 AND external_id IS NULL AND name = ANY($2)`,
    namesOf(lines, facts),
  );
  const { added, changed, changes } = sorted(lines, rows, 'org_', facts);

  return {
    changes,
    async write(tx) {
      if (added.length > 0) {
        await tx.query(
          `INSERT INTO organizations (id, external_id, name, created_at)
            SELECT id, external_id, name, $4
            FROM unnest($1::text[], $2::text[], $3::text[]) AS line (id, external_id, name)`,
          [...columnsOf(added, 'id', 'external_id', 'name'), facts.now],
        );
      }
      await rename(tx, 'organizations', changed);
      const details = ({ id, name, external_id }: PlaceRow) => ({
        organization_id: id,
        organization_name: name,
        external_id: `${external_id}`,
      });
      return [
        ...added.map((row) => record('organization_added', details(row))),
        ...changed.map((row) => record('organization_changed', details(row))),
      ];
    },
  };
}

export interface WarehouseRow extends PlaceRow {
  readonly organization_id: string;
  /** The external id of its organization, as it will be. */
  readonly organization: string | null;
}

export async function compareWarehouses(
  queries: Queries,
  lines: readonly WarehouseLine[],
  facts: ImportFacts,
): Promise<ImportStep> {
  const found = await queries.query<WarehouseRow>(
    `SELECT w.id, w.external_id, w.name, o.id AS organization_id, o.external_id AS organization
      FROM warehouses w JOIN organizations o ON o.id = w.organization_id
      WHERE w.external_id = ANY($1) OR $3 AND w.external_id IS NULL AND w.name = ANY($2)`,
    namesOf(lines, facts),
  );
  const { externalIds } = facts.adopted.organization;
  const rows = found.map((row) => ({
    ...row,
    organization: externalIds.get(row.organization_id) ?? row.organization,
  }));
  const { added, changed, known, changes } = sorted(lines, rows, 'wh_', facts);
  const moves: Move[] = [];
  for (const [line, row] of known) {
    if (row.organization === line.organization) continue;
    if (row.organization !== null && row.organization === line.former_organization) {
      moves.push({ line, row });
    } else facts.problems.add(line.number, moved(row.organization));
  }
  const moving = await compareMoves(queries, moves, facts);

  return {
    changes: [...merged(changes, moving.changes)],
    async write(tx) {
      const inserted =
        added.length === 0
          ? []
          : await tx.query<PlaceRow & { organization_id: string }>(
              `INSERT INTO warehouses (id, organization_id, external_id, name, created_at)
                SELECT line.id, o.id, line.external_id, line.name, $5
                FROM unnest($1::text[], $2::text[], $3::text[], $4::text[])
                  AS line (id, external_id, name, organization)
                JOIN organizations o ON o.external_id = line.organization
                RETURNING id, external_id, name, organization_id`,
              [...columnsOf(added, 'id', 'external_id', 'name', 'organization'), facts.now],
            );
      await rename(tx, 'warehouses', changed);
      const details = ({ id, name, external_id }: PlaceRow) => ({
        warehouse_id: id,
        warehouse_name: name,
        external_id: `${external_id}`,
      });
      return [
        ...inserted.map((row) =>
          record('warehouse_added', { ...details(row), organization_id: row.organization_id }),
        ),
        ...changed.map((row) => record('warehouse_changed', details(row))),
        ...(await moving.write(tx)),
      ];
    },
  };
}

/** Its organization decides who reaches a warehouse: it moves only where the file says so twice. */
const moved = (organization: string | null): string =>
  organization === null
    ? 'organization: the warehouse belongs to one that was made by hand; give that an external_id ' +
      'first (organizations update), or the warehouse another one'
    : `organization: the warehouse belongs to ${JSON.stringify(organization)}; where it is to move, ` +
      `add "former_organization":${JSON.stringify(organization)}`;

/** One change of each thing, with all of its fields. */
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

/** The ids that lines name, now and formerly, their names, and whether these count. */
function namesOf(
  lines: readonly (OrganizationLine | WarehouseLine)[],
  { adoptByName }: ImportFacts,
): unknown[] {
  const ids = lines.flatMap(({ external_id, former_external_id }) =>
    former_external_id === undefined ? [external_id] : [external_id, former_external_id],
  );
  return [ids, lines.map(({ name }) => name), adoptByName];
}

/** What is new gets its id; what has another name or external id gets that. */
function sorted<Line extends OrganizationLine | WarehouseLine, Row extends PlaceRow>(
  lines: readonly Line[],
  rows: readonly Row[],
  prefix: string,
  facts: ImportFacts,
) {
  const byExternalId = new Map(rows.map((row) => [row.external_id, row]));
  const byName = Map.groupBy(
    rows.filter((row) => row.external_id === null),
    (row) => nameIn(row),
  );
  const added: (Line & { id: string })[] = [];
  const changed: Row[] = [];
  const known: [Line, Row][] = [];
  const changes: ImportChange[] = [];
  for (const line of lines) {
    const { type, external_id, name, number } = line;
    const key = { type, external_id };
    const own = byExternalId.get(external_id);
    const former = byExternalId.get(line.former_external_id ?? null);
    const isFormer = line.former_external_id !== undefined && former !== undefined;
    if (own && isFormer) facts.problems.add(number, twoOfThem(`${former.external_id}`));
    const row = own ?? (isFormer ? former : adoptable(byName.get(nameIn(line)), line, facts));
    if (!row) {
      added.push({ ...line, id: randomId(prefix, 16) });
      changes.push({ change: 'added', key, name });
      continue;
    }
    if (!own) adopt(facts, key, row.id);
    known.push([line, row]);
    const fields = {
      ...(!own && { external_id: [row.external_id, external_id] as const }),
      ...(row.name !== name && { name: [row.name, name] as const }),
    };
    if (Object.keys(fields).length === 0) continue;
    changed.push({ ...row, name, external_id });
    changes.push({ change: 'changed', key, name, fields });
  }
  return { added, changed, known, changes };
}

/** Two warehouses of one name in two organizations are two. */
const nameIn = (place: { readonly name: string; readonly organization?: string | null }): string =>
  JSON.stringify([place.organization, place.name]);

/** The one that was made by hand and has that name, where there is no doubt. */
function adoptable<Row extends PlaceRow>(
  rows: readonly Row[] = [],
  { type, name, number }: OrganizationLine | WarehouseLine,
  facts: ImportFacts,
): Row | undefined {
  const [row, another] = rows;
  if (row === undefined) return undefined;
  const taken = facts.adopted[type].externalIds.get(row.id);
  if (another === undefined && taken === undefined) return row;
  const why =
    taken === undefined
      ? `${rows.length} ${type}s that were made by hand have the name ${JSON.stringify(name)}`
      : `the line of ${JSON.stringify(taken)} has the same name, of one that was made by hand`;
  const how = `give the right one its external_id first (${type}s update)`;
  facts.problems.add(number, `name: ${why}; ${how}`);
  return undefined;
}

async function rename(
  tx: Queries,
  table: 'organizations' | 'warehouses',
  changed: readonly PlaceRow[],
): Promise<void> {
  // A statement, even one that changes nothing, would make every node forget what is reached.
  if (changed.length === 0) return;
  await tx.query(
    `UPDATE ${table} SET name = line.name, external_id = line.external_id
      FROM unnest($1::text[], $2::text[], $3::text[]) AS line (id, name, external_id)
      WHERE ${table}.id = line.id`,
    columnsOf(changed, 'id', 'name', 'external_id'),
  );
}

const columnsOf = <Row>(rows: readonly Row[], ...columns: (keyof Row)[]): unknown[][] =>
  columns.map((column) => rows.map((row) => row[column]));

const record = (
  action: ImportActivity['action'],
  details: NonNullable<ImportActivity['details']>,
): ImportActivity => ({ action, details });
