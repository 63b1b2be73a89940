/** Finds the ids of the records that pushed lines name. Refuses lines whose names are unknown or contradictory. */
import { emailKey } from '../accounts/email.ts';
import { randomId } from '../base/random-id.ts';
import { Refusal } from '../base/refusal.ts';
import type { Queries } from '../storage/queries.ts';
import { type Change, type NamedType, type Names, valuesOf } from './change.ts';
import { type PushedLine, removes } from './pushed-line.ts';
import { PREFIXES } from './stage.ts';

interface Found {
  readonly type: NamedType;
  readonly id: string;
  readonly external_id: string | null;
  readonly email: string | null;
  readonly organization_id: string | null;
}

type Keys = readonly [external: string, id: string, email: string];
const OWN: Keys = ['external_id', 'id', 'email'];
const KEYS: Readonly<Record<NamedType, Keys>> = {
  account: ['account', 'account_id', 'account_email'],
  organization: ['organization', 'organization_id', ''],
  warehouse: ['warehouse', 'warehouse_id', ''],
};
const PARTS: Readonly<Record<PushedLine['type'], readonly NamedType[]>> = {
  organization: [],
  warehouse: ['organization'],
  account: [],
  membership: ['account', 'organization'],
  warehouse_rights: ['account', 'warehouse'],
};

type Text = Readonly<Record<string, string | undefined>>;
const namesIn = (line: Text, [external, id, email]: Keys): Names => ({
  external: line[external],
  id: line[id],
  email: line[email],
});

export interface Resolved {
  readonly line: PushedLine;
  readonly change: Change;
  /** Why the line is refused: its names are unknown, or contradict each other. */
  readonly missing?: Refusal;
}

/** A line without `as_of` describes the present, and is never outdated, even if another sender's clock is ahead. */
export async function resolve(tx: Queries, lines: readonly PushedLine[]): Promise<Resolved[]> {
  const of = await findAll(tx, lines);
  return lines.map((line): Resolved => {
    const text = line as unknown as Text;
    const { type, number, as_of: asOf } = line;
    const parts = PARTS[type];
    const isOwn = parts.length < 2;
    const named = [
      ...parts.map((part) => [part, namesIn(text, KEYS[part])] as const),
      ...(isOwn ? [[type as NamedType, namesIn(text, OWN)] as const] : []),
    ];
    const change = { type, number, asOf, named, end: endOf(line) };
    try {
      const ids = Object.fromEntries(
        parts.map((part) => [`${part}_id`, theOne(part, KEYS[part], namesIn(text, KEYS[part]), of)]),
      ) as Record<`${NamedType}_id`, Found | undefined>;
      const { warehouse_id: warehouse, organization_id: organization } = ids;
      const own = isOwn ? ownOf(line, type as NamedType, of) : undefined;
      const isByAddress = own === undefined || (own.external_id === null && text.id === undefined);
      return {
        line,
        change: {
          ...change,
          named: named.map(([part, names]) => [part, part === type && isByAddress ? names : surest(names)] as const),
          ...(isOwn && { adds: own === undefined, id: own?.id ?? randomId(PREFIXES[type as NamedType], 16) }),
          account_id: ids.account_id?.id,
          organization_id: organization?.id ?? warehouse?.organization_id ?? undefined,
          warehouse_id: warehouse?.id,
          ...(change.end === undefined && valuesOf(text, organization?.id)),
          formerOrganization: of('organization', 'external_id', text.former_organization)?.id,
        },
      };
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return { line, change, missing: error };
    }
  });
}

/**
 * Returns the identifiers with which to look up a recorded deletion. Omits the address if the line also has an id or
 * external id: another person may now have the deleted person's address.
 */
const surest = (names: Names): Names =>
  names.external === undefined && names.id === undefined ? names : { ...names, email: undefined };

function endOf(line: PushedLine): Change['end'] {
  if (!removes(line)) return undefined;
  if (line.type !== 'account') return 'removed';
  return line.deleted === true ? 'deleted' : 'suspended';
}

const BY = ['id', 'external_id', 'email'] as const;
type Lookup = (type: NamedType, by: (typeof BY)[number], value: string | undefined) => Found | undefined;

/** Reads all accounts and places that the lines name, in one statement. */
async function findAll(tx: Queries, lines: readonly PushedLine[]): Promise<Lookup> {
  const given = { id: new Set<string>(), email: new Set<string>() };
  const external = {
    account: new Set<string>(),
    organization: new Set<string>(),
    warehouse: new Set<string>(),
  };
  for (const pushed of lines) {
    const { type } = pushed;
    const line = pushed as unknown as Text;
    const own = PARTS[type].length < 2 ? [[type as NamedType, OWN] as const] : [];
    for (const [part, keys] of [...PARTS[type].map((one) => [one, KEYS[one]] as const), ...own]) {
      const { external: name, id, email } = namesIn(line, keys);
      if (name !== undefined) external[part].add(name);
      if (id !== undefined) given.id.add(id);
      if (email !== undefined) given.email.add(emailKey(email));
    }
    const { former_external_id: former, former_organization: home } = line;
    // Ignore `former_external_id` in a line that removes a record: its value is not validated.
    if (former !== undefined && !removes(pushed)) external[type as NamedType].add(former);
    if (home !== undefined) external.organization.add(home);
  }
  const rows = await tx.query<Found>(
    `SELECT 'account' AS type, id, external_id, email_key AS email, NULL AS organization_id FROM accounts
        WHERE id = ANY($1) OR external_id = ANY($2) OR email_key = ANY($3)
      UNION ALL SELECT 'organization', id, external_id, NULL, NULL FROM organizations
        WHERE (id = ANY($1) OR external_id = ANY($4)) AND ended_at IS NULL
      UNION ALL SELECT 'warehouse', w.id, w.external_id, NULL, organization_id FROM warehouses w
          JOIN organizations o ON o.id = organization_id AND o.ended_at IS NULL
        WHERE (w.id = ANY($1) OR w.external_id = ANY($5)) AND w.ended_at IS NULL`,
    [[...given.id], [...external.account], [...given.email], [...external.organization], [...external.warehouse]],
  );
  const index = new Map(
    rows.flatMap((row) =>
      BY.flatMap((by) => (row[by] === null ? [] : [[`${row.type} ${by} ${row[by]}`, row] as const])),
    ),
  );
  return (type, by, value) =>
    value === undefined ? undefined : index.get(`${type} ${by} ${by === 'email' ? emailKey(value) : value}`);
}

/** @returns undefined if the line adds a record. @throws Refusal */
function ownOf(line: PushedLine, type: NamedType, of: Lookup): Found | undefined {
  const names = namesIn(line as unknown as Text, OWN);
  const { external, id, email } = names;
  const holder = of(type, 'email', email);
  if (line.removed === true) {
    // The address may be outdated. If no account has it, and the line has an `id` or `external_id`, ignore the address.
    const isOld = holder === undefined && (id ?? external) !== undefined;
    return theOne(type, OWN, isOld ? { id, external } : names, of);
  }
  const { former_external_id: former } = line as unknown as Text;
  const [own, before] = [of(type, 'external_id', external), of(type, 'external_id', former)];
  if (own && before) {
    const text = `former_external_id: the database has both ${JSON.stringify(former)} and the external_id`;
    throw new Refusal('line_refused', `${text}.`, 'Delete one of the two first.');
  }
  const byName = own ?? before;
  if (id !== undefined) {
    const row = theOne(type, OWN, { id }, of);
    const isOther = byName !== undefined && byName.id !== id;
    if (isOther || (external && row.external_id !== null && !byName)) throw disagreeing(['id', 'external_id']);
    return row;
  }
  if (external === undefined) return theOne(type, OWN, names, of);
  return byName ?? (holder?.external_id === null ? holder : undefined);
}

/** Returns the one account or place that all these names mean. @throws Refusal */
function theOne(type: NamedType, keys: Keys, { external, id, email }: Names, of: Lookup): Found {
  const given = [
    { key: keys[0], value: external, row: of(type, 'external_id', external) },
    { key: keys[1], value: id, row: of(type, 'id', id) },
    { key: keys[2], value: email, row: of(type, 'email', email) },
  ].filter(({ value }) => value !== undefined);
  const [first, ...others] = given;
  if (!first) {
    const message = `The line does not name the ${type}.`;
    throw new Refusal('name_missing', message, `Write one of ${keys.filter(Boolean).join(', ')}.`);
  }
  if (others.some(({ row }) => row?.id !== first.row?.id)) throw disagreeing(given.map(({ key }) => key));
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
