/** Index of an import file: ids and line numbers only, so that a large file needs little memory. */
import { ROLES, type Role } from '../accounts/access/reach.ts';
import { emailKey } from '../accounts/email.ts';
import type { Identity } from '../accounts/identities/identities.ts';
import type { ImportKey } from '../changes/line.ts';

export interface ImportIndex {
  /** @returns an earlier line about the same thing; that line stays the defining one */
  define(key: ImportKey, line: number): number | undefined;
  lineOf(key: ImportKey): number | undefined;
  has(key: ImportKey): boolean;

  setRole(key: ImportKey & { type: 'membership' }, role: Role): void;
  /** The role in a membership; undefined if its line is broken. */
  roleOf(key: ImportKey & { type: 'membership' }): Role | undefined;
  setOrganization(warehouse: string, organization: string): void;
  /** The organization of a warehouse; undefined if its line is broken. */
  organizationOf(warehouse: string): string | undefined;
  /** @returns an earlier line that names the same former id */
  claimFormer(key: FormerKey, line: number): number | undefined;
  /** True if a line names this id as a former id. */
  isFormer(key: FormerKey): boolean;
  /** Every former id, with the line that names it. */
  formers(): Iterable<readonly [FormerKey, line: number]>;
  /** Number of lines that are not blank. */
  lines: number;
  /** True if the line of a warehouse names a former organization. */
  hasMoves: boolean;
  /** @returns an earlier line with the same address, in any spelling */
  claimEmail(email: string, line: number): number | undefined;
  /** @returns an earlier line with the same identity at a provider */
  claimIdentity(identity: Identity, line: number): number | undefined;
}

type FormerKey = Extract<ImportKey, { readonly external_id: string }>;

export function createImportIndex(): ImportIndex {
  const names = {
    organization: new Map(),
    warehouse: new Map(),
    account: new Map(),
  } satisfies Names;
  const lines = { organization: [], warehouse: [], account: [] } satisfies Lines;
  const pairs = { membership: new Map(), warehouse_rights: new Map() } satisfies Pairs;
  const roles = new Map<number, number>();
  const organizations: string[] = [];
  const emails = new Map<string, number>();
  const identities = new Map<string, number>();
  const formers = {
    organization: new Map(),
    warehouse: new Map(),
    account: new Map(),
  } satisfies Names;

  return {
    lines: 0,
    hasMoves: false,

    define(key, line) {
      const earlier = this.lineOf(key);
      if (earlier !== undefined) return earlier;
      if ('external_id' in key) {
        (lines[key.type] as number[])[numberOf(names[key.type], key.external_id)] = line;
      } else pairs[key.type].set(pairOf(key), line);
      return undefined;
    },

    lineOf(key) {
      if (!('external_id' in key)) return pairs[key.type].get(pairOf(key));
      const known: number | undefined = names[key.type].get(key.external_id);
      return known === undefined ? undefined : lines[key.type][known];
    },

    has(key) {
      return this.lineOf(key) !== undefined;
    },

    setRole: (key, role) => void roles.set(pairOf(key), ROLES.indexOf(role)),
    roleOf: (key) => ROLES[roles.get(pairOf(key)) ?? -1],
    setOrganization(warehouse, organization) {
      organizations[numberOf(names.warehouse, warehouse)] = organization;
    },
    organizationOf: (warehouse) => organizations[names.warehouse.get(warehouse) ?? -1],

    claimFormer: ({ type, external_id }, line) => claimed(formers[type], external_id, line),
    isFormer: ({ type, external_id }) => formers[type].has(external_id),
    *formers() {
      for (const type of ['organization', 'warehouse', 'account'] as const) {
        for (const [external_id, line] of formers[type]) yield [{ type, external_id }, line];
      }
    },

    claimEmail: (email, line) => claimed(emails, emailKey(email), line),
    claimIdentity: ({ issuer, subject }, line) => claimed(identities, JSON.stringify([issuer, subject]), line),
  };

  /** Packs the two ids of a key into one number: a Map with number keys needs far less memory. */
  function pairOf(key: Exclude<ImportKey, { external_id: string }>): number {
    const place =
      key.type === 'membership'
        ? numberOf(names.organization, key.organization)
        : numberOf(names.warehouse, key.warehouse);
    return numberOf(names.account, key.account) * MAX_PLACES + place;
  }
}

type Names = Record<'organization' | 'warehouse' | 'account', Map<string, number>>;
type Lines = Record<keyof Names, number[]>;
type Pairs = Record<'membership' | 'warehouse_rights', Map<number, number>>;

/** The maximum number of places, 33 million; there may be eight times as many accounts. */
const MAX_PLACES = 2 ** 25;

/** @returns the line that claimed the key earlier; otherwise records this line */
function claimed(known: Map<string, number>, key: string, line: number): number | undefined {
  const earlier = known.get(key);
  if (earlier === undefined) known.set(key, line);
  return earlier;
}

/** Returns the number of the id; new ids are numbered consecutively from 0. */
function numberOf(known: Map<string, number>, id: string): number {
  const found = known.get(id);
  if (found !== undefined) return found;
  known.set(id, known.size);
  return known.size - 1;
}
