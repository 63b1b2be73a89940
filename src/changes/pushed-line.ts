/** The rules for pushed lines: the import's, plus `as_of`, `removed`, and ids or email addresses that name records. */
import { z } from 'zod';
import { isAccountId } from '../accounts/account.ts';
import { normalizeEmail } from '../accounts/email.ts';
import { isOrganizationId, isWarehouseId } from '../accounts/organizations/places.ts';
import { type BrokenLine, type ImportType, importLine } from './line.ts';
import { type LineRules, readLineBytes } from './line-reader.ts';

/** A sender's clock may be ahead by at most this time. */
export const MAX_AHEAD_MS = 5 * 60_000;

const flag = z.boolean({ error: 'is neither true nor false' }).optional();
const idOf = (isId: (id: string) => boolean) =>
  z
    .string({ error: 'is not an id' })
    .refine(isId, { error: 'is not an id; write it as `list` shows it, or use the external_id' })
    .optional();
const address = z
  .string({ error: 'is not an email address' })
  .refine((text) => normalizeEmail(text) !== undefined, {
    error: 'is not an email address; write one like "ada@example.com"',
  })
  .optional();

const common = {
  as_of: z.iso
    .datetime({ offset: true, error: 'is not a time; write one like "2026-01-31T08:00:00Z"' })
    .transform((text) => new Date(text))
    .optional(),
  removed: flag,
};
const onlyFalse = (error: string) => z.literal(false, { error }).optional();
const notRemoved = onlyFalse(
  'is not possible for a place; use `import --prune`, or `organizations delete` or `warehouses delete`',
);
const own = { external_id: true } as const;
const [organization, warehouse, account, membership, rights] = importLine.options;
const person = { account_id: idOf(isAccountId), account_email: address };

const SET = {
  organization: organization.partial(own).extend({ ...common, removed: notRemoved, id: idOf(isOrganizationId) }),
  warehouse: warehouse.partial({ ...own, organization: true }).extend({
    ...common,
    removed: notRemoved,
    id: idOf(isWarehouseId),
    organization_id: idOf(isOrganizationId),
  }),
  account: account.partial(own).extend({
    ...common,
    id: idOf(isAccountId),
    deleted: onlyFalse('needs `"removed": true`'),
  }),
  membership: membership
    .partial({ account: true, organization: true })
    .extend({ ...common, ...person, organization_id: idOf(isOrganizationId) }),
  warehouse_rights: rights
    .partial({ account: true, warehouse: true })
    .extend({ ...common, ...person, warehouse_id: idOf(isWarehouseId) }),
};
const setLine = z.discriminatedUnion('type', [
  SET.organization,
  SET.warehouse,
  SET.account,
  SET.membership,
  SET.warehouse_rights,
]);
/** Matches an ignored value: a line that removes a record may contain the whole record. */
const anything = z.unknown().optional();
const removedLine = z.discriminatedUnion('type', [
  SET.account.extend({
    email: address,
    name: anything,
    identity: anything,
    suspended: anything,
    former_external_id: anything,
    deleted: flag,
  }),
  SET.membership.extend({ role: anything }),
  SET.warehouse_rights.extend({ rights: anything }),
]);

export type SetPushedLine = z.output<typeof setLine>;
export type RemovedLine = z.output<typeof removedLine>;

export type PushedLine = (SetPushedLine | RemovedLine) & { readonly number: number };

const REMOVABLE: readonly unknown[] = ['account', 'membership', 'warehouse_rights'];

function isRemoved(value: unknown): boolean {
  const { type, removed } = (value ?? {}) as Readonly<Record<string, unknown>>;
  return removed === true && REMOVABLE.includes(type);
}

export const removes = (line: PushedLine): line is RemovedLine & { readonly number: number; removed: true } =>
  line.removed === true;

const RULES: LineRules<SetPushedLine | RemovedLine> = {
  schemaOf: (value) => (isRemoved(value) ? removedLine : setLine),
  keysOf: (type: ImportType) => Object.keys(SET[type].shape),
};

/** Skips blank lines, but includes them in the line numbers. */
export function* readPushedLines(body: Buffer): Iterable<PushedLine | BrokenLine> {
  let begin = 0;
  for (let number = 1; begin < body.length; number += 1) {
    const end = body.indexOf('\n', begin);
    const bytes = body.subarray(begin, end === -1 ? body.length : end);
    const line = readLineBytes(bytes, number, RULES);
    if (line) yield line;
    begin += bytes.length + 1;
  }
}
