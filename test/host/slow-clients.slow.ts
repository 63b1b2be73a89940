/** Hundreds of clients that send a byte a second do not hold up the others, and are cut (a real process). */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { freePort } from '../support/programs.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const MAIN = new URL('../../src/main.ts', import.meta.url).pathname;
const SLOW = 500;

describe('node src/main.ts under slow clients', () => {
  let child: ChildProcess;
  let issuer: string;
  const sockets: Socket[] = [];

  before(async () => {
    const PORT = String(await freePort());
    issuer = `http://localhost:${PORT}`;
    child = spawn(process.execPath, [MAIN], {
      env: {
        ...{ PORT, GATEHOUSE_OPERATORS_PORT: '0', GATEHOUSE_LOG_LEVEL: 'silent' },
        GATEHOUSE_DATA_DIR: path.join(temporaryDirectory('slow'), 'data'),
      },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    // It says where it answers.
    await once(child.stderr as NodeJS.ReadableStream, 'data');
  });
  after(() => {
    for (const socket of sockets) socket.destroy();
    child.kill('SIGKILL');
  });

  /** Asks one after the other until that is over. @returns how many answers a second there were. */
  async function answersPerSecond(isOver: () => boolean): Promise<number> {
    const begin = performance.now();
    let answered = 0;
    do {
      const response = await fetch(`${issuer}/login`);
      await response.text();
      expect(response.status).to.equal(200);
      answered += 1;
      await delay(10);
    } while (!isOver());
    return (1_000 * answered) / (performance.now() - begin);
  }

  it('answers others as ever while 500 sockets drip, and closes them all', async () => {
    let asked = 0;
    await answersPerSecond(() => ++asked > 50);
    asked = 0;
    const undisturbed = await answersPerSecond(() => ++asked > 200);

    const { port } = new URL(issuer);
    let open = 0;
    let refused = 0;
    for (let index = 0; index < SLOW; index += 1) {
      const socket = connect(Number(port), 'localhost');
      sockets.push(socket);
      socket.on('error', () => {});
      socket.on('connect', () => {
        open += 1;
        socket.write('GET /login HTTP/1.1\r\nX-Slow: ');
      });
      socket.on('data', (chunk: Buffer) => {
        if (`${chunk}`.startsWith('HTTP/1.1 408 ')) refused += 1;
      });
      socket.on('close', () => {
        open -= 1;
      });
    }
    const drip = setInterval(() => {
      for (const socket of sockets) if (socket.writable) socket.write('x');
    }, 1_000);

    let most = 0;
    // The usual limits are 10 s for the headers, looked at every 2 s.
    const disturbed = await answersPerSecond(() => {
      most = Math.max(most, open);
      return open === 0 && most === SLOW;
    });
    clearInterval(drip);

    expect(refused).to.equal(SLOW);
    // As many, but for what else the machine does in the meantime.
    expect(disturbed).to.be.above(undisturbed / 4);
  });
});
