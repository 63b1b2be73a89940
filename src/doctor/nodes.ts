/** The doctor's check of the nodes: which ones run, the local one's readiness, clocks and keys. */
import { systemClock } from '../base/clock.ts';
import { holesOfNode } from '../base/node-holes.ts';
import { AnswerRefused, fetchAnswer } from '../base/outgoing-requests.ts';
import { Refusal } from '../base/refusal.ts';
import { operatorsUrl } from '../config/operators-listener.ts';
import { ConfigurationProblems } from '../config/problems.ts';
import type { SettingsWithoutSecrets } from '../config/settings.ts';
import { KEY_VARIABLE, type KeySources, keyFacts, keyStates, keyWarnings } from '../service/key-states.ts';
import { type ListedNode, nodeClocks } from '../storage/nodes.ts';
import type { Queries } from '../storage/queries.ts';
import { START } from './connection-errors.ts';
import { clockTrouble } from './database.ts';
import { type Findings, ok, problem, type Verdict, warning } from './findings.ts';

/** Longer than the two seconds in which the service answers even if a store is unavailable. */
const LIMITS = { timeoutMs: 5_000, maxBytes: 64 * 1024 };

/** @param version of the Node that runs the doctor, which is that of the service on this machine */
export function nodeVerdict(version: string): Verdict {
  const [known] = holesOfNode(version);
  if (!known) return ok(`Node ${version}, of which no hole is known`);
  const remedy = `install Node ${known.mendedIn} or later, and restart the service`;
  return warning(`Node ${version} has ${known.hole}`, remedy);
}

/** @param listedNodes undefined if the database, which has the list, cannot be used */
export async function checkNodes(
  findings: Findings,
  { server }: Pick<SettingsWithoutSecrets, 'server'>,
  listedNodes: readonly ListedNode[] | undefined,
): Promise<void> {
  for (const { node, silentMs, state } of listedNodes ?? []) {
    if (state !== 'silent') continue;
    const silent = problem(
      `${node} has been silent for ${Math.round(silentMs / 1000)} s without a shutdown: it ` +
        'is frozen, was killed, or cannot reach the database',
      'check the process, and restart it if it still exists (a frozen process keeps connections without answering ' +
        'them); a node that no longer exists is removed from the list after an hour',
    );
    findings.add('nodes', node, silent);
  }
  const url = operatorsUrl(server, '/readyz');
  findings.add('nodes', url, readyVerdict(url, await askReady(url), listedNodes));
  findings.add('node_version', process.execPath, nodeVerdict(process.versions.node));
}

function readyVerdict(
  url: string,
  ready: Awaited<ReturnType<typeof askReady>>,
  listedNodes: readonly ListedNode[] | undefined,
): Verdict {
  const names = (listedNodes ?? []).flatMap(({ node, state }) => {
    if (state === 'silent') return [];
    return [state === 'ready' ? node : `${node} (${describeState(state)})`];
  });
  const none = listedNodes
    ? 'the database records no running node'
    : 'the list of nodes is unavailable, because the database cannot be used';
  const running = names.length > 0 ? `running: ${names.join(', ')}` : none;
  if (ready && !ready.ok) {
    const message = `the node of this machine is not ready: ${ready.text}; ${running}`;
    return problem(message, 'check the store that the answer names');
  }
  if (ready) return ok(`${running}; ${url} is ready`);
  if (names.length > 0) return ok(`${running}; no node answers at ${url}`);
  return warning(`no node answers here, and ${running}`, `${START}, or correct server.operators_port`);
}

const describeState = (state: ListedNode['state']): string => state.replace('_', ' ');

/** Uses the nodes' own records, because tokens expire by their clocks, not this machine's. */
export async function checkNodeClocks(findings: Findings, database: Queries | undefined): Promise<void> {
  const check = 'node_clocks';
  if (!database) return findings.notChecked([check], 'the database cannot be used');
  const clocks = await nodeClocks(database);
  if (clocks.length === 0) return findings.notChecked([check], 'no node is recorded');
  const wrong = clocks.flatMap(({ node, aheadMs }) => {
    const whose = `the clock of node ${node}`;
    const trouble = clockTrouble({ whose, than: "the database's", aheadMs });
    return trouble ? [{ ...trouble, where: node }] : [];
  });
  const right = ok(`${clocks.length} node(s), each within one second of the database's clock`);
  findings.add(check, '', ...(wrong.length > 0 ? wrong : [right]));
}

async function askReady(url: string): Promise<{ ok: boolean; text: string } | undefined> {
  try {
    const answer = await fetchAnswer(url, {}, LIMITS);
    return { ok: answer.ok, text: (await answer.text()).slice(0, 200) };
  } catch (error) {
    return error instanceof AnswerRefused ? { ok: false, text: error.message } : undefined;
  }
}

type Sources = Omit<KeySources, 'database'> & { readonly database: Queries | undefined };

/** Checks the keys: their age, leftover old ones, and differences between the nodes. */
export async function checkKeys(findings: Findings, { database, ...sources }: Sources): Promise<void> {
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
    if (error instanceof Refusal) findings.notChecked([check], 'this environment has no keys');
    else if (error instanceof ConfigurationProblems) addSettingsProblems(findings, check, error);
    else throw error;
  }
}

export function addSettingsProblems(findings: Findings, check: string, { problems }: ConfigurationProblems): void {
  for (const { path, message, remedy } of problems) {
    findings.add(check, path, problem(`${path} ${message}`, remedy));
  }
}
