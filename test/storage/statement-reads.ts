/** What each statement of a PostgreSQL server reads, from the plans that `auto_explain` logs. */
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import { text as textFrom } from 'node:stream/consumers';
import pg from 'pg';
import { eventually } from '../support/eventually.ts';
import { type PostgresServer, startPostgresServer } from '../support/postgres-server.ts';

/** A statement that read more rows of a table than it may. */
interface LargeRead {
  readonly rows: number;
  /** The table, or the function that made the rows. */
  readonly from: string;
  readonly statement: string;
}

interface Plan {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Function Name'?: string;
  readonly 'Actual Rows'?: number;
  readonly 'Actual Loops'?: number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Rows Removed by Index Recheck'?: number;
  readonly 'Rows Removed by Join Filter'?: number;
  readonly Plans?: readonly Plan[];
}

/** Starts a server that can log the plan of each statement, which `largeReads` begins. */
export const startExplainingServer = (): Promise<PostgresServer> =>
  startPostgresServer(undefined, [
    'logging_collector=on',
    'log_destination=jsonlog',
    'log_filename=statements',
    'log_rotation_size=0',
    'log_min_messages=log',
    'log_checkpoints=off',
    // To compile large statements takes longer than to run them, and changes no plan.
    'jit=off',
    'max_wal_size=8GB',
    // As for an SSD. With 4, a few hundred thousand rows are read as a whole, and larger tables are not.
    'random_page_cost=1.1',
    // Reading a table as a whole is as dear as with four times its rows, so that smaller tables have the same plans.
    'seq_page_cost=4',
    'cpu_tuple_cost=0.04',
    'shared_preload_libraries=auto_explain',
    'auto_explain.log_format=json',
    'auto_explain.log_analyze=on',
    'auto_explain.log_timing=off',
    // Triggers and cascading foreign keys.
    'auto_explain.log_nested_statements=on',
  ]);

// Statements that take less than a millisecond read few rows; the log of all would be very long.
const BEGIN = `ALTER SYSTEM SET auto_explain.log_min_duration = 1; SELECT pg_reload_conf()`;

/** Returns a function that returns the reads of more than `limit` rows of a table since its latest call. */
export async function largeReads(server: PostgresServer, limit: number) {
  const file = path.join(server.data, 'log', 'statements.json');
  let seen = 0;
  let marks = 0;

  const connection = new pg.Client({ connectionString: server.url });
  // The server ends it.
  connection.on('error', () => {});
  await connection.connect();

  async function newText(): Promise<string> {
    const mark = `'mark ${++marks} of the statements'`;
    await connection.query(`SELECT ${mark}`);
    return eventually(async () => {
      const { size } = await stat(file);
      const text = await textFrom(createReadStream(file, { start: seen, end: size - 1 }));
      if (!text.includes(mark)) throw new Error('the log is not written yet');
      seen = size;
      return text;
    });
  }

  for (const statement of BEGIN.split(';')) await connection.query(statement);
  await connection.query('SET auto_explain.log_min_duration = 0');
  await newText();
  return async (): Promise<LargeRead[]> =>
    (await newText()).split('\n').flatMap((line) => {
      // Most statements read few rows, also in their loops: their plans need not be parsed.
      if (mostReads(line) <= limit) return [];
      const [, json] = /plan:\n([\s\S]*)/.exec(line && JSON.parse(line).message) ?? [];
      if (json === undefined) return [];
      const { 'Query Text': statement, Plan: plan } = JSON.parse(json);
      const from = new Map<string, number>();
      addReads(plan, from);
      return [...from].filter(([, rows]) => rows > limit).map(([name, rows]) => ({ rows, from: name, statement }));
    });
}

const ROWS = /(?:Actual Rows|Rows Removed by [A-Za-z ]+)\\": ([\d.]+)/g;
const LOOPS = /Actual Loops\\": ([\d.]+)/g;

/** Returns at least as many rows as the plan in this line of the log read of all tables. */
function mostReads(line: string): number {
  const [rows, loops] = [ROWS, LOOPS].map((pattern) => [...line.matchAll(pattern)].map(([, number]) => Number(number)));
  const ofOneLoop = rows?.reduce((sum, number) => sum + Math.max(number, 1), 0) ?? 0;
  return ofOneLoop * Math.max(...(loops ?? []), 0);
}

/** Adds the rows that the scans of this plan returned or dropped; a scan without rows counts as one. */
function addReads(plan: Plan, from: Map<string, number>): void {
  for (const part of plan.Plans ?? []) addReads(part, from);
  const { 'Actual Rows': rows = 0, 'Actual Loops': loops = 0 } = plan;
  const dropped =
    (plan['Rows Removed by Filter'] ?? 0) +
    (plan['Rows Removed by Index Recheck'] ?? 0) +
    (plan['Rows Removed by Join Filter'] ?? 0);
  const isScan = / Scan$/.test(plan['Node Type']) && plan['Node Type'] !== 'Bitmap Index Scan';
  const read = (isScan ? Math.max(rows, 1) + dropped : dropped) * loops;
  const name = plan['Relation Name'] ?? plan['Function Name'] ?? plan['Node Type'];
  if (read > 0) from.set(name, (from.get(name) ?? 0) + read);
}
