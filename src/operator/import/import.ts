/** `operator import FILE`: imports people, places and access from the warehouse's own system. */
import { type Command, InvalidArgumentError } from 'commander';
import { systemClock } from '../../base/clock.ts';
import { MAX_AHEAD_MS } from '../../changes/pushed-line.ts';
import { parseTime, shareOrNumber, WrongUsage } from '../command/arguments.ts';
import { addYesOption } from '../command/confirmation.ts';
import type { Operator } from '../command/operator.ts';
import { openImportFile } from './file.ts';
import { importReport, removalSentence } from './printed-report.ts';

/** The default of `--prune-at-most`: how many records of each kind a prune may remove. */
const PRUNE_AT_MOST = '10%';

interface ImportOptions {
  readonly dryRun: boolean;
  readonly prune: boolean;
  readonly pruneAtMost?: string;
  readonly asOf?: Date;
}

export function addImportCommand(program: Command, operator: Operator): void {
  const { run } = operator;
  const command = program
    .command('import')
    .description(
      'make accounts, organizations, warehouses and memberships match a file; running it again changes nothing',
    )
    .argument('<file>', 'JSON Lines as described by config/import.schema.json; - is standard input')
    .option('--dry-run', 'show the difference and change nothing', false)
    .option(
      '--prune',
      'also remove what was imported and is no longer in the file: accounts are suspended; what was not imported stays',
      false,
    )
    .option(
      '--prune-at-most <limit>',
      `with --prune: how much of each kind may be removed (5%, or a number); default: ${PRUNE_AT_MOST}`,
      shareOrNumber,
    )
    .option(
      '--as-of <time>',
      'time of the data in the file, like 2026-01-31T08:00Z: newer changes are kept; default: its modification time',
      pastTime,
    );

  addYesOption(command).action(async (file: string, options: ImportOptions) => {
    if (options.pruneAtMost !== undefined && !options.prune) {
      throw new WrongUsage('--prune-at-most needs --prune');
    }
    await importFile(file, options);
  });

  async function importFile(file: string, options: ImportOptions): Promise<void> {
    const { dryRun: isDryRun, prune } = options;
    const { progress } = operator;
    await using source = await openImportFile(file, operator);
    await run(async ({ importer }) => {
      await using started = await importer.begin();
      const { lines: total, passes } = await importer.stage(started, source.lines());
      // If this machine's clock is ahead, use the database's time. Otherwise, a line that is pushed during the import
      // would be refused as outdated, and be lost.
      const writtenAt = source.writtenAt < started.startedAt ? source.writtenAt : started.startedAt;
      const plan = { passes, prune, asOf: options.asOf ?? writtenAt };
      const showing = (what: string) => (lines: number) => progress.show(`${what}, lines`, lines, total);
      if (!isDryRun) {
        // Warn on standard error, because with `--json` standard output has only one JSON value.
        await started.takeTurn(() => operator.warn('Waiting for another import, which is running.'));
      }
      const { report, ...sets } = await importer.compare(started, plan, {
        pruneAtMost: options.pruneAtMost ?? PRUNE_AT_MOST,
        show: showing('Comparing'),
      });
      if (isDryRun) return importReport(report);
      if (report.excess) throw report.excess.refusal;
      if (Object.values(report.counts).some(({ removed }) => removed > 0)) {
        progress.clear();
        await operator.confirm(removalSentence(report));
      }
      await importer.carryOut(started, plan, { ...sets, show: showing('Writing') });
      return importReport(report, started.id);
    });
  }
}

/** @throws InvalidArgumentError for an invalid time, or a time more than 5 minutes in the future */
function pastTime(given: string): Date {
  const time = parseTime(given);
  if (time.getTime() <= systemClock() + MAX_AHEAD_MS) return time;
  throw new InvalidArgumentError('Write a time that is not in the future.');
}
