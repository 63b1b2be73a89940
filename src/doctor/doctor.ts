/** Tests the whole service at its public address, and everything on which it depends. */
import type { OperatedBy } from '../accounts/activity/activity.ts';
import type { Variables } from '../config/environment.ts';
import { findKeys, findProviders, loadSettingsWithoutSecrets } from '../config/load.ts';
import { ConfigurationProblems } from '../config/problems.ts';
import type { SettingsWithoutSecrets } from '../config/settings.ts';
import { listNodes } from '../storage/nodes.ts';
import type { Database } from '../storage/queries.ts';
import { StorageUnavailable } from '../storage/storage-unavailable.ts';
import { checkAddress } from './address.ts';
import { cookiesVerdict } from './browser.ts';
import { type StreamWatch, watchChanges } from './change-stream.ts';
import { checkDatabase, reasonOf, remedyOf } from './database.ts';
import { type Findings, ok, problem, type Verdict } from './findings.ts';
import { checkFlow } from './flow.ts';
import { hopsVerdict, ignoredHeader } from './forwarded-for.ts';
import { checkMail } from './mail.ts';
import { checkNodeDifferences } from './node-differences.ts';
import { addSettingsProblems, checkKeys, checkNodeClocks, checkNodes } from './nodes.ts';
import { checkPeople } from './people.ts';
import { checkProviders } from './providers.ts';
import type { DoctorRequests, Send } from './requests.ts';
import { checkTokenStore } from './token-store.ts';
import { createVisitors, type Visitor, type Visitors } from './visitor.ts';

export interface ExaminationOptions {
  /** The address to connect to; the host of the issuer if absent. */
  readonly address?: string;
  /** The recipient of a test mail. */
  readonly mail?: string;
  readonly environment: Variables;
  readonly signal: AbortSignal;
  readonly by: OperatedBy;
  readonly streamWatch?: StreamWatch | undefined;
}

/** Resolves when everything has been checked, or when `signal` ended it early. */
export async function examine(findings: Findings, options: ExaminationOptions): Promise<void> {
  try {
    await checkEverything(findings, options);
  } catch (error) {
    if (error instanceof StorageUnavailable) addStoresLost(findings, error);
    else if (!options.signal.aborted) throw error;
  }
}

/** Reports a store that failed after it had answered: the doctor's account may be left behind. */
function addStoresLost(findings: Findings, error: StorageUnavailable): void {
  const where = error.reason.startsWith('redis') ? 'REDIS_URL' : 'DATABASE_URL';
  const remedy = `${remedyOf(error)}; then run the doctor again`;
  findings.add('stores', where, problem(reasonOf(error), remedy));
}

async function checkEverything(
  findings: Findings,
  { address, mail: testMailTo, environment, signal, by, streamWatch }: ExaminationOptions,
): Promise<void> {
  const settings = settingsChecked(findings, environment);
  if (!settings) return findings.notChecked(['everything_else'], 'the settings have problems');
  const database = await checkDatabase(findings, settings);
  try {
    signal.throwIfAborted();
    const tokens = await checkTokenStore(findings, settings, database);
    const store = tokens?.store;
    try {
      await checkKeys(findings, { database, settings, keys: () => findKeys({ environment }) });
      const nodes = database && (await listNodes(database));
      await checkNodes(findings, settings, nodes);
      await checkNodeClocks(findings, database);
      if (nodes) checkNodeDifferences(findings, nodes, { settings, redis: tokens?.identity });
      await checkMail(findings, settings, testMailTo);
      await checkProviders(findings, settings.issuer, findProviders({ environment }));
      if (database) await checkPeople(findings, database, settings);
      const { issuer } = settings;
      const requests = await checkAddress(findings, { issuer, address, signal });
      const { passwords } = settings.signIn;
      const visitors = database && store && createVisitors(database, { by, passwords });
      const visited = { settings, database, requests, visitors, address, signal, streamWatch };
      await visit(findings, visited);
    } finally {
      await store?.close();
    }
  } finally {
    await database?.close();
  }
}

function settingsChecked(findings: Findings, environment: Variables): SettingsWithoutSecrets | undefined {
  try {
    const settings = loadSettingsWithoutSecrets({ environment });
    findings.add('settings', '', ok(`valid; the issuer is ${settings.issuer}`));
    return settings;
  } catch (error) {
    if (!(error instanceof ConfigurationProblems)) throw error;
    addSettingsProblems(findings, 'settings', error);
    return undefined;
  }
}

interface Visit {
  readonly settings: SettingsWithoutSecrets;
  readonly database: Database | undefined;
  readonly requests: DoctorRequests | undefined;
  readonly visitors: Visitors | undefined;
  readonly address: string | undefined;
  readonly signal: AbortSignal;
  readonly streamWatch: StreamWatch | undefined;
}

/** Runs the flow with a temporary account and clients, which are always removed afterwards. */
async function visit(findings: Findings, parts: Visit): Promise<void> {
  const { requests, visitors, settings, signal } = parts;
  const leftOver = await visitors?.removeLeftOver();
  if (leftOver) {
    findings.add('left_over', '', ok(`removed leftovers of ${leftOver} earlier run(s)`));
  }
  if (!requests || !visitors) {
    const because = visitors ? 'the service does not answer' : 'the stores cannot be used';
    return findings.notChecked(['flow', 'cookies', 'proxy_hops', 'change_stream'], because);
  }
  const visitor = await visitors.add();
  const { send, openStream } = requests;
  const stopping = new AbortController();
  const watching = watchChanges({
    openStream,
    client: visitor.resourceServer,
    signal: AbortSignal.any([signal, stopping.signal]),
    watch: parts.streamWatch,
  });
  try {
    const { issuer, tokens } = settings;
    const { retryWindowSeconds } = tokens;
    const flow = { issuer, send, ...visitor, retryWindowSeconds, signal };
    const outcome = await checkFlow(findings, flow);
    if (outcome.hasStarted) {
      findings.add('cookies', issuer, cookiesVerdict(outcome.cookies, issuer));
    }
    await checkSeenAddress(findings, { ...parts, send, visitors }, visitor);
    if (outcome.isClientAccepted) {
      const stream = await watching;
      signal.throwIfAborted();
      findings.add('change_stream', issuer, stream);
    } else findings.notChecked(['change_stream'], 'the client could not authenticate');
  } finally {
    stopping.abort();
    await watching;
    const problems = findings.all.filter(({ status }) => status === 'problem').length;
    await visitors.remove(visitor.accountId, signal.aborted ? 'broken off' : `${problems} problem(s)`);
  }
}

async function checkSeenAddress(
  findings: Findings,
  { settings, database, send, visitors, address }: Visit & { send: Send; visitors: Visitors },
  visitor: Visitor,
): Promise<void> {
  const add = (verdict: Verdict): void => findings.add('proxy_hops', 'server.proxy_hops', verdict);
  const nodes = database ? await listNodes(database) : [];
  const ignoringNodes = nodes
    .filter(({ state, runsWith }) => state !== 'silent' && runsWith.ignoresForwardedFor)
    .map(({ node }) => node);
  if (address !== undefined) {
    if (ignoringNodes.length > 0) return add(ignoredHeader(ignoringNodes));
    return findings.notChecked(['proxy_hops'], '--address bypasses the proxy');
  }
  const recorded = await visitors.recordedAddress(visitor);
  if (recorded === undefined) {
    return findings.notChecked(['proxy_hops'], 'the doctor could not sign in');
  }
  const { from, to } = await send({ path: '/login' });
  const { proxyHops } = settings.server;
  add(hopsVerdict({ recorded, from, to, ignoringNodes, proxyHops }));
}
