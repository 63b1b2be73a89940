/** The doctor's checks of the nodes: readiness, clocks, keys, and differences between them. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import packageFile from '../../package.json' with { type: 'json' };
import { holesOfNode } from '../base/node-holes.ts';
import { AnswerRefused, fetchAnswer } from '../base/outgoing-requests.ts';
import { Refusal } from '../base/refusal.ts';
import { findKeys } from '../config/load.ts';
import { comparableSettings } from '../config/node-settings.ts';
import { operatorsUrl } from '../config/operators-listener.ts';
import type { SettingsWithoutSecrets } from '../config/settings.ts';
import { KEY_VARIABLE, keyFacts, keyProblems, keyStates } from '../service/key-states.ts';
import { type ListedNode, nodeClocks } from '../storage/nodes.ts';
import { type Check, check } from './check.ts';
import { START } from './connection-errors.ts';
import { notChecked, ok, problem, trouble, type Verdict, warning } from './findings.ts';
import { runningOf, settingsProblems } from './needs.ts';
import { clockVerdict } from './stores.ts';

/** Longer than the two seconds in which the service answers even if a store is unavailable. */
const LIMITS = { timeoutMs: 5_000, maxBytes: 64 * 1024 };
const MAX_LISTED = 8;

/** @param version of the Node that runs the doctor and, on this machine, the service */
export function nodeVerdict(version: string): Verdict {
  const [known] = holesOfNode(version);
  if (!known) return ok(`Node ${version}, of which no hole is known`);
  return warning`Node ${version} has ${known.hole} →
    install Node ${known.mendedIn} or later, and restart the service`;
}

const silentVerdict = ({ node, silentMs }: ListedNode): Verdict =>
  trouble('problem', node)`${node} has been silent for ${Math.round(silentMs / 1000)} s without a shutdown:
    it is frozen, was killed, or cannot reach the database → check the process, and restart it if it still exists (a
    frozen process keeps connections without answering them); a node that no longer exists is removed from the list
    after an hour`;

/** @param listed the nodes in the database; undefined if the database cannot be used */
export async function readyVerdict(
  server: Pick<SettingsWithoutSecrets['server'], 'operatorsHost' | 'operatorsPort'>,
  listed: readonly ListedNode[] | undefined,
): Promise<Verdict> {
  const url = operatorsUrl(server, '/readyz');
  const ready = await askReady(url);
  const names = runningOf(listed ?? []).map(({ node, state }) =>
    state === 'ready' ? node : `${node} (${state.replace('_', ' ')})`,
  );
  const none = listed
    ? 'the database records no running node'
    : 'the list of nodes is unavailable, because the database cannot be used';
  const running = names.length > 0 ? `running: ${names.join(', ')}` : none;
  if (ready?.ok) return ok(`${running}; ${url} is ready`);
  if (ready) {
    return trouble('problem', url)`the node of this machine is not ready: ${ready.text}; ${running} →
      check the store that the answer names`;
  }
  if (names.length > 0) return ok(`${running}; no node answers at ${url}`);
  return trouble('warning', url)`no node answers here, and ${running} → ${START}, or correct server.operators_port`;
}

const askReady = (url: string): Promise<{ ok: boolean; text: string } | undefined> =>
  fetchAnswer(url, {}, LIMITS)
    .then(async (answer) => ({ ok: answer.ok, text: (await answer.text()).slice(0, 200) }))
    .catch((error: Error) => (error instanceof AnswerRefused ? { ok: false, text: error.message } : undefined));

/** Returns one text for each different value, with the places that have it; skips places without a value. */
function groups(
  values: readonly (readonly [where: string, value: string | undefined])[],
  label = (value: string) => value,
) {
  const places = Map.groupBy(values, ([, value]) => value);
  places.delete(undefined);
  return [...places].map(([value = '', members]) => `${label(value)} (${members.map(([where]) => where).join(', ')})`);
}

/** Reports settings that differ between nodes, because any node may get any request. */
function settingsVerdicts(nodes: readonly ListedNode[], settings: SettingsWithoutSecrets): Verdict[] {
  const ours = comparableSettings(settings);
  const among: string[] = [];
  const withUs: string[] = [];
  for (const name of new Set([ours, ...nodes.map(({ runsWith }) => runsWith.settings)].flatMap(Object.keys))) {
    const values = nodes.map(({ node, runsWith }) => [node, runsWith.settings[name] ?? 'none'] as const);
    const between = groups(values);
    const all = groups([...values, ['the doctor', ours[name] ?? 'none']]);
    // Skip mail settings that the doctor lacks: the mail server's URL is a secret of the service.
    const isSecret = name.startsWith('mail.') && ours[name] === undefined;
    if (between.length > 1) among.push(`${name} is ${between.join(', ')}`);
    else if (all.length > 1 && !isSecret) withUs.push(`${name} is ${all.join(', ')}`);
  }
  const listed = (differences: readonly string[]): string => {
    const left = differences.length - MAX_LISTED;
    return [...differences.slice(0, MAX_LISTED), ...(left > 0 ? [`and ${left} more`] : [])].join('; ');
  };
  const verdicts: Verdict[] = [];
  if (among.length > 0) {
    const where = nodes.map(({ node }) => node).join(', ');
    verdicts.push(trouble('problem', where)`the settings of the nodes differ: ${listed(among)} →
      give every node the same settings file and variables, then reload or restart every node`);
  }
  if (withUs.length > 0) {
    verdicts.push(warning`the settings of the nodes differ from those of the doctor: ${listed(withUs)} →
      reload or restart the nodes if the doctor's settings are newer; otherwise run the doctor with the settings and
      the environment of the service`);
  }
  return verdicts.length > 0 ? verdicts : [ok(`${nodes.length} node(s), all with the settings of the doctor`)];
}

export const NODE_CHECKS: readonly Check[] = [
  check('keys', ['database', 'settings'], '', async ({ database, settings, environment }) => {
    try {
      const facts = await keyFacts({ database, settings, keys: () => findKeys({ environment }) });
      const problems = keyProblems(facts).map(
        ({ kind, message, remedy }) => trouble('problem', KEY_VARIABLE[kind])`${message} → ${remedy}`,
      );
      if (problems.length > 0) return problems;
      const current = keyStates(facts).filter(({ use }) => use === 'current');
      return ok(current.map(({ kind, fingerprint }) => `${kind} key ${fingerprint}`).join(', '));
    } catch (error) {
      return error instanceof Refusal ? notChecked('this environment has no keys') : settingsProblems(error);
    }
  }),

  check('nodes', ['settings', 'listed'], '', async ({ settings: { server }, listed }) => {
    const silent = (listed ?? []).filter(({ state }) => state === 'silent');
    return [...silent.map(silentVerdict), await readyVerdict(server, listed)];
  }),

  check('node_version', [], process.execPath, () => nodeVerdict(process.versions.node)),

  check('units', [], 'systemd', async ({ environment, signal }) => {
    const words = ['list-units', '--failed', '--plain', '--no-legend', 'gatehouse*'];
    // Without this timeout, a system bus that does not answer would delay the doctor for more than a minute.
    const options = { env: { PATH: environment.PATH }, signal, timeout: 20_000 };
    const answer = await promisify(execFile)('systemctl', words, options).catch(() => undefined);
    if (!answer) return [];
    const units = answer.stdout.split('\n').flatMap((line) => line.trim().split(/\s/)[0] || []);
    if (units.length === 0) return ok('no unit `gatehouse*` of this machine has failed');
    return units.map(
      (unit) => trouble('problem', unit)`the unit ${unit} of this machine has failed →
        read \`journalctl -u ${unit} -n 50\`, correct the cause, then \`systemctl restart ${unit}\`; for a unit that is
        no longer used \`systemctl reset-failed ${unit}\``,
    );
  }),

  check('node_clocks', ['database'], '', async ({ database }) => {
    // Use the nodes' own records, because tokens expire by their clocks, not this machine's.
    const clocks = await nodeClocks(database);
    if (clocks.length === 0) return notChecked('no node is recorded');
    const verdicts = clocks.map(({ node, aheadMs }) => ({
      ...clockVerdict(aheadMs, `the clock of node ${node}`, "the database's"),
      where: node,
    }));
    const wrong = verdicts.filter(({ status }) => status !== 'ok');
    return wrong.length > 0 ? wrong : ok(`${clocks.length} node(s), each within one second of the database's clock`);
  }),

  check('node_versions', ['running'], 'the nodes', ({ running }) => {
    const values = running.map(({ node, runsWith }) => [node, runsWith.version] as const);
    const found = groups([...values, ['the doctor', packageFile.version]]);
    if (found.length === 1) return ok(`${running.length} node(s), all with version ${packageFile.version}`);
    return warning`the versions differ: ${found.join(', ')} →
      finish the upgrade: run the same version on every node and for the doctor`;
  }),

  check('node_settings', ['running', 'settings'], 'the settings of the doctor', ({ running, settings }) =>
    settingsVerdicts(running, settings),
  ),

  check('node_redis', ['running', 'tokens'], 'REDIS_URL', ({ running, tokens: { identity } }) => {
    const values = running.map(({ node, runsWith }) => [node, runsWith.redis] as const);
    const found = groups([...values, ['the doctor', identity]], (id) =>
      id === 'none' ? 'the database' : `Redis database ${id.slice(0, 6)}`,
    );
    if (found.length > 1) {
      return problem`the nodes store tokens in different places: ${found.join(', ')}; a token of one node is unknown to
        the others → give every node and the doctor the same REDIS_URL, including the database number`;
    }
    return ok(found[0]?.startsWith('Redis') ? 'every node uses the same Redis' : 'no node uses Redis');
  }),
];
