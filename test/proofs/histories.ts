/**
 * Records histories of overlapping exchanges, refreshes, ends and introspections on two nodes during each fault, and
 * checks whether they are linearizable.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { FAULTS, type Fault } from '../../bench/ends.ts';
import { type Setup, startSetup } from '../../bench/ends-setup.ts';
import { table } from '../../bench/table.ts';
import { readValue } from '../../src/authorizations/token-formats.ts';
import { type Answer, exchangeCode, introspect, postForm, refresh, revokeCurrent } from '../support/oauth.ts';
import { type Input, linearize, type Operation, type Output, withLag } from './linearizability.ts';

/** Authorizations that are used at the same time in one round, each with a history of its own. */
const PER_ROUND = 24;
/** Clients, or processes of one client, that share an authorization. */
const WORKERS = 3;
const TURNS = 6;
/** How long a round lasts if its fault has no duration, and how long before its fault begins. */
const USUAL_MS = 800;
const BEFORE_MS = 200;
/** Product: an end is in force everywhere within a second under any single fault. */
const LAG_MS = 1_000;

/** No retry is too late, and no wrong value counts as a guess: the checker knows neither times nor limits. */
const SETTINGS = {
  tokens: { retryWindowSeconds: 3_600 },
  limits: { clientFailures: 1_000_000, clientFailuresPerAddress: 1_000_000 },
};

interface Round {
  readonly fault: string;
  /** The longest time for which this process, in which both nodes run, could not work. */
  readonly stalledMs: number;
  readonly histories: readonly { readonly operations: readonly Operation[]; readonly verdict: Verdict }[];
}

/** `lagging`: only if introspections may lag by `LAG_MS` and the time for which the process could not work. */
type Verdict = 'linearizable' | 'lagging' | 'violation';

/**
 * Records `rounds` times 24 histories of each fault whose name contains `name`, and keeps them in the folder.
 *
 * @returns a table of the results, and whether any history is a violation
 */
export async function proveHistories(
  folder: string,
  rounds: number,
  name = '',
): Promise<{ readonly report: string; readonly isHeld: boolean }> {
  mkdirSync(folder, { recursive: true });
  const done: Round[] = [];
  for (const kind of ['single', 'volatile', 'sentinel'] as const) {
    const faults = FAULTS.filter((fault) => fault.redis === kind && fault.name.includes(name));
    if (faults.length === 0) continue;
    const setup = await startSetup(kind, SETTINGS);
    try {
      for (const fault of faults) {
        for (let round = 1; round <= rounds; round += 1) {
          const result = await recordRound(setup, fault);
          const file = `${fault.name.replaceAll(/\W+/g, '-')}-${round}.json`;
          writeFileSync(path.join(folder, file), `${JSON.stringify(result, null, 1)}\n`);
          done.push(result);
          console.log(reportOf([result]).split('\n')[1]);
        }
      }
    } finally {
      await setup.close();
    }
  }
  if (done.length === 0) throw new Error(`No fault has "${name}" in its name, or there are no rounds.`);
  const isHeld = !done.some(({ histories }) => histories.some(({ verdict }) => verdict === 'violation'));
  return { report: reportOf(done), isHeld };
}

async function recordRound(setup: Setup, fault: Fault): Promise<Round> {
  const codes: string[] = [];
  while (codes.length < PER_ROUND) codes.push(await setup.partner.code(setup.client));
  const stalls = monitorEventLoopDelay({ resolution: 10 });
  stalls.enable();
  const recorders = codes.map((code) => createRecorder(setup, code));
  const durationMs = fault.durationMs ?? USUAL_MS;
  const working = Promise.all(recorders.map((recorder) => recorder.work(durationMs + 2 * BEFORE_MS)));
  await delay(BEFORE_MS);
  const start = performance.now();
  let end = await fault.begin?.(setup);
  if (fault.afterAnswer) {
    await Promise.race([delay(USUAL_MS), ...recorders.map(({ hasEnded }) => hasEnded)]);
    end = await fault.afterAnswer(setup);
  }
  await delay(durationMs);
  await end?.();
  const lossOf = (): Operation => ({ input: { do: 'forget' }, output: 'forgotten', start, end: performance.now() });
  await working;
  await setup.untilReady();
  // At its begin and at its end, and in a failover perhaps at each node at another time.
  const losses = fault.isLossy ? [lossOf(), lossOf()] : [];
  await Promise.all(recorders.map((recorder) => recorder.finish()));
  stalls.disable();
  const stalledMs = stalls.max / 1e6;
  const histories = recorders.map(({ operations }) => {
    const all = [...losses, ...operations].sort((one, other) => one.start - other.start);
    return { operations: all, verdict: verdictOf(all, stalledMs) };
  });
  return { fault: fault.name, stalledMs, histories };
}

function verdictOf(operations: readonly Operation[], stalledMs: number): Verdict {
  if (linearize(operations)) return 'linearizable';
  return linearize(withLag(operations, LAG_MS + stalledMs)) ? 'lagging' : 'violation';
}

/** Sends the requests of all workers of one authorization, and records what they were answered. */
function createRecorder({ issuers, client, resourceServer }: Setup, code: string) {
  const operations: Operation[] = [];
  /** The refresh token and an access token of each rotation. */
  const issued = new Map<number, { readonly refreshToken: string; readonly accessToken: string }>();
  const ending = Promise.withResolvers<void>();
  const pick = (most: number): number => Math.floor(Math.random() * most);
  const newest = () => [...issued].sort(([one], [other]) => other - one)[0];

  async function record(node: number, input: Input, request: (issuer: string) => Promise<Answer>): Promise<void> {
    const start = performance.now();
    const answer = await request(issuers[node] ?? '').catch(() => undefined);
    const end = performance.now();
    if (!answer || answer.status === 503) return void operations.push({ input, start, node });
    operations.push({ input, output: outputOf(input, answer), start, end, node });
    if (input.do === 'end') ending.resolve();
  }

  function outputOf(input: Input, { status, body, text }: Answer): Output {
    if (input.do === 'introspect' && status === 200) return body.active === true ? 'active' : 'inactive';
    if (input.do === 'end' && (status === 200 || status === 204)) return 'ended';
    if (input.do === 'end' && status === 401) return 'refused';
    if (status === 400 && body.error === 'invalid_grant') return 'refused';
    const [refreshToken, accessToken] = [String(body.refresh_token), String(body.access_token)];
    const value = readValue(refreshToken);
    if (status !== 200 || value?.kind !== 'refresh_token')
      throw new Error(`${input.do} was answered ${status} ${text}`);
    issued.set(value.rotation, { refreshToken, accessToken });
    return value.rotation;
  }

  const exchange = (node: number) => record(node, { do: 'exchange' }, (issuer) => exchangeCode(issuer, client, code));

  async function rotate(node: number, age: number): Promise<void> {
    const [current = 0] = newest() ?? [];
    const from = Math.max(0, current - age);
    const token = issued.get(from)?.refreshToken;
    if (token) await record(node, { do: 'refresh', from }, (issuer) => refresh(issuer, client, token));
  }

  async function look(node: number): Promise<void> {
    const [, tokens] = newest() ?? [];
    if (!tokens) return;
    await record(node, { do: 'introspect' }, (issuer) => introspect(issuer, resourceServer, tokens.accessToken));
  }

  async function end(node: number): Promise<void> {
    const [, tokens] = newest() ?? [];
    if (!tokens) return;
    const { accessToken, refreshToken: token } = tokens;
    await record(node, { do: 'end' }, (issuer) =>
      pick(2) === 0 ? revokeCurrent(issuer, accessToken) : postForm(issuer, '/oauth/revoke', { token }, { client }),
    );
  }

  /** Mostly what a client does, and now and then a retry, a replay or an end. */
  async function turn(worker: number): Promise<void> {
    const node = pick(issuers.length);
    const chance = pick(100);
    if (issued.size === 0 ? worker === 0 || chance < 3 : chance < 1) return exchange(node);
    if (chance < 45) return rotate(node, chance < 35 ? 0 : chance < 44 ? 1 : 2);
    if (chance < 51) return end(node);
    return look(node);
  }

  return {
    operations,
    hasEnded: ending.promise,

    async work(durationMs: number): Promise<void> {
      const work = async (worker: number): Promise<void> => {
        for (let count = 0; count < TURNS; count += 1) {
          if (worker > 0 || count > 0) await delay(pick((2 * durationMs) / TURNS));
          await turn(worker);
        }
      };
      await Promise.all(Array.from({ length: WORKERS }, (_, worker) => work(worker)));
    },

    /** What both nodes say after the fault. */
    async finish(): Promise<void> {
      for (const node of issuers.keys()) await look(node);
      await rotate(1, 0);
      for (const node of issuers.keys()) await look(node);
    },
  };
}

function reportOf(rounds: readonly Round[]): string {
  const rows = [...Map.groupBy(rounds, ({ fault }) => fault)].map(([fault, ofFault]) => {
    const histories = ofFault.flatMap((round) => round.histories);
    const operations = histories.flatMap((history) => history.operations);
    const count = (wanted: Verdict): number => histories.filter(({ verdict }) => verdict === wanted).length;
    const unanswered = operations.filter(({ output }) => output === undefined).length;
    const ended = histories.filter(({ operations }) => operations.some(({ input }) => input.do === 'end')).length;
    const stalledMs = Math.ceil(Math.max(...ofFault.map((round) => round.stalledMs)));
    const counts = [histories.length, operations.length, unanswered, ended, count('lagging'), count('violation')];
    return [fault, ...counts, stalledMs].map(String);
  });
  const head = ['', 'histories', 'operations', 'unanswered', 'with an end', 'lagging', 'violations', 'stalled ms'];
  return table(head, rows);
}
