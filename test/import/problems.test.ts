import { appendFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { createChanges } from '../../src/changes/engine.ts';
import { FIRST_BATCH } from '../../src/changes/import.ts';
import { ImportInterrupted } from '../../src/changes/problems.ts';
import { type ImportFile, openImportFile } from '../../src/operator/import/file.ts';
import { StorageUnavailable } from '../../src/storage/storage-unavailable.ts';
import { refusalOf } from '../clients/refusals.ts';
import { setUpOperator } from '../operator/operator-suite.ts';
import { type RunOperator, refusalFrom } from '../operator/run-operator.ts';
import { onPostgres } from '../support/databases.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { databaseSnapshot, fileOf, importWith, type Line, line } from './import-file.ts';

const { account, membership, organization, rights, warehouse } = line;

interface Found {
  readonly line: number;
  readonly message: string;
}

async function problemsIn(file: string, run: RunOperator): Promise<Found[]> {
  const error = await refusalFrom(run, `import ${file}`);
  expect(error).to.include({ code: 'import_problems' });
  return error.problems;
}

/** @param expected the line and message of each problem, in order */
function expectProblems(found: readonly Found[], expected: readonly (readonly [number, RegExp])[]) {
  expect(found.map(({ line }) => line)).to.deep.equal(expected.map(([line]) => line));
  for (const [at, [, message]] of expected.entries()) {
    expect(found[at]?.message).to.match(message);
  }
}

onPostgres('the check of an import file', (open) => {
  const { run } = setUpOperator(open);
  const problemsOf = (file: string) => problemsIn(file, run);

  it('the check of an import file names every invalid line, and what to write instead', async () => {
    const but = (more: Line): Line => account('A1', more);
    const wrong: readonly (readonly [Line | string, ...RegExp[]])[] = [
      ['not json', /^is not JSON; write one object, such as {"type"/],
      ['[1, 2]', /^is not an object/],
      ['"text"', /^is not an object/],
      [
        { type: 'organisation', external_id: '1', name: 'A' },
        /^type: "organisation" is not a type of line; did you mean "organization"\?$/,
      ],
      ['{}', /^type: is missing; write one of organization, warehouse, account/],
      [but({ emial: 'x' }), /^"emial" is not a key of account lines; did you mean "email"\?$/],
      [but({ email: 'jo' }), /^email: "jo" is not an email address; write one like "ada@example.com"$/],
      [
        but({ email: 'stra\u00DFe@x.test' }),
        /^email: "straße@x.test" has characters that are normalized; write "strasse@x.test", or another address$/,
      ],
      [but({ name: ' ' }), /^name: " " is not a valid name; write 1 to 200 visible characters$/],
      [but({ name: 'a\u202eb' }), /^name: "a\\u{202e}b" is not a valid name/],
      [but({ name: 'x'.repeat(201) }), /^name: "x{79}… is not a valid name/],
      [but({ name: null }), /^name: null is not a string/],
      [but({ external_id: 7 }), /^external_id: 7 is not a string .*; put the id in quotes$/],
      [but({ external_id: ' 7' }), /^external_id: " 7" is not a valid id; .* without spaces around them$/],
      [but({ external_id: 'a\0' }), /^external_id: "a\\u0000" is not a valid id/],
      [but({ suspended: 'yes' }), /^suspended: "yes" is neither true nor false$/],
      [{ type: 'account', external_id: 'A1' }, /^email: is missing; every account line needs/, /^name: is missing/],
      [membership('A1', 'O1', 'chief'), /^role: "chief" is not a role; write one of owner, admin, member, viewer$/],
      [rights('A1', 'W1'), /^rights: \[\] is empty; leave the line out instead$/],
      [rights('A1', 'W1', 'read', 'fly'), /^rights: "fly" is not a right; write one or more of read, write, manage$/],
    ];
    const found = await problemsOf(fileOf(...wrong.map(([line]) => line)));
    const expected = wrong.flatMap(([, ...messages], at) => messages.map((message) => [at + 1, message] as const));
    expectProblems(found, expected);
  });

  it('the check of an import file names dangling references, duplicates, and rights without a membership', async () => {
    const file = fileOf(
      membership('A1', 'O1', 'viewer'),
      rights('A1', 'W1', 'read', 'write'),
      organization('O1'),
      organization('O2'),
      organization('O1', 'again'),
      warehouse('W1', 'O1'),
      warehouse('W2', 'O2'),
      warehouse('W3', 'O9'),
      account('A1'),
      account('A2', { email: 'A1@EXAMPLE.test' }),
      membership('A9', 'O1'),
      membership('A1', 'O1', 'admin'),
      rights('A1', 'W2', 'read'),
      rights('A1', 'W9', 'read'),
      rights('A1', 'W1', 'read'),
    );
    expectProblems(await problemsOf(file), [
      [2, /^rights: a viewer may have only "read"/],
      [5, /^line 3 describes the same organization; remove one of the two$/],
      [8, /^organization: no organization line has the external_id "O9"/],
      [10, /^email: line 9 has the same address/],
      [11, /^account: no account line has the external_id "A9"/],
      [12, /^line 1 describes the same membership/],
      [13, /^needs a membership line of account "A1" in organization "O2"/],
      [14, /^warehouse: no warehouse line has the external_id "W9"/],
      [15, /^line 2 describes the same rights in a warehouse/],
    ]);
  });

  it('the check of an import file does not report references to an invalid line whose id is readable', async () => {
    const file = fileOf(
      organization('O1', ''),
      account('A1', { email: 'jo' }),
      membership('A1', 'O1', 'chief'),
      warehouse('W1', 'O1'),
      rights('A1', 'W1', 'read'),
      membership('A1', 'O9'),
    );
    const lines = (await problemsOf(file)).map(({ line }) => line);
    expect(lines).to.deep.equal([1, 2, 3, 6]);
  });

  it('a dangling reference is reported with the unreadable line that it may refer to', async () => {
    const file = fileOf(organization('O1'), 'not json', membership('A9', 'O1'), '{}');
    expectProblems(await problemsOf(file), [
      [2, /^is not JSON/],
      [3, /no account line has the external_id "A9".*, unless it is line 2, which cannot be read$/],
      [4, /^type: is missing/],
    ]);
  });

  it('the check of an import file names lines that have invalid bytes or are too long', async () => {
    const file = path.join(temporaryDirectory('import'), 'bytes');
    const [one, two] = [JSON.stringify(organization('O1')), JSON.stringify(organization('O2'))];
    const parts = [
      `\uFEFF${one}\r\n`,
      Buffer.from([0xff, 0xfe, 0x0a]),
      '{"a\0":1}\n',
      '\r\n',
      `"${'x'.repeat(200_000)}"\n`,
      `${two}\n`,
      '['.repeat(60_000),
      '\n',
      '\u0085{',
    ];
    writeFileSync(file, Buffer.concat(parts.map((part) => Buffer.from(part))));
    expectProblems(await problemsOf(file), [
      [2, /^is not UTF-8/],
      [3, /^contains a NUL byte/],
      [5, /^is longer than 65536 bytes/],
      [7, /^is not JSON/],
      [8, /^is not JSON/],
    ]);
  });

  it('an import file that grows while it is read is refused', async () => {
    const name = fileOf(...Array.from({ length: 2_000 }, (_, at) => account(`A${at}`)));
    const grow = () => appendFileSync(name, '{}\n');
    const read = async (file: ImportFile, onPiece = () => {}): Promise<number> => {
      let lines = 0;
      for await (const piece of file.lines()) {
        lines += piece.length;
        if (lines < 2_000) onPiece();
      }
      return lines;
    };
    {
      await using file = await openImportFile(name, process);
      expect(await read(file)).to.equal(2_000);
    }
    await using file = await openImportFile(name, process);
    expect(await refusalOf(read(file, grow))).to.equal('import_file_changed');
  });

  it('the check of an import file lists the first hundred problems, and their total number', async () => {
    const file = fileOf(...Array.from({ length: 250 }, () => '{}'));
    const { errors, output, exitCode } = await run(`import ${file}`);
    expect({ exitCode, output }).to.deep.equal({ exitCode: 1, output: '' });
    expect(errors.match(/^line \d+: type/gm)).to.have.length(100);
    expect(errors).to.contain('line 100: ').and.contain('… and 150 more');
    expect(errors).to.match(/250 problem\(s\) found in the file\nNothing was changed\. Correct/);
  });
});

describe('an import that contradicts the database', () => {
  const { run, value, parts } = setUpOperator();

  it('an import that contradicts the database, or has an address in another form, is refused before anything is written', async () => {
    const start = [organization('O1'), organization('O2'), warehouse('W1', 'O1')];
    await value(`import ${fileOf(...start, account('A1'), account('A2'))}`);
    await value('accounts add --email hand@example.test --name H --invite');
    const before = await databaseSnapshot(parts().database);
    const file = fileOf(
      organization('O1', 'Another name'),
      organization('O2'),
      warehouse('W1', 'O2'),
      account('A3', { email: 'A1@example.test' }),
      account('A2', { email: 'hand@example.test' }),
      account('A5', { email: 'anna>x@corp.test' }),
      account('A6', { email: 'anna@xn--bcher-kva.test' }),
    );
    expectProblems(await problemsIn(file, run), [
      [3, /^organization: the warehouse belongs to "O1"; to move it, add "former_org/],
      [4, /^email: the account with the external_id "A1", which is not in the file, has this address/],
      [5, /^email: the account acc_\S+, which was not imported, has this address/],
      [6, /^email: "anna>x@corp.test" is not an email address; write one like/],
      [7, /^email: "anna@xn--bcher-kva.test" is not in its normalized form; write "anna@bücher.test"$/],
    ]);
    expect(await databaseSnapshot(parts().database)).to.deep.equal(before);
  });

  it('an import stops if the database contradicts it, or more would be removed, since the comparison, and writes nothing of that batch', async () => {
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
    for (const [prune, meanwhile, why, kept] of [
      [false, () => another(1, 'taken@example.test', null), taken, 0],
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

  it('an import whose database does not answer any more says what it has written, and the same file continues', async () => {
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
    const { counts } = await importWith(database, file, {});
    expect(counts.account).to.include({ added: 600 - FIRST_BATCH, unchanged: FIRST_BATCH });
  });

  it('an error of the database that has another cause is not reported as a change by another process', async () => {
    const { database } = parts();
    await database.query(
      `CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'out of order'; END $$`,
    );
    await database.query('CREATE TRIGGER fail BEFORE INSERT ON accounts FOR EACH STATEMENT EXECUTE FUNCTION fail()');
    const { exitCode, errors } = await run(`import ${fileOf(account('C1'))}`);
    await database.query('DROP FUNCTION fail CASCADE');
    expect(exitCode).to.equal(1);
    expect(errors).to.include('out of order').and.not.include('in the meantime');
  });
});
