/** The settings of a deployment for display: each value with its source, and no secrets. */
import { type Environment, type Override, variableOf } from './environment.ts';
import { knownSettings } from './schema/known-settings.ts';
import { secretsFileIn } from './secrets.ts';
import { SENDER_VARIABLES, type SenderPath } from './senders.ts';
import type { Settings, SettingsWithoutSecrets } from './settings.ts';
import type { FileContent } from './settings-file.ts';
import { withoutPassword } from './urls.ts';
import { valueAt } from './validate.ts';

export interface EffectiveSetting {
  /** The name of the setting, such as `tokens.retry_window`. */
  readonly name: string;
  /** The value as in the file, with its units; passwords are replaced. Null if nothing is set. */
  readonly value: unknown;
  /** `file`, `default`, or the name of the variable. */
  readonly from: string;
}

export interface EffectiveSecret {
  /** The environment variable for this secret, even if the secret has another source. */
  readonly name: string;
  /** The length of each key, the current one first; empty if the first start will create keys. */
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
  const derivedDefaults = new Map<string, unknown>([
    ['issuer', settings.issuer],
    ['server.proxy_hops', settings.server.proxyHops],
    ['demo', settings.demo],
  ]);
  return [...knownSettings.values()].map(({ name, path, defaultValue }) => {
    const override = overrides.find(({ setting }) => setting === name);
    if (override) return { name, value: shown(override.value), from: override.variable };
    const written = valueAt(content, path);
    if (written !== undefined) return { name, value: shown(written), from: 'file' };
    return { name, value: defaultValue ?? derivedDefaults.get(name) ?? null, from: 'default' };
  });
}

const shown = (value: unknown): unknown => (typeof value === 'string' ? withoutPassword(value) : value);

/** Returns secrets for display. @param found undefined before the first embedded start. */
export function effectiveSecrets(
  found: Settings['secrets'] | undefined,
  { secrets: given, senders, givenBy }: Environment,
  { dataDirectory }: Settings['storage'],
): EffectiveSecret[] {
  const kept = found ? secretsFileIn(dataDirectory) : 'made at the first start';
  const keys = (['cookieKeys', 'tokenKeys'] as const).map((secret) => {
    const keys = given[secret] ?? found?.[secret] ?? [];
    const name = variableOf[secret];
    return { name, lengths: keys.map((key) => key.length), from: givenBy[name] ?? kept };
  });
  const lists = Object.entries(SENDER_VARIABLES).flatMap(([path, name]) => {
    const from = givenBy[name];
    if (from === undefined) return [];
    return { name, lengths: senders[path as SenderPath].map(({ secret }) => secret.length), from };
  });
  return [...keys, ...lists];
}
