/** Loads the settings from the file and the environment, or reports all their problems at once. */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { readBrand } from './brand-files.ts';
import { type EffectiveSetting, effectiveSettings } from './effective-settings.ts';
import { environmentOfProcess, type Override, readEnvironment, type Variables } from './environment.ts';
import { type ConfigurationProblem, ConfigurationProblems } from './problems.ts';
import { brokenRules, oddSettings } from './rules.ts';
import { findSecrets, loadSecrets, newSecrets, secretProblems } from './secrets.ts';
import { type Settings, type SettingsWithoutSecrets, settingsFrom } from './settings.ts';
import { defaultFile, projectDirectory, readSettingsFile } from './settings-file.ts';
import { secretFilesOf, signInProviders } from './sign-in-providers.ts';
import { validate } from './validate.ts';
import { configurationWarnings } from './warnings.ts';

export interface LoadOptions {
  /** Read instead of this process's environment variables. */
  readonly environment?: Variables;
  /** Replaces GATEHOUSE_CONFIG and config/gatehouse.yaml. */
  readonly file?: string;
  /** Replaces the content of the file. */
  readonly text?: string | undefined;
}

/**
 * Returns the settings of the service. The first start of an embedded deployment creates secrets.
 * @throws ConfigurationProblems with every problem of the file and the environment
 */
export function loadSettings(options: LoadOptions = {}): Settings {
  const { settings, given, environment } = judge(options, { secretsAreNeeded: true });
  const secrets = loadSecrets(given, settings.storage.dataDirectory);
  return { ...settings, senders: environment.senders, secrets };
}

/**
 * Returns the settings for a command that signs nothing, and so needs no secrets.
 * @throws ConfigurationProblems with every problem of the file and the environment
 */
export function loadSettingsWithoutSecrets(options: LoadOptions = {}): SettingsWithoutSecrets {
  return judge(options, { secretsAreNeeded: false }).settings;
}

/**
 * These settings replace a refused file. Lifetimes are the longest, so no valid token is shown as expired. Migrations
 * are off: the file may forbid them. The issuer is under `.invalid`, so no link leads to a host (RFC 2606 §2).
 */
const INSTEAD_OF_FILE = `
issuer: https://issuer-is-not-known.invalid
server: {proxy_hops: 1}
storage: {auto_migrate: false}
tokens: {refresh_token: 3650d}
`;

/** Thrown if the only problem of a command's settings is that they name no database, and so no deployment. */
export class NoDatabaseNamed extends ConfigurationProblems {}

/**
 * Returns the settings for a command. If the settings file is refused, a command that needs only the database uses the
 * database that the environment names, with defaults for all other settings.
 *
 * @param options.mayUseDefaults true if the command needs only the database, and can use defaults for the rest.
 * @param options.report called with a sentence about what is used instead of the file.
 * @returns the settings, a function that returns the keys, and whether the store of the tokens is known.
 * @throws ConfigurationProblems with every problem of the file and the environment.
 */
export function loadForCommand(options: {
  readonly environment: Variables;
  readonly mayUseDefaults: boolean;
  readonly report: (sentence: string) => void;
}) {
  const { environment, mayUseDefaults, report } = options;
  const examined = examine({ environment }, { secretsAreNeeded: false });
  const { problems, file, environment: found, settings, unknown } = examined;
  if (problems.length === 0) return { settings, keys: () => findKeys({ environment }), knowsRedis: true };
  const lacksOnlyDatabase = problems.every(({ path }) => path === 'storage.database_url');
  // Do not report an invalid database URL as a missing one, although both problems have the same path.
  if (lacksOnlyDatabase && !unknown.has('storage.database_url')) throw new NoDatabaseNamed(problems);
  const namesDatabase = found.overrides.some(({ setting }) => setting === 'storage.database_url');
  // If only values of variables are refused, the file is not the cause, so report the variables.
  const isOfVariable = ({ path }: ConfigurationProblem) => / \(from [A-Z_]+\)$/.test(path);
  if (!mayUseDefaults || !namesDatabase || problems.every(isOfVariable)) throw new ConfigurationProblems(problems);
  const instead = { environment, text: INSTEAD_OF_FILE };
  const standIn = examine(instead, { secretsAreNeeded: false });
  // Problems that remain without the settings file come from variables, which default settings do not mend.
  if (standIn.problems.length > 0) throw new ConfigurationProblems(problems);
  report(
    `The settings file ${file} is refused: see \`gatehouse check-config\`. ` +
      'Instead, this command uses the default settings, and the database that the environment names.',
  );
  const knowsRedis = standIn.settings.storage.redisUrl !== undefined;
  return { settings: standIn.settings, keys: () => findKeys(instead), knowsRedis };
}

/**
 * Returns the existing keys, and creates none. Undefined if they are not given, as on a machine from which the service
 * is only administered.
 * @throws ConfigurationProblems with every problem of the file, the environment and the keys
 */
export function findKeys(options: LoadOptions = {}): Settings['secrets'] | undefined {
  const { settings, given } = judge(options, { secretsAreNeeded: false });
  return findSecrets(given, settings.storage);
}

/**
 * Returns the sign-in providers with their secrets, and a problem for each secret that this process cannot read.
 * @throws ConfigurationProblems with every problem of the file and the environment
 */
export function findProviders(options: LoadOptions = {}): ReturnType<typeof signInProviders> {
  const { values } = judge(options, { secretsAreNeeded: false });
  return signInProviders(values, { secretsAreNeeded: true });
}

export interface Inspection {
  /** The settings. Until the first start creates the secrets, they contain random secrets that are not stored. */
  readonly settings: Settings;
  /** Absent if there is no file, so that every setting has its default. */
  readonly file?: string;
  readonly overrides: readonly Override[];
  readonly effectiveSettings: readonly EffectiveSetting[];
  /** Values that are allowed but probably not intended. */
  readonly warnings: readonly ConfigurationProblem[];
}

/**
 * Returns the settings and the source of each, for a command that shows them. Changes nothing.
 * @throws ConfigurationProblems as `loadSettings` would
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
    warnings: [
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

function judge(options: LoadOptions, needs: { secretsAreNeeded: boolean }) {
  const { problems, ...judged } = examine(options, needs);
  if (problems.length > 0) throw new ConfigurationProblems(problems);
  return judged;
}

/** Continues after a problem to find all problems. Applies no rules to values that are unknown. */
function examine(options: LoadOptions, { secretsAreNeeded }: { secretsAreNeeded: boolean }) {
  const environment = readEnvironment(options.environment);
  const { secrets: given } = environment;
  // Without the file, ignore variables that may need its settings, as SMTP_URL needs `mail.from`.
  const isStandIn = options.text === INSTEAD_OF_FILE;
  const overrides = environment.overrides.filter(({ setting }) => !isStandIn || /^(issuer$|storage\.)/.test(setting));
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
  // If the file cannot be read, skip the rules that compare settings, because most values are then unknown.
  if (read) problems.push(...brokenRules({ values, settings, unknown, overrides }));
  if (secretsAreNeeded && !unknown.has('storage.database_url')) {
    const missing = secretProblems(given, settings.storage);
    problems.push(...missing.filter(({ path: variable }) => !unknown.has(variable)));
  }
  return { problems: problems.map(placed), settings, given, environment, file, content, values, unknown, placed };
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
