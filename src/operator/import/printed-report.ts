/** Formats the report of an import, with one line for each change, and the counts. */
import type { FieldValue } from '../../changes/change.ts';
import { IMPORT_TYPES, type ImportKey, type ImportType, PLURALS } from '../../changes/line.ts';
import type { ImportProblems } from '../../changes/problems.ts';
import type { ImportChange, ImportReport } from '../../changes/report.ts';
import type { Report } from '../command/operator.ts';
import { table } from '../command/report.ts';

/** @param id the id of the import; absent for a dry run */
export function importReport({ counts, changes, changeCount, newer, excess }: ImportReport, id?: string): Report {
  const isDryRun = id === undefined;
  const more = changeCount - changes.length;
  const rows = IMPORT_TYPES.map((type) => {
    const { added, changed, removed, kept, unchanged } = counts[type];
    return [PLURALS[type], ...[added, changed, removed, kept, unchanged].map(String)];
  });
  return {
    value: {
      dry_run: isDryRun,
      import_id: id ?? null,
      counts: Object.fromEntries(IMPORT_TYPES.map((type) => [KEYS[type], counts[type]])),
      changes: changes.map(changeValue),
      more_changes: more,
      newer,
      needs_prune_at_most: excess?.needed ?? null,
    },
    text: [
      ...changes.map(changeText),
      ...(more > 0 ? [`… and ${more} more`] : []),
      ...(changes.length > 0 ? [''] : []),
      table(['', 'ADDED', 'CHANGED', 'REMOVED', 'KEPT', 'UNCHANGED'], rows, ''),
      '',
      ...(newer > 0 ? [`${newer} not applied, because newer changes are known.`] : []),
      closing(changeCount, id),
      ...(isDryRun && excess ? [`${excess.refusal.message} The import needs --prune-at-most ${excess.needed}.`] : []),
    ].join('\n'),
  };
}

function closing(changeCount: number, id: string | undefined): string {
  if (changeCount === 0) return 'The deployment already matches the file; nothing was changed.';
  if (id === undefined) return 'Dry run: nothing was changed.';
  return `Done: import ${id}. To see its changes: gatehouse audit --import ${id}`;
}

/** Returns the sentence that the operator confirms before an import removes records. */
export function removalSentence({ counts }: ImportReport): string {
  const parts = IMPORT_TYPES.filter((type) => counts[type].removed > 0).map((type) => {
    const verb = type === 'account' ? 'suspend' : 'remove';
    const { removed } = counts[type];
    return `${verb} ${removed} ${nounOf(type, removed)}`;
  });
  return `The import will ${parts.join(', ')}, because they are not in the file.`;
}

export function importProblemsReport({ code, message, remedy, problems, count }: ImportProblems): Report {
  const more = count - problems.length;
  return {
    value: { error: { code, message, remedy, problems, more_problems: more } },
    text: [
      ...problems.map(({ line, message }) => `line ${line}: ${message}`),
      ...(more > 0 ? [`… and ${more} more`] : []),
      '',
      `${message}\n${remedy}`,
    ].join('\n'),
  };
}

const nounOf = (type: ImportType, count: number): string => {
  if (count !== 1) return PLURALS[type];
  return type === 'warehouse_rights' ? 'set of rights in a warehouse' : type;
};

const KEYS: Readonly<Record<ImportType, string>> = { ...PLURALS, warehouse_rights: 'warehouse_rights' };

const changeValue = ({ change, key, name, fields = {} }: ImportChange) => ({
  change,
  ...key,
  ...(name !== undefined && { name }),
  ...Object.fromEntries(Object.entries(fields).map(([field, [before, after]]) => [field, { before, after }])),
});

function changeText({ change, key, name, fields = {} }: ImportChange): string {
  const about = `${subjectOf(key)}${name === undefined ? '' : ` (${name})`}`;
  if (change === 'kept') {
    return `${about}: kept although it is not in the file, because something that was not imported depends on it`;
  }
  if (change === 'removed' && key.type === 'account') return `${about}: suspended, because it is not in the file`;
  const entries = Object.entries(fields);
  if (change === 'changed') return `${about}: ${entries.map(difference).join(', ')}`;
  const known = entries.map(([field, [before, after]]) => `${field} ${shown(after ?? before)}`);
  return `${about}: ${[change, ...known].join(', ')}`;
}

function subjectOf(key: ImportKey): string {
  if ('external_id' in key) return `${key.type} ${key.external_id}`;
  return key.type === 'membership'
    ? `membership of ${key.account} in ${key.organization}`
    : `rights of ${key.account} in ${key.warehouse}`;
}

const difference = ([field, [before, after]]: readonly [string, readonly [FieldValue, FieldValue]]) =>
  `${field} ${shown(before)} → ${shown(after)}`;

const shown = (value: FieldValue): string => {
  if (value === null) return 'none';
  return typeof value === 'object' ? value.join(', ') : JSON.stringify(value);
};
