import { expect } from 'chai';
import { importLinesCleaning } from '../../src/changes/runs.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { migrate } from '../../src/storage/migrate.ts';
import { operatorOn, refusalFrom, valueFrom } from '../operator/run-operator.ts';
import { onPostgres } from '../support/databases.ts';
import { startPostgresServer } from '../support/postgres-server.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { fileOf, line } from './import-file.ts';

const { account, membership, organization } = line;

const PEOPLE = 4_000;

describeOn([postgresServer], 'an import whose database crashes half-way', () => {
  it('an interrupted import reports what it has written, and the same command continues from there', async function () {
    this.timeout(180_000);
    const server = await startPostgresServer();
    const options = { databaseUrl: await server.createDatabase(), dataDirectory: '' };
    const database = await openDatabase(options);
    await migrate(database);
    const all = Array.from({ length: PEOPLE }, (_, at) => `A${at}`);
    const file = fileOf(organization('O1'), ...all.map((id) => account(id)), ...all.map((id) => membership(id, 'O1')));
    const run = operatorOn(database);
    const count = async (): Promise<number> => (await database.query('SELECT FROM accounts')).length;

    const running = refusalFrom(run, `import ${file}`);
    // A busy server may refuse a query: try again.
    while ((await count().catch(() => 0)) === 0);
    await server.kill();
    const error = await running;
    expect(error).to.include({ code: 'import_interrupted' });
    const [, reported] =
      /^The import imp_\S{16} stopped after (\d+) change\(s\), which are kept: /.exec(error.message) ?? [];
    expect(error.remedy).to.match(/^Remove the cause, then run the same command again/);

    await server.restart();
    const kept = await count();
    // The import has written one organization and whole batches; the answer about the last one may have been lost.
    expect(kept + 1 - Number(reported)).to.be.within(0, 500);
    expect(kept).to.be.below(PEOPLE);
    // Expire the lock of the interrupted import, instead of waiting for that.
    await database.query('UPDATE import_runs SET expires_at = clock_timestamp()');
    const { counts } = await valueFrom(run, `import ${file}`);
    expect(counts.accounts).to.include({ added: PEOPLE - kept, unchanged: kept });
    expect(counts.memberships).to.include({ added: PEOPLE });
    await database.close();
    await server.stop();
  });
});

onPostgres('the lines of imports whose process was killed', (open) => {
  it('the lines of killed imports are deleted in steps, and those of a running import stay', async () => {
    const database = await open();
    await database.query(`INSERT INTO import_lines (import_id, type, number, key, id)
      SELECT 'imp_' || run, 'account', line, line, 'acc_' || run || line
        FROM generate_series(1, 3) run, generate_series(1, 5) line`);
    await database.query(`INSERT INTO import_runs (id, writes, started_by, started_at, expires_at)
      SELECT 'imp_2', true, 'tests', now, now + interval '1 minute' FROM clock_timestamp() now`);
    const clean = importLinesCleaning({ database });
    const steps = [];
    for (let step = 0; step < 5; step += 1) steps.push(await clean(4));
    expect(steps).to.deep.equal([4, 1, 4, 1, 0]);
    expect(await database.query('SELECT DISTINCT import_id FROM import_lines')).to.deep.equal([{ import_id: 'imp_2' }]);
    await database.query('DELETE FROM import_lines');
    await database.query('DELETE FROM import_runs');
  });
});
