/** The doctor's checks of the nodes: their states, clocks, keys and differing settings. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import packageFile from '../../package.json' with { type: 'json' };
import { Refusal } from '../base/refusal.ts';
import { variableOf } from '../config/environment.ts';
import { findKeys } from '../config/load.ts';
import { comparableSettings } from '../config/node-settings.ts';
import type { SettingsWithoutSecrets } from '../config/settings.ts';
import { keyFacts, keyProblems, keyStates } from '../service/key-states.ts';
import { type ListedNode, nodeClocks } from '../storage/nodes.ts';
import { type Check, check } from './check.ts';
import { START } from './connection-errors.ts';
import { notChecked, ok, problem, trouble, type Verdict, warning } from './findings.ts';
import { runningOf, settingsProblems } from './needs.ts';

function stateVerdict({ node, state, silentMs }: ListedNode): Verdict {
  const seconds = Math.round(silentMs / 1000);
  if (state === 'not_ready') {
    return trouble('problem', node)`${node} was not ready ${seconds} s ago →
      correct the store that \`/readyz\` on its operators’ listener names; after that, a node needs ten seconds to say so`;
  }
  if (state !== 'silent') return ok(`${node} is ${state}`);
  return trouble('problem', node)`${node} has been silent for ${seconds} s without a shutdown: it is
    frozen, was killed, or cannot reach the database → check the process, and restart it if it still exists (a frozen
    process keeps connections without answering them); a node that no longer exists is removed from the list after an
    hour`;
}

/** @param aheadMs by how much the node's clock is ahead of the database's; negative if it is behind */
export function clockTrouble({ node, aheadMs }: { readonly node: string; readonly aheadMs: number }): Verdict[] {
  const seconds = Math.abs(aheadMs) / 1000;
  if (seconds <= 1) return [];
  return [
    trouble(seconds > 5 ? 'problem' : 'warning', node)`the clock of node ${node} is ${seconds.toFixed(1)} s
      ${aheadMs > 0 ? 'ahead of' : 'behind'} the database's →
      synchronize both clocks with chrony or systemd-timesyncd: token lifetimes depend on them`,
  ];
}

function groups(values: readonly (readonly [where: string, value: string | undefined])[]) {
  const places = Map.groupBy(values, ([, value]) => value);
  places.delete(undefined);
  return [...places].map(([value, members]) => `${value} (${members.map(([where]) => where).join(', ')})`);
}

/** Nodes must have the same settings, because any node may get any request. */
function settingsVerdict(nodes: readonly ListedNode[], settings: SettingsWithoutSecrets): Verdict {
  const ours = comparableSettings(settings);
  const differences: string[] = [];
  let status = warning;
  for (const name of new Set([ours, ...nodes.map(({ runsWith }) => runsWith.settings)].flatMap(Object.keys))) {
    const values = nodes.map(({ node, runsWith }) => [node, runsWith.settings[name] ?? 'none'] as const);
    // The doctor may have no mail settings, because only the service knows the mail server's URL, which is a secret.
    const isSecret = name.startsWith('mail.') && ours[name] === undefined;
    const found = groups(isSecret ? values : [...values, ['the doctor', ours[name] ?? 'none']]);
    if (found.length > 1) differences.push(`${name} is ${found.join(', ')}`);
    if (groups(values).length > 1) status = problem;
  }
  if (differences.length === 0) return ok(`${nodes.length} node(s), all with the settings of the doctor`);
  return status`the settings differ: ${differences.join('; ')} →
    give every node the same settings file and variables, then reload or restart every node; run the doctor with those
    of the service`;
}

export const NODE_CHECKS: readonly Check[] = [
  check('keys', ['database', 'settings'], '', async ({ database, settings, environment }) => {
    try {
      const facts = await keyFacts({ database, settings, keys: () => findKeys({ environment }) });
      const problems = keyProblems(facts).map(
        ({ kind, message, remedy }) => trouble('problem', variableOf[`${kind}Keys`])`${message} → ${remedy}`,
      );
      if (problems.length > 0) return problems;
      const current = keyStates(facts).filter(({ use }) => use === 'current');
      return ok(current.map(({ kind, fingerprint }) => `${kind} key ${fingerprint}`).join(', '));
    } catch (error) {
      return error instanceof Refusal ? notChecked('this environment has no keys') : settingsProblems(error);
    }
  }),

  check('nodes', ['nodes'], 'the nodes', ({ nodes }) => {
    const none = warning`the database records no running node → ${START}`;
    return [...nodes.map(stateVerdict), ...(runningOf(nodes).length > 0 ? [] : [none])];
  }),

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
    // Use the times that the nodes recorded, because tokens expire by the clock of the node, not of this machine.
    const clocks = await nodeClocks(database);
    if (clocks.length === 0) return notChecked('no node is recorded');
    const wrong = clocks.flatMap(clockTrouble);
    return wrong.length > 0 ? wrong : ok(`${clocks.length} node(s), each within one second of the database's clock`);
  }),

  check('node_versions', ['running'], 'the nodes', ({ running }) => {
    const values = running.map(({ node, runsWith }) => [node, runsWith.version] as const);
    const found = groups([...values, ['the doctor', packageFile.version]]);
    if (found.length === 1) return ok(`${running.length} node(s), all with version ${packageFile.version}`);
    return warning`the versions differ: ${found.join(', ')} →
      finish the upgrade: run the same version on every node and for the doctor`;
  }),

  check('node_settings', ['running', 'settings'], 'the nodes', ({ running, settings }) =>
    settingsVerdict(running, settings),
  ),

  check('node_redis', ['running', 'tokens'], 'REDIS_URL', ({ running, tokens: { identity } }) => {
    const place = (id?: string) => (id === 'none' ? 'the database' : id && `Redis database ${id.slice(0, 6)}`);
    const values = running.map(({ node, runsWith }) => [node, place(runsWith.redis)] as const);
    const found = groups([...values, ['the doctor', place(identity)]]);
    if (found.length > 1) {
      return problem`the nodes store tokens in different places: ${found.join(', ')}; a token of one node is unknown to
        the others → give every node and the doctor the same REDIS_URL, including the database number`;
    }
    return ok(found[0]?.startsWith('Redis') ? 'every node uses the same Redis' : 'no node uses Redis');
  }),
];
