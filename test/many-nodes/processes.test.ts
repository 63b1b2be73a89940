/** How many processes a node may have, and what the operator is told where none answers. */
import { availableParallelism } from 'node:os';
import { expect } from 'chai';
import { keysOfEnvironment, problemsOf, settingsOf } from '../config/configuration.ts';
import { operatorWith, valueFrom } from '../operator/run-operator.ts';
import { freePort } from '../support/programs.ts';

describe('server.processes', () => {
  it('more than one, or auto, is refused on the embedded database, which one process owns', () => {
    for (const processes of ['2', 'auto']) {
      const [problem] = problemsOf(`server:\n  processes: ${processes}\n`);
      expect(problem?.path).to.equal('server.processes');
      expect(problem?.remedy).to.include('DATABASE_URL');
    }
  });

  it('auto is one for each processor core', () => {
    const environment = { ...keysOfEnvironment, DATABASE_URL: 'postgres://localhost/gatehouse' };
    const { server } = settingsOf('server:\n  processes: auto\n', environment);
    expect(server.processes).to.equal(availableParallelism());
  });
});

describe('operator reload', () => {
  it('where nothing answers, or the port is not known, says so and what to do', async () => {
    const port = String(await freePort());
    const nobody = operatorWith({ GATEHOUSE_OPERATORS_PORT: port });
    const { error } = await valueFrom(nobody, ['reload'], { exitCode: 1 });
    expect(error.code).to.equal('not_running');
    expect(error.message).to.include(port);
    const anyPort = operatorWith({ GATEHOUSE_OPERATORS_PORT: '0' });
    const unknown = await valueFrom(anyPort, ['reload'], { exitCode: 1 });
    expect(unknown.error.code).to.equal('unknown_port');
    expect(unknown.error.remedy).to.include('SIGHUP');
  });
});
