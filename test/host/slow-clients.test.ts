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

  it('answers a hundred requests a second as ever while 500 sockets drip, and closes them all', async () => {
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

    const statuses = new Map<number, number>();
    const asking = new Set<Promise<void>>();
    let most = 0;
    // The usual limits: 10 s for the headers, looked at every 2 s.
    const deadline = performance.now() + 16_000;
    do {
      const asked = fetch(`${issuer}/login`).then(async (response) => {
        await response.text();
        statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
        asking.delete(asked);
      });
      asking.add(asked);
      most = Math.max(most, open);
      await delay(10);
    } while ((open > 0 || most < SLOW) && performance.now() < deadline);
    clearInterval(drip);
    await Promise.all(asking);

    expect(most).to.equal(SLOW);
    expect([open, refused]).to.deep.equal([0, SLOW]);
    expect([...statuses.keys()]).to.deep.equal([200]);
    expect(statuses.get(200)).to.be.above(300);
  });
});
