/** Imports that are refused, interrupted, or wait for another one. */
import { appendFileSync, readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import { mock } from 'node:test';
import { expect } from 'chai';
import { createChanges } from '../../src/changes/engine.ts';
import { FIRST_BATCH } from '../../src/changes/import.ts';
import { ImportInterrupted } from '../../src/changes/problems.ts';
import { beginRun, importLinesCleaning } from '../../src/changes/runs.ts';
import { loadForCommand } from '../../src/config/load.ts';
import { openImportFile } from '../../src/operator/import/file.ts';
import { runOperator } from '../../src/operator/program/run-operator.ts';
import { withRegistries } from '../../src/operator/registries.ts';
import { StorageUnavailable } from '../../src/storage/storage-unavailable.ts';
import { expectExplained, refusalOf } from '../clients/refusals.ts';
import { setUpOperator } from '../operator/operator-suite.ts';
import { createPage, OPERATOR_PROGRAM, variablesOf } from '../operator/run-operator.ts';
import { onPostgres, refuseChanges, untilOneWaits } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { startProgram } from '../support/programs.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { importJsonSchema } from '../write-docs.ts';
import { databaseSnapshot, emptyDatabase, fileOf, importWith, type Line, line } from './import-file.ts';

const { account, membership, organization, rights, warehouse } = line;
const but = (more: Line): Line => account('A1', more);
const one = JSON.stringify(organization('O1'));

/** Lines of a file, each with words of the messages about it. */
type Rows = readonly (readonly [Line | string | Buffer, ...string[]])[];

const FILES: Readonly<Record<string, Rows>> = {
  'names every invalid line, and what to write instead': [
    ['not json', 'is not JSON; write one object, such as {"type"'],
    ['{"type":1', 'is not JSON from character 10 on; write one object'],
    ['[1, 2]', 'is not an object'],
    ['"text"', 'is not an object'],
    [{ type: 'organisation' }, 'type: "organisation" is not a type of line; write one of organization, warehouse'],
    ['{}', 'type: is missing; write one of organization, warehouse, account'],
    [but({ emial: 'x' }), '"emial" is not a key of account lines; remove it; allowed here: type, external_id, former'],
    [but({ email: 'jo' }), 'email: "jo" is not an email address; write one like "ada@example.com"'],
    [but({ email: 7 }), 'email: 7 is not an email address; write one like "ada@example.com"'],
    [but({ email: 'stra\u00DFe@x.test' }), 'normalized; write "strasse@x.test", or another address'],
    [but({ name: ' ' }), 'name: " " is not a valid name; write 1 to 200 visible characters'],
    [but({ name: 'a\u202eb' }), 'name: "a\\u{202e}b" is not a valid name'],
    [but({ name: 'x'.repeat(201) }), `name: "${'x'.repeat(79)}… is not a valid name`],
    [but({ name: null }), 'name: null is not a string'],
    [but({ external_id: 7 }), 'external_id: 7 is not a string'],
    [but({ external_id: ' 7' }), 'external_id: " 7" is not a valid id'],
    [but({ external_id: 'a\0' }), 'external_id: "a\\u0000" is not a valid id'],
    [but({ identity: 'ada' }), 'identity: "ada" is not an object; write one like {"issuer"'],
    [but({ identity: { issuer: 7 } }), '7 is not a string; write the issuer of the', 'identity.subject: is missing'],
    [but({ identity: { issuer: '1é', subject: 'é1' } }), '"1é" is not 1 to 255 print', '"é1" is not 1 to 255 print'],
    [but({ suspended: 'yes' }), 'suspended: "yes" is neither true nor false'],
    [{ type: 'account', external_id: 'A1' }, 'email: is missing; this account line needs it', 'name: is missing'],
    [{ ...organization('O1'), clients: 'closed' }, 'clients: "closed" is neither "open" nor "ask"'],
    [membership('A1', 'O1', 'chief'), 'role: "chief" is not a role; write one of owner, admin, member, viewer'],
    [rights('A1', 'W1'), 'rights: [] is empty; leave the line out instead'],
    [{ ...rights('A1', 'W1'), rights: 'read' }, 'is not a list of rights; write one like ["read"], of read, write'],
    [rights('A1', 'W1', 'read', 'fly'), 'rights: "fly" is not a right; write one or more of read, write, manage'],
  ],
  'names dangling references, duplicates, and rights without a membership': [
    [membership('A1', 'O1', 'viewer')],
    [rights('A1', 'W1', 'read', 'write'), 'rights: a viewer may have only "read"'],
    [organization('O1')],
    [organization('O2')],
    [organization('O1', 'again'), 'line 3 describes the same organization; remove one of the two'],
    [warehouse('W1', 'O1')],
    [warehouse('W2', 'O2')],
    [warehouse('W3', 'O9'), 'organization: no organization line has the external_id "O9"'],
    [account('A1')],
    [account('A2', { email: 'A1@EXAMPLE.test' }), 'email: line 9 has the same address'],
    [membership('A9', 'O1'), 'account: no account line has the external_id "A9"'],
    [membership('A1', 'O1', 'admin'), 'line 1 describes the same membership'],
    [rights('A1', 'W2', 'read'), 'needs a membership line of account "A1" in organization "O2"'],
    [rights('A1', 'W9', 'read'), 'warehouse: no warehouse line has the external_id "W9"'],
    [rights('A1', 'W1', 'read'), 'line 2 describes the same rights in a warehouse'],
    [{ ...organization('O3'), former_external_id: 'O2' }, 'former_external_id: line 4 describes that organization'],
    [account('A3', { former_external_id: 'A8' })],
    [account('A4', { former_external_id: 'A8' }), 'former_external_id: line 17 has the same former_external_id'],
  ],
  'does not report references to an invalid line whose id is readable': [
    [organization('O1', ''), 'name:'],
    [account('A1', { email: 'jo' }), 'email:'],
    [membership('A1', 'O1', 'chief'), 'role:'],
    [warehouse('W1', 'O1')],
    [rights('A1', 'W1', 'read')],
    [membership('A1', 'O9'), 'organization:'],
    [warehouse('W2', 'O1', { name: '' }), 'name:'],
    [rights('A1', 'W2', 'read')],
  ],
  'names the unreadable line to which a dangling reference may refer': [
    [organization('O1')],
    ['not json', 'is not JSON'],
    [membership('A9', 'O1'), 'remove this line, unless it is line 2, which cannot be read'],
    ['{}', 'type: is missing'],
  ],
  'names lines that have invalid bytes or are too long': [
    [`\uFEFF${one}\r`],
    [Buffer.from([0xff, 0xfe]), 'is not UTF-8'],
    ['{"a\0":1}', 'contains a NUL byte'],
    ['\r'],
    [`"${'x'.repeat(200_000)}"`, 'is longer than 65536 bytes'],
    [organization('O2')],
    ['['.repeat(60_000), 'is not JSON'],
    ['\u0085{', 'is not JSON'],
  ],
};

describe('the schema of an import', () => {
  it('the schema of import files describes every type of line with all its keys, and allows no others', () => {
    const published = readFileSync(new URL('../../config/import.schema.json', import.meta.url), 'utf8');
    const { oneOf } = JSON.parse(published);
    expect(JSON.parse(published)).to.deep.equal(importJsonSchema());
    expect(oneOf).to.have.length(5);
    for (const { description, properties, additionalProperties } of oneOf) {
      expect(description).to.be.a('string');
      expect(additionalProperties).to.equal(false);
      const { type, ...keys } = properties;
      for (const [name, key] of Object.entries(keys)) expect(key, name).to.have.property('description');
    }
  });
});

onPostgres('the check of an import file', (open) => {
  const { run, value, refusal, parts } = setUpOperator(open);

  async function expectProblems(rows: Rows): Promise<void> {
    const before = await databaseSnapshot(parts().database);
    const { code, problems } = await refusal(`import ${fileOf(...rows.map(([text]) => text))}`);
    const expected = rows.flatMap(([, ...messages], at) => messages.map((words) => ({ line: at + 1, words })));
    const lines = problems.map(({ line }: { line: number }) => line);
    expect({ code, lines }).to.deep.equal({ code: 'import_problems', lines: expected.map(({ line }) => line) });
    for (const [at, { words }] of expected.entries()) expect(problems[at].message).to.include(words);
    expect(await databaseSnapshot(parts().database)).to.deep.equal(before);
  }

  for (const [does, rows] of Object.entries(FILES)) {
    it(`the check of an import file ${does}`, () => expectProblems(rows));
  }

  it('an import that contradicts the database, or has an address that is not normalized, writes nothing', async () => {
    const start = [organization('O1'), organization('O2'), warehouse('W1', 'O1')];
    await value(`import ${fileOf(...start, account('A1'), account('A2'))}`);
    await value('accounts add --email hand@example.test --name H --invite');
    const { id } = await value('organizations add --name Own');
    await value(`warehouses add --organization ${id} --name Own --external-id W9`);
    await expectProblems([
      [organization('O1', 'Another name')],
      [organization('O2')],
      [
        warehouse('W1', 'O2'),
        'organization: the warehouse belongs to "O1"; to move it, add "former_organization":"O1"',
      ],
      [
        warehouse('W9', 'O1'),
        'give that organization an external_id first (organizations update), or give the warehouse',
      ],
      [account('A3', { email: 'A1@example.test' }), '"A1", which is not in the file, has this address; use that'],
      [account('A2', { email: 'hand@example.test' }), 'not imported, has this address; change one of the'],
      [account('A5', { email: 'anna>x@corp.test' }), 'email: "anna>x@corp.test" is not an email address'],
      [account('A6', { email: 'anna@xn--bcher-kva.test' }), 'normalized form; write "anna@bücher.test"'],
    ]);
  });

  it('the check of an import file lists the first hundred problems, and their total number', async () => {
    const { errors, output, exitCode } = await run(`import ${fileOf(...Array(250).fill('{}'))}`);
    expect({ exitCode, output }).to.deep.equal({ exitCode: 1, output: '' });
    expect(errors.match(/^line \d+: type/gm)).to.have.length(100);
    expect(errors).to.contain('line 100: ').and.contain('… and 150 more');
    expect(errors).to.match(/250 problem\(s\) found in the file\nNothing was changed\. Correct/);
  });

  it('an import file that grows while it is read is refused', async () => {
    const name = fileOf(...Array.from({ length: 2_000 }, (_, at) => account(`A${at}`)));
    await using file = await openImportFile(name, process);
    const readGrowing = async () => {
      for await (const [first] of file.lines()) if (first?.number === 1) appendFileSync(name, '{}\n');
    };
    expect(await refusalOf(readGrowing())).to.equal('import_file_changed');
  });

  it('an import stops before a batch if the data changed since the comparison, or if too much would be removed', async () => {
    const { database } = parts();
    await value(`import ${fileOf(account('B2'))}`);
    const file = fileOf(account('B1'), account('B2', { email: 'taken@example.test' }));
    const another = (id: number, email: string, external: string | null) =>
      database.query(
        `INSERT INTO accounts (id, email, email_key, name, created_at, external_id) VALUES ($1, $2, $2, 'Eve', now(), $3)`,
        [`acc_${id}`, email, external],
      );
    const taken = /changed the same data in the meantime \(line 2: email: /;
    const over = /which are kept: --prune would remove .*; the limit is 0 of each kind\.$/;
    const lost = /which are kept: the lines of this import are no longer in the database: .* after a crash\.$/;
    for (const [prune, meanwhile, why, kept] of [
      [false, () => another(1, 'taken@example.test', null), taken, 0],
      [false, () => database.query('DELETE FROM import_runs'), lost, 0],
      [true, () => another(2, 'b3@example.test', 'B3'), over, 2],
    ] as const) {
      const importing = importWith(database, file, { prune, pruneAtMost: '0', meanwhile });
      const error = await importing.catch((thrown: unknown) => thrown);
      expect(error).to.be.instanceOf(ImportInterrupted);
      expect(`${(error as Error).message}`)
        .to.match(why)
        .and.include(`stopped after ${kept} change(s)`);
      const rows = await database.query("SELECT FROM accounts WHERE external_id = 'B1'");
      expect(rows).to.have.length(kept / 2);
      await database.query("DELETE FROM accounts WHERE email = 'taken@example.test' AND external_id IS NULL");
    }
    const suspended = await database.query(
      "SELECT FROM accounts WHERE external_id = 'B3' AND suspended_at IS NOT NULL",
    );
    expect(suspended).to.deep.equal([]);
  });

  it('an import interrupted by a database outage reports its changes; a second import makes the missing changes', async () => {
    const { database } = parts();
    const engine = createChanges({ database });
    let pages = 0;
    const make: typeof engine.make = async (...given) => {
      pages += 1;
      // The first page is compared, the second one written.
      if (pages > 2) throw new StorageUnavailable('postgresql', new Error('gone'));
      return engine.make(...given);
    };
    const file = fileOf(...Array.from({ length: 600 }, (_, at) => account(`D${at}`)));
    const interrupted = await importWith(database, file, { engine: { ...engine, make } }).catch((error) => error);
    expect(interrupted).to.be.instanceOf(ImportInterrupted);
    const stopped = `stopped after ${FIRST_BATCH} change(s), which are kept: the database does not answer`;
    expect(interrupted.message).to.include(stopped);
    expect(interrupted.cause).to.be.instanceOf(StorageUnavailable);
    expectExplained(interrupted);
    const { counts } = await importWith(database, file, {});
    expect(counts.account).to.include({ added: 600 - FIRST_BATCH, unchanged: FIRST_BATCH });
  });

  it('an import reports a database conflict as a concurrent change, and any other database error as it is', async () => {
    const { database } = parts();
    for (const [error, words] of [
      ["EXCEPTION 'out of order'", 'out of order'],
      ["EXCEPTION 'taken' USING CONSTRAINT = 'accounts_email_key_key'", 'in the meantime'],
      ["EXCEPTION 'deadlock' USING ERRCODE = '40P01'", 'in the meantime'],
    ] as const) {
      const accept = await refuseChanges(database, 'INSERT ON accounts', error);
      const { exitCode, errors } = await run(`import ${fileOf(account('C1'))}`);
      await accept();
      expect(exitCode).to.equal(1);
      expect(['out of order', 'in the meantime'].filter((one) => errors.includes(one))).to.deep.equal([words]);
    }
  });
});

onPostgres('parallel imports', (open) => {
  const { value, refusal, parts } = setUpOperator(open);

  beforeEach(() => emptyDatabase(parts().database));

  const small = fileOf(organization('O1'), account('A1'), membership('A1', 'O1'));
  /** Takes the lock as an import on another machine would. */
  async function lockElsewhere() {
    const run = await beginRun(parts().database);
    await run.takeTurn();
    return run;
  }
  function startImport(...words: string[]) {
    const [stdout, stderr] = [createPage(), createPage()];
    const surroundings = { environment: variablesOf(parts().database), stdin: Readable.from(['']), stdout, stderr };
    return { stdout, stderr, exitCode: runOperator(['import', ...words], { ...surroundings, onInterrupt: () => {} }) };
  }
  const query = (statement: string) => parts().database.query(statement);

  it('an import waits for a running one and says so; a dry run runs at once', async () => {
    const lock = await lockElsewhere();
    expect((await value(`import ${small} --dry-run`)).counts.accounts).to.include({ added: 1 });
    expect(await query('SELECT FROM accounts')).to.deep.equal([]);
    const { stdout, stderr, exitCode } = startImport(small, '--json');
    await eventually(() => expect(stderr.text()).to.contain('Waiting for another import, which is running.\n'));
    expect(stdout.text()).to.equal('');
    await lock[Symbol.asyncDispose]();
    expect(await exitCode).to.equal(0);
    expect(JSON.parse(stdout.text()).counts.accounts).to.include({ added: 1 });
  });

  it('of two imports that begin to write at the same moment, one waits for the other', async () => {
    const { database } = parts();
    await using first = await beginRun(database);
    await using second = await beginRun(database);
    const { turn } = await database.transaction(async (tx) => {
      await tx.query('UPDATE import_runs SET writes = true WHERE id = $1', [first.id]);
      const turn = second.takeTurn();
      await untilOneWaits(database);
      return { turn };
    });
    await first[Symbol.asyncDispose]();
    await turn;
    expect(await query('SELECT id FROM import_runs WHERE writes')).to.deep.equal([{ id: second.id }]);
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

  it('an import that is paused in a transaction blocks no other change; its transaction is undone and repeated', async () => {
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
    await database.query(`INSERT INTO import_runs (id, writes, started_at, expires_at)
      SELECT 'imp_2', true, now, now + interval '1 minute' FROM clock_timestamp() now
      UNION ALL SELECT 'imp_3', false, now, now - interval '61 minutes' FROM clock_timestamp() now`);
    const clean = importLinesCleaning({ database });
    const steps = [];
    for (let step = 0; step < 5; step += 1) steps.push(await clean(4));
    expect(steps).to.deep.equal([4, 1, 4, 1, 0]);
    expect(await database.query('SELECT DISTINCT import_id FROM import_lines')).to.deep.equal([{ import_id: 'imp_2' }]);
    await database.query('DELETE FROM import_lines');
    await database.query('DELETE FROM import_runs');
  });
});
