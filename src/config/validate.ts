/** Each setting judged by itself: known keys only, every value of its kind. */
import { z } from 'zod';
import type { Override } from './environment.ts';
import { nearestWord } from './nearest-word.ts';
import type { ConfigurationProblem } from './problems.ts';
import { expectations } from './setting-kinds.ts';
import type { FileContent } from './settings-file.ts';
import { type SettingsFile, sections, settingsFile } from './settings-schema.ts';

export interface Validated {
  /** With the default in place of every refused value. */
  readonly values: SettingsFile;
  /** Settings whose value was refused, so that no rule draws conclusions from the default. */
  readonly refused: ReadonlySet<string>;
  readonly problems: readonly ConfigurationProblem[];
}

export function validate(content: FileContent, overrides: readonly Override[]): Validated {
  const data = structuredClone(content);
  for (const { setting, value } of overrides) place(data, setting, value);
  const issues = settingsFile.safeParse(data).error?.issues ?? [];
  const refused = new Set<string>();
  const problems: ConfigurationProblem[] = [];
  for (const issue of issues) {
    const path = issue.path.map(String);
    if (issue.code === 'unrecognized_keys') {
      problems.push(...issue.keys.map((key) => unknownKey(path, key)));
      for (const key of issue.keys) remove(data, [...path, key]);
      continue;
    }
    const setting = path.join('.');
    if (!refused.has(setting)) problems.push(refusedValue(path, valueAt(data, path), overrides));
    refused.add(setting);
  }
  for (const setting of refused) remove(data, setting.split('.'));
  return { values: settingsFile.parse(data), refused, problems };
}

/** `server.port (from PORT)`: where the operator finds the value that counts. */
export function locationOf(setting: string, overrides: readonly Override[]): string {
  const override = overrides.find((candidate) => candidate.setting === setting);
  return override === undefined ? setting : `${setting} (from ${override.variable})`;
}

/** The value as it may be shown: of a URL, which may hold a password, the scheme only. */
export function shown(setting: string, value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  const mayHoldAPassword = /_url$/.test(setting) || text.includes('@');
  if (!mayHoldAPassword) return JSON.stringify(value);
  const scheme = /^[a-z][a-z0-9+.-]{0,20}:\/\//i.exec(text)?.[0] ?? '';
  return `${scheme}… (not shown, it may hold a password)`;
}

function refusedValue(
  path: readonly string[],
  value: unknown,
  overrides: readonly Override[],
): ConfigurationProblem {
  const setting = path.join('.');
  const [section, key] = path;
  if (key === undefined && section !== undefined && Object.hasOwn(sections, section)) {
    return {
      path: setting,
      message: 'is a heading, with its settings indented below it',
      remedy: `write the settings of \`${setting}\` as indented \`name: value\` lines`,
    };
  }
  const expectation = expectationOf(path);
  return {
    path: locationOf(setting, overrides),
    ...(value === null ? {} : { value: shown(setting, value) }),
    message: value === null ? 'has no value' : `is not ${expectation?.accepts ?? 'what it may be'}`,
    remedy: `write ${expectation?.example ?? 'another value'}`,
  };
}

function unknownKey(path: readonly string[], key: string): ConfigurationProblem {
  return {
    path: [...path, key].join('.'),
    // Its value is not shown: it may be a secret that somebody put into the file.
    message: 'is not a setting',
    remedy: unknownKeyRemedy(path, key),
  };
}

function unknownKeyRemedy([section]: readonly string[], key: string): string {
  if (/secret|cookie_?key|token_?key/i.test(key)) {
    return 'secrets come from the environment: GATEHOUSE_COOKIE_KEYS and GATEHOUSE_TOKEN_KEYS';
  }
  const known = Object.keys(section === undefined ? settingsFile.shape : shapeOf(section));
  const meant = nearestWord(key, known);
  if (meant !== undefined) return `did you mean \`${meant}\`?`;
  const home = Object.keys(sections).find((other) => Object.hasOwn(shapeOf(other), key));
  if (home !== undefined) return `\`${key}\` belongs under \`${home}\``;
  return `remove it; known here: ${known.join(', ')}`;
}

function shapeOf(section: string): Readonly<Record<string, z.ZodType>> {
  return (sections as Record<string, Record<string, z.ZodType>>)[section] ?? {};
}

function expectationOf([section = '', key]: readonly string[]) {
  const shape: Readonly<Record<string, z.ZodType>> = settingsFile.shape;
  let schema: unknown = key === undefined ? shape[section] : shapeOf(section)[key];
  while (
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodPrefault ||
    schema instanceof z.ZodOptional
  ) {
    schema = schema.unwrap();
  }
  return schema instanceof z.ZodType ? expectations.get(schema) : undefined;
}

function place(data: FileContent, setting: string, value: unknown): void {
  const [section = '', key] = setting.split('.');
  const settings = data[section] ?? {};
  if (key === undefined) data[section] = value;
  else if (isMapping(settings)) data[section] = { ...settings, [key]: value };
}

function remove(data: FileContent, [section = '', key]: readonly string[]): void {
  const settings = data[section];
  if (key === undefined) delete data[section];
  else if (isMapping(settings)) delete settings[key];
}

/** What stands at a path such as `['server', 'port']`. */
export function valueAt(
  data: Readonly<FileContent>,
  [section = '', key]: readonly string[],
): unknown {
  const settings = data[section];
  if (key === undefined) return settings;
  return isMapping(settings) ? settings[key] : undefined;
}

function isMapping(value: unknown): value is FileContent {
  return typeof value === 'object' && value !== null;
}
