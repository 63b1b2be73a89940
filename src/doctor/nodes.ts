/** The doctor's look at the nodes: who runs, whether the one on this machine is ready, and their keys. */
import { systemClock } from '../base/clock.ts';
import { Refusal } from '../base/refusal.ts';
import { operatorsUrl } from '../config/operators-listener.ts';
import { ConfigurationProblems } from '../config/problems.ts';
import type { SettingsWithoutSecrets } from '../config/settings.ts';
import {
  KEY_VARIABLE,
  type KeySources,
  keyFacts,
  keyStates,
  keyWarnings,
} from '../service/key-states.ts';
import { type ListedNode, nodeClocks } from '../storage/nodes.ts';
import type { Queries } from '../storage/queries.ts';
import { clockTrouble } from './database.ts';
import type { Findings } from './findings.ts';
import { START } from './troubles.ts';

/** Milliseconds. The service answers within two seconds also while a store is away. */
const LIMIT = 5_000;

/** @param listedNodes undefined if the database, which has the list, cannot be used. */
export async function checkNodes(
  findings: Findings,
  { server }: Pick<SettingsWithoutSecrets, 'server'>,
  listedNodes: readonly ListedNode[] | undefined,
): Promise<void> {
  const check = 'nodes';
  for (const { node, silentMs, state } of listedNodes ?? []) {
    if (state !== 'silent') continue;
    findings.problem({
      check,
      where: node,
      message: `${node} has been silent for ${Math.round(silentMs / 1000)} s and did not say that it ends: it is frozen, was killed, or cannot reach the database`,
      remedy:
        'look at its process: restart it if it is there (a frozen one keeps connections without answering them); a node that is gone for good is forgotten after an hour',
    });
  }
  const nodes = (listedNodes ?? []).filter(({ state }) => state !== 'silent');
  const running =
    nodes.length > 0
      ? `running: ${nodes.map(({ node, state }) => (state === 'ready' || state === 'unknown' ? node : `${node} (${state.replace('_', ' ')})`)).join(', ')}`
      : listedNodes
        ? 'no node that runs is recorded in the database'
        : 'the list of nodes is in the database, which cannot be used';
  const url = operatorsUrl(server, '/readyz');
  const ready = await askReady(url);
  if (ready && !ready.ok) {
    findings.problem({
      check,
      where: url,
      message: `the node of this machine is not ready: ${ready.text}; ${running}`,
      remedy: 'see the store that it names',
    });
  } else if (ready || nodes.length > 0) {
    findings.ok(check, `${running}; ${ready ? `${url} is ready` : `none answers at ${url}`}`);
  } else {
    findings.warning({
      check,
      where: url,
      message: `none answers here, and ${running}`,
      remedy: `${START}, or correct server.operators_port`,
    });
  }
}

/** Each node by what it noted last: tokens expire by these clocks, not by that of this machine. */
export async function checkNodeClocks(
  findings: Findings,
  database: Queries | undefined,
): Promise<void> {
  const check = 'node_clocks';
  if (!database) return findings.notChecked([check], 'the database cannot be used');
  const clocks = await nodeClocks(database);
  const wrong = clocks.filter(({ node, aheadMs }) => {
    const about = {
      check,
      where: node,
      whose: `the clock of node ${node}`,
      than: "the database's",
    };
    return clockTrouble(findings, { ...about, aheadMs });
  });
  if (clocks.length === 0) findings.notChecked([check], 'no node noted itself');
  else if (wrong.length === 0) {
    findings.ok(check, `${clocks.length} node(s), each within a second of the database's`);
  }
}

async function askReady(url: string): Promise<{ ok: boolean; text: string } | undefined> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(LIMIT) });
    return { ok: answer.ok, text: (await answer.text()).slice(0, 200) };
  } catch {
    return undefined;
  }
}

type Sources = Omit<KeySources, 'database'> & { readonly database: Queries | undefined };

/** How old they are, what is left over, and where the nodes differ. */
export async function checkKeys(
  findings: Findings,
  { database, ...sources }: Sources,
): Promise<void> {
  const check = 'keys';
  if (!database) {
    findings.notChecked([check], 'the database cannot be used');
    return;
  }
  try {
    const facts = await keyFacts({ database, ...sources });
    const now = systemClock();
    const warnings = keyWarnings(facts, now);
    for (const { kind, message, remedy, isProblem } of warnings) {
      findings[isProblem ? 'problem' : 'warning']({
        check,
        where: KEY_VARIABLE[kind],
        message,
        remedy,
      });
    }
    if (warnings.length > 0) return;
    const current = keyStates(facts).filter(({ use }) => use === 'current');
    const ages = current.map(({ kind, fingerprint, currentSince }) => {
      const since = currentSince?.toISOString().slice(0, 10);
      return `${kind} key ${fingerprint} ${since ? `since ${since}` : 'not in use yet'}`;
    });
    findings.ok(check, ages.join(', '));
  } catch (error) {
    if (error instanceof Refusal) findings.notChecked([check], 'this environment holds no keys');
    else if (error instanceof ConfigurationProblems) {
      for (const { path, message, remedy } of error.problems) {
        findings.problem({ check, where: path, message: `${path} ${message}`, remedy });
      }
    } else throw error;
  }
}
