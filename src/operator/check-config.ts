/** `operator check-config`: checks whether a service would start, and with which settings. */
import type { Command } from 'commander';
import pg from 'pg';
import { type Inspection, inspectSettings } from '../config/load.ts';
import { type ConfigurationProblem, ConfigurationProblems } from '../config/problems.ts';
import { locationOf } from '../config/validate.ts';
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
    .action((file: string | undefined) => {
      const inspection = inspectSettings({ environment, ...(file !== undefined && { file }) });
      checkDatabaseUrl(inspection);
      const { warnings } = inspection;
      const text = [inspectionText(inspection), ...warnings.map(warningText)].join('\n\n');
      print({ value: { ...inspectionValue(inspection), warnings }, text });
    });
}

const warningText = ({ path, message, remedy }: ConfigurationProblem): string =>
  `Warning: ${path} ${message}\n  Remedy: ${remedy}`;

function inspectionValue({ file, effectiveSettings }: Inspection) {
  return {
    valid: true,
    file: file ?? null,
    settings: Object.fromEntries(effectiveSettings.map(({ name, value, from }) => [name, { value, from }])),
  };
}

const inspectionText = ({ file, effectiveSettings }: Inspection): string =>
  [
    `The settings are valid.\nFile: ${file ?? 'none, so every setting has its default'}`,
    table(
      ['SETTING', 'VALUE', 'FROM'],
      effectiveSettings.map(({ name, value, from }) => [name, shownValue(value), from]),
      '',
      { mayBeWide: true },
    ),
  ].join('\n\n');

const shownValue = (value: unknown): string =>
  typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value ?? 'not set');

/**
 * Creates a PostgreSQL client without connecting it. The client reads files named in its URL (`sslrootcert=…`).
 *
 * @throws ConfigurationProblems if the client refuses the URL or one of the files
 */
function checkDatabaseUrl({ settings, overrides }: Inspection): void {
  const { databaseUrl: connectionString } = settings.storage;
  if (connectionString === undefined) return;
  try {
    new pg.Client({ connectionString });
  } catch (error) {
    const path = locationOf('storage.database_url', overrides);
    const isFile = error instanceof Error && 'syscall' in error;
    const message = isFile
      ? `names a file that cannot be read (${error.message})`
      : 'is not a URL that the PostgreSQL client accepts';
    const remedy = 'correct the URL, or make the file that it names readable for this process';
    throw new ConfigurationProblems([{ path, message, remedy }]);
  }
}
