/** Imports run one at a time: a second one starts when the first has ended. */
import { Readable } from 'node:stream';
import { mock } from 'node:test';
import { expect } from 'chai';
import { createChanges } from '../../src/changes/engine.ts';
import { beginRun, importLinesCleaning } from '../../src/changes/runs.ts';
import { loadForCommand } from '../../src/config/load.ts';
import { runOperator } from '../../src/operator/program/run-operator.ts';
import { withRegistries } from '../../src/operator/registries.ts';
import { setUpOperator } from '../operator/operator-suite.ts';
import { createPage, OPERATOR_PROGRAM, variablesOf } from '../operator/run-operator.ts';
import { onPostgres } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { startProgram } from '../support/programs.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { emptyDatabase, fileOf, line } from './import-file.ts';

const { account, membership, organization } = line;

onPostgres('parallel imports', (open) => {
  const { value, refusal, parts } = setUpOperator(open);

  beforeEach(() => emptyDatabase(parts().database));

  const small = fileOf(organization('O1'), account('A1'), membership('A1', 'O1'));
  /** Takes the lock as an import on another machine would. */
  async function lockElsewhere() {
    const run = await beginRun(parts().database, 'ada, process 1 on web-1');
    await run.takeTurn();
    return run;
  }
  function startImport(...words: string[]) {
    const [stdout, stderr] = [createPage(), createPage()];
    const surroundings = { environment: variablesOf(parts().database), stdin: Readable.from(['']), stdout, stderr };
    return { stdout, stderr, exitCode: runOperator(['import', ...words], { ...surroundings, onInterrupt: () => {} }) };
  }
  const query = (statement: string) => parts().database.query(statement);

  it('an import waits for a running one and says who started it; a dry run runs at once', async () => {
    const lock = await lockElsewhere();
    expect((await value(`import ${small} --dry-run`)).counts.accounts).to.include({ added: 1 });
    expect(await query('SELECT FROM accounts')).to.deep.equal([]);
    const { stdout, stderr, exitCode } = startImport(small, '--json');
    const waitingLine =
      /Waiting for another import, which is running since 20\d\d-.*Z, started by ada, process 1 on web-1\.\n/;
    await eventually(() => expect(stderr.text()).to.match(waitingLine));
    expect(stdout.text()).to.equal('');
    await lock[Symbol.asyncDispose]();
    expect(await exitCode).to.equal(0);
    expect(JSON.parse(stdout.text()).counts.accounts).to.include({ added: 1 });
  });

  it('an import extends its lock while it runs', async () => {
    const secondsLeft = async (): Promise<number> => {
      const [row] = await parts().database.query<{ left: number }>(
        `SELECT extract(epoch FROM expires_at - clock_timestamp())::float8 AS "left" FROM import_runs`,
      );
      return row?.left ?? 0;
    };
    mock.timers.enable({ apis: ['setInterval'] });
    try {
      const lock = await lockElsewhere();
      await query("UPDATE import_runs SET expires_at = clock_timestamp() + interval '1 second'");
      expect(await secondsLeft()).to.be.below(2);
      mock.timers.tick(10_000);
      await eventually(async () => expect(await secondsLeft()).to.be.above(10));
      await lock[Symbol.asyncDispose]();
    } finally {
      mock.timers.reset();
    }
  });

  it('an import that loses its lock while it is stalled writes nothing more', async () => {
    const { database } = parts();
    const lock = await lockElsewhere();
    const tryToWrite = () => database.transaction((tx) => lock.requireHeld(tx)).then(() => 'held', String);
    expect(await tryToWrite()).to.equal('held');
    await query("UPDATE import_runs SET expires_at = clock_timestamp() - interval '1 second'");
    expect(await tryToWrite(), 'the lock has expired, but no other import has it').to.equal('held');
    const next = await lockElsewhere();
    expect(await tryToWrite()).to.match(/lines of this import are no longer in the database/);
    await lock[Symbol.asyncDispose]();
    expect(await query('SELECT FROM import_runs'), 'the lock of the next import stays').to.have.length(1);
    await next[Symbol.asyncDispose]();
  });

  it('an import releases the lock if it is refused or not confirmed', async () => {
    await value(`import ${small}`);
    for (const [options, code] of [
      [`${fileOf('')} --prune --yes`, 'prune_over_limit'],
      [`${fileOf(organization('O1'), account('A1'))} --prune --prune-at-most 100%`, 'confirmation_needed'],
    ]) {
      expect((await refusal(`import ${options}`)).code).to.equal(code);
      expect(await query('SELECT FROM import_runs')).to.deep.equal([]);
    }
  });

  it('an import whose program is stopped inside a transaction loses it, holds up no other change, and then repeats it', async () => {
    const { database } = parts();
    const states = (where: string) =>
      database.query(
        `SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND ${where}`,
      );
    const operator = {
      load: () => loadForCommand({ environment: variablesOf(database), mayUseDefaults: true, report: () => {} }),
      by: () => ({ operator: 'tests', reason: undefined }),
      announce() {},
      warn() {},
      onWait() {},
    };
    const limit = withRegistries(operator, true, ({ database }) =>
      database.query('SHOW idle_in_transaction_session_timeout'),
    );
    expect(await limit).to.deep.equal([{ idle_in_transaction_session_timeout: '2s' }]);
    const engine = createChanges({ database });
    const program = await database.transaction(async (tx) => {
      await tx.query('LOCK TABLE organizations IN SHARE MODE');
      const [cwd, environment] = [temporaryDirectory('stopped'), variablesOf(database)];
      const started = startProgram(process.execPath, [OPERATOR_PROGRAM, 'import', small], { cwd, environment });
      await started.waitUntil(async () => expect(await states("wait_event_type = 'Lock'")).to.have.length(1));
      started.pause();
      return started;
    });
    const left = "SELECT FROM organizations WHERE external_id = 'O1'";
    await engine.transaction(async (tx) => expect(await tx.query(left)).to.deep.equal([]));
    program.resume();
    await eventually(() => expect(program.output()).to.match(/^Done: import/m));
  });

  it('the lines of killed imports are deleted in steps, and those of a running import stay', async () => {
    const { database } = parts();
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
