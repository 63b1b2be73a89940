/** Declares the doctor's checks, and runs them with the stores and connections that they need. */
import { isAway, StorageUnavailable } from '../storage/storage-unavailable.ts';
import { type Finding, findingOf, findingText, notChecked, type Verdict } from './findings.ts';
import {
  type Context,
  type createNeeds,
  type ExaminationOptions,
  NeedFailed,
  type Needs,
  storeProblem,
} from './needs.ts';

type Verdicts = Verdict | readonly Verdict[];
type Need = keyof Needs;
type Provided = { readonly [Name in Need]: Awaited<ReturnType<Needs[Name]>> };

/** A placeholder for the issuer's URL, which is known only once the settings are loaded. */
export const PUBLIC = 'issuer';

/**
 * @param where the default for the `where` of a finding
 * @param run returns no verdict if the check does not apply to this deployment
 */
export const check = <Used extends Need>(
  name: string,
  needs: readonly Used[],
  where: string,
  run: (provided: Pick<Provided, Used> & Context) => Promise<Verdicts> | Verdicts,
) => ({ name, needs, where, run });

export type Check = ReturnType<typeof check>;

const STORES: readonly Need[] = ['server', 'database', 'tokens', 'nodes', 'running', 'visitor'];

/**
 * Runs the checks in order until `signal` aborts. A check whose store or connection cannot be opened is reported as not
 * checked. Finally closes all stores and connections, and deletes the doctor's account.
 *
 * @param say receives each finding as text, and the number of findings so far
 */
export async function runChecks(
  checks: readonly Check[],
  needsOf: typeof createNeeds,
  options: ExaminationOptions,
  say: (text: string, count: number) => void,
): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  const opened = new AsyncDisposableStack();
  let isLost = false;

  function add(name: string, where: string, ...verdicts: readonly Verdict[]): void {
    for (const verdict of verdicts) {
      const finding = findingOf(name, where, verdict);
      findings.push(finding);
      say(findingText(finding), findings.length);
    }
  }
  /** Reports a store that stopped answering. Another run of the doctor may then have to delete this run's account. */
  function addLost(name: string, error: unknown): void {
    if (!(error instanceof StorageUnavailable)) throw error;
    const verdict = storeProblem(error);
    const where = error.reason.startsWith('redis') ? 'REDIS_URL' : 'DATABASE_URL';
    add(name, where, { ...verdict, remedy: `${verdict.remedy}; then run the doctor again` });
    isLost ||= isAway(error);
  }
  const defer = (work: () => unknown): void => opened.defer(async () => void (await work()));
  const context: Context = { ...options, findings, add, defer };
  const open = needsOf(context);

  async function runOne({ name, needs, where, run }: Check): Promise<void> {
    // Do not query the failed store again, because each check would wait for the timeout.
    if (isLost && needs.some((need) => STORES.includes(need))) return add(name, '', notChecked(LOST));
    try {
      const provided: Partial<Record<Need, unknown>> = {};
      for (const need of needs) provided[need] = await open[need]();
      const verdicts = await run({ ...context, ...(provided as unknown as Provided) });
      add(name, where === PUBLIC ? (await open.settings()).issuer : where, ...[verdicts].flat());
    } catch (error) {
      if (error instanceof NeedFailed) add(name, '', notChecked(error.message));
      else addLost(name, error);
    }
  }

  try {
    for (const each of checks) if (!options.signal.aborted) await runOne(each);
  } catch (error) {
    if (!options.signal.aborted) throw error;
  } finally {
    await opened.disposeAsync().catch((error: unknown) => addLost('stores', error));
  }
  return findings;
}

const LOST = 'a store did not answer or refused an earlier check';
