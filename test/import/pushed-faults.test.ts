/** Pushed changes during other pushed changes, during an import, and without PostgreSQL. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { beginRun } from '../../src/changes/runs.ts';
import { operatorOn, valueFrom } from '../operator/run-operator.ts';
import { startTcpProxy } from '../storage/tcp-proxy.ts';
import { refuseChanges, untilOneWaits } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { startPostgresServer } from '../support/postgres-server.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { startsOn, type TestService } from '../support/service.ts';
import { SHORT_TIMEOUT_FACTOR } from '../support/timeout-factor.ts';
import { fileOf, type Line, line } from './import-file.ts';
import { push, SENDERS } from './pushing.ts';

const { account, membership, organization } = line;
const numbered = (from: number, to: number): string[] => Array.from({ length: to - from }, (_, at) => `A${from + at}`);

describeOn([postgresServer], 'pushed changes on PostgreSQL', () => {
  const start = startsOn('postgres');
  let service: TestService;
  before(async () => {
    service = await start({ settings: { senders: SENDERS, import: { removalsPerHour: '1000' } } });
  });

  it('lines and imports that remove more rows than one statement can remove are applied in smaller batches', async () => {
    const { database } = service;
    const people = numbered(9_000, 9_100);
    const members = people.map((id) => membership(id, 'O9'));
    await push(service, [organization('O9'), ...people.map((id) => account(id)), ...members]);
    await database.query(`
      CREATE FUNCTION too_many() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF (SELECT count(*) FROM gone) > 5 THEN RAISE EXCEPTION 'too long' USING ERRCODE = '57014'; END IF;
        RETURN NULL; END $$;
      CREATE TRIGGER too_many AFTER DELETE ON organization_memberships
        REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION too_many()`);
    const first = members.slice(0, 50).map((one) => ({ ...one, removed: true }));
    const { results } = await push(service, first);
    const file = fileOf(organization('O9'), ...people.map((id) => account(id)));
    const { counts } = await valueFrom(operatorOn(database), `import ${file} --prune --prune-at-most 100% --yes`);
    await database.query('DROP FUNCTION too_many CASCADE');
    expect(results).to.deep.equal(Array(50).fill('ok'));
    expect(counts.memberships).to.include({ removed: 50 });
  });

  it('a transaction that PostgreSQL aborts because of concurrent transactions is retried at most twice', async () => {
    const { database } = service;
    for (const [code, failures, result] of [
      ['40001', 2, 'ok'],
      ['40P01', 2, 'ok'],
      ['40001', 3, 'line_overtaken'],
      ['57014', 3, 'statement_too_long'],
    ] as const) {
      await database.query('CREATE SEQUENCE tries');
      const first = `INSERT ON accounts FOR EACH ROW WHEN (nextval('tries') <= ${failures})`;
      const accept = await refuseChanges(database, first, `EXCEPTION 'undone' USING ERRCODE = '${code}'`);
      const { answers } = await push(service, [account(`R${code}${failures}`)]);
      await accept();
      await database.query('DROP SEQUENCE tries');
      expect(answers[0]?.code ?? answers[0]?.result, code).to.equal(result);
    }
  });

  it('a pushed line waits while another node changes the same record, and is then compared with the new state', async () => {
    const other = await start({ sharing: service });
    const known = [organization('O1'), account('A1'), membership('A1', 'O1')];
    const at = (seconds: number, one: Line): Line => ({ ...one, as_of: new Date(Date.now() - seconds * 1_000) });
    expect(
      (
        await push(
          service,
          known.map((one) => at(60, one)),
        )
      ).results,
    ).to.deep.equal(['ok', 'ok', 'ok']);
    const [ids] = await service.database.query<{ account_id: string; organization_id: string }>(
      `SELECT account_id, organization_id FROM organization_memberships m
        JOIN organizations o ON o.id = organization_id WHERE o.external_id = 'O1'`,
    );
    const { sending } = await other.engine.transaction(async (tx, now) => {
      await other.engine.make(tx, now, [{ type: 'membership', ...ids, end: 'removed' }]);
      const sending = push(service, [at(30, membership('A1', 'O1', 'owner'))]);
      await untilOneWaits(other.database);
      return { sending };
    });
    expect((await sending).results).to.deep.equal(['outdated']);
  });

  it('pushed lines do not wait for a running import, and the import does not overwrite these lines', async () => {
    const people = numbered(1_000, 2_000);
    const file = fileOf(
      organization('O2'),
      ...people.map((id) => account(id)),
      ...people.map((id) => membership(id, 'O2')),
    );
    const first = 'A1000';
    await push(service, [organization('O2'), account(first), membership(first, 'O2')]);
    {
      await using run = await beginRun(service.database);
      await run.takeTurn();
      const left = { ...membership(first, 'O2'), removed: true };
      expect((await push(service, [left])).results).to.deep.equal(['ok']);
    }
    const running = valueFrom(operatorOn(service.database), `import ${file} --as-of 1h`);
    const sent: string[] = [];
    await eventually(async () => {
      const rows = await service.database.query("SELECT FROM accounts WHERE external_id = 'A1400'");
      expect(rows).to.have.length(1);
    });
    for (const id of ['A1001', 'A1999']) {
      const answer = await push(service, [account(id), { ...membership(id, 'O2'), removed: true }]);
      expect(answer.status, answer.text).to.equal(200);
      sent.push(id);
    }
    await running;
    const rows = await service.database.query(
      `SELECT a.external_id FROM organization_memberships m JOIN accounts a ON a.id = m.account_id
        WHERE a.external_id = ANY($1)`,
      [[first, ...sent]],
    );
    expect(rows).to.deep.equal([]);
  });
});

describeOn([postgresServer], 'pushed changes while PostgreSQL is away', () => {
  const start = startsOn();

  it('a push during an outage of PostgreSQL gets 503 with the result of each pushed line, and a retry succeeds', async function () {
    this.timeout(120_000);
    const postgres = await startPostgresServer();
    const proxy = await startTcpProxy(Number(new URL(postgres.url).port));
    const databaseUrl = new URL(await postgres.createDatabase());
    databaseUrl.port = String(proxy.port);
    await valueFrom(operatorOn({ connection: { connectionString: databaseUrl.href } } as never), 'migrate');
    const service = await start({
      settings: { senders: SENDERS, storage: { databaseUrl: databaseUrl.href } },
      timeoutFactor: SHORT_TIMEOUT_FACTOR,
    });
    const lines = [organization('O1'), ...numbered(0, 5).map((id) => account(id))];
    const { held, release } = proxy.hold(/INSERT INTO accounts/, 'request');
    const sending = push(service, lines);
    await held;
    proxy.leadTo(1);
    release();
    proxy.silence();
    const { status, headers, results, answers } = await sending;
    expect(status).to.equal(503);
    expect(Number(headers.get('retry-after'))).to.be.above(0);
    expect(results).to.deep.equal(['ok', ...Array(5).fill('not_done')]);
    expect(answers[1]).to.include({ line: 2, code: 'storage_unavailable' });
    proxy.leadTo(Number(new URL(postgres.url).port));
    await delay(0);
    await eventually(async () => {
      const again = await push(service, lines);
      expect(again.status).to.equal(200);
      expect(again.results[0]).to.equal('unchanged');
      expect(again.results.slice(1).every((one) => ['ok', 'unchanged'].includes(one))).to.equal(true);
    });
    await service.close();
    await proxy.close();
  });
});
