/** A check of the doctor, and the runner that opens what the checks need. */
import type { OperatedBy } from '../base/operated-by.ts';
import type { Variables } from '../config/environment.ts';
import type { SettingsWithoutSecrets } from '../config/settings.ts';
import type { OpenDatabase } from '../storage/database.ts';
import type { DatabaseReport } from '../storage/database-report.ts';
import type { ListedNode } from '../storage/nodes.ts';
import type { RedisProblem } from '../storage/redis/redis.ts';
import type { RedisReport } from '../storage/redis/report.ts';
import { isAway, StorageUnavailable } from '../storage/storage-unavailable.ts';
import type { StreamWatch } from './change-stream.ts';
import { type Finding, findingOf, findingText, notChecked, problem, type Verdict } from './findings.ts';
import type { Address } from './requests.ts';
import { reasonOf, remedyOf } from './store-remedies.ts';
import type { Visitor } from './visitor.ts';

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

/** What checks need. */
export interface Provided {
  readonly settings: SettingsWithoutSecrets;
  /** The server answers, but its database may have no schema. */
  readonly server: { readonly database: OpenDatabase; readonly report: DatabaseReport; readonly where: string };
  /** A database with the schema of this version, to which the doctor can write. */
  readonly database: OpenDatabase;
  readonly tokens: {
    /** The id stored in this Redis; `none` without Redis, undefined if no node has stored one. */
    readonly identity: string | undefined;
    /** False if it answers, but refuses what requests need. */
    readonly isUsable: boolean;
    /** Undefined without Redis. */
    readonly redis?: { readonly reports: readonly RedisReport[]; readonly problems: readonly RedisProblem[] };
  };
  /** Every node of the last hour, also silent ones. */
  readonly nodes: readonly ListedNode[];
  readonly address: Address;
  /** A temporary account with its clients, whose change stream is being watched. */
  readonly visitor: Visitor & {
    /** What the flow has shown, for the checks after it: that the client could authenticate. */
    readonly journey: { isClientAccepted: boolean };
    readonly stream: Promise<Verdict>;
    /** Returns the network address that the service recorded for the visitor's sign-in. */
    recordedAddress(): Promise<string | undefined>;
  };
}

export type Need = keyof Provided;

type Verdicts = Verdict | readonly Verdict[];

export interface Check {
  readonly name: string;
  readonly needs: readonly Need[];
  /** The place of warnings and problems that name no place. */
  readonly where: string;
  /** Returns no verdict if the check does not apply to this deployment. */
  run(provided: Provided, context: Context): Promise<Verdicts> | Verdicts;
}

/** Stands for the issuer, which only the settings know. */
export const PUBLIC = 'issuer';

/** Declares a check, which may use only what it needs. */
export const check = <Used extends Need>(
  name: string,
  needs: readonly Used[],
  where: string,
  run: (provided: Pick<Provided, Used>, context: Context) => Promise<Verdicts> | Verdicts,
): Check => ({ name, needs, where, run });

/** What a check and the opening of a need may use. */
export interface Context extends ExaminationOptions {
  readonly findings: readonly Finding[];
  /** Opens a need at the first call. @throws NeedFailed */
  open<Name extends Need>(need: Name): Promise<Provided[Name]>;
  add(check: string, where: string, ...verdicts: readonly Verdict[]): void;
  /** Reports a check that was not made. @param because as in `notChecked` */
  skip(check: string, because: string): void;
  /** Runs `work` after the last check; the latest first. */
  defer(work: () => unknown): void;
}

/** Thrown by the opening of a need after it has added a finding. */
export class NeedFailed extends Error {}

export type Open = { readonly [Name in Need]: (context: Context) => Promise<Provided[Name]> };

/**
 * Runs all checks in order, or until `signal` ends them. A check without its need is reported as not
 * checked. Always closes and removes what was opened.
 *
 * @param say receives each finding as text
 */
export async function runChecks(
  checks: readonly Check[],
  openNeed: Open,
  options: ExaminationOptions,
  say: (text: string, count: number) => void,
): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  const opening = new Map<Need, Promise<unknown>>();
  const opened = new AsyncDisposableStack();
  let isLost = false;
  let skipped: readonly [because: string, checks: string[]] | undefined;

  /** Prints checks that were skipped one after the other for the same reason as one line. */
  function saySkipped(): void {
    const [because, [name = '', ...others]] = skipped ?? ['', []];
    if (skipped) say(findingText({ check: name, ...notChecked(because) }, others), findings.length);
    skipped = undefined;
  }
  function skip(name: string, because: string): void {
    findings.push({ check: name, ...notChecked(because) });
    if (skipped?.[0] !== because) saySkipped();
    skipped ??= [because, []];
    skipped[1].push(name);
  }
  const context: Context = {
    ...options,
    findings,
    open: <Name extends Need>(need: Name) => {
      const known = opening.get(need) ?? openNeed[need](context);
      opening.set(need, known);
      return known as Promise<Provided[Name]>;
    },
    add(name, where, ...verdicts) {
      saySkipped();
      for (const finding of verdicts.map((verdict) => findingOf(name, where, verdict))) {
        findings.push(finding);
        say(findingText(finding, []), findings.length);
      }
    },
    skip,
    defer: (work) => opened.defer(async () => void (await work())),
  };

  async function runOne({ name, needs, where, run }: Check): Promise<void> {
    const provided: Partial<Record<Need, unknown>> = {};
    for (const need of needs) provided[need] = await context.open(need);
    const verdicts = await run(provided as unknown as Provided, context);
    const place = where === PUBLIC ? (await context.open('settings')).issuer : where;
    context.add(name, place, ...[verdicts].flat());
  }

  try {
    for (const each of checks) {
      if (options.signal.aborted) break;
      // Do not ask again: each check would wait for the timeout.
      if (isLost && each.needs.some((need) => STORES.has(need)))
        skip(each.name, 'a store did not answer or refused an earlier check');
      else
        await runOne(each).catch((error: unknown) => {
          if (error instanceof NeedFailed) return skip(each.name, error.message);
          if (!(error instanceof StorageUnavailable)) throw error;
          addFailedStore(context, each.name, error);
          isLost ||= isAway(error);
        });
    }
  } catch (error) {
    if (!options.signal.aborted) throw error;
  } finally {
    saySkipped();
    await opened.disposeAsync().catch((error: unknown) => {
      if (!(error instanceof StorageUnavailable)) throw error;
      addFailedStore(context, 'stores', error);
    });
  }
  return findings;
}

/** The needs that ask a store. */
const STORES: ReadonlySet<Need> = new Set(['server', 'database', 'tokens', 'nodes', 'visitor']);

/** Reports a store that failed after it had answered: the doctor's account may be left behind. */
function addFailedStore({ add }: Context, name: string, error: StorageUnavailable): void {
  const where = error.reason.startsWith('redis') ? 'REDIS_URL' : 'DATABASE_URL';
  add(name, where, problem(reasonOf(error), `${remedyOf(error)}; then run the doctor again`));
}
