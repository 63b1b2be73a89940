/** The only file that reads the environment: settings, secrets, and misspelled names of variables. */
import { readFileSync } from 'node:fs';
import { nearestWord } from '../base/nearest-word.ts';
import { type ConfigurationProblem, unreadableFile } from './problems.ts';
import { isPlainNumber } from './schema/kinds.ts';
import { knownSettings } from './schema/known-settings.ts';
import { SENDER_VARIABLES, sendersBy, sendersFrom } from './senders.ts';

export const environmentOfProcess: Variables = process.env;

export type Variables = Readonly<Record<string, string | undefined>>;

/** A setting whose value is from the environment and not from the file. */
export interface Override {
  /** The variable that was set, such as `DATABASE_URL` or `DATABASE_URL_FILE`. */
  readonly variable: string;
  /** The name of the setting, such as `server.port`. */
  readonly setting: string;
  readonly value: string | number;
}

/** The current key signs. The older keys are still accepted. */
export type Keys = readonly [current: string, ...older: string[]];

/** Each key has at least 32 characters. */
export interface Secrets {
  readonly cookieKeys: Keys;
  readonly tokenKeys: Keys;
}

export type Environment = ReturnType<typeof readEnvironment>;

/** Keys with fewer characters can be guessed, so they are refused. */
export const MIN_KEY_LENGTH = 32;

/** Treats an empty variable like a missing one, because Compose files set variables to empty texts. */
export function readEnvironment(variables: Variables = environmentOfProcess) {
  const problems: ConfigurationProblem[] = [...mistakenNames(variables)];
  /** Settings whose `…_FILE` cannot be read, or that are set both directly and by a file. */
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
  /** The variable by which each secret was set: `…_KEYS` or `…_KEYS_FILE`. */
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
  return { configFile, overrides, secrets, senders, givenBy, unreadable, problems };
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

/** The name of the setting that each variable overrides. */
export const settingOf: Readonly<Record<string, string>> = Object.fromEntries(
  overridable().map(({ variable, name }) => [variable, name]),
);

export const variableOf = {
  cookieKeys: 'GATEHOUSE_COOKIE_KEYS',
  tokenKeys: 'GATEHOUSE_TOKEN_KEYS',
} as const;

/** NAME_FILE may name a file with the value of the variable NAME, because orchestrators mount secrets as files. */
export const mayBeInAFile: readonly string[] = [
  ...overridable().flatMap(({ variable, mayHoldPassword }) => (mayHoldPassword ? variable : [])),
  ...Object.values(variableOf),
  ...Object.values(SENDER_VARIABLES),
];

/** The variables that determine to which deployment a process belongs. */
const DEPLOYMENT = [
  'GATEHOUSE_CONFIG',
  ...Object.keys(settingOf).filter((variable) => settingOf[variable]?.startsWith('storage.')),
];

function overridable() {
  return [...knownSettings.values()].flatMap(({ variable, ...setting }) =>
    variable === undefined ? [] : [{ ...setting, variable }],
  );
}

/** True if a variable determines to which deployment the process belongs. */
export const namesADeployment = (variables: Variables): boolean =>
  DEPLOYMENT.some((name) => variables[name] || variables[`${name}_FILE`]);

const knownVariables = [
  'GATEHOUSE_CONFIG',
  ...Object.keys(settingOf),
  ...mayBeInAFile,
  ...mayBeInAFile.map((name) => `${name}_FILE`),
];

/**
 * Finds variables that an operator probably meant for the service, but that have no effect. Ignores all other
 * variables, because orchestrators and the operator's own scripts may add GATEHOUSE_… variables.
 */
function mistakenNames(variables: Readonly<Record<string, string | undefined>>): ConfigurationProblem[] {
  return Object.entries(variables).flatMap(([name, value = '']) => {
    if (!name.startsWith('GATEHOUSE_') || knownVariables.includes(name)) return [];
    if (isOfAPlatform(name, value)) return [];
    const remedy = remedyFor(name);
    if (remedy === undefined) return [];
    return [{ path: name, message: 'is not a variable of Gatehouse', remedy }];
  });
}

/** For a service named `gatehouse`, Kubernetes sets variables such as GATEHOUSE_PORT=tcp://… in every pod. */
const isOfAPlatform = (name: string, value = ''): boolean =>
  value.trim() === '' || /^(tcp|udp|sctp):\/\//.test(value) || /^GATEHOUSE_(SERVICE_|PORT_\d)/.test(name);

/** Returns undefined if the name resembles no variable of Gatehouse. */
function remedyFor(name: string): string | undefined {
  const bare = name.replace(/^GATEHOUSE_/, '');
  if (knownVariables.includes(bare)) return `did you mean ${bare}?`;
  const meant = nearestWord(name, knownVariables);
  if (meant !== undefined) return `did you mean ${meant}?`;
  const plain = name.replace(/_FILE$/, '');
  if (knownVariables.includes(plain)) return `set ${plain} instead: only secrets can be read from a file`;
  const setting = [...knownSettings.keys()].find((known) => known.replace('.', '_').toUpperCase() === bare);
  if (setting === undefined) return undefined;
  const variable = Object.keys(settingOf).find((known) => settingOf[known] === setting);
  if (variable !== undefined) return `did you mean ${variable}?`;
  return `unset it and write \`${setting}\` into the settings file: this setting has no variable`;
}
