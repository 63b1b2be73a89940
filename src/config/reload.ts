/** Which settings a running service takes over, and which wait for its next start. */
import type { Logger } from 'pino';
import { variableOf } from './environment.ts';
import { ConfigurationProblems } from './problems.ts';
import { knownSettings } from './schema/known-settings.ts';
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

/** `next`, except for what needs a restart, which stays as it is in `current`. */
export function reloaded(current: Settings, next: Settings): Reload {
  const before = named(current);
  const after = named(next);
  const differing = [...new Set([...before.keys(), ...after.keys()])].filter(
    (name) => before.get(name) !== after.get(name),
  );
  return {
    settings: takenOver(current, next),
    changed: differing.filter(isReloaded),
    needsRestart: differing.filter((name) => !isReloaded(name)),
  };
}

/** What no table knows waits for a restart, so that nothing is said to be in force that is not. */
const isReloaded = (name: string): boolean =>
  KEYS.includes(name) || knownSettings.get(name)?.effect === 'reload';

const KEYS: readonly string[] = Object.values(variableOf);

function takenOver(current: Settings, { isLoopback: _, secrets, ...next }: Settings): Settings {
  const before: Readonly<Record<string, unknown>> = { ...current };
  const sections = Object.entries(next).map(([section, value]) => [
    section,
    typeof value === 'object'
      ? sectionTakenOver(section, { ...(before[section] as object) }, value)
      : isReloaded(section)
        ? value
        : before[section],
  ]);
  return { ...Object.fromEntries(sections), isLoopback: current.isLoopback, secrets };
}

function sectionTakenOver(section: string, before: object, after: object): object {
  const waits = ([member]: [string, unknown]) => !isReloaded(nameOf(section, member));
  const kept = Object.entries(before).filter(waits);
  const taken = Object.entries(after).filter((entry) => !waits(entry));
  return Object.fromEntries([...kept, ...taken]);
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
    [variableOf.cookieKeys, JSON.stringify(secrets.cookieKeys)],
    [variableOf.tokenKeys, JSON.stringify(secrets.tokenKeys)],
  ]);
  for (const [section, values] of Object.entries(rest)) {
    const members: [string, unknown][] =
      typeof values === 'object' ? Object.entries(values) : [['', values]];
    for (const [member, value] of members) {
      named.set(nameOf(section, member), JSON.stringify(value) ?? '');
    }
  }
  return named;
}

/**
 * As it is called in the file. `refreshTokenSeconds` is `refresh_token` there, where the value
 * carries the unit.
 */
export function nameOf(section: string, member: string): string {
  if (member === '') return section;
  return `${inTheFile(section)}.${inTheFile(member.replace(/Seconds$/, ''))}`;
}

const inTheFile = (name: string): string =>
  name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

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
