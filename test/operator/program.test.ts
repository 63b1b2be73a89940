/** The operator program as a real process: `node src/operator/main.ts`. `program.slow.ts` starts it by npm and on a terminal. */
import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { line } from '../import/import-file.ts';
import { COMPILE_CACHE } from '../support/programs.ts';
import { setUpOperator } from './operator-suite.ts';
import { OPERATOR_PROGRAM, operatorProgramWith, valueFrom, variablesOf } from './run-operator.ts';

const { organization } = line;

describe('the operator program', () => {
  const { parts } = setUpOperator();
  const program = () => operatorProgramWith(variablesOf(parts().database));

  it('the operator program reads standard input, and exits with 0 after all output is written', async () => {
    // Enough lines to exceed the buffer of a pipe.
    const lines = Array.from({ length: 1_000 }, (_, at) => JSON.stringify(organization(`O${at}`)));
    const { counts } = await valueFrom(program(), 'import -', { input: lines.join('\n') });
    expect(counts.organizations).to.include({ added: 1_000 });
    const listed = await valueFrom(program(), 'organizations list');
    expect(listed).to.have.length(1_000);
    // A reader that closes the pipe early causes neither a failure nor a message.
    const line = `"$0" "$1" organizations list --json | head -c 1; echo " \${PIPESTATUS[0]}"`;
    const shell = spawn('bash', ['-c', line, process.execPath, OPERATOR_PROGRAM], {
      env: { ...process.env, ...COMPILE_CACHE, ...variablesOf(parts().database) },
    });
    const printed = await Promise.all([text(shell.stdout), text(shell.stderr)]);
    expect(printed).to.deep.equal(['[ 0\n', '']);
  });
});
