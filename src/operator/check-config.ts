/** `operator check-config`: checks whether a service would start, and with which settings. */
import type { Command } from 'commander';
import type { EffectiveSecret } from '../config/effective-settings.ts';
import { type Inspection, inspectSettings } from '../config/load.ts';
import type { ConfigurationProblem } from '../config/problems.ts';
import { settingsJsonSchema } from '../config/schema/json-schema.ts';
import { WrongUsage } from './command/arguments.ts';
import type { Operator } from './command/operator.ts';
import { table } from './command/report.ts';

export function addCheckConfigCommand(program: Command, { print, environment }: Operator): void {
  program
    .command('check-config')
    .description(
      'report every problem and warning of the settings file and the environment, or every setting and its source; ' +
        'opens no database and no port',
    )
    .argument('[file]', 'the settings file; default: GATEHOUSE_CONFIG, else config/gatehouse.yaml')
    .option('--schema', 'print the JSON Schema of the settings file instead')
    .action(async (file: string | undefined, options: { schema?: true }) => {
      if (options.schema) {
        if (file !== undefined) throw new WrongUsage('--schema prints the same for every file: name none');
        const schema = settingsJsonSchema();
        return print({ value: schema, text: JSON.stringify(schema, null, 2) });
      }
      const inspection = inspectSettings({ environment, ...(file !== undefined && { file }) });
      // Import this here, because it loads the whole service, which no other command needs.
      const { buildUnopened } = await import('../service/trial-build.ts');
      await buildUnopened(inspection);
      const { warnings } = inspection;
      const text = [inspectionText(inspection), ...warnings.map(warningText)].join('\n\n');
      print({ value: { ...inspectionValue(inspection), warnings }, text });
    });
}

const warningText = ({ path, message, remedy }: ConfigurationProblem): string =>
  `Warning: ${path} ${message}\n  Remedy: ${remedy}`;

function inspectionValue({ file, effectiveSettings, effectiveSecrets }: Inspection) {
  return {
    valid: true,
    file: file ?? null,
    settings: Object.fromEntries(effectiveSettings.map(({ name, value, from }) => [name, { value, from }])),
    secrets: Object.fromEntries(effectiveSecrets.map(({ name, lengths, from }) => [name, { lengths, from }])),
  };
}

const inspectionText = ({ file, effectiveSettings, effectiveSecrets }: Inspection): string =>
  [
    'The settings are valid. Everything that needs no open database was built from them without errors.\n' +
      `File: ${file ?? 'none, so every setting has its default'}`,
    wideTable(
      'SETTING',
      effectiveSettings.map(({ name, value, from }) => [name, shownValue(value), from]),
    ),
    wideTable(
      'SECRET',
      effectiveSecrets.map((secret) => [secret.name, describe(secret), secret.from]),
    ),
  ].join('\n\n');

const wideTable = (name: string, rows: readonly string[][]): string =>
  table([name, 'VALUE', 'FROM'], rows, '', { mayBeWide: true });

const shownValue = (value: unknown): string =>
  typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value ?? 'not set');

/** Describes keys by number and length: enough to recognize them, and reveals no part. */
function describe({ lengths }: EffectiveSecret): string {
  if (lengths.length === 0) return 'none yet';
  const keys = lengths.length === 1 ? '1 key' : `${lengths.length} keys`;
  return `${keys} of ${[...new Set(lengths)].join(', ')} characters`;
}
