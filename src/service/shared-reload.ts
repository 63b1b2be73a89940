/** Reloads this node, or every node by means of a request in the database. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Activity } from '../accounts/activity/activity.ts';
import type { Clock } from '../base/clock.ts';
import type { OperatedBy } from '../base/operated-by.ts';
import { changeOf, comparableSettings, settingsDigest } from '../config/node-settings.ts';
import { problemLines, type Reload, reloaded } from '../config/reload.ts';
import type { Settings } from '../config/settings.ts';
import type { ChangeFeed } from '../storage/change-feed.ts';
import { type ListedNode, listNodes, type ReloadAnswer } from '../storage/nodes.ts';
import type { Database } from '../storage/queries.ts';
import { latestReloadRequest, RELOAD_MESSAGE, requestReload } from '../storage/reload-requests.ts';
import { StorageUnavailable } from '../storage/storage-unavailable.ts';

/** Within this time, every running node sends a heartbeat, and a node that sends none no longer counts as running. */
const MAX_WAIT_MS = 40_000;
const POLL_PAUSE_MS = 250;

export function createSharedReload(parts: {
  readonly database: Database;
  readonly changes: ChangeFeed;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'warn'>;
  readonly activity: Pick<Activity, 'record'>;
  readonly node: string;
  readonly reload: () => Promise<Reload>;
  readonly loadSettings: () => Settings;
  readonly settings: () => Settings;
  readonly beat: () => Promise<void>;
  readonly maxWaitMs?: number | undefined;
}) {
  const { database, clock, log, node, settings, beat, maxWaitMs = MAX_WAIT_MS } = parts;
  let answer: ReloadAnswer = { request: 0 };
  let state: 'starting' | 'running' | 'stopped' = 'starting';
  let last: Promise<unknown> = Promise.resolve();
  /** The last recorded settings that need a restart, so that later reloads do not record the same settings again. */
  let waiting = '';

  /** Runs reloads one after the other. */
  function inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const done = last.then(work);
    last = done.catch(() => {});
    return done;
  }

  /** @param request the number of the latest reload request that was made before the settings file is read */
  async function take(request: number, by?: OperatedBy): Promise<Reload> {
    const [outcome] = await Promise.allSettled([parts.reload()]);
    // If a store was unavailable, do not answer the request, so that the next heartbeat tries again.
    const isAnswered = outcome.status === 'fulfilled' || !(outcome.reason instanceof StorageUnavailable);
    const answered = isAnswered ? Math.max(request, answer.request) : answer.request;
    answer = { request: answered, at: new Date(clock()).toISOString() };
    if (outcome.status === 'fulfilled') {
      await beat();
      await recordReload(outcome.value, by);
      return outcome.value;
    }
    answer = { ...answer, problems: problemLines(outcome.reason) };
    await beat();
    throw outcome.reason;
  }

  /**
   * Records the names of changed settings, but no values, because values may be secrets. The operator's name is unknown
   * after a SIGHUP. The actor is still `operator`, so that `audit --actor operator` finds every change of settings.
   */
  async function recordReload({ changed, needsRestart }: Reload, by?: OperatedBy): Promise<void> {
    const names = needsRestart.join();
    if (changed.length === 0 && names === waiting) return;
    const details = { node, ...shown({ changed, needsRestart }), settings: ownDigest() };
    try {
      await parts.activity.record({ action: 'settings_reloaded', actor: 'operator', details, by });
      waiting = names;
    } catch (err) {
      log.warn({ err }, 'the audit log has no entry of this reload');
    }
  }

  const ownDigest = (): string => settingsDigest(comparableSettings(settings()));

  async function poll(): Promise<void> {
    const { number, isFresh, by } = await latestReloadRequest(database);
    if (number <= answer.request) return;
    if (state === 'starting' && !isFresh) answer = { request: number };
    else await take(number, by);
  }

  /** Reloads if there is a new request. If the database fails, the next heartbeat tries again. */
  const checkRequests = (): Promise<void> =>
    // Ignore a failure: `take` has stored the failure as the answer, and `reload` has logged it.
    inTurn(poll).catch(() => {});

  function checkIfRunning(): void {
    if (state === 'running') void checkRequests();
  }

  parts.changes.onMessage((text) => {
    if (text === RELOAD_MESSAGE) checkIfRunning();
  });

  return {
    answer: () => answer,
    checkRequests: checkIfRunning,
    /** Reloads only this node. */
    here: () => take(answer.request),

    /** Returns what a reload would change here, without secrets. */
    async preview() {
      const found = parts.loadSettings();
      const next = reloaded(settings(), found);
      const values = [...next.changed, ...next.needsRestart].map((name) => [name, changeOf(name, settings(), found)]);
      const known = Object.fromEntries(values.filter(([, change]) => change !== undefined));
      return { ...shown(next), values: known };
    },

    /**
     * Reloads this node, then asks the other nodes. `nodes` is absent if the database fails.
     * @throws ConfigurationProblems, or the error of this node's reload. Then no other node is asked.
     */
    async everywhere(by?: OperatedBy) {
      const { taken, request } = await inTurn(async () => {
        const before = await latestReloadRequest(database).catch(() => undefined);
        const taken = await take(before?.number ?? 0, by);
        const asked = await requestReload(database, by).catch(() => undefined);
        // Mark the request as handled, unless another reload was requested meanwhile, perhaps for a newer file.
        if (asked && asked.previous === before?.number) {
          answer = { ...answer, request: asked.number };
          await beat();
        }
        return { taken, request: asked?.number };
      });
      if (request === undefined) return shown(taken);
      await checkRequests();
      return { ...shown(taken), nodes: await outcomes(request) };
    },

    /** Handles a reload request that was made while this node started. */
    async start(): Promise<void> {
      await checkRequests();
      state = 'running';
      await beat();
    },

    /** Handles no further requests, and stops waiting for answers. */
    async stop(): Promise<void> {
      state = 'stopped';
      await last;
    },
  };

  async function outcomes(request: number) {
    const deadline = performance.now() + maxWaitMs;
    for (;;) {
      const nodes = await listNodes(database).catch(() => undefined);
      const found = nodes
        ?.filter((row) => row.state !== 'leaving')
        .map((row) => ({ node: row.node, text: describeOutcome(row, request) }));
      const isComplete = found?.every(({ text }) => text !== UNANSWERED);
      if (isComplete || state === 'stopped' || performance.now() > deadline)
        return found?.map((row) => ({ ...row, taken: row.text === TAKEN }));
      await delay(POLL_PAUSE_MS);
    }
  }
}

const shown = ({ changed, needsRestart }: Pick<Reload, 'changed' | 'needsRestart'>) => ({
  changed,
  needs_restart: needsRestart,
});

const TAKEN = 'has taken its settings';
const UNANSWERED = 'has not answered: see its log, or send it SIGHUP';

function describeOutcome({ state, runsWith }: ListedNode, request: number): string {
  const { reload } = runsWith;
  if (state === 'silent') return 'is silent: if its process still runs, restart it or send it SIGHUP';
  if (reload.request < request) return UNANSWERED;
  return reload.problems ? `keeps its previous settings: ${reload.problems.join('\n  ')}` : TAKEN;
}
