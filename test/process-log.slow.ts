/** The log of a process is written in batches, but its last lines are not lost when it ends. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { COMPILE_CACHE } from './support/programs.ts';

const PROCESS_LOG = new URL('../src/host/process-log.ts', import.meta.url).href;
const MANY = 300;

interface Ended {
  readonly lines: readonly Record<string, unknown>[];
  readonly exitCode: number | null;
}

/** Runs a program with a `log` from `createProcessLog`. */
async function logOf(program: string): Promise<Ended> {
  const head = `import { createProcessLog } from '${PROCESS_LOG}';
    const log = createProcessLog({ level: 'info' });
    const many = () => { for (let n = 0; n < ${MANY}; n += 1) log.info({ n }, 'line'); };`;
  const args = ['--input-type=module-typescript', '--eval', head + program];
  const child = spawn(process.execPath, args, { env: { ...process.env, ...COMPILE_CACHE } });
  child.stdin.end();
  const output = text(child.stdout);
  const [exitCode] = await once(child, 'close');
  const lines = (await output).split('\n').filter((line) => line !== '');
  return { exitCode, lines: lines.map((line) => JSON.parse(line)) };
}

const numbers = ({ lines }: Ended) => lines.filter(({ msg }) => msg === 'line').map(({ n }) => n);
const all = Array.from({ length: MANY }, (_, n) => n);

describe('a process completes its log before a crash, and counts the lines that it must drop', () => {
  it('the log is complete after an uncaught exception, and ends with the exception', async () => {
    const run = await logOf('many(); setImmediate(() => { throw new Error("unheard of"); });');
    expect(run.exitCode).to.equal(1);
    expect(numbers(run)).to.deep.equal(all);
    expect(run.lines.at(-1)).to.include({
      level: 60,
      msg: 'the process exits after an unexpected error',
    });
    expect(run.lines.at(-1)?.err).to.include({ message: 'unheard of' });
  });

  it('while the log cannot be written, lines are buffered, further ones are dropped and counted, and nothing throws', async () => {
    const run = await logOf(`
      import { droppedLogLines } from '${PROCESS_LOG}';
      import fs from 'node:fs';
      const { writeSync } = fs;
      const full = () => { throw Object.assign(new Error('no space'), { code: 'ENOSPC' }); };
      log.info({ n: 0 }, 'line');
      fs.writeSync = full;
      log.info({ n: 1 }, 'line');
      for (let n = 2; n < 20_000; n += 1) log.warn({ n }, 'line');
      const waiting = droppedLogLines();
      fs.writeSync = writeSync;
      log.warn('again');
      setImmediate(() => log.info({ dropped: droppedLogLines(), waiting }, 'end'));`);
    expect(run.exitCode).to.equal(0);
    const end = run.lines.find(({ msg }) => msg === 'end') ?? {};
    const { dropped } = end;
    expect(end.waiting).to.be.within(1_000, 19_000);
    // The line after them is dropped as well, if it does not fit behind those that wait.
    expect(Number(dropped) - Number(end.waiting)).to.be.oneOf([0, 1]);
    const kept = Array.from({ length: 20_000 - Number(end.waiting) }, (_, n) => n);
    expect(numbers(run)).to.deep.equal(kept);
    const [{ lines } = {}] = run.lines.filter(({ msg }) => msg === 'log lines were dropped');
    expect(lines).to.equal(dropped);
  });

  it('warnings are written to the log at once, even if the process is killed immediately afterwards', async () => {
    const killed = 'process.kill(process.pid, "SIGKILL");';
    const run = await logOf(`log.info('before'); log.warn('wrong'); log.info('after'); ${killed}`);
    // The last line is missing: this proves that not every line is written immediately.
    expect(run.lines.map(({ msg }) => msg)).to.deep.equal(['before', 'wrong']);
  });
});
