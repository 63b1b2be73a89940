/** The rules and the JSON Schema of import lines, defined only here. */
import { z } from 'zod';
import { RIGHTS, ROLES } from '../accounts/access/reach.ts';
import { visibleText } from '../accounts/display-name.ts';
import { normalizeEmail, otherEmailMeant } from '../accounts/email.ts';

/** Refuses text that `visibleText` would change: two spellings would be two external ids. */
const externalId = z
  .string({ error: 'is not a string of 1 to 200 visible characters; put the id in quotes' })
  .refine((id) => visibleText(id) === id, {
    error: 'is not a valid id; write 1 to 200 visible characters, without spaces around them',
  });

const VISIBLE_TEXT = { minLength: 1, maxLength: 200 };

const ownId = idOf('Its id in the system that this file comes from; this id must not change.');
const formerId = idOf('Its previous external_id, if that system has changed it.').optional();

const name = z
  .string({ error: 'is not a string; write the name to show on pages, in quotes' })
  .transform((entered, context) => {
    const kept = visibleText(entered);
    if (kept !== undefined) return kept;
    const message = 'is not a valid name; write 1 to 200 visible characters';
    context.issues.push({ code: 'custom', message, input: entered });
    return z.NEVER;
  })
  .meta({ description: 'The name shown on pages.', ...VISIBLE_TEXT });

const email = z
  .string({ error: 'is not an email address; write one like "ada@example.com"' })
  .transform((entered, context) => {
    const kept = normalizeEmail(entered);
    const other = kept === undefined ? undefined : otherEmailMeant(kept);
    if (kept !== undefined && other === undefined) return kept;
    const message =
      other === undefined
        ? 'is not an email address; write one like "ada@example.com"'
        : `has characters that are normalized; write ${JSON.stringify(other)}, or another address`;
    context.issues.push({ code: 'custom', message, input: entered });
    return z.NEVER;
  })
  .meta({ description: 'The address to sign in with.', format: 'email' });

const printable = (what: string) =>
  z
    .string({ error: `is not a string; write ${what}, in quotes` })
    .regex(/^[\x20-\x7e]{1,255}$/, { error: 'is not 1 to 255 printable ASCII characters' })
    .describe(`${what.replace(/./, (letter) => letter.toUpperCase())}, as in its ID tokens.`);

const identity = z
  .strictObject(
    {
      issuer: printable('the issuer of the provider'),
      subject: printable('what the provider calls the person (sub)'),
    },
    { error: 'is not an object; write one like {"issuer":"https://id.example.com","subject":"17"}' },
  )
  .optional()
  .describe(
    'The provider account with which the person signs in, as under sign_in.providers. An ' +
      'import creates a link, but never moves or removes one.',
  );

const organizationLine = z
  .strictObject({
    type: z.literal('organization'),
    external_id: ownId,
    former_external_id: formerId,
    name,
    clients: z
      .enum(['open', 'ask'], { error: 'is neither "open" nor "ask"' })
      .optional()
      .describe(
        'open: clients that members connect reach the organization at once. ask: only after an ' +
          'approval. Absent: an existing organization keeps its policy, a new organization gets ' +
          'the setting organizations.clients.',
      ),
  })
  .describe('An organization that owns warehouses.');

const warehouseLine = z
  .strictObject({
    type: z.literal('warehouse'),
    external_id: ownId,
    former_external_id: formerId,
    organization: idOf('The external_id of its organization.'),
    former_organization: idOf(
      'The external_id of its previous organization: required to move the warehouse.',
    ).optional(),
    name,
  })
  .describe('A warehouse of an organization.');

const accountLine = z
  .strictObject({
    type: z.literal('account'),
    external_id: ownId,
    former_external_id: formerId,
    email,
    name,
    identity,
    suspended: z
      .boolean({ error: 'is neither true nor false' })
      .optional()
      .describe(
        'true: every access is refused. false: not suspended, even if an operator ' +
          'suspended it. Absent: as false, but a suspension by an operator is kept.',
      ),
  })
  .describe('A person who may sign in.');

const membershipLine = z
  .strictObject({
    type: z.literal('membership'),
    account: idOf('The external_id of the account.'),
    organization: idOf('The external_id of the organization.'),
    role: z
      .enum(ROLES, { error: `is not a role; write one of ${ROLES.join(', ')}` })
      .describe(
        'Owners and admins have all rights in every warehouse; members and viewers have ' +
          'those of their warehouse_rights lines.',
      ),
  })
  .describe('An account’s role in an organization.');

const rightsLine = z
  .strictObject({
    type: z.literal('warehouse_rights'),
    account: idOf('The external_id of the account.'),
    warehouse: idOf('The external_id of the warehouse.'),
    rights: z
      .array(z.enum(RIGHTS, { error: `is not a right; write one or more of ${RIGHTS.join(', ')}` }), {
        error: `is not a list of rights; write one like ["read"], of ${RIGHTS.join(', ')}`,
      })
      .min(1, { error: 'is empty; leave the line out instead' })
      .transform((rights) => RIGHTS.filter((right) => rights.includes(right)))
      .describe('A viewer may have only "read".'),
  })
  .describe('An account’s rights in one warehouse; needs a membership line in its organization.');

export const importLine = z.discriminatedUnion('type', [
  organizationLine,
  warehouseLine,
  accountLine,
  membershipLine,
  rightsLine,
]);

/** A line that satisfies every rule that can be checked without the other lines of the file. */
export type ImportLine = z.output<typeof importLine>;
export type ImportType = ImportLine['type'];

export const PLURALS: Readonly<Record<ImportType, string>> = {
  organization: 'organizations',
  warehouse: 'warehouses',
  account: 'accounts',
  membership: 'memberships',
  warehouse_rights: 'rights in warehouses',
};
/** In the order of dependency: a line refers only to records of earlier types. */
export const IMPORT_TYPES = Object.keys(PLURALS) as readonly ImportType[];

const lineKey = z.union([
  z.object({ type: z.enum(['organization', 'warehouse', 'account']), external_id: externalId }),
  z.object({ type: z.literal('membership'), account: externalId, organization: externalId }),
  z.object({ type: z.literal('warehouse_rights'), account: externalId, warehouse: externalId }),
]);

/** The external ids that identify the record of an import line. */
export type ImportKey = Readonly<z.output<typeof lineKey>>;

/** Returns undefined if the key is invalid. Other values of the line may be invalid. */
export const importLineKey = (line: unknown): ImportKey | undefined => lineKey.safeParse(line).data;

export const keysOf = (type: ImportType): string[] =>
  Object.keys(importLine.options.find(({ shape }) => shape.type.value === type)?.shape ?? {});

function idOf(description: string) {
  return externalId.meta({ description, ...VISIBLE_TEXT });
}

/** The first line has number 1. */
export type Numbered<Line extends ImportLine = ImportLine> = Line & { readonly number: number };

/** A line that breaks a rule that does not depend on other lines. */
export interface BrokenLine {
  readonly number: number;
  readonly problems: readonly string[];
  /** The key of the line; absent if it is invalid. */
  readonly key?: ImportKey;
}

export const isBroken = (line: object): line is BrokenLine => 'problems' in line;
