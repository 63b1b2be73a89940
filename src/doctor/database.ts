/** The doctor's check of PostgreSQL: connection, migrations, clock and notifications. */
import { systemClock } from '../base/clock.ts';
import type { SettingsWithoutSecrets } from '../config/settings.ts';
import { NoDeployment, requireEmbeddedDatabase } from '../service/deployment.ts';
import { troubleOf } from '../service/startup-errors.ts';
import { type OpenDatabase, openDatabase } from '../storage/database.ts';
import { type DatabaseReport, notificationMilliseconds, reportDatabase } from '../storage/database-report.ts';
import { compareMigrations } from '../storage/migrate.ts';
import { StorageUnavailable } from '../storage/storage-unavailable.ts';
import { type Findings, ok, problem, type Verdict, warning } from './findings.ts';

/** A slower query is reported, because a request sends several queries. */
const SLOW_QUERY_MS = 50;
const CLOCK_WARNING_MS = 1_000;
const CLOCK_PROBLEM_MS = 5_000;

const CHECKS = ['migrations', 'database_clock', 'notifications'];

/** @returns the open database, which the caller closes, or undefined if it cannot be used */
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
    findings.add('database', where, speedVerdict(report, isEmbedded));
    if (!(await checkMigrations(findings, database, where))) {
      await database.close();
      return undefined;
    }
    check = 'database_writes';
    // Ping as /readyz does: that fails on a read-only server or a full disk.
    await database.ping();
    if (!isEmbedded) findings.add('database_clock', where, clockVerdict(report));
    findings.add('notifications', 'DATABASE_URL', await notificationsVerdict(database));
    return database;
  } catch (error) {
    await database?.close();
    const message = `the database cannot be used: ${reasonOf(error)}`;
    findings.add(check, where, problem(message, remedyFor(error, isEmbedded)));
    const reported = new Set(findings.all.map(({ check }) => check));
    const missing = CHECKS.filter((check) => !reported.has(check));
    findings.notChecked(missing, 'the database cannot be used');
    return undefined;
  }
}

function speedVerdict({ version, milliseconds }: DatabaseReport, isEmbedded: boolean): Verdict {
  const name = `${isEmbedded ? 'embedded PostgreSQL' : 'PostgreSQL'} ${version}`;
  const took = `${milliseconds.toFixed(1)} ms`;
  if (milliseconds <= SLOW_QUERY_MS) return ok(`${name} answers a simple query in ${took}`);
  return warning(
    `${name} takes ${took} for a simple query, and a request needs several`,
    'move the database closer to the nodes, or check what keeps the database busy',
  );
}

/** Returns the remedy that the service gives when its start fails with the same error. */
export function remedyOf(error: unknown): string {
  return (
    troubleOf(error)?.remedy ??
    'check that the database is running, and that the URL, its account and its password are correct'
  );
}

function remedyFor(error: unknown, isEmbedded: boolean): string {
  if (error instanceof NoDeployment) return error.remedy;
  return isEmbedded
    ? 'check that this account may write there, and which other process uses that folder'
    : remedyOf(error);
}

async function checkMigrations(findings: Findings, database: OpenDatabase, where: string): Promise<boolean> {
  const { pending, newer } = await compareMigrations(database);
  if (pending.length === 0) {
    const later = newer.length === 0 ? '' : `, and also has ${shortened(newer)} of a later version`;
    findings.add('migrations', where, ok(`the schema has the migrations of this version${later}`));
    return true;
  }
  const missing = problem(
    `the schema lacks ${shortened(pending)}: no node of this version has started with this database`,
    'run `gatehouse migrate`, or start a node of this version with storage.auto_migrate: true',
  );
  findings.add('migrations', where, missing);
  findings.notChecked(CHECKS.slice(1), 'a migration is pending');
  return false;
}

const shortened = (names: readonly string[]): string =>
  names.length <= 3 ? names.join(', ') : `${names[0]} to ${names.at(-1)} (${names.length})`;

/** @param clockAheadMs how far the clock of the store is ahead of this machine's */
export function clockVerdict({ clockAheadMs }: { readonly clockAheadMs: number }): Verdict {
  const around = Math.round(Math.abs(clockAheadMs));
  return (
    clockTrouble({ whose: 'its clock', than: "this machine's", aheadMs: clockAheadMs }) ??
    ok(`differs from this machine's by ${around} ms`)
  );
}

interface ClockDifference {
  readonly whose: string;
  readonly than: string;
  readonly aheadMs: number;
}

/** @returns undefined if the difference is small enough */
export function clockTrouble({ whose, than, aheadMs }: ClockDifference): Verdict | undefined {
  const size = Math.abs(aheadMs);
  if (size <= CLOCK_WARNING_MS) return undefined;
  const seconds = `${(size / 1000).toFixed(1)} s ${aheadMs > 0 ? 'ahead of' : 'behind'}`;
  const verdict = size > CLOCK_PROBLEM_MS ? problem : warning;
  return verdict(
    `${whose} is ${seconds} ${than}`,
    'synchronize both clocks with chrony or systemd-timesyncd: token lifetimes depend on them',
  );
}

async function notificationsVerdict(database: OpenDatabase): Promise<Verdict> {
  if (database.embedded) return ok('not needed: an embedded database has one node');
  const milliseconds = await notificationMilliseconds(database);
  if (milliseconds !== undefined) return ok(`notifications arrive in ${milliseconds.toFixed(1)} ms`);
  return problem(
    'a NOTIFY does not reach a LISTEN: nodes would keep using outdated data',
    'use a URL that bypasses the connection pooler, or set the pooler to session mode ' +
      '(pgbouncer: pool_mode = session)',
  );
}

export function reasonOf(error: unknown): string {
  if (error instanceof StorageUnavailable) return error.reason;
  return error instanceof Error ? error.message : String(error);
}
