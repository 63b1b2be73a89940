/** `operator check-config`: whether a service would start on these settings, and on which. */
import type { Command } from 'commander';
import type { EffectiveSecret } from '../config/effective-settings.ts';
import { type Inspection, inspectSettings } from '../config/load.ts';
import { settingsJsonSchema } from '../config/settings-json-schema.ts';
import { WrongUsage } from './failure.ts';
import type { Operator } from './operator.ts';
import { type Report, table } from './report.ts';

export function addCheckConfigCommand(program: Command, { print, environment }: Operator): void {
  program
    .command('check-config')
    .description(
      'report every problem of the settings file and the environment, or every setting with ' +
        'where it came from; opens no database and no port',
    )
    .argument('[file]', 'the settings file; else GATEHOUSE_CONFIG, else config/gatehouse.yaml')
    .option('--schema', 'print the JSON Schema of the settings file instead')
    .action(async (file: string | undefined, options: { schema?: true }) => {
      if (options.schema) {
        if (file !== undefined) throw new WrongUsage('--schema is that of every file: name none');
        print(schemaReport());
        return;
      }
      const inspection = inspectSettings({ environment, ...(file !== undefined && { file }) });
      // Imported here: it is the whole service, which no other command needs.
      const { buildUnopened } = await import('./trial-build.ts');
      await buildUnopened(inspection);
      print({ value: inspectionValue(inspection), text: inspectionText(inspection) });
    });
}

function schemaReport(): Report {
  const schema = settingsJsonSchema();
  return { value: schema, text: JSON.stringify(schema, null, 2) };
}

function inspectionValue({ file, settings, effectiveSettings, effectiveSecrets }: Inspection) {
  const { issuer, storage, mail } = settings;
  return {
    valid: true,
    file: file ?? null,
    issuer,
    database: storage.databaseUrl === undefined ? 'embedded' : 'postgresql',
    tokens: storage.redisUrl === undefined ? 'database' : 'redis',
    mail: mail === undefined ? 'off' : 'smtp',
    settings: Object.fromEntries(
      effectiveSettings.map(({ name, value, from }) => [name, { value, from }]),
    ),
    secrets: Object.fromEntries(
      effectiveSecrets.map(({ name, lengths, from }) => [name, { lengths, from }]),
    ),
  };
}

function inspectionText({
  file,
  settings,
  effectiveSettings,
  effectiveSecrets,
}: Inspection): string {
  const { issuer, server, storage, mail } = settings;
  const database =
    storage.databaseUrl === undefined
      ? `embedded, in ${storage.dataDirectory}`
      : 'PostgreSQL, by URL';
  return [
    'The settings are fine, and everything that needs no open database was built on them.',
    '',
    `File:     ${file ?? 'none, so everything has its default'}`,
    `Issuer:   ${issuer}`,
    `Listens:  ${server.host}:${server.port}, for operators ${server.operatorsHost}:${server.operatorsPort}`,
    `Database: ${database}`,
    `Tokens:   ${storage.redisUrl === undefined ? 'in the database' : 'Redis, by URL'}`,
    `Mail:     ${mail === undefined ? 'off' : `by URL, from ${mail.from}`}`,
    '',
    table(
      ['SETTING', 'VALUE', 'FROM'],
      effectiveSettings.map(({ name, value, from }) => [name, String(value ?? 'not set'), from]),
      '',
    ),
    '',
    table(
      ['SECRET', 'VALUE', 'FROM'],
      effectiveSecrets.map((secret) => [secret.name, describe(secret), secret.from]),
      '',
    ),
  ].join('\n');
}

/** How many keys, and how long: enough to see that it is the right list, and nothing of a key. */
function describe({ lengths }: EffectiveSecret): string {
  if (lengths.length === 0) return 'none yet';
  const keys = lengths.length === 1 ? '1 key' : `${lengths.length} keys`;
  return `${keys} of ${[...new Set(lengths)].join(', ')} characters`;
}
