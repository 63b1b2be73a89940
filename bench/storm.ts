/** Restarts both nodes and fails Redis over under the load of many live APIs, and checks the limits. */

import { createHistogram } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { trusting } from '../test/doctor/behind-proxy.ts';
import { observeMachine } from './machine.ts';
import { takePrecedence } from './processor.ts';
import {
  APIS_PER_PERSON,
  CHANGES_PER_SECOND,
  type Change,
  PEOPLE_PER_API,
  type Phase,
  startStormLoad,
} from './storm-load.ts';
import { type StormSetup, startStormSetup } from './storm-setup.ts';
import { table } from './table.ts';

interface StormScale {
  /** The duration of all phases together; a phase lasts longer if its fault does. */
  readonly seconds: number;
  /** Number of live APIs, each with a cache and a stream of its own. */
  readonly processes: number;
  /** Calls of `identify()` per second, of all APIs together. */
  readonly callsPerSecond: number;
  /** Instead of the usual faults, a node is killed, so that all its streams are lost at once. */
  readonly kills: boolean;
}

type Act = (setup: StormSetup) => Promise<string | undefined>;

interface Fault {
  readonly name: string;
  /** True if calls may be answered 503 in this phase. */
  readonly mayFail?: boolean;
  /** @returns a remark for the report */
  readonly act?: Act;
}

const STEADY = 'steady';
const FAULTS: readonly Fault[] = [
  { name: STEADY },
  { name: 'first node restarts', act: restart(0) },
  { name: 'Redis fails over', mayFail: true, act: failOver },
  { name: 'second node restarts', act: restart(1) },
  { name: 'steady again' },
];
const KILL: readonly Fault[] = [
  { name: STEADY },
  { name: 'first node is killed', mayFail: true, act: kill },
  { name: 'steady again' },
];

function restart(index: 0 | 1): Act {
  return async (setup) => {
    await setup.restartNode(index);
    return undefined;
  };
}

async function kill(setup: StormSetup): Promise<undefined> {
  await setup.restartNode(0, 'SIGKILL');
}

async function failOver(setup: StormSetup): Promise<string> {
  const milliseconds = await setup.failOver();
  return `The Sentinel had a new master ${text(milliseconds)} ms after the old one was killed.`;
}

/** For five seconds after a change the module introspects each call, so the rate rises at first. */
const LEAD_MS = 7_000;

const MAX_OLD_MS = 1_000;
const MAX_RATIO = 2;
const MAX_P999_MS = 50;
/** An API trusts its stream for 900 ms without a heartbeat, which comes every 250 ms. */
const MAX_STALL_MS = 500;

/** Prints a table of the phases, and whether each goal was reached. */
export async function measureStorm(scale: StormScale): Promise<void> {
  const { seconds, processes, callsPerSecond } = scale;
  const faults = scale.kills ? KILL : FAULTS;
  const describeMachine = observeMachine();
  const people = (processes * PEOPLE_PER_API) / APIS_PER_PERSON;
  const setup = await startStormSetup({ people, streams: 2 * processes });
  const phases: Phase[] = [];
  const remarks: string[] = [];
  await trusting(setup.certificate, async () => {
    takePrecedence();
    const load = await startStormLoad(setup, { processes, callsPerSecond });
    await delay(LEAD_MS);
    for (const { name, act } of faults) {
      phases.push(load.begin(name));
      const [remark] = await Promise.all([act?.(setup), delay((seconds * 1_000) / faults.length)]);
      if (remark) remarks.push(remark);
    }
    await load.stop();
  });
  await setup.close();

  console.log(describeMachine());
  console.log(`${processes} live APIs in one process, each with a stream and ${PEOPLE_PER_API} callers; ${people} people, each at ${APIS_PER_PERSON} APIs.
${callsPerSecond.toLocaleString('en')} calls of identify() a second, ${CHANGES_PER_SECOND} changes of a role a second, two nodes behind nginx.
`);
  console.log(phasesTable(phases));
  for (const { name, failures } of phases) {
    for (const [message, times] of failures) console.log(`${name}: ${times} x ${message}`);
  }
  console.log(`\n${[goals(phases, faults), ...remarks].join('\n')}`);
  const stall = Math.max(...phases.map(({ longestTurnMs }) => longestTurnMs));
  if (stall > MAX_STALL_MS) {
    console.log(
      `This process, which stands for all APIs, stalled for ${text(stall)} ms: its streams fell silent ` +
        'or its calls were late for that reason. Repeat this on a quieter machine.',
    );
  }
}

const text = (value: number): string => value.toFixed(1);
const share = (value: number): string => `${(value * 100).toFixed(0)} %`;
const secondsOf = ({ startedAt, endedAt }: Phase): number => (endedAt - startedAt) / 1_000;
const sum = (values: readonly number[]): number => values.reduce((all, value) => all + value, 0);
const meanQuestions = (phase: Phase): number => sum(phase.questions) / secondsOf(phase);
const busiestSecond = ({ questions }: Phase): number => Math.max(0, ...questions.filter(Boolean));
/** Returns for each change how long it was not in force at an API: at least, or at most. */
const oldFor = (phases: readonly Phase[], bound: (change: Change) => number): number[] =>
  phases.flatMap(({ changes }) => changes.map(bound)).sort((a, b) => a - b);
const atLeast = ({ lastOldAt = 0, committedAt = Number.POSITIVE_INFINITY }: Change): number =>
  Math.max(0, lastOldAt - committedAt);
const atMost = ({ lastOldAt = 0, begunAt }: Change): number => Math.max(0, lastOldAt - begunAt);
const percentile = (sorted: readonly number[], share: number): number =>
  sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0;

function latencies({ latencies: { max }, latencies }: Pick<Phase, 'latencies'>): string[] {
  const shares = [50, 99, 99.9].map((share) => latencies.percentile(share));
  return [...shares, max].map((microseconds) => text(microseconds / 1_000));
}

function phasesTable(phases: readonly Phase[]): string {
  const [steady] = phases;
  const rows = phases.map((phase) => [
    phase.name,
    text(secondsOf(phase)),
    Math.round(phase.latencies.count / secondsOf(phase)).toLocaleString('en'),
    ...latencies(phase),
    meanQuestions(phase).toFixed(0),
    String(busiestSecond(phase)),
    (meanQuestions(phase) / (steady ? meanQuestions(steady) : Number.NaN)).toFixed(2),
    ...[atLeast, atMost].map((bound) => text(oldFor([phase], bound).at(-1) ?? 0)),
    String(phase.unavailable),
    String(phase.refused),
    text(phase.longestTurnMs),
    ...[phase.used.cpu, phase.used.waited].map((us) => share(us / 1e6 / secondsOf(phase))),
  ]);
  return table(
    [
      '',
      'seconds',
      'calls/s',
      'p50 ms',
      'p99 ms',
      'p99.9 ms',
      'longest',
      'questions/s',
      'busiest second',
      'of steady',
      'oldest decision: ms',
      'or less',
      '503',
      '401',
      'own stall ms',
      'own CPU',
      'waited for it',
    ],
    rows,
  );
}

function goals(phases: readonly Phase[], faults: readonly Fault[]): string {
  const [steady] = phases;
  const base = steady ? meanQuestions(steady) : Number.NaN;
  const [least, most] = [oldFor(phases, atLeast), oldFor(phases, atMost)];
  const ages = (sorted: readonly number[]): string =>
    `p99 ${text(percentile(sorted, 0.99))} ms, p99.9 ${text(percentile(sorted, 0.999))} ms, longest ${text(sorted.at(-1) ?? 0)} ms`;
  const all = createHistogram();
  for (const phase of phases) all.add(phase.latencies);
  const busiest = Math.max(...phases.map(busiestSecond)) / base;
  const ratio = Math.max(...phases.map(meanQuestions)) / base;
  const failing = phases.filter((_, index) => !faults[index]?.mayFail);
  const [unavailable, refused] = [
    sum(failing.map((phase) => phase.unavailable)),
    sum(phases.map((phase) => phase.refused)),
  ];
  const p999 = all.percentile(99.9) / 1_000;
  const rows: readonly (readonly [goal: string, isReached: boolean | undefined, result: string])[] = [
    [
      `no decision older than ${MAX_OLD_MS} ms`,
      (most.at(-1) ?? 0) <= MAX_OLD_MS || ((least.at(-1) ?? 0) > MAX_OLD_MS ? false : undefined),
      `${most.length} changes, from their begin: ${ages(most)}; from the answer to their commit: ${ages(least)}`,
    ],
    [
      `questions in each phase <= ${MAX_RATIO} x steady`,
      ratio <= MAX_RATIO,
      `${ratio.toFixed(2)} x; the busiest second ${busiest.toFixed(2)} x`,
    ],
    [
      `p99.9 of identify() <= ${MAX_P999_MS} ms`,
      p999 <= MAX_P999_MS,
      `${text(p999)} ms of ${all.count.toLocaleString('en')} calls`,
    ],
    [
      'no 503 but while a master or node is away, no 401 at all',
      unavailable === 0 && refused === 0,
      `${unavailable} x 503, ${refused} x 401`,
    ],
  ];
  const failover = phases
    .filter((_, index) => faults[index]?.mayFail)
    .map(({ name, unavailable, firstUnavailableAt, lastUnavailableAt, startedAt }) =>
      firstUnavailableAt === undefined
        ? `${name}: no call was answered 503.`
        : `${name}: ${unavailable} calls were answered 503, from ${text(firstUnavailableAt - startedAt)} ms to ${text(lastUnavailableAt - startedAt)} ms after it was killed.`,
    );
  const judged = rows.map(([goal, isReached, result]) => [
    isReached === undefined ? 'unknown' : isReached ? 'reached' : 'MISSED',
    goal,
    result,
  ]);
  return [...judged.map((row) => row.join('  ')), ...failover].join('\n');
}
