/** The log of a process is written in batches, and yet its last lines are there when it has ended. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { freePort } from './support/programs.ts';
import { temporaryDirectory } from './support/temporary-directory.ts';

const SOURCE = path.join(import.meta.dirname, '..', 'src');
const MANY = 300;

interface Ended {
  readonly lines: readonly Record<string, unknown>[];
  readonly exitCode: number | null;
}

/** Runs a program whose `log` is that of a process. */
async function logOf(program: string): Promise<Ended> {
  const head = `import { createProcessLog } from '${SOURCE}/processes/process-log.ts';
    const log = createProcessLog('info');
    const many = () => { for (let n = 0; n < ${MANY}; n += 1) log.info({ n }, 'line'); };`;
  const args = ['--input-type=module-typescript', '--eval', head + program];
  return ended(spawn(process.execPath, args));
}

async function ended(child: ReturnType<typeof spawn>): Promise<Ended> {
  child.stdin?.end();
  const output = child.stdout ? text(child.stdout) : '';
  const [exitCode] = await once(child, 'close');
  const lines = (await output).split('\n').filter((line) => line !== '');
  return { exitCode, lines: lines.map((line) => JSON.parse(line)) };
}

const numbers = ({ lines }: Ended) => lines.filter(({ msg }) => msg === 'line').map(({ n }) => n);
const all = Array.from({ length: MANY }, (_, n) => n);

describe('the log of a process', () => {
  it('is whole and in order after process.exit', async () => {
    const run = await logOf('many(); process.exit(3);');
    expect(run.exitCode).to.equal(3);
    expect(numbers(run)).to.deep.equal(all);
  });

  it('is whole after an exception that nobody caught, and ends with it', async () => {
    const run = await logOf('many(); setImmediate(() => { throw new Error("unheard of"); });');
    expect(run.exitCode).to.equal(1);
    expect(numbers(run)).to.deep.equal(all);
    expect(run.lines.at(-1)).to.include({ level: 60, msg: 'the process ends' });
    expect(run.lines.at(-1)?.err).to.include({ message: 'unheard of' });
  });

  it('has what is wrong at once, even if the process is killed the next moment', async () => {
    const killed = 'setTimeout(() => process.kill(process.pid, "SIGKILL"), 50);';
    const wrong = await logOf(`log.info('before'); log.warn('wrong'); ${killed}`);
    expect(wrong.lines.map(({ msg }) => msg)).to.deep.equal(['before', 'wrong']);
    // To show that it was not the batch being full.
    const right = await logOf(`log.info('before'); ${killed}`);
    expect(right.lines).to.deep.equal([]);
  });

  it('of the service has the line of every request it answered before SIGTERM', async () => {
    const port = await freePort();
    const environment = {
      GATEHOUSE_DATA_DIR: path.join(temporaryDirectory('process-log'), 'data'),
      GATEHOUSE_OPERATORS_PORT: '0',
      PORT: String(port),
    };
    const child = spawn(process.execPath, [path.join(SOURCE, 'main.ts')], { env: environment });
    try {
      const run = ended(child);
      while (!String(await once(child.stderr, 'data')).includes('Gatehouse answers at '));
      const ids: (string | null)[] = [];
      for (let index = 0; index < 50; index += 1) {
        const answer = await fetch(`http://localhost:${port}/login`);
        await answer.text();
        ids.push(answer.headers.get('x-request-id'));
      }
      child.kill('SIGTERM');
      const { exitCode, lines } = await run;
      expect(exitCode).to.equal(0);
      const logged = lines.filter(({ path }) => path === '/login');
      expect(logged.map(({ requestId }) => requestId)).to.deep.equal(ids);
      expect(lines.map(({ msg }) => msg)).to.include.members(['started', 'closing']);
    } finally {
      child.kill('SIGKILL');
    }
  });
});
