/** What a deployment runs on, to be shown: each value with where it came from, and no secret. */
import { type Environment, type Override, variableOf } from './environment.ts';
import { knownSettings } from './schema/known-settings.ts';
import { secretsFileIn } from './secrets.ts';
import type { Settings, SettingsWithoutSecrets } from './settings.ts';
import type { FileContent } from './settings-file.ts';
import { withoutPassword } from './urls.ts';
import { valueAt } from './validate.ts';

export interface EffectiveSetting {
  /** As in `tokens.retry_window`. */
  readonly name: string;
  /** In the words and units of the file, passwords replaced; null where nothing is set. */
  readonly value: unknown;
  /** `file`, `default`, or the variable. */
  readonly from: string;
}

export interface EffectiveSecret {
  /** Its variable, whether or not that gave it. */
  readonly name: string;
  /** Characters of each key, the current one first; empty where the first start will make it. */
  readonly lengths: readonly number[];
  /** The variable, the file in the data directory, or `made at the first start`. */
  readonly from: string;
}

export function effectiveSettings({
  content,
  overrides,
  settings,
}: {
  readonly content: FileContent;
  readonly overrides: readonly Override[];
  readonly settings: SettingsWithoutSecrets;
}): EffectiveSetting[] {
  /** Of those that have no default of their own. */
  const concluded = new Map<string, unknown>([
    ['issuer', settings.issuer],
    ['server.proxy_hops', settings.server.proxyHops],
    ['demo', settings.demo],
  ]);
  return [...knownSettings.values()].map(({ name, path, defaultValue }) => {
    const override = overrides.find(({ setting }) => setting === name);
    if (override) return { name, value: shown(override.value), from: override.variable };
    const written = valueAt(content, path);
    if (written !== undefined) return { name, value: shown(written), from: 'file' };
    return { name, value: defaultValue ?? concluded.get(name) ?? null, from: 'default' };
  });
}

const shown = (value: unknown): unknown =>
  typeof value === 'string' ? withoutPassword(value) : value;

/** @param found the secrets there are; undefined before the first start of an embedded database. */
export function effectiveSecrets(
  found: Settings['secrets'] | undefined,
  { secrets: given, givenBy }: Environment,
  { dataDirectory }: Settings['storage'],
): EffectiveSecret[] {
  const kept = found ? secretsFileIn(dataDirectory) : 'made at the first start';
  return (['cookieKeys', 'tokenKeys'] as const).map((secret) => {
    const keys = given[secret] ?? found?.[secret] ?? [];
    const name = variableOf[secret];
    return { name, lengths: keys.map((key) => key.length), from: givenBy[name] ?? kept };
  });
}
