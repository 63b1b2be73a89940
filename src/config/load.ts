/** From the file and the environment to settings, or to every problem at once. */
import { existsSync } from 'node:fs';
import path from 'node:path';
import {
  type EffectiveSecret,
  type EffectiveSetting,
  effectiveSecrets,
  effectiveSettings,
} from './effective-settings.ts';
import {
  environmentOfProcess,
  type Override,
  readEnvironment,
  unknownVariables,
  type Variables,
} from './environment.ts';
import { type ConfigurationProblem, ConfigurationProblems } from './problems.ts';
import { brokenRules, oddSettings } from './rules.ts';
import { findSecrets, loadSecrets, newSecrets, secretProblems } from './secrets.ts';
import { type Settings, type SettingsWithoutSecrets, settingsFrom } from './settings.ts';
import { defaultFile, projectDirectory, readSettingsFile } from './settings-file.ts';
import { secretFilesOf, signInProviders } from './sign-in-providers.ts';
import { validate } from './validate.ts';
import { configurationWarnings } from './warnings.ts';

export interface LoadOptions {
  /** In place of the variables of this process. */
  readonly environment?: Variables;
  /** In place of GATEHOUSE_CONFIG and config/gatehouse.yaml. */
  readonly file?: string;
}

/**
 * The settings the service runs on. Makes the secrets of an embedded deployment at its first start.
 *
 * @throws ConfigurationProblems with every problem of the file and the environment.
 */
export function loadSettings(options: LoadOptions = {}): Settings {
  const { settings, given } = judge(options, { secretsAreNeeded: true });
  return { ...settings, secrets: loadSecrets(given, settings.storage.dataDirectory) };
}

/**
 * The settings of a command that signs nothing, which therefore need not be given any secret.
 *
 * @throws ConfigurationProblems with every problem of the file and the environment.
 */
export function loadSettingsWithoutSecrets(options: LoadOptions = {}): SettingsWithoutSecrets {
  return judge(options, { secretsAreNeeded: false }).settings;
}

/**
 * The keys of this environment, for a command that looks at them and makes none. Undefined where
 * they are not given, as on a machine that administers the service and does not run it.
 *
 * @throws ConfigurationProblems with every problem of the file, the environment and the keys.
 */
export function findKeys(options: LoadOptions = {}): Settings['secrets'] | undefined {
  const { settings, given } = judge(options, { secretsAreNeeded: false });
  return findSecrets(given, settings.storage);
}

/**
 * The providers with their secrets, for a command that tries them out, and the problems of those
 * whose secret this process cannot read.
 *
 * @throws ConfigurationProblems with every problem of the file and the environment.
 */
export function findProviders(options: LoadOptions = {}): ReturnType<typeof signInProviders> {
  const { values } = judge(options, { secretsAreNeeded: false });
  return signInProviders(values, { secretsAreNeeded: true });
}

/** Everything a service would start on, and how it came to be. */
export interface Inspection {
  /** With secrets that nobody will use where the first start is to make them. */
  readonly settings: Settings;
  /** Absent where there is none, and everything has its default. */
  readonly file?: string;
  /** What the environment decides in place of the file. */
  readonly overrides: readonly Override[];
  readonly effectiveSettings: readonly EffectiveSetting[];
  readonly effectiveSecrets: readonly EffectiveSecret[];
  /** What would start, and hardly anybody wants. */
  readonly warnings: readonly ConfigurationProblem[];
}

/**
 * The settings with where each came from, for a command that shows them and changes nothing.
 *
 * @throws ConfigurationProblems as `loadSettings` would.
 */
export function inspectSettings(options: LoadOptions = {}): Inspection {
  const judged = judge(options, { secretsAreNeeded: true });
  const { environment, settings, given, file } = judged;
  const { overrides } = environment;
  const found = findSecrets(given, settings.storage);
  return {
    settings: { ...settings, secrets: found ?? { ...newSecrets(), ...given } },
    ...(existsSync(file) && { file }),
    overrides,
    effectiveSettings: effectiveSettings({ ...judged, overrides }),
    effectiveSecrets: effectiveSecrets(found, environment, settings.storage),
    warnings: [
      ...unknownVariables(options.environment),
      ...oddSettings(judged, overrides),
      ...configurationWarnings(
        options.environment ?? environmentOfProcess,
        found ?? given,
        secretFilesOf(judged.values),
        { issuer: settings.issuer, hasPasskeys: judged.values.sign_in.passkeys },
      ),
    ].map(judged.placed),
  };
}

/** Goes on after a problem, so that all of them are found; what is unknown is left unjudged. */
function judge(options: LoadOptions, { secretsAreNeeded }: { secretsAreNeeded: boolean }) {
  const environment = readEnvironment(options.environment);
  const { overrides, secrets: given } = environment;
  const file = path.resolve(options.file ?? environment.configFile ?? defaultFile);
  const problems = [...environment.problems];
  const read = collect(problems, () => readSettingsFile(file));
  const content = read?.content ?? {};
  const placed = (found: ConfigurationProblem): ConfigurationProblem => {
    const line = read?.lineOf(found.path.split('.'));
    return line === undefined ? found : { ...found, file, line };
  };
  const { values, refused, problems: refusals } = validate(content, overrides);
  problems.push(...refusals);

  const unknown = new Set([...refused, ...environment.unreadable]);
  const upstream = signInProviders(values, { secretsAreNeeded });
  problems.push(...upstream.problems);
  // A path in a variable is meant from where the command is typed, one in the file is not.
  const isTyped = overrides.some(({ setting }) => setting === 'storage.data_directory');
  const settings = settingsFrom(values, upstream.providers, isTyped ? '.' : projectDirectory);
  // Of a file that could not be read nothing is known but what the environment decides.
  if (read) problems.push(...brokenRules({ values, settings, unknown, overrides }));
  if (secretsAreNeeded && !unknown.has('storage.database_url')) {
    const missing = secretProblems(given, settings.storage);
    problems.push(...missing.filter(({ path: variable }) => !unknown.has(variable)));
  }
  if (problems.length > 0) throw new ConfigurationProblems(problems.map(placed));
  return { settings, given, environment, file, content, values, placed };
}

function collect<Result>(problems: ConfigurationProblem[], work: () => Result): Result | undefined {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof ConfigurationProblems)) throw error;
    problems.push(...error.problems);
    return undefined;
  }
}
