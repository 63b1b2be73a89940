/** The doctor's look at PostgreSQL: reachable, up to date, on time, and telling of changes. */
import { systemClock } from '../base/clock.ts';
import type { SettingsWithoutSecrets } from '../config/settings.ts';
import { NoDeployment, requireEmbeddedDatabase } from '../service/deployment.ts';
import { troubleOf } from '../service/startup-errors.ts';
import { type OpenDatabase, openDatabase } from '../storage/database.ts';
import { notificationMilliseconds, reportDatabase } from '../storage/database-report.ts';
import { compareMigrations } from '../storage/migrate.ts';
import { StorageUnavailable } from '../storage/storage-unavailable.ts';
import type { Findings } from './findings.ts';

/** Milliseconds. A request asks the database several times. */
const SLOW_QUERY = 50;
const CLOCK_WARNING = 1_000;
const CLOCK_PROBLEM = 5_000;

const CHECKS = ['migrations', 'database_clock', 'notifications'];

/** @returns the open database, or undefined where it cannot be used. The caller closes it. */
export async function checkDatabase(
  findings: Findings,
  { storage }: Pick<SettingsWithoutSecrets, 'storage'>,
): Promise<OpenDatabase | undefined> {
  const isEmbedded = storage.databaseUrl === undefined;
  const where = isEmbedded ? storage.dataDirectory : 'DATABASE_URL';
  let database: OpenDatabase | undefined;
  let check = 'database';
  try {
    requireEmbeddedDatabase(storage);
    database = await openDatabase(storage);
    const report = await reportDatabase(database, systemClock);
    const name = `${isEmbedded ? 'embedded PostgreSQL' : 'PostgreSQL'} ${report.version}`;
    const took = `${report.milliseconds.toFixed(1)} ms`;
    if (report.milliseconds <= SLOW_QUERY) {
      findings.ok('database', `${name} answers a simple query in ${took}`);
    } else {
      findings.warning({
        check: 'database',
        where,
        message: `${name} takes ${took} for a simple query, and a request needs several`,
        remedy: 'bring it nearer to the nodes, or see what keeps it busy',
      });
    }
    if (!(await checkMigrations(findings, database, where))) {
      await database.close();
      return undefined;
    }
    check = 'database_writes';
    // As /readyz: it fails on a server that only reads or whose disk is full.
    await database.ping();
    if (!isEmbedded) checkClock(findings, { store: 'database', where, ...report });
    await checkNotifications(findings, database);
    return database;
  } catch (error) {
    await database?.close();
    findings.problem({
      check,
      where,
      message: `it cannot be used: ${reasonOf(error)}`,
      remedy: remedyFor(error, isEmbedded),
    });
    const reported = new Set(findings.all.map(({ check }) => check));
    const missing = CHECKS.filter((check) => !reported.has(check));
    findings.notChecked(missing, 'the database cannot be used');
    return undefined;
  }
}

/** What a start would say of the same failure. */
export function remedyOf(error: unknown): string {
  return (
    troubleOf(error)?.remedy ??
    'see that it runs, and that the URL, its account and its password are right'
  );
}

function remedyFor(error: unknown, isEmbedded: boolean): string {
  if (error instanceof NoDeployment) return error.remedy;
  return isEmbedded
    ? 'see that this account may write there, and what else serves that folder'
    : remedyOf(error);
}

async function checkMigrations(
  findings: Findings,
  database: OpenDatabase,
  where: string,
): Promise<boolean> {
  const { pending, newer } = await compareMigrations(database);
  if (pending.length === 0) {
    const later = `that of this version, and has ${shortened(newer)} of a later one`;
    const isOwn = newer.length === 0;
    findings.ok('migrations', `the schema is ${isOwn ? 'that of this version' : later}`);
    return true;
  }
  findings.problem({
    check: 'migrations',
    where,
    message: `the schema lacks ${shortened(pending)}: no node of this version has started on it`,
    remedy: '`gatehouse migrate`, or start a node of this version with storage.auto_migrate: true',
  });
  findings.notChecked(CHECKS.slice(1), 'a migration is pending');
  return false;
}

const shortened = (names: readonly string[]): string =>
  names.length <= 3 ? names.join(', ') : `${names[0]} to ${names.at(-1)} (${names.length})`;

/** @param clockAheadMs how far the clock of the store is ahead of this machine's. */
export function checkClock(
  findings: Findings,
  { store, where, clockAheadMs }: { store: string; where: string; clockAheadMs: number },
): void {
  const check = `${store}_clock`;
  const about = { check, where, whose: 'its clock', than: "this machine's" };
  if (clockTrouble(findings, { ...about, aheadMs: clockAheadMs })) return;
  findings.ok(check, `differs from this machine's by ${Math.round(Math.abs(clockAheadMs))} ms`);
}

interface ClockDifference {
  readonly check: string;
  readonly where: string;
  readonly whose: string;
  readonly than: string;
  readonly aheadMs: number;
}

/** Tells of a clock that is off. @returns whether it is. */
export function clockTrouble(
  findings: Findings,
  { check, where, whose, than, aheadMs }: ClockDifference,
): boolean {
  const size = Math.abs(aheadMs);
  if (size <= CLOCK_WARNING) return false;
  const seconds = `${(size / 1000).toFixed(1)} s ${aheadMs > 0 ? 'ahead of' : 'behind'}`;
  findings[size > CLOCK_PROBLEM ? 'problem' : 'warning']({
    check,
    where,
    message: `${whose} is ${seconds} ${than}`,
    remedy: 'let chrony or systemd-timesyncd set the clock of both: tokens expire by it',
  });
  return true;
}

async function checkNotifications(findings: Findings, database: OpenDatabase): Promise<void> {
  const check = 'notifications';
  if (database.embedded) {
    findings.ok(check, 'not needed: an embedded database has one node');
    return;
  }
  const milliseconds = await notificationMilliseconds(database);
  if (milliseconds !== undefined)
    findings.ok(check, `notifications arrive in ${milliseconds.toFixed(1)} ms`);
  else {
    findings.problem({
      check,
      where: 'DATABASE_URL',
      message: 'a NOTIFY does not arrive at a LISTEN: nodes would go on with what has changed',
      remedy:
        'lead the URL past the connection pooler, or set the pooler to session mode (pgbouncer: pool_mode = session)',
    });
  }
}

export function reasonOf(error: unknown): string {
  if (error instanceof StorageUnavailable) return error.reason;
  return error instanceof Error ? error.message : String(error);
}
