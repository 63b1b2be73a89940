/** A real process: hundreds of clients that send a byte a second delay no others, and are disconnected. */
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { freePort, type Program, startProgram } from '../support/programs.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const MAIN = new URL('../../src/main.ts', import.meta.url).pathname;
const SLOW = 500;

describe('node src/main.ts withstands slow clients', () => {
  let program: Program;
  let issuer: string;
  const sockets: Socket[] = [];

  before(async () => {
    const PORT = String(await freePort());
    issuer = `http://localhost:${PORT}`;
    const cwd = temporaryDirectory('slow');
    const ports = { PORT, GATEHOUSE_OPERATORS_PORT: '0' };
    program = startProgram(process.execPath, [MAIN], {
      cwd,
      environment: { ...ports, GATEHOUSE_LOG_LEVEL: 'silent', GATEHOUSE_DATA_DIR: `${cwd}/data` },
    });
    await program.waitUntil(() => fetch(`${issuer}/login`));
  });
  after(() => {
    for (const socket of sockets) socket.destroy();
    return program.end('SIGKILL');
  });

  it('the service answers other clients while 500 sockets send slowly, and closes those sockets', async () => {
    const { port } = new URL(issuer);
    let open = 0;
    let closed = 0;
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
        closed += 1;
      });
    }
    const drip = setInterval(() => {
      for (const socket of sockets) if (socket.writable) socket.write('x');
    }, 1_000);

    const statuses = new Set<number>();
    let meanwhile = 0;
    // In production a client has 10 s for the headers, checked every 2 s: a slow machine may need twelve times that.
    const deadline = performance.now() + 150_000;
    // A slow machine may close the first sockets before the last ones are open.
    const areMany = () => open > SLOW / 2;
    do {
      const wereMany = areMany();
      const response = await fetch(`${issuer}/login`);
      await response.text();
      statuses.add(response.status);
      if (wereMany && areMany()) meanwhile += 1;
      await delay(50);
    } while (closed < SLOW && performance.now() < deadline);
    clearInterval(drip);

    expect(closed).to.equal(SLOW);
    // The system may discard the answer to a socket that is still sending.
    expect(refused).to.be.above(0);
    expect([...statuses]).to.deep.equal([200]);
    expect(meanwhile).to.be.above(0);
  });
});
