/** Loads a settings file for a test, and returns the settings or the problems found. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Variables } from '../../src/config/environment.ts';
import { inspectSettings, type LoadOptions } from '../../src/config/load.ts';
import { type ConfigurationProblem, ConfigurationProblems } from '../../src/config/problems.ts';
import type { SettingsWithoutSecrets } from '../../src/config/settings.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

export const directory = temporaryDirectory('config');

export const keysOfEnvironment = {
  GATEHOUSE_COOKIE_KEYS: 'c'.repeat(32),
  GATEHOUSE_TOKEN_KEYS: 't'.repeat(32),
};

/** Writes a file and returns its path. */
export function fileWith(content: string, name = 'settings.yaml'): string {
  const file = path.join(directory, name);
  writeFileSync(file, content, { mode: 0o600 });
  return file;
}

/** Returns the text of a settings file that sets only this setting, to a value in YAML. */
export function yamlWith(name: string, value: string): string {
  const [heading, key] = name.split('.');
  return key === undefined ? `${heading}: ${value}` : `${heading}: { ${key}: ${value} }`;
}

/** Returns the settings that a service would start with, without its secrets. */
export function checkSettings(options: LoadOptions): SettingsWithoutSecrets {
  const { secrets: _, ...settings } = inspectSettings(options).settings;
  return settings;
}

export function settingsOf(yaml: string, environment: Variables = {}): SettingsWithoutSecrets {
  return checkSettings({ environment, file: fileWith(yaml) });
}

export function refusalOf(work: () => unknown): ConfigurationProblems {
  try {
    work();
  } catch (error) {
    if (error instanceof ConfigurationProblems) return error;
    throw error;
  }
  throw new Error('the configuration was accepted');
}

export function problemsOf(yaml: string, environment: Variables = {}): ConfigurationProblem[] {
  return [...refusalOf(() => settingsOf(yaml, environment)).problems];
}

export function pathsOf(yaml: string, environment: Variables = {}): string[] {
  return problemsOf(yaml, environment).map((problem) => problem.path);
}
