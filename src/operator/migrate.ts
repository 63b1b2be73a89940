/** `operator migrate`: brings the schema up to date, for a job that runs before the nodes start. */
import type { Command } from 'commander';
import { loadSettingsWithoutSecrets } from '../config/load.ts';
import { requireEmbeddedDatabase } from '../service/deployment.ts';
import { openDatabase } from '../storage/database.ts';
import { migrate, pendingMigrations } from '../storage/migrate.ts';
import type { Operator } from './command/operator.ts';
import { TIMEOUT_FACTOR } from './registries.ts';

export function addMigrateCommand(
  program: Command,
  { announce, print, progress, environment, onWait }: Operator,
): void {
  program
    .command('migrate')
    .description('migrate the database schema to this version; nodes of the previous version keep running')
    .option('--dry-run', 'list the pending migrations without running them', false)
    .action(async ({ dryRun }: { dryRun: boolean }) => {
      const settings = loadSettingsWithoutSecrets({ environment });
      const { storage } = settings;
      announce(settings);
      requireEmbeddedDatabase(storage);
      const database = await openDatabase({ ...storage, timeoutFactor: TIMEOUT_FACTOR });
      try {
        // Do not compare on an embedded database: during another migration it answers too late.
        const isAsked = dryRun || !database.embedded;
        const pending = isAsked ? await pendingMigrations(database) : undefined;
        let started = 0;
        const onMigration = (): void => {
          started += 1;
          progress.show('Migrations started', started, pending?.length);
        };
        const names = dryRun && pending ? pending : await migrate(database, { onMigration, onWait });
        const done = dryRun ? 'Missing' : 'Applied';
        print({
          value: { dry_run: dryRun, migrations: names },
          text: names.length === 0 ? 'The schema is up to date.' : names.map((name) => `${done}: ${name}`).join('\n'),
        });
      } finally {
        await database.close();
      }
    });
}
