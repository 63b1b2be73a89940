/** Which settings a running service takes over, and which wait for its next start. */
import type { Logger } from 'pino';
import { variableOf } from './environment.ts';
import { ConfigurationProblems } from './problems.ts';
import { knownSettings } from './schema/known-settings.ts';
import type { Settings } from './settings.ts';
import { put, valueAt } from './validate.ts';

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
  const isChanged = ({ codePath }: { readonly codePath: readonly string[] }) =>
    JSON.stringify(valueAt(current, codePath)) !== JSON.stringify(valueAt(next, codePath));
  const changes = [...KEYS, ...knownSettings.values()].filter(isChanged);
  const waiting = changes.filter(({ effect }) => effect === 'restart');
  const settings = structuredClone({ ...next, isLoopback: current.isLoopback });
  for (const { codePath } of waiting) put(settings, codePath, valueAt(current, codePath));
  return {
    settings,
    changed: changes.filter(({ effect }) => effect === 'reload').map(({ name }) => name),
    needsRestart: waiting.map(({ name }) => name),
  };
}

const KEYS = Object.entries(variableOf).map(([secret, name]) => ({
  name,
  codePath: ['secrets', secret],
  effect: 'reload',
}));

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
