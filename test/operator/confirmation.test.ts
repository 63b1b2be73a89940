import { execFile } from 'node:child_process';
import { expect } from 'chai';
import { findProgram } from '../support/programs.ts';
import { describeOn, type Requirement, required } from '../support/requirements.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { OPERATOR_PROGRAM, operatorBeside, type RunOperator, valueFrom } from './run-operator.ts';

/** util-linux: runs a command on a terminal of its own. */
const script: Requirement = {
  program: findProgram('script'),
  remedy: 'script (apt-get install bsdutils)',
};

describe('what cannot be undone', () => {
  let service: TestService;
  let run: RunOperator;
  let id: string;

  before(async () => {
    service = await startTestService();
    run = operatorBeside(service);
    const { client } = await service.clients.add({
      ...{ kind: 'machine', name: 'Robot', redirectUris: [], isNative: false },
    });
    id = client.id;
  });
  after(() => service.close());

  const isThere = async () => (await service.clients.find(id)) !== undefined;

  it('is refused where nobody can be asked, and nothing is changed', async () => {
    // Nor does a yes on standard input count: only --yes says that it was meant.
    const input = 'yes\n';
    const { error } = await valueFrom(run, ['clients', 'delete', id], { exitCode: 1, input });
    expect(error).to.deep.equal({
      code: 'confirmation_needed',
      message: 'Deletes Robot and disconnects the 0 people who use it. This cannot be undone.',
      remedy: 'Add --yes.',
    });
    expect(await isThere()).to.equal(true);
  });

  it('is refused before it is asked about where it is not there at all', async () => {
    const missing = ['clients', 'delete', 'gate_ci_0000000000000000000000'];
    const { error } = await valueFrom(run, missing, { exitCode: 1 });
    expect(error.code).to.equal('client_unknown');
  });

  describeOn([script], 'on a terminal', () => {
    /** Types these lines; the terminal shows what is typed and what is printed. */
    function onTerminal(args: readonly string[], typed: string): Promise<[number, string]> {
      const command = [process.execPath, OPERATOR_PROGRAM, ...args].join(' ');
      return new Promise((resolve) => {
        const terminal = execFile(
          required(script),
          ['--quiet', '--return', '--command', command, '/dev/null'],
          { env: { GATEHOUSE_DATA_DIR: service.settings.storage.dataDirectory } },
          (error, stdout) => resolve([Number(error?.code ?? 0), stdout]),
        );
        terminal.stdout?.on('data', (shown: string) => {
          if (shown.includes('Type yes to go on:')) terminal.stdin?.write(typed);
        });
      });
    }

    it('is done once "yes" was typed, and not for another answer', async () => {
      for (const no of ['n\n', 'y\n', '\n', '\x04', '\x03']) {
        const [exitCode, shown] = await onTerminal(['clients', 'delete', id], no);
        expect(exitCode, JSON.stringify(no)).to.equal(1);
        expect(shown).to.contain('Nothing was changed.');
      }
      expect(await isThere()).to.equal(true);
      const [exitCode, shown] = await onTerminal(['clients', 'delete', id], 'yes\n');
      expect(shown).to.contain(`Deleted client ${id}: Robot.`);
      expect(exitCode).to.equal(0);
      expect(await isThere()).to.equal(false);
    });
  });
});
