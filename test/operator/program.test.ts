/** The operator program as a real process or on a terminal: `node src/operator/main.ts`, also by npm. */
import { execFile, spawn } from 'node:child_process';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { withChecksum } from '../../src/base/random-id.ts';
import { createClientRegistry } from '../../src/clients/client-registry.ts';
import { line } from '../import/import-file.ts';
import { COMPILE_CACHE, findProgram } from '../support/programs.ts';
import { describeOn, type Requirement, required } from '../support/requirements.ts';
import { setUpOperator } from './operator-suite.ts';
import { OPERATOR_PROGRAM, operatorProgramWith, refusalFrom, valueFrom, variablesOf } from './run-operator.ts';

const { organization } = line;

/** The program `script` of util-linux, which runs a command on a terminal of its own. */
const script: Requirement = {
  program: findProgram('script'),
  remedy: 'script (apt-get install bsdutils)',
};

describe('the operator program', () => {
  const { value, parts } = setUpOperator();
  const program = () => operatorProgramWith(variablesOf(parts().database));
  const add = (name: string) => `accounts add --email ${name}@example.test --name ${name}`;

  it('the operator program reads standard input, and exits with 0 after all output is written', async () => {
    const ada = await valueFrom(program(), add('ada'), { input: 'a password of ada’s\n' });
    expect((await value('accounts list'))[0]).to.deep.include(ada);
    // Enough lines to exceed the buffer of a pipe.
    const lines = Array.from({ length: 3_000 }, (_, at) => JSON.stringify(organization(`O${at}`)));
    const { counts } = await valueFrom(program(), 'import -', { input: lines.join('\n') });
    expect(counts.organizations).to.include({ added: 3_000 });
    const listed = await valueFrom(program(), 'organizations list');
    expect(listed).to.have.length(3_000);
    // A reader that closes the pipe early causes neither a failure nor a message.
    const line = `"$0" "$1" organizations list --json | head -c 1; echo " \${PIPESTATUS[0]}"`;
    const shell = spawn('bash', ['-c', line, process.execPath, OPERATOR_PROGRAM], {
      env: { ...process.env, ...COMPILE_CACHE, ...variablesOf(parts().database) },
    });
    const printed = await Promise.all([text(shell.stdout), text(shell.stderr)]);
    expect(printed).to.deep.equal(['[ 0\n', '']);
  });

  it('the operator program exits with 1 for a refusal, 2 for wrong usage and 3 for wrong settings', async () => {
    const { code } = await refusalFrom(program(), 'accounts suspend nobody@example.test');
    expect(code).to.equal('account_unknown');
    const usage = await program()('accounts ad');
    expect(usage).to.include({ exitCode: 2, output: '' });
    expect(usage.errors).to.contain('Did you mean add?');
    const settings = await operatorProgramWith({ PORT: 'eighty' })('accounts list');
    expect(settings).to.include({ exitCode: 3, output: '' });
    expect(settings.errors).to.contain('eighty');
  });

  it('a command run by npm prints only one JSON value and passes on the exit code', async () => {
    const words = 'run --silent operator -- accounts suspend nobody@example.test --json';
    const child = spawn('npm', words.split(' '), {
      cwd: path.join(import.meta.dirname, '../..'),
      env: { ...process.env, ...COMPILE_CACHE, ...variablesOf(parts().database) },
    });
    const ended = new Promise((resolve) => child.once('close', resolve));
    const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr)]);
    expect(JSON.parse(output).error).to.include({ code: 'account_unknown' });
    expect(errors).to.match(/^Acting on .*\n$/);
    expect(await ended).to.equal(1);
  });

  describeOn([script], 'on a terminal', () => {
    /** Types each line after its question appears. `shown` also contains what the terminal echoes. */
    function onTerminal(
      words: string,
      typed: readonly (readonly [question: string, line: string])[],
    ): Promise<{ exitCode: number; shown: string }> {
      const command = `${process.execPath} ${OPERATOR_PROGRAM} ${words}`;
      const args = ['--quiet', '--return', '--command', command, '/dev/null'];
      const env = { ...COMPILE_CACHE, ...variablesOf(parts().database) };
      return new Promise((resolve) => {
        const terminal = execFile(required(script), args, { env }, (error, shown) =>
          resolve({ exitCode: Number(error?.code ?? 0), shown }),
        );
        const rest = [...typed];
        terminal.stdout?.on('data', (shown: string) => {
          const [question, line] = rest[0] ?? [''];
          if (line === undefined || !shown.includes(question)) return;
          rest.shift();
          terminal.stdin?.write(line);
        });
      });
    }

    it('on a terminal an irreversible command runs after "yes", and not after Ctrl-C', async () => {
      const { id } = await value('clients add --kind machine --name Robot');
      const find = () => createClientRegistry(parts()).find(id);
      const question = 'Type yes to continue:';
      const no = await onTerminal(`clients delete ${id}`, [[question, '\x03']]);
      expect(no.shown).to.contain('Nothing was changed.');
      expect(no.exitCode).to.equal(1);
      expect(await find()).to.be.an('object');
      const yes = await onTerminal(`clients delete ${id}`, [[question, 'yes\n']]);
      expect(yes.shown).to.contain(`Deleted client ${id}: Robot.`);
      expect(yes.exitCode).to.equal(0);
      expect(await find()).to.equal(undefined);
    });

    it('on a terminal a command asks for a password twice and for a token once, without echo', async () => {
      const typed = 'seven green forklifts\n';
      const added = await onTerminal(add('bob'), [
        ['Password: ', typed],
        ['Repeat it: ', typed],
      ]);
      expect(added.shown).to.contain('Added account').and.not.contain('forklifts');
      expect(added.exitCode).to.equal(0);
      const token = withChecksum(`gate_at_${'x'.repeat(89)}`);
      const answer = await onTerminal('show', [['Token (hidden): ', `${token}\n`]]);
      expect(answer.shown).to.contain('Access token: unknown').and.not.contain(token);
      expect(answer.exitCode).to.equal(0);
    });
  });
});
