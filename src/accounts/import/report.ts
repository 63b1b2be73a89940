/** What an import changes, counted, and the first changes themselves. */
import type { ChangeKind, ImportChange } from './change.ts';
import { IMPORT_TYPES, type ImportType } from './line.ts';

export type ImportCounts = Record<ChangeKind | 'unchanged', number>;

export interface ImportReport {
  readonly counts: Readonly<Record<ImportType, Readonly<ImportCounts>>>;
  /** The first ones; `changeCount` says how many there are. */
  readonly changes: readonly ImportChange[];
  readonly changeCount: number;
  /** A sentence, where more than half of something would go: that is to be confirmed by its own option. */
  readonly prunesMost?: string;
}

export interface ImportTally {
  /** @param looked how many lines the step is about; none for what is removed. */
  note(type: ImportType, changes: readonly ImportChange[], looked: number): void;
  report(): ImportReport;
}

const MOST_SHOWN = 100;

export function createImportTally(): ImportTally {
  const nothing = { added: 0, changed: 0, removed: 0, kept: 0, unchanged: 0 };
  const counts = Object.fromEntries(IMPORT_TYPES.map((type) => [type, { ...nothing }])) as Record<
    ImportType,
    ImportCounts
  >;
  const shown: ImportChange[] = [];
  let changeCount = 0;

  return {
    note(type, changes, looked) {
      for (const { change, key } of changes) counts[key.type][change] += 1;
      // Of something that is added or changed there is a line.
      const ofLines = changes.filter(({ key }) => key.type === type);
      if (looked > 0) counts[type].unchanged += looked - ofLines.length;
      changeCount += changes.length;
      shown.push(...changes.slice(0, MOST_SHOWN - shown.length));
    },
    report: () => ({ counts, changes: shown, changeCount }),
  };
}
