/** The doctor's checks of the nodes: readiness, clocks, keys, and differences between them. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import packageFile from '../../package.json' with { type: 'json' };
import { systemClock } from '../base/clock.ts';
import { holesOfNode } from '../base/node-holes.ts';
import { AnswerRefused, fetchAnswer } from '../base/outgoing-requests.ts';
import { Refusal } from '../base/refusal.ts';
import { findKeys } from '../config/load.ts';
import { comparableSettings } from '../config/node-settings.ts';
import { operatorsUrl } from '../config/operators-listener.ts';
import { ConfigurationProblems } from '../config/problems.ts';
import type { SettingsWithoutSecrets } from '../config/settings.ts';
import { KEY_VARIABLE, keyFacts, keyStates, keyWarnings } from '../service/key-states.ts';
import { type ListedNode, nodeClocks } from '../storage/nodes.ts';
import { type Check, check, NeedFailed, type Provided } from './check.ts';
import { START } from './connection-errors.ts';
import { notChecked, ok, problem, type Verdict, warning } from './findings.ts';
import { settingsProblems } from './needs.ts';
import { clockTrouble } from './stores.ts';

/** Longer than the two seconds in which the service answers even if a store is unavailable. */
const LIMITS = { timeoutMs: 5_000, maxBytes: 64 * 1024 };
/** Open files that a node needs in addition to one per connection: stores, mail, pages, log. */
const OTHER_FILES = 200;
const MAX_LISTED = 8;
const OUR_SETTINGS = 'the settings of the doctor';

/** @param version of the Node that runs the doctor, which is that of the service on this machine */
export function nodeVerdict(version: string): Verdict {
  const [known] = holesOfNode(version);
  if (!known) return ok(`Node ${version}, of which no hole is known`);
  const remedy = `install Node ${known.mendedIn} or later, and restart the service`;
  return warning(`Node ${version} has ${known.hole}`, remedy);
}

function silentVerdict({ node, silentMs }: ListedNode): Verdict {
  const seconds = Math.round(silentMs / 1000);
  return problem(
    `${node} has been silent for ${seconds} s without a shutdown: it is frozen, was killed, or cannot reach the database`,
    'check the process, and restart it if it still exists (a frozen process keeps connections without answering ' +
      'them); a node that no longer exists is removed from the list after an hour',
    node,
  );
}

/** @param listed undefined if the database, which has the list, cannot be used */
export async function readyVerdict(
  server: Pick<SettingsWithoutSecrets['server'], 'operatorsHost' | 'operatorsPort'>,
  listed: readonly ListedNode[] | undefined,
): Promise<Verdict> {
  const url = operatorsUrl(server, '/readyz');
  const ready = await askReady(url);
  const names = (listed ?? []).flatMap(({ node, state }) => {
    if (state === 'silent') return [];
    return [state === 'ready' ? node : `${node} (${state.replace('_', ' ')})`];
  });
  const none = listed
    ? 'the database records no running node'
    : 'the list of nodes is unavailable, because the database cannot be used';
  const running = names.length > 0 ? `running: ${names.join(', ')}` : none;
  if (ready && !ready.ok) {
    const message = `the node of this machine is not ready: ${ready.text}; ${running}`;
    return problem(message, 'check the store that the answer names', url);
  }
  if (ready) return ok(`${running}; ${url} is ready`);
  if (names.length > 0) return ok(`${running}; no node answers at ${url}`);
  return warning(`no node answers here, and ${running}`, `${START}, or correct server.operators_port`, url);
}

async function askReady(url: string): Promise<{ ok: boolean; text: string } | undefined> {
  try {
    const answer = await fetchAnswer(url, {}, LIMITS);
    return { ok: answer.ok, text: (await answer.text()).slice(0, 200) };
  } catch (error) {
    return error instanceof AnswerRefused ? { ok: false, text: error.message } : undefined;
  }
}

/** Returns the failed units of this machine; undefined if systemd does not run here. */
async function failedUnits(path: string | undefined, signal: AbortSignal): Promise<string[] | undefined> {
  const words = ['list-units', '--failed', '--plain', '--no-legend', 'gatehouse*'];
  // Without this limit, a bus that hangs would hold the doctor for longer than a minute.
  const options = { env: { PATH: path }, signal, timeout: 20_000 };
  const listed = await promisify(execFile)('systemctl', words, options).catch(() => undefined);
  return listed?.stdout.split('\n').flatMap((line) => line.trim().split(/\s/)[0] || []);
}

interface Located {
  readonly where: string;
  readonly value: string;
}

function groupByValue(values: readonly Located[]): Located[] {
  const groups = Map.groupBy(values, ({ value }) => value);
  return [...groups].map(([value, members]) => ({ value, where: members.map(({ where }) => where).join(', ') }));
}

const describe = (groups: readonly Located[]): string =>
  groups.map(({ value, where }) => `${value} (${where})`).join(', ');

const listed = (differences: readonly string[]): string => {
  const left = differences.length - MAX_LISTED;
  return [...differences.slice(0, MAX_LISTED), ...(left > 0 ? [`and ${left} more`] : [])].join('; ');
};

/** Reports settings that differ between nodes: a problem, as any node may get any request. */
function settingsVerdicts(nodes: readonly ListedNode[], settings: SettingsWithoutSecrets): Verdict[] {
  const ours = comparableSettings(settings);
  const names = new Set([ours, ...nodes.map(({ runsWith }) => runsWith.settings)].flatMap(Object.keys));
  const among: string[] = [];
  const withUs: string[] = [];
  for (const name of names) {
    const values = nodes.map(({ node, runsWith }) => ({ where: node, value: runsWith.settings[name] ?? 'none' }));
    const all = [...values, { where: 'the doctor', value: ours[name] ?? 'none' }];
    const [between, withOurs] = [groupByValue(values), groupByValue(all)];
    if (between.length > 1) among.push(`${name} is ${describe(between)}`);
    // Skip mail settings that the doctor lacks: the mail server's URL is a secret of the service.
    else if (name.startsWith('mail.') && ours[name] === undefined) continue;
    else if (withOurs.length > 1) withUs.push(`${name} is ${describe(withOurs)}`);
  }
  if (among.length + withUs.length === 0) return [ok(`${nodes.length} node(s), all with ${OUR_SETTINGS}`)];
  const differing = problem(
    `the settings of the nodes differ: ${listed(among)}`,
    'give every node the same settings file and variables, then reload or restart every node',
    nodes.map(({ node }) => node).join(', '),
  );
  const other = warning(
    `the settings of the nodes differ from those of the doctor: ${listed(withUs)}`,
    "reload or restart the nodes if the doctor's settings are newer; otherwise run the " +
      'doctor with the settings and the environment of the service',
  );
  return [...(among.length > 0 ? [differing] : []), ...(withUs.length > 0 ? [other] : [])];
}

/** A check that compares the running nodes. */
const comparison = <Used extends 'settings' | 'tokens'>(
  name: string,
  needs: readonly Used[],
  where: string,
  compare: (running: readonly ListedNode[], provided: Pick<Provided, Used>) => Verdict | readonly Verdict[],
): Check =>
  check(name, ['nodes', ...needs], where, (provided) => {
    const running = provided.nodes.filter(({ state }) => state !== 'silent');
    return running.length === 0 ? notChecked('no node is running') : compare(running, provided);
  });

export const NODE_CHECKS: readonly Check[] = [
  check('keys', ['database', 'settings'], '', async ({ database, settings }, { environment }) => {
    try {
      const facts = await keyFacts({ database, settings, keys: () => findKeys({ environment }) });
      const warnings = keyWarnings(facts, systemClock());
      if (warnings.length > 0) {
        return warnings.map(({ kind, message, remedy, isProblem }) =>
          (isProblem ? problem : warning)(message, remedy, KEY_VARIABLE[kind]),
        );
      }
      const current = keyStates(facts).filter(({ use }) => use === 'current');
      const ages = current.map(({ kind, fingerprint, currentSince }) => {
        const since = currentSince?.toISOString().slice(0, 10);
        return `${kind} key ${fingerprint} ${since ? `since ${since}` : 'not in use yet'}`;
      });
      return ok(ages.join(', '));
    } catch (error) {
      if (error instanceof Refusal) return notChecked('this environment has no keys');
      if (error instanceof ConfigurationProblems) return settingsProblems(error);
      throw error;
    }
  }),

  check('nodes', ['settings'], '', async ({ settings: { server } }, { open }) => {
    const nodes = await open('nodes').catch((error: unknown) => {
      if (error instanceof NeedFailed) return undefined;
      throw error;
    });
    const silent = (nodes ?? []).filter(({ state }) => state === 'silent');
    return [...silent.map(silentVerdict), await readyVerdict(server, nodes)];
  }),

  check('node_version', [], process.execPath, () => nodeVerdict(process.versions.node)),

  check('units', [], 'systemd', async (_, { environment, signal }) => {
    const failed = await failedUnits(environment.PATH, signal);
    if (failed?.length === 0) return ok('no unit `gatehouse*` of this machine has failed');
    return (failed ?? []).map((unit) =>
      problem(
        `the unit ${unit} of this machine has failed`,
        `read \`journalctl -u ${unit} -n 50\`, correct the cause, then \`systemctl restart ${unit}\`; ` +
          `for a unit that is no longer used \`systemctl reset-failed ${unit}\``,
        unit,
      ),
    );
  }),

  check('node_clocks', ['database'], '', async ({ database }) => {
    // Use the nodes' own records, because tokens expire by their clocks, not this machine's.
    const clocks = await nodeClocks(database);
    if (clocks.length === 0) return notChecked('no node is recorded');
    const wrong = clocks.flatMap(({ node, aheadMs }) => {
      const trouble = clockTrouble({ whose: `the clock of node ${node}`, than: "the database's", aheadMs });
      return trouble ? [{ ...trouble, where: node }] : [];
    });
    return wrong.length > 0 ? wrong : ok(`${clocks.length} node(s), each within one second of the database's clock`);
  }),

  comparison('node_versions', [], 'the nodes', (nodes) => {
    const values = nodes.map(({ node, runsWith }) => ({ where: node, value: runsWith.version }));
    const groups = groupByValue([...values, { where: 'the doctor', value: packageFile.version }]);
    const [first] = groups;
    if (groups.length === 1 && first) return ok(`${nodes.length} node(s), all with version ${first.value}`);
    const remedy = 'finish the upgrade: run the same version on every node and for the doctor';
    return warning(`the versions differ: ${describe(groups)}`, remedy);
  }),

  comparison('node_settings', ['settings'], OUR_SETTINGS, (nodes, { settings }) => settingsVerdicts(nodes, settings)),

  comparison('node_redis', ['tokens'], 'REDIS_URL', (nodes, { tokens }) => {
    const known = nodes.map(({ node, runsWith }) => ({ where: node, value: runsWith.redis }));
    const groups = groupByValue(
      [...known, { where: 'the doctor', value: tokens.identity }].filter(
        (one): one is Located => one.value !== undefined,
      ),
    );
    if (groups.length <= 1) {
      return ok((groups[0]?.value ?? 'none') === 'none' ? 'no node uses Redis' : 'every node uses the same Redis');
    }
    const named = groups.map(({ value, where }) => ({
      where,
      value: value === 'none' ? 'the database' : `Redis database ${value.slice(0, 6)}`,
    }));
    return problem(
      `the nodes store tokens in different places: ${describe(named)}; a token of one node is unknown to the others`,
      'give every node and the doctor the same REDIS_URL, including the database number',
    );
  }),

  comparison('node_files', [], '', (nodes) => {
    const tight = nodes.filter(
      ({ runsWith: { openFiles = Number.POSITIVE_INFINITY, maxConnections } }) =>
        openFiles < maxConnections + OTHER_FILES,
    );
    if (tight.length === 0) return ok('the open-files limit of every node allows server.max_connections');
    return tight.map(({ node, runsWith }) =>
      warning(
        `its limit of ${runsWith.openFiles} open files is too low for the ${runsWith.maxConnections} connections of ` +
          'server.max_connections: at the limit, new connections fail with EMFILE, also those to a store',
        'set LimitNOFILE=65536 in the systemd unit of the node (elsewhere `ulimit -n`), or lower server.max_connections',
        node,
      ),
    );
  }),
];
