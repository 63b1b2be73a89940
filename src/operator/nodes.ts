/** `gatehouse nodes`: lists the nodes and their states, and can wait until enough nodes are ready. */
import { setTimeout as delay } from 'node:timers/promises';
import { type Command, InvalidArgumentError } from 'commander';
import { settingsDigest } from '../config/node-settings.ts';
import { durationSeconds } from '../config/schema/kinds.ts';
import { requireEmbeddedDatabase } from '../service/deployment.ts';
import { openDatabase } from '../storage/database.ts';
import { type ListedNode, listNodes } from '../storage/nodes.ts';
import { wholeNumber } from './command/arguments.ts';
import type { Operator, Report } from './command/operator.ts';
import { REFUSED, table, toMoment } from './command/report.ts';

/** The pause between two reads, and the shortest timeout of a read. */
const POLL_PAUSE_MS = 500;
/** The maximum duration of a read with the default timeouts. */
const READ_MS = 2_000;
const MAX_NODES = 1_000;

interface NodesOptions {
  readonly wait?: number;
  /** Time limit of `--wait`, in seconds. */
  readonly within: number;
}

export function addNodesCommand(program: Command, { run, print, progress, load, onInterrupt }: Operator): void {
  program
    .command('nodes')
    .description('list every process of the service: its version, state and last heartbeat')
    .option(
      '--wait <number>',
      'wait until this many nodes are ready; only heartbeats after the start of this command count',
      wholeNumber(MAX_NODES),
    )
    .option('--within <duration>', 'maximum time for --wait, such as 5m', seconds, 120)
    .addHelpText(
      'after',
      '\nStates: ready, starting, leaving, "not ready" (a store is unavailable or its ' +
        'clock differs), silent\n(no heartbeat for 30 seconds: frozen, killed or cut off ' +
        'from the database; removed after an hour).\nExit code 1 if --wait times out.',
    )
    .action(async ({ wait, within }: NodesOptions) => {
      if (wait === undefined) return run(async ({ database }) => report(await listNodes(database)));
      const { storage } = load().settings;
      const read = async (leftMs: number) => {
        requireEmbeddedDatabase(storage);
        const database = await openDatabase({ ...storage, timeoutFactor: Math.min(1, leftMs / READ_MS) });
        return listNodes(database).finally(() => database.close());
      };
      const interruption = new AbortController();
      onInterrupt(() => interruption.abort());
      const show = (ready: number): void => progress.show('Nodes ready', ready, wait);
      print(await waitFor({ wait, within }, read, interruption.signal, show));
    });
}

function seconds(text: string): number {
  const value = durationSeconds(text);
  if (value > 0) return value;
  throw new InvalidArgumentError('Write a duration, such as 30s, 2m or 1h.');
}

/**
 * Gives up after `within` seconds, or earlier if the remaining time is too short for a pause and a read.
 *
 * @param read opens the database for one query and closes it, because the database may restart between two reads; its
 * time limit is `leftMs`
 */
async function waitFor(
  { wait, within }: Required<NodesOptions>,
  read: (leftMs: number) => Promise<readonly ListedNode[]>,
  signal: AbortSignal,
  show: (ready: number) => void,
): Promise<Report> {
  const start = performance.now();
  for (;;) {
    const leftBefore = start + within * 1000 - performance.now();
    const outcome = await read(leftBefore).catch((error: Error) => error);
    const elapsed = performance.now() - start;
    const nodes = outcome instanceof Error ? [] : outcome;
    const ready = nodes.filter(({ state, silentMs }) => state === 'ready' && silentMs < elapsed);
    show(ready.length);
    if (ready.length >= wait) return report(nodes, `${ready.length} node(s) are ready.`);
    if (elapsed + 2 * POLL_PAUSE_MS > within * 1000 || signal.aborted) {
      const why = outcome instanceof Error ? [`The database cannot be used: ${outcome.message}`] : [];
      const missing = [
        `Only ${ready.length} of ${wait} node(s) became ready within ${within} s.`,
        ...why,
        'See `systemctl status "gatehouse@*"` (or the pods) and the log of each node that is missing.',
      ];
      return { ...report(nodes, missing.join('\n')), exitCode: REFUSED };
    }
    await delay(POLL_PAUSE_MS, undefined, { signal }).catch(() => {});
  }
}

function report(nodes: readonly ListedNode[], text?: string): Report {
  const rows = nodes.map((node) => [
    node.node,
    node.state.replace('_', ' '),
    node.runsWith.version,
    node.readySince ? toMoment(node.readySince) : '',
    `${Math.round(node.silentMs / 1000)} s ago`,
    settingsDigest(node.runsWith.settings),
    describeReload(node),
  ]);
  const heading = ['NODE', 'STATE', 'VERSION', 'READY SINCE', 'LAST HEARTBEAT', 'SETTINGS', 'LAST RELOAD'];
  return {
    value: {
      nodes: nodes.map(({ node, state, runsWith, readySince, lastHeartbeat }) => ({
        node,
        state,
        version: runsWith.version,
        ready_since: readySince,
        last_heartbeat: lastHeartbeat,
        settings: settingsDigest(runsWith.settings),
        last_reload: runsWith.reload,
      })),
    },
    text: [table(heading, rows, 'No node is running.'), text].filter(Boolean).join('\n'),
  };
}

function describeReload({ runsWith }: ListedNode): string {
  const { at, problems } = runsWith.reload;
  if (at === undefined) return '';
  return `${problems ? 'refused' : 'taken'} ${toMoment(new Date(at))}`;
}
