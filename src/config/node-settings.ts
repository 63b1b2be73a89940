/** Settings that should be the same on all nodes of a deployment, without secrets, for comparison. */
import { createHash } from 'node:crypto';
import { mayBeInAFile } from './environment.ts';
import { durationText } from './schema/kinds.ts';
import { type KnownSetting, knownSettings } from './schema/known-settings.ts';
import type { Settings, SettingsWithoutSecrets } from './settings.ts';
import { withoutPassword } from './urls.ts';
import { valueAt } from './validate.ts';

/**
 * Returns short values unchanged, and fingerprints of longer values, by name. Omits settings that may differ between
 * nodes: addresses, ports, connections, the log, and the locations of the stores.
 */
export function comparableSettings(settings: SettingsWithoutSecrets): Record<string, string> {
  const compared = [...knownSettings.values()].filter(
    ({ isPerNode, codePath: [section = ''] }) => !isPerNode && Object.hasOwn(settings, section),
  );
  const values = compared.map((setting) => [setting.name, shown(setting, valueAt(settings, setting.codePath))]);
  return { ...Object.fromEntries(values), issuer: settings.issuer };
}

/** Eight characters that are the same for the same settings. */
export const settingsDigest = (settings: Readonly<Record<string, string>>): string =>
  fingerprint(JSON.stringify(Object.entries(settings).sort()));

/** Returns the old and the new value. Returns undefined for a secret, a list or a long text. */
export function changeOf(name: string, before: Settings, after: Settings): [string, string] | undefined {
  const setting = knownSettings.get(name);
  if (setting === undefined) return undefined;
  const [from, to] = [before, after].map((settings) => valueAt(settings, setting.codePath));
  if ([from, to].some((value) => typeof value === 'object' || String(value).length > MAX_SHOWN_LENGTH))
    return undefined;
  const text = (value: unknown) => {
    if (typeof value !== 'string') return shown(setting, value);
    return setting.mayHoldPassword || value.includes('@') ? withoutPassword(value) : value;
  };
  return [text(from), text(to)];
}

function shown({ variable = '', expectation }: KnownSetting, value: unknown): string {
  if (value === undefined) return 'none';
  if (typeof value === 'number') return expectation?.unit ? durationText(value) : `${value}`;
  if (typeof value === 'boolean') return `${value}`;
  const plain = mayBeInAFile.includes(variable) ? withoutLogin(String(value)) : value;
  return typeof plain === 'string' && plain.length <= MAX_SHOWN_LENGTH
    ? plain
    : fingerprint(JSON.stringify(plain, (name, inside) => (name === 'clientSecret' ? undefined : inside)));
}

const MAX_SHOWN_LENGTH = 80;

/** Eight hex characters are enough to tell values apart. */
const fingerprint = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8);

function withoutLogin(smtpUrl: string): string {
  const { protocol, host } = new URL(smtpUrl);
  return `${protocol}//${host}`;
}
