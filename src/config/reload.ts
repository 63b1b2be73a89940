/** Decides which settings a running service applies at once, and which need a restart. */
import type { Logger } from 'pino';
import { variableOf } from './environment.ts';
import { ConfigurationProblems } from './problems.ts';
import { expectationAt, isHeading, knownSettings } from './schema/known-settings.ts';
import { SENDER_VARIABLES } from './senders.ts';
import type { Settings } from './settings.ts';
import { put, valueAt } from './validate.ts';

/** The result of a reload. Settings are named as in the file. */
export interface Reload {
  /** The settings after the reload. */
  readonly settings: Settings;
  readonly changed: readonly string[];
  /** Settings that were changed in the file, and take effect at the next start. */
  readonly needsRestart: readonly string[];
}

/** Returns `next` with the values of `current` for all settings that need a restart. */
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

const KEYS = [
  ...Object.entries(variableOf).map(([secret, name]) => ({ name, codePath: ['secrets', secret] })),
  ...Object.entries(SENDER_VARIABLES).map(([path, name]) => ({
    name,
    codePath: ['senders', path],
  })),
].map((key) => ({ ...key, effect: 'reload' }));

/**
 * Returns a function that reloads the settings and logs the result. Concurrent calls run one after another.
 * @param parts.loadSettings reads the present settings, or throws ConfigurationProblems
 * @param parts.apply applies all of the settings or none
 * @returns a function that rejects if `loadSettings` or `apply` throws. Then nothing has changed.
 */
export function createReload(parts: {
  readonly settings: Settings;
  readonly loadSettings: () => Settings;
  readonly apply: (next: Settings) => Promise<void>;
  readonly log: Pick<Logger, 'info' | 'error'>;
  readonly outcomes?: { settingsReloaded(isTaken: boolean): void };
}): () => Promise<Reload> {
  const { settings, loadSettings, apply, log, outcomes } = parts;
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
      log.error(cause, 'settings not reloaded; the previous ones stay in force');
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

export function describeReload({ changed, needsRestart }: Omit<Reload, 'settings'>): string {
  const lines = [
    ...(changed.length > 0 ? [`Now in force: ${changed.join(', ')}`] : []),
    ...(needsRestart.length > 0 ? [`Takes effect at the next start: ${needsRestart.join(', ')}`] : []),
  ];
  return lines.length === 0 ? 'Settings reloaded: nothing has changed.' : ['Settings reloaded.', ...lines].join('\n');
}

const MAX_PROBLEMS = 20;

/** Returns why a reload was refused, without values of the file, which may be secrets. */
export function problemLines(error: unknown): string[] {
  if (!(error instanceof ConfigurationProblems)) return ['its log has the cause'];
  return error.problems.slice(0, MAX_PROBLEMS).map(({ path, file, line, message, remedy }) => {
    const name = path.replace(/ \(from [A-Z_]+\)$/, '');
    // Hide a name in the file that is no setting: it may be a secret. Names of variables and secret files are shown.
    const isKnown = knownSettings.has(name) || isHeading(name) || expectationAt(name.split('.'));
    const isElsewhere = file === undefined && /^(?:[A-Z_]+\b|\/)/.test(path);
    const place = file === undefined ? '' : ` (${file}, line ${line})`;
    return `${isKnown || isElsewhere ? path : 'a name in the file'}${place} ${message}; remedy: ${remedy}`;
  });
}
