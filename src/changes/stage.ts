/** Stores the lines of an import in a table, and checks the rules between lines. */
import { emailKey } from '../accounts/email.ts';
import { randomId } from '../base/random-id.ts';
import type { Queries } from '../storage/queries.ts';
import type { NamedType } from './change.ts';
import { type BrokenLine, type ImportLine, type ImportType, isBroken, type Numbered } from './line.ts';
import type { FoundProblems } from './problems.ts';

/** How many lines or records a statement handles. */
export const PAGE_SIZE = 500;
/** The page size of statements that only read. It is larger than `PAGE_SIZE`, because no request waits for them. */
export const READ_SIZE = 2_000;

export const TABLES = { organization: 'organizations', warehouse: 'warehouses', account: 'accounts' } as const;
export const PREFIXES = { organization: 'org_', warehouse: 'wh_', account: 'acc_' } as const;
/** SQL for the time at which the deletion of the organization of warehouse `t` began; null if it has not begun. */
export const HOME_ENDED_AT = '(SELECT o.ended_at FROM organizations o WHERE o.id = t.organization_id)';
export const isNamed = (type: ImportType): type is NamedType => type in TABLES;

/**
 * The passes in their order. Warehouses move after the memberships are written, so that members of the new organization
 * keep their rights.
 */
export const PASSES = ['organization', 'warehouse', 'account', 'membership', 'move', 'warehouse_rights'] as const;
/** A group of lines that are compared together: the lines of one type, or the lines that move warehouses. */
export type Pass = (typeof PASSES)[number];
export const typeOf = (pass: Pass): ImportType => (pass === 'move' ? 'warehouse' : pass);

/** Separates the two ids in the key of a membership or of rights. No external id contains this character. */
const SEPARATOR = '\u001F';

export interface Staged {
  /** The number of lines, without blank lines. */
  readonly lines: number;
  /** The passes for which the file contains lines. A pass without lines is skipped. */
  readonly passes: readonly Pass[];
  /** The number of the first line that cannot be read at all. Such a line may describe any record. */
  readonly unread: number | undefined;
}

/** Stores the lines of a file without keeping all of them in memory. Adds the problems of each line to `problems`. */
export async function stage(
  database: Queries,
  importId: string,
  file: AsyncIterable<readonly (Numbered | BrokenLine)[]>,
  problems: FoundProblems,
): Promise<Staged> {
  const passes = new Set<Pass>();
  let lines = 0;
  let unread: number | undefined;
  let rows: object[] = [];
  for await (const piece of file) {
    for (const line of piece) {
      lines += 1;
      if (isBroken(line)) for (const problem of line.problems) problems.add(line.number, problem);
      const row = rowOf(line);
      if (row) {
        rows.push(row);
        passes.add(row.home === undefined ? row.type : 'move');
      } else unread ??= line.number;
      if (rows.length < PAGE_SIZE) continue;
      await insert(database, importId, rows);
      rows = [];
    }
  }
  if (rows.length > 0) await insert(database, importId, rows);
  // The planner has no statistics of a table that was just filled, and would read all of it for each line.
  await database.query('ANALYZE import_lines (import_id, type, number, key, former, home, email_key, identity, id)');
  return { lines, passes: PASSES.filter((pass) => passes.has(pass)), unread };
}

function rowOf(read: Numbered | BrokenLine) {
  const line = (isBroken(read) ? read.key : read) as ImportLine | undefined;
  if (!line) return undefined;
  const { type } = line;
  const { external_id, account, organization, warehouse, email, ...text } = line as unknown as Readonly<
    Record<string, string>
  >;
  const place: string | undefined = warehouse ?? organization;
  const { issuer, subject } = ('identity' in line && line.identity) || {};
  return {
    type,
    number: read.number,
    key: external_id ?? `${account}${SEPARATOR}${place}`,
    account,
    place,
    former: text.former_external_id,
    home: text.former_organization,
    ...(email !== undefined && { email_key: emailKey(email) }),
    ...(issuer !== undefined && { identity: JSON.stringify([issuer, subject]) }),
    ...(isNamed(type) && { id: randomId(PREFIXES[type], 16) }),
    ...(!isBroken(read) && { line }),
  };
}

const byExternalId = (type: NamedType): string =>
  `WHEN '${type}' THEN (SELECT t.id FROM ${TABLES[type]} t WHERE t.external_id = l.key)`;

async function insert(database: Queries, importId: string, rows: readonly object[]): Promise<void> {
  await database.query(
    `INSERT INTO import_lines (import_id, type, number, key, account, place, former, home, email_key, identity, id, line)
      SELECT $1, type, number, key, account, place, former, home, email_key, identity,
        coalesce(CASE type ${(['organization', 'warehouse', 'account'] as const).map(byExternalId).join(' ')} END, id), line
      FROM jsonb_populate_recordset(NULL::import_lines, $2::jsonb) l`,
    [importId, JSON.stringify(rows)],
  );
}

// The following functions return SQL for a statement about a line `l` of the import $1.

/** SQL for the column `value` of the line whose key is `key`. */
export const lineWith = (type: ImportType, key: string, value: string): string =>
  `(SELECT e.${value} FROM import_lines e WHERE e.import_id = $1 AND e.type = '${type}' AND e.key = ${key} LIMIT 1)`;
/** SQL for the external id, in the file, of the account or place with this id. */
export const keyOfId = (id: string): string =>
  `(SELECT e.key FROM import_lines e WHERE e.import_id = $1 AND e.id = ${id} LIMIT 1)`;
/** SQL: true if a line of the type has the key. With EXISTS, PostgreSQL would hash all these lines for each page. */
export const hasLine = (type: ImportType, key: string): string =>
  `coalesce((SELECT true FROM import_lines e
    WHERE e.import_id = $1 AND e.type = '${type}' AND e.key = ${key} LIMIT 1), false)`;
export const keyOfBoth = (account: string, place: string): string => `${account} || '${SEPARATOR}' || ${place}`;

/** Sort by the column, too: if the rows were sorted by `number` alone, PostgreSQL would scan the primary key. */
const earlier = (column: string): string =>
  `(SELECT e.number FROM import_lines e WHERE e.import_id = $1 AND e.type = l.type
    AND e.${column} = l.${column} AND e.number < l.number ORDER BY e.${column}, e.number LIMIT 1)`;
/** A rule is SQL for an error message; the message is null for a correct line, as `||` with null is null. */
const differsFromEarlier = (column: string, field: string, words: string): string =>
  `CASE WHEN l.${column} IS NOT NULL THEN '${field}: line ' || ${earlier(column)} || ' ${words}' END`;
const exists = (type: NamedType, column: 'account' | 'place'): string =>
  `CASE WHEN NOT n.has_${column} THEN
    '${type}: no ${type} line has the external_id ' || to_json(l.${column}) || '; add one, or remove this line' || $2 END`;

const MEMBERSHIP = keyOfBoth('l.account', 'n.home');
/** Rights in a warehouse need a membership in its organization; a viewer may have `read` only. */
const IS_MEMBER = `(SELECT CASE
  WHEN n.home IS NULL OR NOT n.has_account THEN NULL
  WHEN m.role IS NULL THEN 'needs a membership line of account ' || to_json(l.account)
    || ' in organization ' || to_json(n.home) || '; add one, or remove this line' || $2
  WHEN m.role = 'viewer' AND l.line -> 'rights' <> '["read"]'
    THEN 'rights: a viewer may have only "read"; remove the other rights, or change the role to member' || $2 END
  FROM (SELECT (SELECT coalesce(e.line ->> 'role', '') FROM import_lines e WHERE e.import_id = $1
    AND e.type = 'membership' AND e.key = ${MEMBERSHIP} LIMIT 1) AS role OFFSET 0) m)`;

const NAMED: Readonly<Record<ImportType, readonly string[]>> = {
  organization: [],
  warehouse: [`${hasLine('organization', 'l.place')} AS has_place`],
  account: [],
  membership: [
    `${hasLine('account', 'l.account')} AS has_account`,
    `${hasLine('organization', 'l.place')} AS has_place`,
  ],
  warehouse_rights: [
    `${hasLine('account', 'l.account')} AS has_account`,
    `${hasLine('warehouse', 'l.place')} AS has_place`,
    `${lineWith('warehouse', 'l.place', 'place')} AS home`,
  ],
};

const FORMER = [
  differsFromEarlier('former', 'former_external_id', 'has the same former_external_id; remove one of the two'),
  `CASE WHEN l.former IS NOT NULL THEN 'former_external_id: line ' ||
    (SELECT e.number FROM import_lines e WHERE e.import_id = $1 AND e.type = l.type AND e.key = l.former LIMIT 1)
    || ' describes that ' || l.type || '; remove one of the two' END`,
];
const RULES: Readonly<Record<ImportType, { readonly own: readonly string[]; readonly references: readonly string[] }>> =
  {
    organization: { own: FORMER, references: [] },
    warehouse: { own: FORMER, references: [exists('organization', 'place')] },
    account: {
      own: [
        ...FORMER,
        differsFromEarlier('email_key', 'email', 'has the same address; give each account its own'),
        differsFromEarlier('identity', 'identity', 'has the same identity; remove one of the two'),
      ],
      references: [],
    },
    membership: { own: [], references: [exists('account', 'account'), exists('organization', 'place')] },
    warehouse_rights: {
      own: [],
      references: [exists('account', 'account'), exists('warehouse', 'place'), IS_MEMBER],
    },
  };
const nameOf = (type: ImportType): string => (type === 'warehouse_rights' ? 'rights in a warehouse' : type);

/** Adds the problems that a line has only because of other lines of the file. */
export async function checkRules(
  database: Queries,
  importId: string,
  { passes, unread }: Staged,
  problems: FoundProblems,
): Promise<void> {
  // Mention a line that cannot be read, because it may define what another line refers to.
  const unless = unread === undefined ? '' : `, unless it is line ${unread}, which cannot be read`;
  for (const type of new Set(passes.map(typeOf))) {
    const { own, references } = RULES[type];
    let after: number | null = 0;
    while (after !== null) {
      const [page]: { next: number | null; found: { number: number; messages: string[] }[] }[] = await database.query(
        `SELECT CASE WHEN count(*) = $4 THEN max(number) END AS next,
            coalesce(jsonb_agg(jsonb_build_object('number', number, 'messages', messages))
              FILTER (WHERE messages <> '{}'), '[]') AS found
          FROM (
            SELECT l.number, CASE WHEN l.line IS NULL THEN '{}' ELSE array_remove(
                CASE WHEN twin IS NULL THEN ARRAY[${own.join(', ')}]::text[] ELSE
                  ARRAY['line ' || twin || ' describes the same ${nameOf(type)}; remove one of the two'] END
                || ARRAY[${references.join(', ')}]::text[], NULL) END AS messages
            FROM (SELECT *, $2::text FROM import_lines WHERE import_id = $1 AND type = '${type}' AND number > $3
                ORDER BY number LIMIT $4) l
              CROSS JOIN LATERAL (SELECT ${earlier('key')} AS twin OFFSET 0) t
              CROSS JOIN LATERAL (SELECT ${NAMED[type].join(', ')} OFFSET 0) n OFFSET 0) checked`,
        [importId, unless, after, READ_SIZE],
      );
      for (const { number, messages } of page?.found ?? []) for (const one of messages) problems.add(number, one);
      after = page?.next ?? null;
    }
  }
}
