import { expect } from 'chai';
import { openDatabase } from '../../src/storage/database.ts';
import { migrate } from '../../src/storage/migrate.ts';
import { operatorOn, refusalFrom, valueFrom } from '../operator/run-operator.ts';
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
    // The import has written one organization and whole batches; the last answer may have been
    // lost.
    expect([0, 500]).to.include(kept + 1 - Number(reported));
    expect(kept % 500).to.equal(0);
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
