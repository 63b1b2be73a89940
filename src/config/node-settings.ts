/** The settings that every node of a deployment should have alike, without secrets, so that they can be compared. */
import { createHash } from 'node:crypto';
import { mayBeInAFile } from './environment.ts';
import { type KnownSetting, knownSettings } from './schema/known-settings.ts';
import type { SettingsWithoutSecrets } from './settings.ts';
import { valueAt } from './validate.ts';

/**
 * By name, a short value as itself and a longer one as its fingerprint. Left out is what may differ
 * from one node to another: addresses, ports, connections, the log, and where the stores are.
 */
export function comparableSettings(settings: SettingsWithoutSecrets): Record<string, string> {
  const compared = [...knownSettings.values()].filter(
    ({ isPerNode, codePath: [section = ''] }) => !isPerNode && Object.hasOwn(settings, section),
  );
  const values = compared.map((setting) => [
    setting.name,
    shown(setting, valueAt(settings, setting.codePath)),
  ]);
  return { ...Object.fromEntries(values), issuer: settings.issuer };
}

function shown({ variable = '', expectation }: KnownSetting, value: unknown): string {
  if (value === undefined) return 'none';
  if (typeof value === 'number') return expectation?.unit ? duration(value) : `${value}`;
  if (typeof value === 'boolean') return `${value}`;
  const plain = mayBeInAFile.includes(variable) ? withoutLogin(String(value)) : value;
  return typeof plain === 'string' && plain.length <= LONGEST_SHOWN
    ? plain
    : fingerprint(JSON.stringify(plain, withoutClientSecret));
}

const withoutClientSecret = (name: string, value: unknown): unknown =>
  name === 'clientSecret' ? undefined : value;

/** As one writes it in the settings file. */
function duration(seconds: number): string {
  const [unit, size] = UNITS.find(([, length]) => seconds % length === 0) ?? ['s', 1];
  return seconds === 0 ? '0s' : `${seconds / size}${unit}`;
}

const UNITS = [
  ['d', 86_400],
  ['h', 3_600],
  ['m', 60],
] as const;

/** Characters of a text that is stored as it is. */
const LONGEST_SHOWN = 80;

/** Eight hex characters: enough to tell values apart. */
const fingerprint = (text: string): string =>
  createHash('sha256').update(text).digest('hex').slice(0, 8);

function withoutLogin(smtpUrl: string): string {
  const { protocol, host } = new URL(smtpUrl);
  return `${protocol}//${host}`;
}
