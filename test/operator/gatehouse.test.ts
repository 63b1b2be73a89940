/** `gatehouse`, the command on a machine where systemd runs the service: a stub replaces systemctl. */
import { spawn } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { readAssignments, readEnvironmentFile } from '../../src/operator/environment-file.ts';
import { COMPILE_CACHE, runsAsRoot } from '../support/programs.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { setUpOperator } from './operator-suite.ts';
import { variablesOf } from './run-operator.ts';

/** A symbolic link, as in /usr/local/bin. */
const GATEHOUSE = path.join(temporaryDirectory('link'), 'gatehouse');
symlinkSync(path.join(import.meta.dirname, '../../bin/gatehouse'), GATEHOUSE);

describe('the program `gatehouse` uses the environment of the systemd unit', () => {
  const { parts } = setUpOperator();
  const folder = temporaryDirectory('gatehouse');

  /** @param shown the output of `systemctl show` for the unit. */
  async function gatehouse(shown: string, words: string[], environment = {}, cwd = folder) {
    const programs = path.join(folder, 'bin');
    mkdirSync(programs, { recursive: true });
    const stub = `#!/bin/sh\n[ "$1" = show ] || exit 0\ncat <<'END'\n${shown}\nEND\n`;
    writeFileSync(path.join(programs, 'systemctl'), stub, { mode: 0o755 });
    const child = spawn(GATEHOUSE, words, {
      cwd,
      env: { ...COMPILE_CACHE, PATH: `${programs}:${process.env.PATH}`, ...environment },
    });
    const ended = new Promise((resolve) => child.once('close', resolve));
    const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr)]);
    return { exitCode: await ended, output, errors };
  }

  function unit(variables: Readonly<Record<string, string>>): string {
    const file = path.join(folder, 'environment');
    const lines = Object.entries(variables).map(([name, value]) => `${name}=${value}`);
    writeFileSync(file, `# The stores.\n${lines.join('\n')}\n`);
    return `LoadState=loaded\nEnvironment=A=1\nEnvironmentFiles=${file} (ignore_errors=no)\nUser=`;
  }

  it('`gatehouse` uses the stores in the environment file of the systemd unit', async () => {
    const words = ['organizations', 'add', '--name', 'Harbour'];
    const answer = await gatehouse(unit(variablesOf(parts().database)), words);
    expect(answer, answer.errors).to.have.property('exitCode', 0);
    expect(answer.errors).to.match(/^Acting on /);
    const rows = await parts().database.query<{ name: string }>('SELECT name FROM organizations');
    expect(rows.map(({ name }) => name)).to.include('Harbour');
  });

  it('`gatehouse` prefers the stores in its own environment to those of the systemd unit', async () => {
    const data = path.join(folder, 'elsewhere');
    const shown = unit(variablesOf(parts().database));
    const answer = await gatehouse(shown, ['accounts', 'list'], { GATEHOUSE_DATA_DIR: data });
    expect(answer.exitCode).to.equal(2);
    expect(answer.errors).to.contain(data);
  });

  it('`gatehouse` reports an unreadable environment file of the systemd unit', async () => {
    const shown = 'LoadState=loaded\nEnvironmentFiles=/nowhere/at/all (ignore_errors=no)\nUser=';
    const { exitCode, errors } = await gatehouse(shown, ['accounts', 'list']);
    expect({ exitCode, errors }).to.deep.equal({
      exitCode: 1,
      errors:
        'The environment of the service, /nowhere/at/all, cannot be read (ENOENT).\n' +
        'Create the file: see the example deploy/systemd/environment (docs/operations/deploy.md lists what else is needed).\n',
    });
  });

  describe('gatehouse, run as root', () => {
    before(function () {
      if (!runsAsRoot) this.skip();
    });

    it('`gatehouse` run as root reports that the user of the systemd unit does not exist', async () => {
      const shown = `${unit({})}nosuchuser`;
      const { exitCode, errors } = await gatehouse(shown, ['accounts', 'list']);
      expect(exitCode).to.equal(1);
      expect(errors).to.match(/^The user of the service, nosuchuser, does not exist .*\nCreate the user with /);
    });

    it('`gatehouse` works in a directory that the user of the systemd unit may not enter, such as /root', async () => {
      const closed = path.join(folder, 'closed');
      mkdirSync(closed, { recursive: true, mode: 0o700 });
      const shown = `${unit({})}nobody`;
      const { exitCode, output, errors } = await gatehouse(shown, ['--version'], {}, closed);
      expect({ exitCode, errors }).to.deep.equal({ exitCode: 0, errors: '' });
      expect(output).to.match(/^\d/);
    });
  });
});

describe('an environment file', () => {
  it('`gatehouse` parses an environment file as systemd does', () => {
    const file = `
# a comment
; another
A=1
  B = no variable
C=value # part of it
D="two words" and 'three more words'
E=a\\ b
F=first \\
second
G=
`;
    expect(readEnvironmentFile(file)).to.deep.equal({
      A: '1',
      C: 'value # part of it',
      D: 'two words and three more words',
      E: 'a b',
      F: 'first second',
      G: '',
    });
  });

  it('`gatehouse` parses the environment in the output of `systemctl show` as systemd does', () => {
    const shown = 'A=1 "B=two words" C=x\\ y "D=a\\"b"';
    expect(readAssignments(shown)).to.deep.equal({ A: '1', B: 'two words', C: 'x y', D: 'a"b' });
  });
});
