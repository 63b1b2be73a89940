/** `operator import FILE`: people, places and access, as the warehouse's own system has them. */
import { type Command, Option } from 'commander';
import { checkImport } from '../../accounts/import/check.ts';
import { importJsonSchema } from '../../accounts/import/line.ts';
import { askedFirst, type ConfirmationOptions, confirmed } from '../program/confirmation.ts';
import { WrongUsage } from '../program/failure.ts';
import type { Operator } from '../program/operator.ts';
import { openImportFile } from './file.ts';
import { importReport, removalSentence } from './report.ts';

interface ImportOptions extends ConfirmationOptions {
  readonly dryRun: boolean;
  readonly prune: boolean;
  readonly pruneMost: boolean;
  readonly adoptByName: boolean;
  readonly schema?: true;
}

export function addImportCommand(program: Command, operator: Operator): void {
  const { run, print, stdin } = operator;
  const command = program
    .command('import')
    .description(
      'bring accounts, organizations, warehouses and memberships to the state of a file; ' +
        'repeated, it changes nothing',
    )
    .argument(
      '[file]',
      'JSON Lines, as config/import.schema.json describes them; - is standard input',
    )
    .option('--dry-run', 'show the difference and change nothing', false)
    .option(
      '--prune',
      'remove what was imported once and the file no longer has; accounts are suspended, and ' +
        'what was made by hand stays',
      false,
    )
    .option('--prune-most', 'with --prune: also where that is more than half of it', false)
    .option(
      '--adopt-by-name',
      'take an organization or warehouse that was made by hand for the one of its name in the file; ' +
        'look at it with --dry-run first',
      false,
    )
    .addOption(
      new Option('--schema', 'print the JSON Schema of a line').conflicts([
        'dryRun',
        'prune',
        'pruneMost',
        'adoptByName',
        'yes',
      ]),
    );

  askedFirst(command).action(async (file: string | undefined, options: ImportOptions) => {
    if (options.schema) {
      const schema = importJsonSchema();
      print({ value: schema, text: JSON.stringify(schema, null, 2) });
      return;
    }
    if (file === undefined) throw new WrongUsage('name the file');
    if (options.pruneMost && !options.prune) throw new WrongUsage('--prune-most needs --prune');
    await importFile(file, options);
  });

  async function importFile(file: string, options: ImportOptions): Promise<void> {
    const { dryRun: isDryRun, prune, pruneMost: mayPruneMost, adoptByName } = options;
    const { progress } = operator;
    const source = await openImportFile(file, operator);
    try {
      const index = await checkImport(source);
      const plan = { source, index, prune, adoptByName };
      const telling = (what: string) => (lines: number) =>
        progress.show(`${what}, lines`, lines, index.lines);
      await run(async ({ importer }) => {
        const report = await importer.compare(plan, {
          mayPruneMost: mayPruneMost || isDryRun,
          tell: telling('Comparing'),
        });
        if (isDryRun) return importReport(report, { isDryRun });
        // Where nobody can be asked, a job without --yes fails at once, not when somebody has left.
        const removes = Object.values(report.counts).some(({ removed }) => removed > 0);
        if (removes || (prune && !stdin.isTTY)) {
          progress.clear();
          await confirmed(removalSentence(report), options, operator);
        }
        await importer.carryOut(plan, telling('Writing'));
        return importReport(report, { isDryRun });
      });
    } finally {
      await source.close();
    }
  }
}
