/** Validates each setting on its own: only known keys, and values of the right kind. */
import type { Override } from './environment.ts';
import type { ConfigurationProblem } from './problems.ts';
import { expectationAt, isHeading, knownSettings, settingsInList, settingsUnder } from './schema/known-settings.ts';
import { type SettingsFile, settingsFile } from './schema/schema.ts';
import type { FileContent } from './settings-file.ts';

export interface Validated {
  /** The values of all settings. Every refused value is replaced with the default. */
  readonly values: SettingsFile;
  /** Settings whose value was refused. Rules about these settings are skipped: `values` has only their defaults. */
  readonly refused: ReadonlySet<string>;
  readonly problems: readonly ConfigurationProblem[];
}

export function validate(content: FileContent, overrides: readonly Override[]): Validated {
  const data = structuredClone(content);
  for (const { setting, value } of overrides) put(data, setting.split('.'), value);
  const { data: valid, error } = settingsFile.safeParse(data);
  if (valid !== undefined) return { values: valid, refused: new Set(), problems: [] };
  const refused = new Set<string>();
  const problems = new Map<string, ConfigurationProblem>();
  for (const issue of error.issues) {
    const path = issue.path.map(String);
    const isInList = path.length > 2;
    if (issue.code === 'unrecognized_keys') {
      for (const key of issue.keys) {
        problems.set([...path, key].join('.'), unknownKey(path, key));
        if (!isInList) put(data, [...path, key], undefined);
      }
      if (!isInList) continue;
    } else problems.set(path.join('.'), refusedValue(path, valueAt(data, path), overrides));
    // Refuse the whole list for one wrong entry.
    refused.add(path.slice(0, 2).join('.'));
  }
  for (const setting of refused) put(data, setting.split('.'), undefined);
  return { values: settingsFile.parse(data), refused, problems: [...problems.values()] };
}

/** Names the setting, and the variable that overrides it, such as `server.port (from PORT)`. */
export function locationOf(setting: string, overrides: readonly Override[]): string {
  const override = overrides.find((candidate) => candidate.setting === setting);
  return override === undefined ? setting : `${setting} (from ${override.variable})`;
}

/** Returns the value for display; if it is a URL that may contain a password, only its scheme. */
export function shown(setting: string, value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  const { mayHoldPassword } = knownSettings.get(setting) ?? {};
  if (!mayHoldPassword && !text.includes('@')) return JSON.stringify(value);
  const scheme = /^[a-z][a-z0-9+.-]{0,20}:\/\//i.exec(text)?.[0] ?? '';
  return `${scheme}… (hidden, because it may contain a password)`;
}

/** @param path the headings above the key; empty for a key at the left margin */
function unknownKey(path: readonly string[], key: string): ConfigurationProblem {
  // Do not show the value: it may be a secret that was put into the file.
  return { path: [...path, key].join('.'), message: 'is not a setting', remedy: remedyFor(path, key) };
}

function remedyFor(path: readonly string[], key: string): string {
  if (path.length > 1 && key === 'client_secret') {
    return 'write it into a separate file, which only this service may read, and name that file in `client_secret_file`';
  }
  if (path.length <= 1 && /secret|cookie_?key|token_?key/i.test(key)) {
    return 'set secrets in the environment: GATEHOUSE_COOKIE_KEYS and GATEHOUSE_TOKEN_KEYS';
  }
  const [heading] = path;
  const home = [...knownSettings.values()].find((one) => one.path.at(-1) === key)?.path;
  if (home !== undefined && path.length <= 1) {
    return home.length > 1 ? `\`${key}\` belongs under \`${home[0]}\`` : `\`${key}\` belongs at the left margin`;
  }
  const here = heading === undefined ? settingsFile.shape : settingsUnder(heading);
  const allowed = path.length > 1 ? settingsInList(path) : Object.keys(here);
  return `remove it; allowed here: ${allowed.join(', ')}`;
}

function refusedValue(path: readonly string[], value: unknown, overrides: readonly Override[]): ConfigurationProblem {
  const setting = path.join('.');
  const [section, key] = path;
  if (key === undefined && section !== undefined && isHeading(section)) {
    return {
      path: setting,
      message: 'is a heading, with its settings indented below it',
      remedy: `write the settings of \`${setting}\` as indented \`name: value\` lines`,
    };
  }
  const expectation = expectationAt(path);
  const isMissing = value === null || value === undefined;
  return {
    path: locationOf(setting, overrides),
    ...(isMissing ? {} : { value: shown(setting, value) }),
    message: isMissing ? 'has no value' : `is not ${expectation?.accepts ?? 'an accepted value'}`,
    remedy: `write ${expectation?.example ?? 'another value'}`,
  };
}

/** Sets the value at a path such as `['server', 'port']`; undefined removes it. */
export function put(data: object, [name = '', ...below]: readonly string[], value: unknown): void {
  if (!isMapping(data)) return;
  if (below.length > 0) {
    data[name] ??= {};
    put(data[name] as object, below, value);
  } else if (value === undefined) delete data[name];
  else data[name] = value;
}

/** Returns the value at a path such as `['server', 'port']`, also inside a list. */
export function valueAt(data: object, path: readonly string[]): unknown {
  return path.reduce<unknown>((value, key) => (isMapping(value) ? value[key] : undefined), data);
}

function isMapping(value: unknown): value is FileContent {
  return typeof value === 'object' && value !== null;
}
