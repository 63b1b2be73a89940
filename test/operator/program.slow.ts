/** The operator program started by npm, and on a terminal. */
import { execFile, spawn } from 'node:child_process';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { withChecksum } from '../../src/base/random-id.ts';
import { COMPILE_CACHE, findProgram } from '../support/programs.ts';
import { describeOn, type Requirement, required } from '../support/requirements.ts';
import { setUpOperator } from './operator-suite.ts';
import { OPERATOR_PROGRAM, variablesOf } from './run-operator.ts';

/** The program `script` of util-linux, which runs a command on a terminal of its own. */
const script: Requirement = {
  program: findProgram('script'),
  remedy: 'script (apt-get install bsdutils)',
};

describe('the operator program in a shell', () => {
  const { parts } = setUpOperator();

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
        let unanswered = '';
        terminal.stdout?.on('data', (shown: string) => {
          unanswered += shown;
          const [question, line] = rest[0] ?? [''];
          if (line === undefined || !unanswered.includes(question)) return;
          unanswered = '';
          rest.shift();
          terminal.stdin?.write(line);
        });
      });
    }

    it('on a terminal a command asks for a password twice and for a token once, without echo', async () => {
      const typed = 'seven green forklifts\n';
      const added = await onTerminal('accounts add --email bob@example.test --name bob', [
        ['Password: ', typed],
        ['Repeat it: ', typed],
      ]);
      expect(added.shown).to.contain('Added account').and.not.contain('forklifts');
      expect(added.exitCode).to.equal(0);
      const token = withChecksum(`gate_at_${'x'.repeat(89)}`);
      const answer = await onTerminal('show', [['show - < FILE): ', `${token}\n`]]);
      expect(answer.shown).to.contain('Access token: unknown').and.not.contain(token);
      expect(answer.exitCode).to.equal(0);
    });
  });
});
