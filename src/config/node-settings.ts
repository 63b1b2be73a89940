/** The settings that every node of a deployment should have alike, without secrets, so that they can be compared. */
import { createHash } from 'node:crypto';
import { nameOf } from './reload.ts';
import type { SettingsWithoutSecrets } from './settings.ts';

/**
 * By name, a short value as itself and a longer one as its fingerprint. Left out is what may differ
 * from one node to another: addresses, ports, connections, the log, and where the stores are.
 */
export function comparableSettings(settings: SettingsWithoutSecrets): Record<string, string> {
  const { issuer, server, tokens, sessions, limits, signIn, mail, api, activity } = settings;
  const providers = signIn.providers.map(({ clientSecret: _, ...provider }) => provider);
  return {
    issuer,
    'server.proxy_hops': String(server.proxyHops),
    ...section('tokens', tokens),
    ...section('sessions', sessions),
    ...section('sign_in', { ...signIn, providers }),
    ...section('limits', limits),
    ...section('mail', mail && { ...mail, smtpUrl: withoutLogin(mail.smtpUrl) }),
    ...section('api', api),
    ...section('activity', activity),
  };
}

const section = (name: string, values: object = {}): Record<string, string> =>
  Object.fromEntries(
    Object.entries(values).map(([member, value]) => [nameOf(name, member), shown(member, value)]),
  );

function shown(member: string, value: unknown): string {
  if (value === undefined) return 'none';
  if (typeof value === 'number') return member.endsWith('Seconds') ? duration(value) : `${value}`;
  if (typeof value === 'boolean') return `${value}`;
  return typeof value === 'string' && value.length <= LONGEST_SHOWN
    ? value
    : fingerprint(JSON.stringify(value));
}

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
