/** The only file that reads the environment: overrides of settings, secrets, and mistaken names. */
import { readFileSync } from 'node:fs';
import { type ConfigurationProblem, unreadableFile } from './problems.ts';
import { isPlainNumber } from './schema/kinds.ts';
import { knownSettings } from './schema/known-settings.ts';
import { SENDER_VARIABLES, sendersBy, sendersFrom } from './senders.ts';

export const environmentOfProcess: Variables = process.env;

export type Variables = Readonly<Record<string, string | undefined>>;

/** A setting whose value comes from the environment instead of the file. */
export interface Override {
  /** The variable that was set: `DATABASE_URL` or `DATABASE_URL_FILE`. */
  readonly variable: string;
  /** The setting's name in the file, such as `server.port`. */
  readonly setting: string;
  readonly value: string | number;
}

/** The current key, which signs, and older ones, which are still accepted. */
export type Keys = readonly [current: string, ...older: string[]];

/** Each key has at least 32 characters. */
export interface Secrets {
  readonly cookieKeys: Keys;
  readonly tokenKeys: Keys;
}

export type Environment = ReturnType<typeof readEnvironment>;

/** Keys that are shorter than this can be guessed, so they are refused. */
export const MIN_KEY_LENGTH = 32;

/** Treats an empty variable as unset, because Compose files leave variables empty. */
export function readEnvironment(variables: Variables = environmentOfProcess) {
  const problems: ConfigurationProblem[] = unknownNames(variables).flatMap(({ path, meant }) =>
    meant ? { path, message: 'is not a variable of Gatehouse', remedy: `did you mean ${meant}?` } : [],
  );
  /** Settings whose file cannot be read, or that are set both directly and by a file. */
  const unreadable: string[] = [];
  const given = (name: string): Given | undefined => {
    const found = givenValue(name, variables);
    if (!found || 'variable' in found) return found;
    problems.push(found);
    unreadable.push(settingOf[name] ?? name);
    return undefined;
  };
  const configFile = given('GATEHOUSE_CONFIG')?.value;
  const secrets: { -readonly [Secret in keyof Secrets]?: Keys } = {};
  /** The variable that was set for each given secret: `…_KEYS` or `…_KEYS_FILE`. */
  const givenBy: Record<string, string> = {};
  for (const secret of ['cookieKeys', 'tokenKeys'] as const) {
    const name = variableOf[secret];
    const found = given(name);
    const keys = found && keysOf(name, found.value, problems);
    if (found) givenBy[name] = found.variable;
    if (keys) secrets[secret] = keys;
  }
  const senders = sendersBy((name) => {
    const list = given(name);
    if (list) givenBy[name] = list.variable;
    return list ? sendersFrom(name, list.value, problems) : [];
  });
  const overrides = Object.entries(settingOf).flatMap(([name, setting]): Override[] => {
    const found = given(name);
    if (found === undefined) return [];
    const isNumber = knownSettings.get(setting)?.isNumber && isPlainNumber(found.value);
    return [{ ...found, setting, value: isNumber ? Number(found.value) : found.value }];
  });
  // systemd lists the folders of StateDirectory= with a colon between them.
  const stateDirectory = variables.STATE_DIRECTORY?.split(':')[0] || undefined;
  return { configFile, stateDirectory, overrides, secrets, senders, givenBy, unreadable, problems };
}

interface Given {
  readonly variable: string;
  readonly value: string;
}

function givenValue(name: string, variables: Variables): Given | ConfigurationProblem | undefined {
  const direct = variables[name]?.trim() || undefined;
  const file = variables[`${name}_FILE`]?.trim() || undefined;
  if (file === undefined || !mayBeInAFile.includes(name)) {
    return direct === undefined ? undefined : { variable: name, value: direct };
  }
  if (direct !== undefined) {
    return {
      path: name,
      message: `is set, and so is ${name}_FILE`,
      remedy: 'unset one of the two',
    };
  }
  const path = `${name}_FILE`;
  try {
    const content = readFileSync(file, 'utf8').trim();
    if (content !== '') return { variable: path, value: content };
    const remedy = `write the value of ${name} into it`;
    return { path, value: file, message: 'names an empty file', remedy };
  } catch (error) {
    return { path, value: file, ...unreadableFile(error) };
  }
}

function keysOf(name: string, list: string, problems: ConfigurationProblem[]): Keys | undefined {
  const [current, ...older] = list.split(/[\s,]+/).filter((key) => key !== '');
  if (current === undefined) {
    problems.push({ path: name, message: 'contains no key', remedy: MAKE_A_KEY });
    return undefined;
  }
  const keys: Keys = [current, ...older];
  for (const [index, key] of keys.entries()) {
    if (key.length >= MIN_KEY_LENGTH) continue;
    problems.push({
      path: `${name}, key ${index + 1} of ${keys.length}`,
      message: `has ${key.length} characters, but needs at least ${MIN_KEY_LENGTH}`,
      remedy: MAKE_A_KEY,
    });
  }
  return keys;
}

export const MAKE_A_KEY = 'create a key with `openssl rand -base64 48`';

/** The settings that variables override, by the name of the variable. */
export const settingOf: Readonly<Record<string, string>> = Object.fromEntries(
  overridable().map(({ variable, name }) => [variable, name]),
);

export const variableOf = {
  cookieKeys: 'GATEHOUSE_COOKIE_KEYS',
  tokenKeys: 'GATEHOUSE_TOKEN_KEYS',
} as const;

/** Variables that may also be given as a file, NAME_FILE: orchestrators mount secrets as files. */
export const mayBeInAFile: readonly string[] = [
  ...overridable().flatMap(({ variable, mayHoldPassword }) => (mayHoldPassword ? variable : [])),
  ...Object.values(variableOf),
  ...Object.values(SENDER_VARIABLES),
];

/** Variables that determine which deployment a process belongs to. */
const DEPLOYMENT = [
  'GATEHOUSE_CONFIG',
  ...Object.keys(settingOf).filter((variable) => settingOf[variable]?.startsWith('storage.')),
];

function overridable() {
  return [...knownSettings.values()].flatMap(({ variable, ...setting }) =>
    variable === undefined ? [] : [{ ...setting, variable }],
  );
}

/** True if any of these variables selects a deployment, instead of the defaults. */
export const namesADeployment = (variables: Variables): boolean =>
  DEPLOYMENT.some((name) => variables[name] || variables[`${name}_FILE`]);

const knownVariables = [
  'GATEHOUSE_CONFIG',
  ...Object.keys(settingOf),
  ...mayBeInAFile,
  ...mayBeInAFile.map((name) => `${name}_FILE`),
];

/** Kubernetes sets variables of a service named `gatehouse` in every pod: GATEHOUSE_PORT=tcp://… */
const isOfAPlatform = (name: string, value = ''): boolean =>
  value.trim() === '' || /^(tcp|udp|sctp):\/\//.test(value) || /^GATEHOUSE_(SERVICE_|PORT_\d)/.test(name);

/**
 * Finds unknown GATEHOUSE_… variables, and of which of ours each may be a part, a longer form, or a spelling with the
 * prefix. These are refused: otherwise GATEHOUSE_DATABASE_URL would start an embedded database. Orchestrators and the
 * operator's own scripts may add all others.
 */
const unknownNames = (variables: Variables): { readonly path: string; readonly meant: string | undefined }[] =>
  Object.keys(variables)
    .filter((name) => name.startsWith('GATEHOUSE_') && !knownVariables.includes(name))
    .filter((name) => !isOfAPlatform(name, variables[name]))
    .map((path) => ({
      path,
      meant: knownVariables.find(
        (known) => known.startsWith(path) || path.startsWith(`${known}_`) || path === `GATEHOUSE_${known}`,
      ),
    }));

/** Returns warnings about GATEHOUSE_… variables that have no effect and are not refused. */
export const unknownVariables = (variables: Variables = environmentOfProcess): ConfigurationProblem[] =>
  unknownNames(variables).flatMap(({ path, meant }) =>
    meant
      ? []
      : {
          path,
          message: 'is not a variable of Gatehouse and has no effect',
          remedy: 'unset it, or give it a name that does not begin with GATEHOUSE_; most settings have no variable',
        },
  );
