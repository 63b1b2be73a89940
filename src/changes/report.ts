/** Counts an import's changes, lists the first ones, and reads the time of the last import. */
import type { Queries } from '../storage/queries.ts';
import type { Fields } from './change.ts';
import { IMPORT_TYPES, type ImportKey, type ImportType } from './line.ts';
import type { PruneExcess } from './prune.ts';

/** `removed` accounts are suspended. `kept` records left the file, but a manually created record needs them. */
export type ChangeKind = 'added' | 'changed' | 'removed' | 'kept';

export interface ImportChange {
  readonly change: ChangeKind;
  readonly key: ImportKey;
  /** The email address or the name of the record, for readers who do not know the ids. */
  readonly name?: string;
  /** Values before and after the change. For an added or removed record, only the important fields are present. */
  readonly fields?: Fields;
}

export type ImportCounts = Record<ChangeKind | 'unchanged', number>;

export interface ImportReport {
  readonly counts: Readonly<Record<ImportType, Readonly<ImportCounts>>>;
  /** The first changes. `changeCount` is the number of all changes. */
  readonly changes: readonly ImportChange[];
  readonly changeCount: number;
  /** How many lines and imported records were not applied, because a newer change is known. */
  readonly newer: number;
  /** Present if the import would remove more records than the limit allows. */
  readonly excess?: PruneExcess;
}

const MAX_SHOWN = 100;

export function createImportTally() {
  const nothing = { added: 0, changed: 0, removed: 0, kept: 0, unchanged: 0 };
  const counts = Object.fromEntries(IMPORT_TYPES.map((type) => [type, { ...nothing }])) as Record<
    ImportType,
    ImportCounts
  >;
  const shown: ImportChange[] = [];
  let changeCount = 0;
  let newer = 0;

  return {
    /** @param page.lines the number of compared lines; 0 if the page only removes records */
    add(type: ImportType, page: { changes: readonly ImportChange[]; newer: number; lines: number }): void {
      const { changes, lines } = page;
      newer += page.newer;
      for (const { change, key } of changes) counts[key.type][change] += 1;
      // Subtract only changes of the lines' type: moving a warehouse also removes rights, for which there is no line.
      const ofLines = changes.filter(({ key }) => key.type === type);
      if (lines > 0) counts[type].unchanged += lines - ofLines.length;
      changeCount += changes.length;
      shown.push(...changes.slice(0, MAX_SHOWN - shown.length));
    },
    report: (): ImportReport => ({ counts, changes: shown, changeCount, newer }),
  };
}

/** Returns the time of the last import; undefined until the first import has succeeded. */
export async function lastImport(database: Queries): Promise<Date | undefined> {
  const [row] = await database.query<{ at: Date | null }>('SELECT imported_at AS at FROM lasting_numbers');
  return row?.at ?? undefined;
}
