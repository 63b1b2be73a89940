/** Which settings a running service takes over, and which wait for its next start. */
import type { Settings } from './settings.ts';

/** What a reload came to. Settings are named as in the file. */
export interface Reload {
  /** What the service runs on from now on. */
  readonly settings: Settings;
  /** In force now. */
  readonly changed: readonly string[];
  /** Different in the file, and as they were until the next start. */
  readonly needsRestart: readonly string[];
}

/** What was opened, bound or filled at the start. */
const FIXED = [
  'server.host',
  'server.port',
  'server.operators_host',
  'server.operators_port',
  'server.processes',
  'storage',
  'demo',
];

/** `next`, except for what needs a restart, which stays as it is in `current`. */
export function reloaded(current: Settings, next: Settings): Reload {
  const { proxyHops } = next.server;
  const settings: Settings = {
    ...next,
    server: { ...current.server, proxyHops },
    storage: current.storage,
    demo: current.demo,
  };
  const before = named(current);
  const after = named(next);
  const differing = [...new Set([...before.keys(), ...after.keys()])].filter(
    (name) => before.get(name) !== after.get(name),
  );
  const isFixed = (name: string): boolean =>
    FIXED.some((fixed) => name === fixed || name.startsWith(`${fixed}.`));
  return {
    settings,
    changed: differing.filter((name) => !isFixed(name)),
    needsRestart: differing.filter(isFixed),
  };
}

/** Each setting by its name in the file, with a value that can be compared. */
function named(settings: Settings): Map<string, string> {
  const { isLoopback: _, secrets, ...rest } = settings;
  const named = new Map<string, string>([
    ['GATEHOUSE_COOKIE_KEYS', JSON.stringify(secrets.cookieKeys)],
    ['GATEHOUSE_TOKEN_KEYS', JSON.stringify(secrets.tokenKeys)],
  ]);
  for (const [section, values] of Object.entries(rest)) {
    const isSection = typeof values === 'object';
    const members = isSection ? Object.entries<unknown>({ ...values }) : [['', values] as const];
    for (const [member, value] of members) {
      const name = member === '' ? section : `${section}.${inFileWords(member)}`;
      named.set(name, JSON.stringify(value) ?? '');
    }
  }
  return named;
}

/** `refreshTokenSeconds` is `refresh_token` in the file: there the value carries the unit. */
const inFileWords = (member: string): string =>
  member.replace(/Seconds$/, '').replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
