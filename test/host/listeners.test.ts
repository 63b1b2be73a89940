/** Slow, broken and excessive connections are refused or closed, and logged without content. */
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import { connect, type Socket } from 'node:net';
import { expect } from 'chai';
import {
  addressOf,
  createDeparture,
  drain,
  type ListenOptions,
  listen,
  listenOnHost,
} from '../../src/host/listeners.ts';
import { failureOf } from '../storage/waiting.ts';
import { eventually } from '../support/eventually.ts';
import { PATIENCE_MS, TIMEOUT_FACTOR } from '../support/timeout-factor.ts';

/** Limits in the proportions of production, but much shorter. */
const LIMITS = {
  headersTimeout: 300,
  requestTimeout: 400,
  connectionsCheckingInterval: 50,
  idleTimeout: 500,
} as const;

/** The limits of production, which no test reaches, however busy the machine is. */
const USUAL = {};

describe('a listener on localhost uses both loopback addresses or none', () => {
  const taken: Server[] = [];
  afterEach(() => Promise.all(taken.splice(0).map(drain)));

  const listenOnLocalhost = async (port = 0) => {
    const servers = await listenOnHost((_, response) => response.end('here'), port, 'localhost');
    taken.push(...servers);
    return new URL(addressOf(servers[0])).port;
  };

  it('a server listening on localhost answers at both loopback addresses, on one port', async () => {
    const port = await listenOnLocalhost();
    for (const host of ['127.0.0.1', '[::1]', 'localhost']) {
      expect(await (await fetch(`http://${host}:${port}/`)).text(), host).to.equal('here');
    }
  });

  it('a server listening on 0.0.0.0 can be reached at every address, not only at loopback', async () => {
    const servers = await listenOnHost((_, response) => response.end('here'), 0, '0.0.0.0');
    taken.push(...servers);
    const { port } = new URL(addressOf(servers[0]));
    expect(await (await fetch(`http://127.0.0.2:${port}/`)).text()).to.equal('here');
    expect(servers.map((server) => (server.address() as { address: string }).address)).to.deep.equal(['0.0.0.0']);
  });

  it('a listener on localhost uses neither address if the port of one is in use', async () => {
    const other = await listen((_, response) => response.end('other'), 0, '::1');
    taken.push(other);
    const { port } = new URL(addressOf(other));
    expect(await failureOf(listenOnLocalhost(Number(port)))).to.include({ code: 'EADDRINUSE' });
    // Listening succeeds only if the port of the other address is free again.
    taken.push(await listen((_, response) => response.end(), Number(port), '127.0.0.1'));
  });
});
/** Waits, without a turn of the event loop, until the system has opened this many connections to the port. */
function untilOpened(port: number, count: number): void {
  const place = '/proc/net/tcp';
  // Elsewhere than on Linux: on loopback they are usually open at once.
  if (!existsSync(place)) return;
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  const open = new RegExp(`^ *\\d+: [0-9A-F]+:${hex} [0-9A-F]+:[0-9A-F]+ 01 `, 'gm');
  const deadline = performance.now() + PATIENCE_MS;
  while ((readFileSync(place, 'utf8').match(open)?.length ?? 0) < count) {
    if (performance.now() > deadline) throw new Error('the system does not open the connections');
  }
}

/** The body of every answer. */
const BODY = 'x'.repeat(100_000);

describe('a listener disconnects slow clients, and loses no answer when it shuts down', () => {
  const servers: Server[] = [];
  const sockets: Socket[] = [];
  let logged: { level: string; text: string }[];

  beforeEach(() => {
    logged = [];
  });
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    await Promise.all(servers.splice(0).map(drain));
  });

  const record = (level: string) => (details: object, message: string) =>
    void logged.push({ level, text: `${message} ${JSON.stringify(details)}` });

  async function open(options: ListenOptions = {}): Promise<number> {
    const log = { info: record('info'), warn: record('warn') } as unknown as NonNullable<ListenOptions['log']>;
    const server = await listen(
      (asked, response) => {
        asked.resume().on('end', () => response.end('x'.repeat(asked.url === '/large' ? 20_000_000 : BODY.length)));
      },
      0,
      '127.0.0.1',
      { limits: LIMITS, log, ...options },
    );
    servers.push(server);
    const address = server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  const listening = () => servers[0] as Server;

  const connections = (): Promise<number> =>
    new Promise((resolve, reject) => {
      listening().getConnections((error, count) => (error ? reject(error) : resolve(count)));
    });

  /** Opens a connection that sends this text, and keeps the reply. */
  function send(port: number, text: string) {
    const socket = connect(port, '127.0.0.1');
    sockets.push(socket);
    let reply = '';
    socket.on('error', () => {});
    socket.on('data', (chunk: Buffer) => {
      reply += chunk.toString('latin1');
    });
    socket.write(text);
    return { socket, reply: () => reply, end: once(socket, 'close') };
  }

  const HEAD = 'POST /a?code=gate_ac_secret HTTP/1.1\r\nHost: x\r\n';

  // `slow-clients.slow.ts` sends byte by byte.
  it('a listener allows ten seconds for the headers and fifteen for a request', async () => {
    const server = await listen(() => {}, 0, '127.0.0.1');
    servers.push(server);
    const { headersTimeout, requestTimeout, timeout, keepAliveTimeout } = server;
    expect({ headersTimeout, requestTimeout, timeout, keepAliveTimeout }).to.deep.equal({
      headersTimeout: 10_000,
      requestTimeout: 15_000,
      timeout: 20_000,
      keepAliveTimeout: 65_000,
    });
  });

  it('a client that sends no data is disconnected', async () => {
    await send(await open(), '').end;
  });

  it('a client that never reads the answer is disconnected', async () => {
    const { socket } = send(await open(), '');
    socket.pause();
    // Request far more than the socket buffers of the system can hold.
    socket.write('GET /large HTTP/1.1\r\nHost: x\r\n\r\n');
    await once(socket, 'connect');
    await eventually(async () => expect(await connections()).to.equal(0));
  });

  describe('a listener answers only the first of several pipelined requests on a connection', () => {
    let started: number;

    /** Answers each request a turn of the event loop later, `/streamed` in two parts, and counts the requests. */
    async function openCounting(): Promise<number> {
      started = 0;
      const server = await listen(
        (asked, response) => {
          started += 1;
          if (asked.url === '/streamed') {
            response.write('begun\n');
            asked.socket.once('pause', () => setImmediate(() => response.end('ended\n')));
          } else setImmediate(() => response.end(`${asked.url}\n`));
        },
        0,
        '127.0.0.1',
        { limits: { idleTimeout: 600_000 } },
      );
      servers.push(server);
      return Number(new URL(addressOf(server)).port);
    }

    const requests = (count: number): string =>
      Array.from({ length: count }, (_, index) => `GET /${index} HTTP/1.1\r\nHost: x\r\n\r\n`).join('');
    const answered = (reply: string): string[] => reply.match(/^\/\d+$/gm) ?? [];

    it('only the first of pipelined requests is started, and the connection ends after its answer', async () => {
      for (const count of [2, 2_000]) {
        const { reply, end } = send(await openCounting(), requests(count));
        await end;
        expect(answered(reply())).to.deep.equal(['/0']);
        expect(reply().match(/HTTP\/1\.1 /g)).to.have.length(1);
        expect(reply()).to.include('Connection: close');
        expect(started).to.equal(1);
      }
    });

    it('a connection that receives a second request during an answer closes after the whole answer, despite keep-alive', async () => {
      const { socket, reply, end } = send(await openCounting(), 'GET /streamed HTTP/1.1\r\nHost: x\r\n\r\n');
      await once(socket, 'data');
      socket.write(requests(1));
      await end;
      expect(reply())
        .to.include('Connection: keep-alive')
        .and.match(/begun\n\r\n6\r\nended\n\r\n0\r\n\r\n$/);
      expect(started).to.equal(1);
    });

    it('a client that waits for each answer gets all answers on one connection', async () => {
      const { socket, reply } = send(await openCounting(), '');
      for (let sent = 0; sent < 200; sent += 1) {
        socket.write(requests(1));
        while (answered(reply()).length <= sent) await once(socket, 'data');
      }
      expect(started).to.equal(200);
      expect(reply()).to.not.include('Connection: close');
    });

    it('if malformed input follows a request, the connection ends after the answer, without an error text', async () => {
      for (const broken of [
        'broken\r\n\r\n',
        'POST /3 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nbroken\r\n',
      ]) {
        const { reply, end } = send(await openCounting(), requests(1) + broken);
        await end;
        expect(reply(), broken).to.match(/^HTTP\/1\.1 200 .*\r\n\r\n(3\r\n)?\/0\n(\r\n0\r\n\r\n)?$/s);
      }
    });

    it('broken input in a request that is already answered ends the connection without a second answer', async () => {
      const begun = 'POST /0 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n';
      const { socket, reply, end } = send(await openCounting(), begun);
      await once(socket, 'data');
      socket.write('broken\r\n');
      await end;
      expect(reply().match(/HTTP\/1\.1 /g)).to.have.length(1);
    });

    it('CONNECT leaves no open connection, even if the client never reads the answer to an earlier request', async () => {
      // The answer exceeds the buffers of both sockets, and the usual limits end no connection within the test.
      const { socket } = send(await open({ limits: USUAL }), '');
      socket.pause();
      socket.write('GET /large HTTP/1.1\r\nHost: x\r\n\r\nCONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n');
      await once(listening(), 'connect');
      await eventually(async () => expect(await connections()).to.equal(0));
    });
  });

  const long = 'x'.repeat(17_000);
  const broken = {
    'text that is not HTTP': 'gate_cs_secret\r\n\r\n',
    'a TLS handshake': '\x16\x03\x01\x02\x00\x01\x00gate_cs_secret',
    'a malformed header': 'GET / HTTP/1.1\r\nHost: x\r\nAuthorization gate_cs_secret\r\n\r\n',
    'a request with two body lengths': `${HEAD}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`,
    'a header that is too large': `${HEAD}Authorization: Bearer gate_cs_secret${long}\r\n\r\n`,
    'a URL that is too long': `GET /?state=gate_cs_secret${long} HTTP/1.1\r\nHost: x\r\n\r\n`,
  };
  for (const [what, text] of Object.entries(broken)) {
    // Node.js reads at most 16 KiB of headers.
    const answer = text.length < 16_384 ? '400 Bad Request' : '431 Request Header Fields Too Large';
    it(`${what} is answered with ${answer}, and logged without its content`, async () => {
      const client = send(await open(), text);
      await client.end;
      const [head = '', body = ''] = client.reply().split('\r\n\r\n');
      expect(head).to.include(`HTTP/1.1 ${answer}\r\n`).and.to.include('\r\nConnection: close\r\n');
      const [, requestId = ''] = /X-Request-Id: (req_[0-9a-f]{16})/.exec(head) ?? [];
      expect(body).to.equal(`${answer.slice(4)} (${requestId})\n`);
      expect(logged.map(({ level }) => level)).to.deep.equal(['info']);
      expect(logged[0]?.text).to.include(requestId).and.to.include('"address":"127.0.0.1"');
      expect(JSON.stringify(logged)).not.to.match(/gate_|xxx|Authorization/);
    });
  }

  it('malformed input during an answer ends the connection, and never mixes two answers', async () => {
    const port = await open();
    const client = send(port, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    client.socket.write('broken\r\n\r\n');
    await client.end;
    // Expect a truncated answer, or a whole answer and then the refusal: never a refusal inside an answer.
    expect(client.reply()).to.match(/^(HTTP\/1\.1 200 .*?\r\n\r\n(x*|x{100000}HTTP\/1\.1 400 .*))?$/s);
  });

  it('nothing is logged when a client disconnects', async () => {
    const port = await open({ limits: USUAL });
    const { socket } = send(port, HEAD);
    await eventually(async () => expect(await connections()).to.equal(1));
    socket.resetAndDestroy();
    await eventually(async () => expect(await connections()).to.equal(0));
    expect(logged).to.deep.equal([]);
  });

  it('a listener that closes waits for pending answers, and breaks no connection', async () => {
    const port = await open({ limits: USUAL });
    const server = listening();
    let isCut = false;
    server.closeAllConnections = () => {
      isCut = true;
      Object.getPrototypeOf(server).closeAllConnections.call(server);
    };
    const { socket, reply, end } = send(port, `${HEAD}Content-Length: 1\r\n\r\n`);
    await once(server, 'request');
    const closed = drain(server);
    socket.write('x');
    await Promise.all([closed, end]);
    expect(reply())
      .to.match(/^HTTP\/1.1 200 /)
      .and.match(/x{1000}$/);
    expect(isCut).to.equal(false);
  });

  it('a listener that shuts down answers every connection made before its port closed', async () => {
    const port = await open({ limits: USUAL });
    const server = listening();
    const request = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
    const clients = Array.from({ length: 30 }, () => send(port, request));
    // Node.js has begun to connect them then, and has accepted none.
    await new Promise<void>((resolve) => process.nextTick(resolve));
    untilOpened(port, clients.length);
    const left = createDeparture().leave([server], { timeoutFactor: TIMEOUT_FACTOR });
    await Promise.all([left, ...clients.map(({ end }) => end)]);
    for (const { reply } of clients) expect(reply()).to.match(/^HTTP\/1.1 200 .*x{1000}$/s);
  });

  it('before a shutdown, each answer closes its connection, except in the second before the ports are closed', async () => {
    const { ServerResponse, leave } = createDeparture();
    const port = await open({ limits: USUAL, ServerResponse });
    const server = listening();
    const request = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
    const left = leave([server], { delayMs: 2_000 });
    const leaving = send(port, request);
    await leaving.end;
    expect(leaving.reply()).to.include('Connection: close\r\n');

    const kept = await eventually(async () => {
      const client = send(port, request);
      await eventually(() => expect(client.reply().endsWith(BODY)).to.equal(true));
      expect(client.reply()).to.include('Connection: keep-alive');
      return client;
    });
    await eventually(() => expect(server.listening).to.equal(false));
    kept.socket.write(request);
    await kept.end;
    expect(kept.reply()).to.include('Connection: close\r\n');
    expect(kept.reply().endsWith(BODY)).to.equal(true);
    await left;
  });

  it('a listener that shuts down answers one more request on a connection whose stream has just ended', async () => {
    const { ServerResponse, leave } = createDeparture();
    let endStream = (): void => {};
    const server = await listen(
      (request, response) => {
        response.write(request.url);
        if (request.url !== '/stream') response.end();
        else endStream = () => void response.end();
      },
      0,
      '127.0.0.1',
      { ServerResponse },
    );
    servers.push(server);
    const request = (target: string) => `GET ${target} HTTP/1.1\r\nHost: x\r\n\r\n`;
    const { reply, end, socket } = send(Number(new URL(addressOf(server)).port), request('/stream'));
    await eventually(() => expect(reply()).to.include('/stream'));
    const left = leave([server], {
      timeoutFactor: TIMEOUT_FACTOR,
      // The listener looks for idle connections after a second.
      onClosed() {
        setTimeout(() => endStream(), 900);
        setTimeout(() => socket.write(request('/later')), 1_010);
      },
    });
    await Promise.all([left, end]);
    expect(reply()).to.include('/later');
  });

  it('a listener that shuts down sends the whole answer to a client that reads it slowly, and closes idle connections meanwhile', async () => {
    const { ServerResponse, leave } = createDeparture();
    const port = await open({ limits: USUAL, ServerResponse });
    const server = listening();
    let sweeps = 0;
    server.closeIdleConnections = () => {
      sweeps += 1;
      Object.getPrototypeOf(server).closeIdleConnections.call(server);
    };
    const idle = send(port, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await eventually(() => expect(idle.reply().endsWith(BODY)).to.equal(true));
    // The answer exceeds the buffers of both sockets.
    const { socket, reply, end } = send(port, 'GET /large HTTP/1.1\r\nHost: x\r\n\r\n');
    await once(socket, 'data');
    socket.pause();
    const left = leave([server], { timeoutFactor: TIMEOUT_FACTOR });
    // The sweeps that close idle connections see the answer written, but not read.
    await idle.end;
    await eventually(() => expect(sweeps).to.be.at.least(2));
    const stillOpen = await connections();
    socket.resume();
    await Promise.all([left, end]);
    expect(reply().endsWith('x'.repeat(20_000_000))).to.equal(true);
    expect(stillOpen, 'only the connection of the slow client is open').to.equal(1);
  });

  it('connections above the maximum are closed at once, and logged with their number once a minute', async () => {
    const port = await open({ maxConnections: 2, limits: USUAL });
    const kept = [send(port, 'GET / HTTP/1.1\r\nHost: x\r\n'), send(port, '')];
    await Promise.all(kept.map(({ socket }) => once(socket, 'connect')));
    for (let times = 0; times < 3; times += 1) {
      const { reply, end } = send(port, '');
      await end;
      expect(reply()).to.equal('');
    }
    expect(logged.map(({ level }) => level)).to.deep.equal(['warn']);
    expect(logged[0]?.text).to.include('"dropped":1,"maxConnections":2');
    const { now } = performance;
    performance.now = () => now.call(performance) + 60_000;
    await send(port, '').end.finally(() => {
      performance.now = now;
    });
    expect(logged[1]?.text, 'since the first line').to.include('"dropped":3,"maxConnections":2');
    kept[0]?.socket.write('\r\n');
    await eventually(() => expect(kept[0]?.reply()).to.include('HTTP/1.1 200'));
  });
});
