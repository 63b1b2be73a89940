/** Progress of long commands, on a terminal and in a pipe. */
import { expect } from 'chai';
import { createProgress } from '../../src/operator/program/progress.ts';
import { runOperator } from '../../src/operator/program/run-operator.ts';
import { fileOf, line } from '../import/import-file.ts';
import { freshDatabaseUrl } from '../support/postgres-server.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { startSeeded } from '../support/seeded.ts';
import { createPage, type Environment, keysOf, operatorWith, storesOf } from './run-operator.ts';

const ERASE = '\r\u001B[K';

describe('a progress line shows the state of the work on a terminal', () => {
  it('the progress line shows work done, speed and time left, and changes at most ten times a second', () => {
    let time = 0;
    const terminal = Object.assign(createPage(), { isTTY: true, columns: 60 });
    const progress = createProgress(terminal, () => time);
    const shown = (): string[] => terminal.text().split(ERASE).slice(1);
    for (let done = 0; done <= 2_000; done += 20) {
      progress.show('Writing, lines', done, 4_000);
      time += 10;
    }
    expect(shown()).to.have.length(11);
    expect([shown()[0], shown()[10]]).to.deep.equal([
      'Writing, lines: 0 of 4000 (0 %)',
      'Writing, lines: 2000 of 4000 (50 %), 2000 a second, 1 s lef',
    ]);
    progress.clear();
    progress.clear();
    expect(shown().slice(11)).to.deep.equal(['']);
    // Each task has its own speed; without a known total, no remaining time is shown.
    progress.show('Checked', 1);
    time += 2_000;
    progress.show('Checked', 4);
    expect(shown().slice(12)).to.deep.equal(['Checked: 1', 'Checked: 4, 1.5 a second']);
    // Some terminals report an unknown width as 0.
    terminal.columns = 0;
    time += 2_000;
    progress.show('Checked', 5);
    expect(shown().at(-1)).to.equal('Checked: 5, 1.0 a second');
  });
});

/** Matches the first line that a command prints if it changes something. */
const ACTING_ON = /^Acting on .*\n/;

describeOn([postgresServer], 'commands that may take long', () => {
  const on = startSeeded();

  /** Runs a command. @param isTTY true if standard error is a terminal; standard output never is */
  const run = (words: string, environment: Environment, isTTY: boolean) =>
    operatorWith(environment, (all, { stderr, ...more }) =>
      runOperator(all, { ...more, stderr: Object.assign(stderr, { isTTY }) }),
    )(words);

  it('commands show their progress on a terminal, and only the result in a pipe', async () => {
    const stores = { ...storesOf(on.service), ...keysOf(on.service) };
    const { accessToken } = await on.partner.tokens(on.clients.confidential);
    await on.partner.tokens(on.clients.confidential);
    const here = (environment: Environment) => (words: string, isTTY: boolean) => run(words, environment, isTTY);
    await here(stores)(`revoke --token ${accessToken}`, false);
    const file = fileOf(line.organization('O1'), line.account('A1'));
    const commands: [words: string, environment: () => Promise<Environment>, shown: RegExp][] = [
      [`import ${file}`, async () => stores, /Comparing, lines: 1 of 2 .*Writing, lines: 1 of 2/s],
      ['migrate', async () => ({ DATABASE_URL: await freshDatabaseUrl() }), /Migrations started: 1 of \d+ \(\d+ %\)/],
      [
        `doctor --address ${on.issuer}`,
        async () => ({ ...stores, GATEHOUSE_ISSUER: on.issuer }),
        /Checked: 1.*Checked: \d\d/s,
      ],
    ];
    for (const [words, environment, shown] of commands) {
      const { errors: written } = await run(words, await environment(), true);
      const errors = written.replace(ACTING_ON, '');
      expect(errors, words).to.match(shown);
      expect(errors.endsWith(ERASE), words).to.equal(true);
      expect(errors, 'one line').not.to.include('\n');
    }
    const piped = await run(`import ${file}`, stores, false);
    expect(piped.exitCode).to.equal(0);
    expect(piped.errors.replace(ACTING_ON, '')).to.equal('');
    expect(piped.output).to.include('ADDED');
  });
});
