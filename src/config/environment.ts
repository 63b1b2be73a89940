/** The environment, read in this file only: overrides of the file, and the secrets. */
import { readFileSync } from 'node:fs';
import { nearestWord } from './nearest-word.ts';
import type { ConfigurationProblem } from './problems.ts';

export type Variables = Readonly<Record<string, string | undefined>>;

/** A setting that the environment decides instead of the file. */
export interface Override {
  readonly variable: string;
  /** Where it stands in the file, such as `server.port`. */
  readonly setting: string;
  readonly value: string | number;
}

export interface GivenSecrets {
  readonly cookieKeys?: readonly string[];
  readonly tokenKeys?: readonly string[];
}

export interface Environment {
  /** GATEHOUSE_CONFIG: the file to read instead of config/gatehouse.yaml. */
  readonly configFile?: string;
  readonly overrides: readonly Override[];
  readonly secrets: GivenSecrets;
  /** Settings that are given in a way that cannot be read. */
  readonly unreadable: readonly string[];
  readonly problems: readonly ConfigurationProblem[];
}

/** A key shorter than this is guessable enough to be refused. */
export const shortestKey = 32;

const settingOf: Readonly<Record<string, string>> = {
  GATEHOUSE_ISSUER: 'issuer',
  PORT: 'server.port',
  GATEHOUSE_OPERATORS_PORT: 'server.operators_port',
  GATEHOUSE_DATA_DIR: 'storage.data_directory',
  DATABASE_URL: 'storage.database_url',
  REDIS_URL: 'storage.redis_url',
  SMTP_URL: 'mail.smtp_url',
  GATEHOUSE_LOG_LEVEL: 'log.level',
};

/** Each may come in a file as well, named by NAME_FILE, the way orchestrators mount secrets. */
const mayBeInAFile = [
  ...['DATABASE_URL', 'REDIS_URL', 'SMTP_URL'],
  ...['GATEHOUSE_COOKIE_KEYS', 'GATEHOUSE_TOKEN_KEYS'],
];

const knownVariables = [
  'GATEHOUSE_CONFIG',
  ...Object.keys(settingOf),
  ...mayBeInAFile,
  ...mayBeInAFile.map((name) => `${name}_FILE`),
];

/** A variable that is set to nothing counts as unset, as Compose files leave them. */
export function readEnvironment(variables: Variables = process.env): Environment {
  const problems: ConfigurationProblem[] = [...mistypedNames(variables)];
  const unreadable: string[] = [];
  const value = (name: string) => {
    const found = givenValue(name, variables);
    if (typeof found !== 'object') return found;
    problems.push(found);
    unreadable.push(settingOf[name] ?? name);
    return undefined;
  };
  const configFile = value('GATEHOUSE_CONFIG');
  const cookieKeys = keysOf('GATEHOUSE_COOKIE_KEYS', value('GATEHOUSE_COOKIE_KEYS'), problems);
  const tokenKeys = keysOf('GATEHOUSE_TOKEN_KEYS', value('GATEHOUSE_TOKEN_KEYS'), problems);
  const overrides = Object.entries(settingOf).flatMap(([variable, setting]) => {
    const given = value(variable);
    if (given === undefined) return [];
    const isNumber = setting.endsWith('port') && /^\d+$/.test(given);
    return [{ variable, setting, value: isNumber ? Number(given) : given }];
  });
  return {
    ...(configFile === undefined ? {} : { configFile }),
    overrides,
    secrets: {
      ...(cookieKeys === undefined ? {} : { cookieKeys }),
      ...(tokenKeys === undefined ? {} : { tokenKeys }),
    },
    unreadable,
    problems,
  };
}

function givenValue(name: string, variables: Variables): string | ConfigurationProblem | undefined {
  const direct = variables[name]?.trim() || undefined;
  const file = variables[`${name}_FILE`]?.trim() || undefined;
  if (file === undefined || !mayBeInAFile.includes(name)) return direct;
  if (direct !== undefined) {
    return {
      path: name,
      message: `is set, and ${name}_FILE as well`,
      remedy: 'unset one of the two',
    };
  }
  const path = `${name}_FILE`;
  try {
    const content = readFileSync(file, 'utf8').trim();
    if (content !== '') return content;
    const remedy = `write the value of ${name} into it`;
    return { path, value: file, message: 'names an empty file', remedy };
  } catch (error) {
    return {
      path,
      value: file,
      message: `names a file that cannot be read (${(error as NodeJS.ErrnoException).code})`,
      remedy: 'name a file that exists and that this process may read',
    };
  }
}

function keysOf(
  name: string,
  list: string | undefined,
  problems: ConfigurationProblem[],
): readonly string[] | undefined {
  if (list === undefined) return undefined;
  const keys = list.split(/[\s,]+/).filter((key) => key !== '');
  for (const [index, key] of keys.entries()) {
    if (key.length >= shortestKey) continue;
    problems.push({
      path: `${name}, key ${index + 1} of ${keys.length}`,
      message: `has ${key.length} characters; at least ${shortestKey} are needed`,
      remedy: makeAKey,
    });
  }
  if (keys.length > 0) return keys;
  problems.push({ path: name, message: 'holds no key', remedy: makeAKey });
  return undefined;
}

/** How an operator makes a key. */
export const makeAKey = 'make a key with `openssl rand -base64 48`';

/** Only near misses: an orchestrator may add GATEHOUSE_… variables of its own. */
function mistypedNames(variables: Variables): ConfigurationProblem[] {
  return Object.keys(variables)
    .filter((name) => name.startsWith('GATEHOUSE_') && !knownVariables.includes(name))
    .flatMap((name) => {
      const meant = nearestWord(name, knownVariables);
      if (meant === undefined) return [];
      return [
        { path: name, message: 'is not a variable of Gatehouse', remedy: `did you mean ${meant}?` },
      ];
    });
}
