/** Which settings a running service takes over, and which wait for its next start. */
import type { Logger } from 'pino';
import { ConfigurationProblems } from './problems.ts';
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

/**
 * What was opened, bound or filled at the start. The issuer too: partners, proxies and browsers know
 * the service by it, and a slip would turn all of them away in the same second.
 */
const FIXED = [
  'issuer',
  'server.host',
  'server.port',
  'server.max_connections',
  'server.operators_host',
  'server.operators_port',
  'server.reuse_port',
  'storage',
  'demo',
];

/** `next`, except for what needs a restart, which stays as it is in `current`. */
export function reloaded(current: Settings, next: Settings): Reload {
  const { issuer, isLoopback } = current;
  const { proxyHops, shutdownDelaySeconds } = next.server;
  const settings: Settings = {
    ...next,
    ...{ issuer, isLoopback },
    server: { ...current.server, proxyHops, shutdownDelaySeconds },
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

/**
 * A reload that can be asked for again and again; two at once come one after the other. What came
 * of it is logged.
 *
 * @param loadSettings the settings as they are now. @throws ConfigurationProblems
 * @param apply puts settings in force, all of them or none.
 * @returns rejects with what `loadSettings` or `apply` threw, and then nothing has changed.
 */
export function createReload({
  settings,
  loadSettings,
  apply,
  log,
  outcomes,
}: {
  readonly settings: Settings;
  readonly loadSettings: () => Settings;
  readonly apply: (next: Settings) => Promise<void>;
  readonly log: Pick<Logger, 'info' | 'error'>;
  /** Told of each reload. */
  readonly outcomes?: { settingsReloaded(isTaken: boolean): void };
}): () => Promise<Reload> {
  let current = settings;
  let last: Promise<unknown> = Promise.resolve();

  async function reloadOnce(): Promise<Reload> {
    try {
      const reload = reloaded(current, loadSettings());
      await apply(reload.settings);
      current = reload.settings;
      const { changed, needsRestart } = reload;
      log.info({ changed, needsRestart }, 'settings reloaded');
      outcomes?.settingsReloaded(true);
      return reload;
    } catch (err) {
      const cause = err instanceof ConfigurationProblems ? { problems: err.problems } : { err };
      log.error(cause, 'settings not reloaded, everything is as it was');
      outcomes?.settingsReloaded(false);
      throw err;
    }
  }

  return () => {
    const reload = last.then(reloadOnce, reloadOnce);
    last = reload;
    return reload;
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

/** What came of a reload, for a person. */
export function reloadInWords({ changed, needsRestart }: Omit<Reload, 'settings'>): string {
  const lines = [
    ...(changed.length > 0 ? [`In force now: ${changed.join(', ')}`] : []),
    ...(needsRestart.length > 0 ? [`Waiting for a restart: ${needsRestart.join(', ')}`] : []),
  ];
  return lines.length === 0
    ? 'Settings reloaded: nothing has changed.'
    : ['Settings reloaded.', ...lines].join('\n');
}
