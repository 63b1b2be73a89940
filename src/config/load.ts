/** Loads the settings from the file and the environment, or reports all their problems at once. */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { readBrand } from './brand-files.ts';
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
import { copyFile, copyOf, readCopy } from './settings-copy.ts';
import { defaultFile, projectDirectory, readSettingsFile } from './settings-file.ts';
import { secretFilesOf, signInProviders } from './sign-in-providers.ts';
import { validate } from './validate.ts';
import { configurationWarnings } from './warnings.ts';

export interface LoadOptions {
  /** Replaces the variables of this process. */
  readonly environment?: Variables;
  /** Replaces GATEHOUSE_CONFIG and config/gatehouse.yaml. */
  readonly file?: string;
  /** Replaces the content of the file. */
  readonly text?: string;
}

/**
 * Returns the settings of the service. The first start of an embedded deployment creates secrets.
 *
 * @throws ConfigurationProblems with every problem of the file and the environment.
 */
export function loadSettings(options: LoadOptions = {}): Settings {
  const judged = judge(options, { secretsAreNeeded: true });
  const { settings, given, environment } = judged;
  const { senders } = environment;
  const secrets = loadSecrets(given, settings.storage.dataDirectory);
  const copy = copyOf(judged, environment.stateDirectory, settings.storage);
  return { ...settings, senders, secrets, copy };
}

/**
 * Returns the settings for a command that signs nothing and so needs no secrets.
 *
 * @throws ConfigurationProblems with every problem of the file and the environment.
 */
export function loadSettingsWithoutSecrets(options: LoadOptions = {}): SettingsWithoutSecrets {
  return judge(options, { secretsAreNeeded: false }).settings;
}

/** Stands in for a refused file: ends are recorded for the longest time that any file could require. */
const INSTEAD_OF_FILE = '{server: {proxy_hops: 1}, tokens: {refresh_token: 3650d, absolute_age: off}}';

/** Thrown if the settings file is refused and nothing else says which deployment a command is for. */
export class NoUsableSettings extends ConfigurationProblems {}

/**
 * Returns the settings for a command. If the settings file is refused, they are those of the copy that
 * a node has kept, or else those of the environment with defaults.
 *
 * @param options.mayUseDefaults the command works right with any settings of the right database.
 * @param options.report called with a sentence about what is used instead of the file.
 * @returns the settings, and a function like `findKeys`.
 * @throws ConfigurationProblems with every problem of the file and the environment.
 */
export function loadForCommand({
  environment,
  mayUseDefaults,
  report,
}: {
  readonly environment: Variables;
  readonly mayUseDefaults: boolean;
  readonly report: (sentence: string) => void;
}) {
  const use = (options: LoadOptions) => ({
    settings: loadSettingsWithoutSecrets(options),
    keys: () => findKeys(options),
  });
  try {
    return use({ environment });
  } catch (refusal) {
    if (!(refusal instanceof ConfigurationProblems)) throw refusal;
    const { configFile, stateDirectory, overrides } = readEnvironment(environment);
    const file = path.resolve(configFile ?? defaultFile);
    // Without the file the environment may have problems of its own: then no text helps.
    const known = collect([], () => judge({ environment, text: INSTEAD_OF_FILE }, { secretsAreNeeded: false }));
    if (known === undefined) throw refusal;
    const copy = copyFile(stateDirectory, known.settings.storage);
    const text = copy && readCopy(copy, file);
    const taken = text && collect([], () => use({ environment, text }));
    const refused = `The settings file ${file} is refused: see \`gatehouse check-config\`.`;
    if (taken) {
      report(`${refused} This command uses the copy of the last settings that a node took, ${copy}.`);
      return taken;
    }
    const namesDatabase = overrides.some(({ setting }) => setting === 'storage.database_url');
    if (!namesDatabase) throw new NoUsableSettings([...refusal.problems, noCopy(copy)]);
    if (!mayUseDefaults) throw refusal;
    report(`${refused} This command uses the database of the environment, and default settings.`);
    return use({ environment, text: INSTEAD_OF_FILE });
  }
}

const noCopy = (copy: string | undefined): ConfigurationProblem => ({
  path: 'DATABASE_URL',
  message: `is not set, and no node has kept a copy of its settings${copy === undefined ? '' : ` in ${copy}`}`,
  remedy: 'set it to the database of the service if this command cannot wait until the file is correct',
});

/**
 * Returns the existing keys and creates none. Undefined if they are not given, as on a machine that
 * administers the service and does not run it.
 *
 * @throws ConfigurationProblems with every problem of the file, the environment and the keys.
 */
export function findKeys(options: LoadOptions = {}): Settings['secrets'] | undefined {
  const { settings, given } = judge(options, { secretsAreNeeded: false });
  return findSecrets(given, settings.storage);
}

/**
 * Returns the sign-in providers with their secrets, for a command that tests them, and a problem
 * for each whose secret this process cannot read.
 *
 * @throws ConfigurationProblems with every problem of the file and the environment.
 */
export function findProviders(options: LoadOptions = {}): ReturnType<typeof signInProviders> {
  const { values } = judge(options, { secretsAreNeeded: false });
  return signInProviders(values, { secretsAreNeeded: true });
}

/** The settings that a service would start with, and where they come from. */
export interface Inspection {
  /** Contains throw-away secrets if the first start has not created them yet. */
  readonly settings: Settings;
  /** Absent if there is no file and every setting has its default. */
  readonly file?: string;
  readonly overrides: readonly Override[];
  readonly effectiveSettings: readonly EffectiveSetting[];
  readonly effectiveSecrets: readonly EffectiveSecret[];
  /** Values that are allowed but probably not intended. */
  readonly warnings: readonly ConfigurationProblem[];
}

/**
 * Returns the settings and where each comes from, for a command that shows them; changes nothing.
 *
 * @throws ConfigurationProblems as `loadSettings` would.
 */
export function inspectSettings(options: LoadOptions = {}): Inspection {
  const judged = judge(options, { secretsAreNeeded: true });
  const { environment, settings, given, file } = judged;
  const { overrides } = environment;
  const found = findSecrets(given, settings.storage);
  return {
    settings: {
      ...settings,
      senders: environment.senders,
      secrets: found ?? { ...newSecrets(), ...given },
    },
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

/** Continues after a problem to find all of them; applies no rules to values that are unknown. */
function judge(options: LoadOptions, { secretsAreNeeded }: { secretsAreNeeded: boolean }) {
  const environment = readEnvironment(options.environment);
  const { overrides, secrets: given } = environment;
  const file = path.resolve(options.file ?? environment.configFile ?? defaultFile);
  const problems = [...environment.problems];
  const read = collect(problems, () => readSettingsFile(file, options.text));
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
  // A path in a variable is relative to the working directory, a path in the file to the project.
  const isOverridden = overrides.some(({ setting }) => setting === 'storage.data_directory');
  const brand = readBrand(values, path.dirname(file));
  problems.push(...brand.problems);
  const directory = isOverridden ? '.' : projectDirectory;
  const settings = settingsFrom(values, upstream.providers, directory, brand.logos);
  // Check the rules between settings only if the file was read: otherwise most values are unknown.
  if (read) problems.push(...brokenRules({ values, settings, unknown, overrides }));
  if (secretsAreNeeded && !unknown.has('storage.database_url')) {
    const missing = secretProblems(given, settings.storage);
    problems.push(...missing.filter(({ path: variable }) => !unknown.has(variable)));
  }
  if (problems.length > 0) throw new ConfigurationProblems(problems.map(placed));
  return { settings, given, environment, file, text: read?.text, content, values, placed };
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
