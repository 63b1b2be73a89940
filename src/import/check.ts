/** Checks that the lines of an import file are consistent. Uses no store, and changes nothing. */

import { type ImportKey, type ImportLine, type ImportSource, isBroken, type Numbered } from '../changes/line.ts';
import { createImportIndex, type ImportIndex } from './import-index.ts';
import { createFoundProblems } from './import-problems.ts';

/**
 * Reads the file twice, because a line may refer to a later line.
 *
 * @returns the index of the file
 * @throws ImportProblems with every broken line, duplicate and dangling reference
 */
export async function checkImport(source: ImportSource): Promise<ImportIndex> {
  const index = createImportIndex();
  const problems = createFoundProblems();
  let unread: number | undefined;

  for await (const lines of source.lines()) {
    index.lines += lines.length;
    for (const line of lines) {
      if (!isBroken(line)) {
        for (const problem of addToIndex(index, line)) problems.add(line.number, problem);
        continue;
      }
      for (const problem of line.problems) problems.add(line.number, problem);
      if (line.key) index.define(line.key, line.number);
      else unread ??= line.number;
    }
  }
  for (const [former, number] of index.formers()) {
    if (index.has(former)) problems.add(number, formerInFile(index, former));
  }
  // Mention a line that cannot be read: it may define what another line refers to.
  const unless = unread === undefined ? '' : `, unless it is line ${unread}, which cannot be read`;
  for await (const lines of source.lines()) {
    for (const line of lines) {
      if (isBroken(line)) continue;
      for (const problem of referenceProblems(index, line)) {
        problems.add(line.number, problem + unless);
      }
    }
  }
  problems.refuse();
  return index;
}

/** @returns a problem for each id, address or identity that an earlier line has as well */
function addToIndex(index: ImportIndex, line: Numbered): string[] {
  const earlier = index.define(line, line.number);
  if (earlier !== undefined) {
    return [`line ${earlier} describes the same ${nameOf(line)}; remove one of the two`];
  }
  if (line.type === 'warehouse') {
    index.setOrganization(line.external_id, line.organization);
    index.hasMoves ||= line.former_organization !== undefined;
  }
  if (line.type === 'membership') index.setRole(line, line.role);
  return [...takenFormer(index, line), ...takenEmail(index, line), ...takenIdentity(index, line)];
}

function takenEmail(index: ImportIndex, line: Numbered): string[] {
  if (line.type !== 'account') return [];
  const taken = index.claimEmail(line.email, line.number);
  if (taken === undefined) return [];
  return [`email: line ${taken} has the same address; give each account its own`];
}

function takenIdentity(index: ImportIndex, line: Numbered): string[] {
  if (line.type !== 'account' || line.identity === undefined) return [];
  const taken = index.claimIdentity(line.identity, line.number);
  return taken === undefined ? [] : [`identity: line ${taken} has the same identity; remove one of the two`];
}

function takenFormer(index: ImportIndex, line: Numbered): string[] {
  if (!('external_id' in line) || line.former_external_id === undefined) return [];
  const { type, former_external_id: external_id } = line;
  const taken = index.claimFormer({ type, external_id }, line.number);
  return taken === undefined
    ? []
    : [`former_external_id: line ${taken} has the same former_external_id; remove one of the two`];
}

const formerInFile = (index: ImportIndex, key: ImportKey): string =>
  `former_external_id: line ${index.lineOf(key)} describes that ${key.type}; remove one of ` + 'the two';

const nameOf = ({ type }: ImportKey): string => (type === 'warehouse_rights' ? 'rights in a warehouse' : type);

function referenceProblems(index: ImportIndex, line: ImportLine): string[] {
  const missing = referencesOf(line)
    .filter(({ key }) => !index.has(key))
    .map(
      ({ field, key }) =>
        `${field}: no ${key.type} line has the external_id ${JSON.stringify(key.external_id)}; ` +
        `add one, or remove this line`,
    );
  if (missing.length > 0 || line.type !== 'warehouse_rights') return missing;
  return rightsProblems(index, line);
}

function referencesOf(line: ImportLine) {
  const to = <Type extends 'organization' | 'warehouse' | 'account'>(type: Type, external_id: string) => ({
    field: type,
    key: { type, external_id },
  });
  if (line.type === 'warehouse') return [to('organization', line.organization)];
  if (line.type === 'membership') {
    return [to('account', line.account), to('organization', line.organization)];
  }
  if (line.type === 'warehouse_rights') {
    return [to('account', line.account), to('warehouse', line.warehouse)];
  }
  return [];
}

/** Rights in a warehouse need a membership in its organization; a viewer may have `read` only. */
function rightsProblems(
  index: ImportIndex,
  { account, warehouse, rights }: ImportLine & { type: 'warehouse_rights' },
): string[] {
  const organization = index.organizationOf(warehouse);
  if (organization === undefined) return [];
  const membership = { type: 'membership', account, organization } as const;
  if (!index.has(membership)) {
    return [
      `needs a membership line of account ${JSON.stringify(account)} in organization ` +
        `${JSON.stringify(organization)}; add one, or remove this line`,
    ];
  }
  const isTooMuch = index.roleOf(membership) === 'viewer' && rights.some((one) => one !== 'read');
  if (!isTooMuch) return [];
  return ['rights: a viewer may have only "read"; remove the other rights, or change the role to ' + 'member'];
}
