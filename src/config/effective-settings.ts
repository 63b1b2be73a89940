/** The settings of a deployment for display. Each value has its source, and secrets are absent. */
import type { Override } from './environment.ts';
import { knownSettings } from './schema/known-settings.ts';
import type { SettingsWithoutSecrets } from './settings.ts';
import type { FileContent } from './settings-file.ts';
import { withoutPassword } from './urls.ts';
import { valueAt } from './validate.ts';

export interface EffectiveSetting {
  /** The name of the setting, such as `tokens.retry_window`. */
  readonly name: string;
  /** The value as in the file, with its units. Passwords are replaced. Null if nothing is set. */
  readonly value: unknown;
  /** The source of the value: `file`, `default`, or the name of the variable. */
  readonly from: string;
}

export function effectiveSettings(parts: {
  readonly content: FileContent;
  readonly overrides: readonly Override[];
  readonly settings: SettingsWithoutSecrets;
}): EffectiveSetting[] {
  const { content, overrides, settings } = parts;
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
