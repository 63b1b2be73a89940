/** The doctor's check of the nodes: which run, whether this machine's is ready, clocks and keys. */
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
import { type Findings, ok, problem, type Verdict, warning } from './findings.ts';
import { START } from './troubles.ts';

/** The service answers within two seconds, even while a store is unavailable. */
const TIMEOUT_MS = 5_000;

/** @param listedNodes undefined if the database, which has the list, cannot be used */
export async function checkNodes(
  findings: Findings,
  { server }: Pick<SettingsWithoutSecrets, 'server'>,
  listedNodes: readonly ListedNode[] | undefined,
): Promise<void> {
  for (const { node, silentMs, state } of listedNodes ?? []) {
    if (state !== 'silent') continue;
    const silent = problem(
      `${node} has been silent for ${Math.round(silentMs / 1000)} s and did not say that it ends: it is frozen, was killed, or cannot reach the database`,
      'look at its process: restart it if it is there (a frozen one keeps connections without answering them); a node that is gone for good is forgotten after an hour',
    );
    findings.add('nodes', node, silent);
  }
  const url = operatorsUrl(server, '/readyz');
  findings.add('nodes', url, readyVerdict(url, await askReady(url), listedNodes));
}

function readyVerdict(
  url: string,
  ready: Awaited<ReturnType<typeof askReady>>,
  listedNodes: readonly ListedNode[] | undefined,
): Verdict {
  const names = (listedNodes ?? []).flatMap(({ node, state }) => {
    if (state === 'silent') return [];
    return [state === 'ready' || state === 'unknown' ? node : `${node} (${stateInWords(state)})`];
  });
  const none = listedNodes
    ? 'no node that runs is recorded in the database'
    : 'the list of nodes is in the database, which cannot be used';
  const running = names.length > 0 ? `running: ${names.join(', ')}` : none;
  if (ready && !ready.ok) {
    const message = `the node of this machine is not ready: ${ready.text}; ${running}`;
    return problem(message, 'see the store that it names');
  }
  if (ready) return ok(`${running}; ${url} is ready`);
  if (names.length > 0) return ok(`${running}; none answers at ${url}`);
  return warning(`none answers here, and ${running}`, `${START}, or correct server.operators_port`);
}

const stateInWords = (state: ListedNode['state']): string => state.replace('_', ' ');

/** Uses the nodes' latest records: tokens expire by their clocks, not by that of this machine. */
export async function checkNodeClocks(
  findings: Findings,
  database: Queries | undefined,
): Promise<void> {
  const check = 'node_clocks';
  if (!database) return findings.notChecked([check], 'the database cannot be used');
  const clocks = await nodeClocks(database);
  if (clocks.length === 0) return findings.notChecked([check], 'no node noted itself');
  const wrong = clocks.flatMap(({ node, aheadMs }) => {
    const whose = `the clock of node ${node}`;
    const trouble = clockTrouble({ whose, than: "the database's", aheadMs });
    return trouble ? [{ ...trouble, where: node }] : [];
  });
  const right = ok(`${clocks.length} node(s), each within a second of the database's`);
  findings.add(check, '', ...(wrong.length > 0 ? wrong : [right]));
}

async function askReady(url: string): Promise<{ ok: boolean; text: string } | undefined> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    return { ok: answer.ok, text: (await answer.text()).slice(0, 200) };
  } catch {
    return undefined;
  }
}

type Sources = Omit<KeySources, 'database'> & { readonly database: Queries | undefined };

/** Checks the keys: their age, leftover old ones, and differences between the nodes. */
export async function checkKeys(
  findings: Findings,
  { database, ...sources }: Sources,
): Promise<void> {
  const check = 'keys';
  if (!database) return findings.notChecked([check], 'the database cannot be used');
  try {
    const facts = await keyFacts({ database, ...sources });
    const warnings = keyWarnings(facts, systemClock());
    for (const { kind, message, remedy, isProblem } of warnings) {
      findings.add(check, KEY_VARIABLE[kind], (isProblem ? problem : warning)(message, remedy));
    }
    if (warnings.length > 0) return;
    const current = keyStates(facts).filter(({ use }) => use === 'current');
    const ages = current.map(({ kind, fingerprint, currentSince }) => {
      const since = currentSince?.toISOString().slice(0, 10);
      return `${kind} key ${fingerprint} ${since ? `since ${since}` : 'not in use yet'}`;
    });
    findings.add(check, '', ok(ages.join(', ')));
  } catch (error) {
    if (error instanceof Refusal) findings.notChecked([check], 'this environment holds no keys');
    else if (error instanceof ConfigurationProblems) addSettingsProblems(findings, check, error);
    else throw error;
  }
}

export function addSettingsProblems(
  findings: Findings,
  check: string,
  { problems }: ConfigurationProblems,
): void {
  for (const { path, message, remedy } of problems) {
    findings.add(check, path, problem(`${path} ${message}`, remedy));
  }
}
