/** The names of the environment's variables: which setting each decides, and which were mistaken. */
import { nearestWord } from './nearest-word.ts';
import type { ConfigurationProblem } from './problems.ts';
import { knownSettings } from './schema/known-settings.ts';
import { removedSettings } from './unknown-keys.ts';

/** By variable, the setting it decides instead of the file. */
export const settingOf: Readonly<Record<string, string>> = {
  GATEHOUSE_ISSUER: 'issuer',
  PORT: 'server.port',
  GATEHOUSE_OPERATORS_PORT: 'server.operators_port',
  GATEHOUSE_DATA_DIR: 'storage.data_directory',
  DATABASE_URL: 'storage.database_url',
  REDIS_URL: 'storage.redis_url',
  SMTP_URL: 'mail.smtp_url',
  GATEHOUSE_LOG_LEVEL: 'log.level',
};

/** The variable of each secret. */
export const variableOf = {
  cookieKeys: 'GATEHOUSE_COOKIE_KEYS',
  tokenKeys: 'GATEHOUSE_TOKEN_KEYS',
} as const;

/** Each may come in a file as well, named by NAME_FILE, the way orchestrators mount secrets. */
export const mayBeInAFile: readonly string[] = [
  'DATABASE_URL',
  'REDIS_URL',
  'SMTP_URL',
  ...Object.values(variableOf),
];

const knownVariables = [
  'GATEHOUSE_CONFIG',
  ...Object.keys(settingOf),
  ...mayBeInAFile,
  ...mayBeInAFile.map((name) => `${name}_FILE`),
];

/**
 * Names that somebody took for ours, which would otherwise change nothing in silence. Others are
 * left alone: orchestrators and the operator's own scripts may add GATEHOUSE_… variables.
 */
export function mistakenNames(
  variables: Readonly<Record<string, string | undefined>>,
): ConfigurationProblem[] {
  return Object.entries(variables).flatMap(([name, value = '']) => {
    if (!name.startsWith('GATEHOUSE_') || knownVariables.includes(name)) return [];
    // GATEHOUSE_PORT=tcp://…: Kubernetes tells every pod about a service called gatehouse.
    if (value.trim() === '' || /^(tcp|udp|sctp):\/\//.test(value)) return [];
    const remedy = remedyFor(name);
    if (remedy === undefined) return [];
    return [{ path: name, message: 'is not a variable of Gatehouse', remedy }];
  });
}

/** Undefined for a name that nobody can have meant as ours. */
function remedyFor(name: string): string | undefined {
  const bare = name.replace(/^GATEHOUSE_/, '');
  if (knownVariables.includes(bare)) return `did you mean ${bare}?`;
  const meant = nearestWord(name, knownVariables);
  if (meant !== undefined) return `did you mean ${meant}?`;
  const plain = name.replace(/_FILE$/, '');
  if (knownVariables.includes(plain)) return `set ${plain} itself: only secrets may be in files`;
  const setting = [...knownSettings.keys(), ...removedSettings.keys()].find(
    (known) => known.replace('.', '_').toUpperCase() === bare,
  );
  if (setting === undefined) return undefined;
  if (removedSettings.has(setting)) return removedSettings.get(setting);
  const variable = Object.keys(settingOf).find((known) => settingOf[known] === setting);
  if (variable !== undefined) return `did you mean ${variable}?`;
  return `unset it and write \`${setting}\` into the settings file: it has no variable`;
}
