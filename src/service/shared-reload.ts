/** Reloads this node, or every node by a request in the database, and records the settings taken. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import packageFile from '../../package.json' with { type: 'json' };
import { signInImpact } from '../accounts/sign-in-impact.ts';
import type { Clock } from '../base/clock.ts';
import { sha256 } from '../base/random-id.ts';
import { problemLines, reasonNotToKeep } from '../config/kept-text.ts';
import { comparableSettings, settingsDigest } from '../config/node-settings.ts';
import { ConfigurationProblems } from '../config/problems.ts';
import { type Reload, reloaded } from '../config/reload.ts';
import type { Settings } from '../config/settings.ts';
import type { ChangeFeed } from '../storage/change-feed.ts';
import { type ListedNode, listNodes, type ReloadAnswer } from '../storage/nodes.ts';
import type { Database } from '../storage/queries.ts';
import {
  latestReloadRequest,
  RELOAD_MESSAGE,
  recordSettings,
  requestReload,
} from '../storage/settings-history.ts';

/** Longer than the time after which a node without heartbeats is silent, and than a heartbeat. */
const MAX_WAIT_MS = 40_000;
const POLL_PAUSE_MS = 250;

export function createSharedReload(parts: {
  readonly database: Database;
  readonly changes: ChangeFeed;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'warn'>;
  readonly node: string;
  readonly reload: () => Promise<Reload>;
  readonly loadSettings: () => Settings;
  readonly settings: () => Settings;
  /** Writes the row of this node. */
  readonly beat: () => Promise<void>;
}) {
  const { database, changes, clock, log, node, loadSettings, settings, beat } = parts;
  let answer: ReloadAnswer = { request: 0 };
  let polling: Promise<void> = Promise.resolve();
  let isStarted = false;

  /** @param request the latest request before the file is read */
  async function take(request: number, message: string | null = null): Promise<Reload> {
    const answerWith = (problems?: readonly string[]): void => {
      const at = new Date(clock()).toISOString();
      answer = { request: Math.max(request, answer.request), at, ...(problems && { problems }) };
    };
    try {
      const reload = await parts.reload();
      answerWith();
      await record(reload.settings, message);
      return reload;
    } catch (error) {
      const isNamed = error instanceof ConfigurationProblems;
      const lines = isNamed ? problemLines(error.problems, settings()) : ['its log has the cause'];
      answerWith(lines);
      throw error;
    } finally {
      await beat();
    }
  }

  /** A failure is logged only: the settings are in force. */
  async function record(taken: Settings, message: string | null): Promise<void> {
    if (taken.source === undefined) return;
    const { text = '' } = taken.source;
    const notKeptBecause = reasonNotToKeep(taken) ?? null;
    const kept = notKeptBecause
      ? { text: null, hash: settingsDigest(comparableSettings(taken)) }
      : { text, hash: sha256(text) };
    await recordSettings(database, { node, message, notKeptBecause, ...kept }).catch(
      (err: unknown) => log.warn({ err }, 'the settings are in force, but not in the history'),
    );
  }

  async function poll(): Promise<void> {
    const [latest] = await latestReloadRequest(database);
    if (!latest || latest.number <= answer.request) return;
    const { number, message } = latest;
    if (!isStarted && !latest.isFresh) answer = { request: number };
    // A failure is logged, and stands in the answer.
    else await take(number, message).catch(() => {});
  }

  /** Reloads if there is a new request. If the database fails, the next heartbeat tries again. */
  function checkRequests(): Promise<void> {
    polling = polling.then(poll).catch(() => {});
    return polling;
  }

  changes.onMessage((text) => {
    if (text === RELOAD_MESSAGE && isStarted) void checkRequests();
  });

  /** Loads and compares the settings. @throws ConfigurationProblems */
  function difference() {
    const { changed, needsRestart, settings: next } = reloaded(settings(), loadSettings());
    return { next, shown: { changed, needs_restart: needsRestart } };
  }

  return {
    answer: () => answer,
    checkRequests: () => void (isStarted && checkRequests()),
    /** Reloads this node only. */
    here: () => take(answer.request),

    /** Returns what a reload would change on this node, and for how many people. */
    async preview() {
      const { next, shown } = difference();
      const impact = await signInImpact(database, settings().signIn, next.signIn);
      return { ...shown, impact };
    },

    /**
     * Reloads every node. `nodes` is absent if the database fails: then only this node reloads.
     *
     * @throws ConfigurationProblems if this node cannot take its settings; no node is asked then.
     */
    async everywhere(message?: string) {
      const { shown } = difference();
      const request = await requestReload(database, message).catch(() => undefined);
      if (request === undefined) {
        await take(answer.request, message);
        return shown;
      }
      await checkRequests();
      if (answer.problems) throw new Error('this node could not be built from its settings');
      return { ...shown, nodes: await outcomes(request) };
    },

    /** Reports a difference to other nodes, records the settings, and finds a late request. */
    async start(): Promise<void> {
      await warnOfDifference().catch(() => {});
      await record(settings(), null);
      await checkRequests();
      isStarted = true;
      await beat();
    },

    /** Takes no further request. */
    stop(): Promise<void> {
      isStarted = false;
      return polling;
    },
  };

  async function outcomes(request: number) {
    const deadline = performance.now() + MAX_WAIT_MS;
    for (;;) {
      const nodes = await listNodes(database).catch(() => undefined);
      const found = nodes
        ?.filter(({ state }) => state !== 'leaving')
        .map((row) => outcomeOf(row, request));
      const isComplete = found?.every(({ isWaiting }) => !isWaiting) ?? false;
      if (isComplete || performance.now() > deadline)
        return found?.map(({ isWaiting: _, ...outcome }) => outcome);
      await delay(POLL_PAUSE_MS);
    }
  }

  async function warnOfDifference(): Promise<void> {
    const own = settingsDigest(comparableSettings(settings()));
    const others = (await listNodes(database)).filter(
      ({ node: name, state, runsWith }) =>
        name !== node &&
        state !== 'silent' &&
        // Another version has other settings.
        runsWith?.version === packageFile.version &&
        settingsDigest(runsWith.settings) !== own,
    );
    if (others.length === 0) return;
    const different = others.map((other) => other.node);
    log.warn({ different }, 'this node has other settings than these nodes: `doctor` names them');
  }
}

/** Describes how a node ended a reload, for the answer to the command. */
function outcomeOf({ node, state, runsWith }: ListedNode, request: number) {
  const { reload } = runsWith ?? {};
  const outcome = (text: string, taken = false, isWaiting = false) => {
    return { node, taken, text, isWaiting };
  };
  if (state === 'silent')
    return outcome('is silent: if its process still runs, restart it or send it SIGHUP');
  if (!reload) return outcome('has an older version, which takes no requests: send it SIGHUP');
  if (reload.request < request)
    return outcome('has not answered: see its log, or send it SIGHUP', false, true);
  return reload.problems
    ? outcome(`keeps its previous settings: ${reload.problems.join('\n  ')}`)
    : outcome('has taken its settings', true);
}
