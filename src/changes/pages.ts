/** Reads the stored lines of an import page by page, and converts them to changes with the ids of the named records. */
import { randomId } from '../base/random-id.ts';
import type { Queries } from '../storage/queries.ts';
import { type Change, type NamedType, valuesOf } from './change.ts';
import type { ImportType } from './line.ts';
import { HOME_ENDED_AT, isNamed, keyOfBoth, keyOfId, lineWith, type Pass, PREFIXES, TABLES, typeOf } from './stage.ts';

export interface Plan {
  readonly importId: string;
  readonly passes: readonly Pass[];
  /** True to remove imported records that are not in the file. */
  readonly prune: boolean;
  /** The time at which the data of the file was correct. */
  readonly asOf: Date;
}

export type StagedLine = Readonly<Record<string, string | undefined>>;

interface Row {
  readonly number: number;
  readonly line: StagedLine;
  readonly key: string;
  readonly id: string | null;
  readonly account_id: string | null;
  readonly organization_id: string | null;
  readonly warehouse_id: string | null;
  readonly home_id?: string | null;
  readonly own?: string | null;
  readonly before?: string | null;
  readonly is_elsewhere?: boolean;
  readonly holder?: string | null;
}

/** Each condition matches an index. Without an index, PostgreSQL would read and sort all lines for each page. */
const linesSql = (pass: Pass): string =>
  `(SELECT * FROM import_lines WHERE import_id = $1 AND type = '${typeOf(pass)}' AND number > $2 ${
    typeOf(pass) === 'warehouse' ? `AND home IS ${pass === 'move' ? 'NOT NULL' : 'NULL'}` : ''
  } AND line IS NOT NULL ORDER BY number LIMIT $3) l`;

/**
 * SQL for the lines of `linesSql`. If a line gives an account the present address of another account, the line of that
 * other account is added: both must change in one transaction. An added line may itself need the address of a further
 * account. OFFSET 0 keeps PostgreSQL from joining whole tables, because it expects a hundred times too many rows.
 */
const ACCOUNT_LINES = `(WITH RECURSIVE page (number, email_key) AS (
    SELECT number, email_key FROM ${linesSql('account')}
    UNION SELECT e.number, e.email_key FROM page p
      CROSS JOIN LATERAL (SELECT x.id FROM accounts x WHERE x.email_key = p.email_key OFFSET 0) h
      CROSS JOIN LATERAL (SELECT x.number, x.email_key FROM import_lines x
        WHERE x.import_id = $1 AND x.id = h.id AND x.line IS NOT NULL LIMIT 1) e WHERE e.number > $2)
  SELECT x.* FROM (SELECT number FROM page LIMIT $3 + $4) p CROSS JOIN LATERAL (SELECT * FROM import_lines x
    WHERE x.import_id = $1 AND x.type = 'account' AND x.number = p.number OFFSET 0) x) l`;

/** SQL for the id of a record by its external id. OFFSET 0 keeps PostgreSQL from joining all look-ups. */
const named = (type: NamedType, key: string, alias: string): string =>
  `CROSS JOIN LATERAL (SELECT ${lineWith(type, key, 'id')} AS id OFFSET 0) ${alias}`;

const HOME = `coalesce(${lineWith('organization', 'l.home', 'id')},
  (SELECT o.id FROM organizations o WHERE o.external_id = l.home))`;
const BY_EMAIL = '(SELECT t.id FROM accounts t WHERE t.email_key = l.email_key AND t.external_id IS NULL)';

const ofPlace = (type: NamedType, lines = linesSql(type)): string => {
  const forWarehouse = (sql: string) => (type === 'warehouse' ? sql : 'NULL');
  const place = (key: string) =>
    `(SELECT t.id FROM ${TABLES[type]} t WHERE t.external_id = ${key} AND ${forWarehouse(HOME_ENDED_AT)} IS NULL)`;
  return `SELECT l.number, l.line, l.key, l.id, NULL AS account_id, NULL AS warehouse_id,
      ${forWarehouse(lineWith('organization', 'l.place', 'id'))} AS organization_id, ${forWarehouse(HOME)} AS home_id,
      ${place('l.key')} AS own, ${place('l.former')} AS before,
      ${type === 'account' ? BY_EMAIL : 'NULL'} AS holder
    FROM ${lines} ORDER BY l.number`;
};

const SELECT: Readonly<Record<Pass, string>> = {
  organization: ofPlace('organization'),
  warehouse: ofPlace('warehouse'),
  account: ofPlace('account'),
  move: ofPlace('warehouse', linesSql('move')),
  membership: `SELECT l.number, l.line, l.key, NULL AS id, a.id AS account_id, o.id AS organization_id, NULL AS warehouse_id
    FROM ${linesSql('membership')} ${named('account', 'l.account', 'a')} ${named('organization', 'l.place', 'o')}
    ORDER BY l.number`,
  warehouse_rights: `SELECT l.number, l.line, l.key, NULL AS id, a.id AS account_id, o.id AS organization_id,
      w.id AS warehouse_id,
      EXISTS (SELECT FROM warehouses t WHERE t.id = w.id AND t.organization_id <> o.id) AS is_elsewhere
    FROM ${linesSql('warehouse_rights')} ${named('account', 'l.account', 'a')}
      LEFT JOIN LATERAL (SELECT e.id, e.place FROM import_lines e WHERE e.import_id = $1
        AND e.type = 'warehouse' AND e.key = l.place LIMIT 1) w ON true
      ${named('organization', 'w.place', 'o')}
    ORDER BY l.number`,
};

const ACCOUNTS_TOGETHER = ofPlace('account', ACCOUNT_LINES);

/**
 * @param maxMore maximum number of lines added from later pages. If a line on this page takes an address from a second
 * account, the line of the second account is added.
 */
export async function pageOf(
  tx: Queries,
  plan: Plan,
  pass: Pass,
  { after, size, maxMore }: { readonly after: number; readonly size: number; readonly maxMore: number },
) {
  const type = typeOf(pass);
  const [select, more] = type === 'account' && maxMore > 0 ? [ACCOUNTS_TOGETHER, [maxMore]] : [SELECT[pass], []];
  const rows = await tx.query<Row>(select, [plan.importId, after, size, ...more]);
  const page = {
    lines: new Map(rows.map(({ number, line }) => [number, line])),
    /** The number of lines, without the lines of later pages that were read together with this page. */
    count: Math.min(rows.length, size),
    next: rows.length < size ? undefined : rows[size - 1]?.number,
  };
  if (isNamed(type)) {
    const { ids, adding, adopting, problems } = await identify(tx, plan, type, rows);
    const changes = rows.map((row) => {
      const [id = null, adds] = [ids.get(row.number), adding.has(row.number)];
      return changeOf(type, { ...row, id, adds, isByAddress: adds || adopting.has(row.number) }, plan);
    });
    return { ...page, changes, newer: 0, problems };
  }
  const known = rows.filter(
    (row) =>
      row.account_id !== null && row.organization_id !== null && (type === 'membership' || row.warehouse_id !== null),
  );
  const changes = known.map((row) => changeOf(type, row, plan));
  // Each remaining line names an account, organization or warehouse whose deletion is newer than the file.
  return { ...page, changes, newer: rows.length - known.length, problems: [] };
}

/** Finds the record of each line, and stores its id with the line for later lines that name the record. */
async function identify(tx: Queries, plan: Plan, type: NamedType, rows: readonly Row[]) {
  const problems: { number: number; message: string }[] = [];
  const ids = new Map<number, string>();
  const adding = new Set<number>();
  /** The lines whose record was found by its address. */
  const adopting = new Set<number>();
  for (const { number, line, id, own, before, holder } of rows) {
    if (own && before) problems.push({ number, message: bothIdsExist(`${line.former_external_id}`) });
    const found = own ?? before ?? holder ?? undefined;
    if (found === undefined) adding.add(number);
    else if (found === holder) adopting.add(number);
    // A line that an earlier comparison found outdated stays outdated until the record of the deletion expires.
    ids.set(number, found ?? id ?? randomId(PREFIXES[type], 16));
  }
  const changed = rows.flatMap(({ number, id }) => {
    const given = ids.get(number);
    return given === undefined || given === id ? [] : [{ number, id: given }];
  });
  if (changed.length > 0) {
    await tx.query(
      `UPDATE import_lines l SET id = g.id FROM jsonb_to_recordset($2::jsonb) AS g (number integer, id text)
        WHERE l.import_id = $1 AND l.type = '${type}' AND l.number = g.number`,
      [plan.importId, JSON.stringify(changed)],
    );
  }
  return { ids, adding, adopting, problems };
}

const bothIdsExist = (former: string): string =>
  `former_external_id: the database has both ${JSON.stringify(former)} and the ` +
  'external_id; delete one of the two first, or leave former_external_id out';

/**
 * Removes an outdated line's record id if the record was deleted after the file's time, or the line's address now
 * belongs to another person. Lines that depend on this line then find no id.
 * @param outdated must not contain lines that give a person an external id
 */
export async function forgetIds(tx: Queries, { importId }: Plan, outdated: readonly Change[]): Promise<void> {
  const [first] = outdated;
  if (!first || !isNamed(first.type)) return;
  const isOwn = first.type === 'account' ? 't.external_id IS NOT NULL' : 't.ended_at IS NULL';
  await tx.query(
    `UPDATE import_lines l SET id = NULL WHERE import_id = $1 AND type = '${first.type}' AND number = ANY($2)
      AND NOT EXISTS (SELECT FROM ${TABLES[first.type]} t WHERE t.id = l.id AND ${isOwn})`,
    [importId, outdated.map(({ number }) => number)],
  );
}

function changeOf(
  type: ImportType,
  row: Row & { readonly adds?: boolean; readonly isByAddress?: boolean },
  { asOf }: Plan,
): Change {
  const { number, line, organization_id, adds = false, isByAddress = false } = row;
  return {
    type,
    number,
    asOf,
    ...present({
      id: row.id,
      account_id: row.account_id,
      organization_id,
      warehouse_id: row.warehouse_id,
      formerOrganization: row.home_id,
    }),
    ...(row.is_elsewhere && { isElsewhere: true }),
    adds,
    named: namesOf(type, line, isByAddress),
    ...valuesOf(line, organization_id ?? undefined),
  };
}

const present = (values: object): Partial<Change> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value != null));

/**
 * Returns the external ids and the address under which a deletion of the line's record may be stored. The address is
 * included only if no account has the line's external id: a deleted person may have had no external id.
 */
function namesOf(type: ImportType, line: StagedLine, isByAddress: boolean): NonNullable<Change['named']> {
  const names = (['account', 'organization', 'warehouse'] as const).flatMap((part) =>
    line[part] === undefined ? [] : [[part, { external: line[part] }] as const],
  );
  return isNamed(type)
    ? [...names, [type, { external: line.external_id, email: isByAddress ? line.email : undefined }]]
    : names;
}

/** SQL that is true if the line of this record is outdated. $3 is the time of the file. */
const isNewer = (thing: string): string =>
  `EXISTS (SELECT FROM known_times t WHERE t.thing = ${thing} AND t.as_of > $3 AND NOT t.by_import)`;

/** Returns functions that search the whole import file: in a dry run, earlier pages are not in the database. */
export const fileRules = ({ importId, asOf }: Plan, fileId: string | undefined) => ({
  fileId,

  /** Returns what the file says about each present holder of an address that the file gives to another account. */
  async holders(tx: Queries, ids: readonly string[]): Promise<ReadonlyMap<string, 'moves' | 'newer' | 'absent'>> {
    const rows = await tx.query<{ id: string; is_staged: boolean; is_newer: boolean }>(
      `SELECT h.id, ${keyOfId('h.id')} IS NOT NULL AS is_staged, ${isNewer("'account ' || h.id")} AS is_newer
        FROM unnest($2::text[]) AS h (id)`,
      [importId, ids, asOf],
    );
    return new Map(
      rows.map(({ id, is_staged, is_newer }) => [id, is_newer ? 'newer' : is_staged ? 'moves' : 'absent']),
    );
  },

  /** Returns the pairs of account and organization with a membership in the file, as strings `account organization`. */
  async members(tx: Queries, pairs: readonly { readonly account: string; readonly organization: string }[]) {
    const rows = await tx.query<{ account: string; organization: string }>(
      `SELECT p.account, p.organization FROM jsonb_to_recordset($2::jsonb) AS p (account text, organization text)
        WHERE EXISTS (SELECT FROM import_lines e WHERE e.import_id = $1 AND e.type = 'membership'
            AND e.key = ${keyOfBoth(keyOfId('p.account'), keyOfId('p.organization'))})
          AND NOT ${isNewer("'membership ' || p.account || ' ' || p.organization")}`,
      [importId, JSON.stringify(pairs), asOf],
    );
    return new Set(rows.map(({ account, organization }) => `${account} ${organization}`));
  },
});

export type FileRules = ReturnType<typeof fileRules>;
