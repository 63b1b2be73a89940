/** The security log after a backup by pg_dump is restored into another PostgreSQL cluster. */
import path from 'node:path';
import { expect } from 'chai';
import { createActivity } from '../../src/accounts/activity/activity.ts';
import { createAuditTrail } from '../../src/accounts/activity/audit-trail.ts';
import { type OpenDatabase, openDatabase } from '../../src/storage/database.ts';
import { migrate } from '../../src/storage/migrate.ts';
import { atEndOfFile } from '../support/end-of-run.ts';
import { createCluster, type PostgresServer, startPostgresServer } from '../support/postgres-server.ts';
import { findProgram, runProgram } from '../support/programs.ts';
import { describeOn, postgresServer, required } from '../support/requirements.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { TIMEOUT_FACTOR } from '../support/timeout-factor.ts';

const CALLS = 20_000;
const client = (name: string) => ({
  program: findProgram(name),
  remedy: `${name} (Debian package postgresql-client)`,
});
const [pgDump, pgRestore] = [client('pg_dump'), client('pg_restore')];

describeOn([postgresServer, pgDump, pgRestore], 'the audit log, restored into another cluster', () => {
  let servers: readonly [first: PostgresServer, second: PostgresServer];
  before(async () => {
    const other = await startPostgresServer(atEndOfFile, [], createCluster);
    servers = [await startPostgresServer(), other];
  });

  const open = async (databaseUrl: string): Promise<OpenDatabase> => {
    const settings = { databaseUrl, dataDirectory: '', timeoutFactor: TIMEOUT_FACTOR };
    const database = await openDatabase(settings);
    atEndOfFile(() => database.close());
    return database;
  };
  const record = (database: OpenDatabase, name: string): Promise<void> =>
    createActivity({ database, clock: Date.now }).record({
      action: 'doctor_ran',
      actor: 'service',
      details: { name },
    });
  const namesOf = (found: readonly { readonly details: object }[]) =>
    found.map(({ details }) => Object.values(details)).join('');
  const counterOf = async (database: OpenDatabase): Promise<number> => {
    const [row] = await database.query<{ xact: string }>('SELECT pg_current_xact_id() AS xact');
    return Number(row?.xact);
  };

  /** @returns the URL of the copy */
  const restore = async (url: string, to: PostgresServer): Promise<string> => {
    const cwd = temporaryDirectory('dump');
    const file = path.join(cwd, 'gatehouse.dump');
    const copy = await to.createDatabase();
    runProgram(required(pgDump), ['--format=custom', `--file=${file}`, url], { cwd });
    const options = ['--single-transaction', `--dbname=${copy}`, file];
    runProgram(required(pgRestore), options, { cwd });
    return copy;
  };

  for (const [number, from] of [
    ['higher', 0],
    ['lower', 1],
  ] as const) {
    it(`entries with ${number} transaction numbers are in the pages once, and old cursors are refused`, async () => {
      const [first, second] = from === 0 ? servers : [servers[1], servers[0]];
      const url = await first.createDatabase();
      const original = await open(url);
      await migrate(original);
      if (from === 0) {
        await original.query(`DO $$ BEGIN
          FOR i IN 1..${CALLS} LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$`);
      }
      for (const name of ['a', 'b']) await record(original, name);
      await record(original, 'c');
      const { next } = await createAuditTrail({ database: original }).page('start', 10);

      const copyUrl = await restore(url, second);
      const copy = await open(copyUrl);
      const isHigher = (await counterOf(original)) > (await counterOf(copy));
      expect(isHigher).to.equal(number === 'higher');
      await record(copy, 'd');
      const trail = createAuditTrail({ database: copy });
      const refusal = await trail.page(next, 10).catch((error: unknown) => error);
      expect(refusal).to.have.property('code', 'cursor_of_another_log');
      const page = await trail.page('start', 10);
      expect(namesOf(page.entries)).to.equal('abcd');
      await record(copy, 'e');
      expect(namesOf((await trail.page(page.next, 10)).entries)).to.equal('e');

      // The dump of a database that was restored already.
      const again = await open(await restore(copyUrl, first));
      const last = await createAuditTrail({ database: again }).page('start', 10);
      expect(namesOf(last.entries)).to.equal('abcde');
    });
  }
});
