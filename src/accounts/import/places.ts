/** Organizations and warehouses of an import: compared with those that there are, and written. */
import { randomId } from '../../random-id.ts';
import type { Queries } from '../../storage/queries.ts';
import type { ImportActivity, ImportChange, ImportFacts, ImportStep } from './change.ts';
import type { LineOf } from './line.ts';
import type { Numbered } from './source.ts';

type OrganizationLine = Numbered<LineOf<'organization'>>;
type WarehouseLine = Numbered<LineOf<'warehouse'>>;

interface PlaceRow {
  readonly id: string;
  readonly external_id: string;
  readonly name: string;
}

/** Known by their external ids only: two organizations may have one name. */
export async function compareOrganizations(
  queries: Queries,
  lines: readonly OrganizationLine[],
  { now }: ImportFacts,
): Promise<ImportStep> {
  const rows = await queries.query<PlaceRow>(
    'SELECT id, external_id, name FROM organizations WHERE external_id = ANY($1)',
    [lines.map((line) => line.external_id)],
  );
  const { added, renamed, changes } = sorted(lines, rows, 'org_');

  return {
    changes,
    async write(tx) {
      if (added.length > 0) {
        await tx.query(
          `INSERT INTO organizations (id, external_id, name, created_at)
            SELECT id, external_id, name, $4
            FROM unnest($1::text[], $2::text[], $3::text[]) AS line (id, external_id, name)`,
          [...columnsOf(added, 'id', 'external_id', 'name'), now],
        );
      }
      await rename(tx, 'organizations', renamed);
      const details = ({ id, name, external_id }: PlaceRow) => ({
        organization_id: id,
        organization_name: name,
        external_id,
      });
      return [
        ...added.map((row) => record('organization_added', details(row))),
        ...renamed.map((row) => record('organization_changed', details(row))),
      ];
    },
  };
}

export async function compareWarehouses(
  queries: Queries,
  lines: readonly WarehouseLine[],
  { now, problems }: ImportFacts,
): Promise<ImportStep> {
  const rows = await queries.query<PlaceRow & { organization: string | null }>(
    `SELECT w.id, w.external_id, w.name, o.external_id AS organization
      FROM warehouses w JOIN organizations o ON o.id = w.organization_id
      WHERE w.external_id = ANY($1)`,
    [lines.map((line) => line.external_id)],
  );
  const known = new Map(rows.map((row) => [row.external_id, row]));
  for (const { number, external_id, organization } of lines) {
    const row = known.get(external_id);
    if (row && row.organization !== organization) problems.add(number, moved(row.organization));
  }
  const { added, renamed, changes } = sorted(lines, rows, 'wh_');

  return {
    changes,
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
              [...columnsOf(added, 'id', 'external_id', 'name', 'organization'), now],
            );
      await rename(tx, 'warehouses', renamed);
      const details = ({ id, name, external_id }: PlaceRow) => ({
        warehouse_id: id,
        warehouse_name: name,
        external_id,
      });
      return [
        ...inserted.map((row) =>
          record('warehouse_added', { ...details(row), organization_id: row.organization_id }),
        ),
        ...renamed.map((row) => record('warehouse_changed', details(row))),
      ];
    },
  };
}

/** Rights in a warehouse stand on memberships of its organization, so it cannot simply move. */
const moved = (organization: string | null): string =>
  `organization: the warehouse belongs to ${JSON.stringify(organization)}, and a warehouse never ` +
  'moves; give the one in the other organization an external_id of its own';

/** What is new gets its id; what has another name gets that. */
function sorted<Line extends OrganizationLine | WarehouseLine>(
  lines: readonly Line[],
  rows: readonly PlaceRow[],
  prefix: string,
) {
  const known = new Map(rows.map((row) => [row.external_id, row]));
  const added: (Line & { id: string })[] = [];
  const renamed: PlaceRow[] = [];
  const changes: ImportChange[] = [];
  for (const line of lines) {
    const { type, external_id, name } = line;
    const key = { type, external_id };
    const row = known.get(external_id);
    if (!row) {
      added.push({ ...line, id: randomId(prefix, 16) });
      changes.push({ change: 'added', key, name });
    } else if (row.name !== name) {
      renamed.push({ ...row, name });
      changes.push({ change: 'changed', key, name, fields: { name: [row.name, name] } });
    }
  }
  return { added, renamed, changes };
}

async function rename(
  tx: Queries,
  table: 'organizations' | 'warehouses',
  renamed: readonly PlaceRow[],
): Promise<void> {
  // A statement, even one that changes nothing, would make every node forget what is reached.
  if (renamed.length === 0) return;
  await tx.query(
    `UPDATE ${table} SET name = line.name
      FROM unnest($1::text[], $2::text[]) AS line (id, name) WHERE ${table}.id = line.id`,
    columnsOf(renamed, 'id', 'name'),
  );
}

const columnsOf = <Row>(rows: readonly Row[], ...columns: (keyof Row)[]): unknown[][] =>
  columns.map((column) => rows.map((row) => row[column]));

const record = (
  action: ImportActivity['action'],
  details: NonNullable<ImportActivity['details']>,
): ImportActivity => ({ action, details });
