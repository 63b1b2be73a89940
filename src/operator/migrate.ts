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
    .action(async () => {
      const settings = loadSettingsWithoutSecrets({ environment });
      const { storage } = settings;
      announce(settings);
      requireEmbeddedDatabase(storage);
      const database = await openDatabase({ ...storage, timeoutFactor: TIMEOUT_FACTOR });
      try {
        // Do not ask an embedded database, because it answers too late while another process migrates it.
        const pending = database.embedded ? undefined : await pendingMigrations(database);
        let started = 0;
        const onMigration = (): void => {
          started += 1;
          progress.show('Migrations started', started, pending?.length);
        };
        const names = await migrate(database, { onMigration, onWait });
        print({
          value: { migrations: names },
          text: names.length === 0 ? 'The schema is up to date.' : names.map((name) => `Applied: ${name}`).join('\n'),
        });
      } finally {
        await database.close();
      }
    });
}
