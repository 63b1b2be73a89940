/** Finds the records that lines name. Refuses unknown names, and names of different records. */

import { Refusal } from '../base/refusal.ts';
import type { Numbered } from '../changes/line.ts';
import { type PushedLine, removes } from '../changes/pushed-line.ts';
import type { Queries } from '../storage/queries.ts';
import type { ImportIndex } from './import-index.ts';
import {
  findNamed,
  type KnownTimes,
  type NamedRow,
  type NamedRows,
  type NamedType,
  type Names,
  readTimes,
  type Thing,
} from './known-times.ts';

/** The record that a line is about. An id is absent if its account or place does not exist. */
export interface LineThing<Line extends PushedLine | Numbered = PushedLine> extends Thing {
  readonly line: Line;
  /** The account or place of an account or place line; absent if the line adds it. */
  readonly own?: NamedRow | undefined;
  /** The id of the organization that a moved warehouse leaves. */
  readonly former?: string | undefined;
  /** Why the names in the line are refused. */
  readonly missing?: Refusal;
}

type AnyLine = PushedLine | Numbered;
type Found = Readonly<Record<NamedType, NamedRows>>;
/** The keys of a line whose values are an external id, an id and an email address. */
type Keys = readonly [external: string, id: string, email?: string];

const OWN: Keys = ['external_id', 'id', 'email'];
const REFERENCES: Readonly<Record<NamedType, Keys>> = {
  account: ['account', 'account_id', 'account_email'],
  organization: ['organization', 'organization_id'],
  warehouse: ['warehouse', 'warehouse_id'],
};
const NAMED_TYPES = ['account', 'organization', 'warehouse'] as const;
const PARTS: Readonly<Record<AnyLine['type'], readonly NamedType[]>> = {
  organization: [],
  warehouse: ['organization'],
  account: [],
  membership: ['account', 'organization'],
  warehouse_rights: ['account', 'warehouse'],
};

function namesIn(line: AnyLine, [external, id, email = '']: Keys): Names {
  const fields = line as unknown as Readonly<Record<string, string | undefined>>;
  return { external: fields[external], id: fields[id], email: fields[email] };
}

const formerIn = (line: AnyLine): Names => namesIn(line, ['former_external_id', '']);

/**
 * Reads the records that the lines name, and the times of these records.
 *
 * @param index the index of the import file; absent for pushed lines
 */
export async function findThings<Line extends AnyLine>(
  queries: Queries,
  lines: readonly Line[],
  index?: ImportIndex,
): Promise<{ readonly things: readonly LineThing<Line>[]; readonly times: KnownTimes }> {
  const found = {} as Record<NamedType, NamedRows>;
  for (const type of NAMED_TYPES) {
    const names = lines.flatMap((line) => [
      ...(PARTS[line.type].includes(type) ? [namesIn(line, REFERENCES[type])] : []),
      ...(line.type === type ? [namesIn(line, OWN), formerIn(line)] : []),
      ...(type === 'organization' ? [namesIn(line, ['former_organization', ''])] : []),
    ]);
    found[type] = await findNamed(queries, type, names);
  }
  const things = lines.map((line): LineThing<Line> => {
    const named = [
      ...PARTS[line.type].map((part) => [part, namesIn(line, REFERENCES[part])] as const),
      ...(isOwnLine(line) ? [[line.type, namesIn(line, OWN)] as const] : []),
    ];
    const thing = { type: line.type, line, named };
    try {
      const parts = partsOf(line, found, index);
      // The line would add the account: its address, too, must not be that of a later deleted account.
      const { email } = namesIn(line, OWN);
      const isAdded = line.type === 'account' && 'own' in parts && parts.own === undefined && email;
      return { ...thing, ...parts, ...(isAdded && { named: [...named, ['account', { email }] as const] }) };
    } catch (error) {
      if (error instanceof Refusal) return { ...thing, missing: error };
      throw error;
    }
  });
  return { things, times: await readTimes(queries, things) };
}

type OwnLine = Extract<AnyLine, { type: NamedType }>;

const isOwnLine = (line: AnyLine): line is OwnLine => PARTS[line.type].length < 2;

/** @throws Refusal */
function partsOf(line: AnyLine, found: Found, index?: ImportIndex) {
  const parts = Object.fromEntries(
    PARTS[line.type].map((part) => {
      const keys = REFERENCES[part];
      const names = namesIn(line, keys);
      // An account or place that a line of a file names may be added by the same file.
      if (index) return [part, found[part].byExternalId(names.external)];
      return [part, theOne(part, keys, names, found[part])];
    }),
  ) as Partial<Record<NamedType, NamedRow>>;
  const { account, warehouse } = parts;
  const organization = parts.organization?.id ?? warehouse?.organization_id;
  if (isOwnLine(line)) {
    const own = ownOf(line, found[line.type]);
    const { external } = namesIn(line, ['former_organization', '']);
    const former = found.organization.byExternalId(external)?.id;
    return { organization, own, former, [line.type]: own?.id };
  }
  const isElsewhere =
    index !== undefined &&
    warehouse !== undefined &&
    warehouse.organization !== index.organizationOf(`${warehouse.external_id}`);
  return { account: account?.id, organization, warehouse: warehouse?.id, isElsewhere };
}

/** Returns the account or place of the line; undefined if the line adds it. @throws Refusal */
function ownOf(line: OwnLine, rows: NamedRows): NamedRow | undefined {
  const { type } = line;
  const names = namesIn(line, OWN);
  const { external, id, email } = names;
  const holder = rows.byEmail(email);
  if ('removed' in line && removes(line)) {
    // The address may be outdated: ignore an address of no account if the line has another name.
    const isOld = holder === undefined && (id ?? external) !== undefined;
    return theOne(type, OWN, isOld ? { id, external } : names, rows);
  }
  const byName = rows.byExternalId(external) ?? rows.byExternalId(formerIn(line).external);
  if (id !== undefined) {
    const row = theOne(type, OWN, { id }, rows);
    const isOther = byName !== undefined && byName.id !== id;
    if (isOther || (external && row.external_id !== null && !byName)) {
      throw disagreeing(['id', 'external_id']);
    }
    return row;
  }
  if (external === undefined) return theOne(type, OWN, names, rows);
  return byName ?? (holder?.external_id === null ? holder : undefined);
}

/** Returns the account or place that all given names name. @throws Refusal */
function theOne(type: NamedType, keys: Keys, names: Names, rows: NamedRows): NamedRow {
  const { external, id, email } = names;
  const given = [
    { key: keys[0], value: external, row: rows.byExternalId(external) },
    { key: keys[1], value: id, row: rows.byId(id) },
    { key: keys[2], value: email, row: rows.byEmail(email) },
  ].filter(({ value }) => value !== undefined);
  const [first, ...others] = given;
  if (!first) {
    const message = `The line does not name the ${type}.`;
    throw new Refusal('name_missing', message, `Write one of ${keys.join(', ')}.`);
  }
  if (others.some(({ row }) => row?.id !== first.row?.id)) {
    throw disagreeing(given.map(({ key }) => `${key}`));
  }
  if (first.row) return first.row;
  throw new Refusal(
    `${type}_unknown`,
    `${first.key}: there is no ${type} ${JSON.stringify(first.value)}.`,
    `Send a line that adds the ${type} first, or correct the name.`,
  );
}

const disagreeing = (keys: readonly string[]): Refusal =>
  new Refusal(
    'names_disagree',
    `${keys.join(' and ')} name different records.`,
    'Write only one of these keys, or correct the values.',
  );
