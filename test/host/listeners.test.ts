/** Slow, broken and greedy connections are answered or cut, and told to the operator in safe words. */
import { once } from 'node:events';
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

/** As the usual ones are to each other, only much shorter. */
const LIMITS = {
  headersTimeout: 300,
  requestTimeout: 400,
  connectionsCheckingInterval: 50,
  idleTimeout: 500,
} as const;

/** Those of production: nobody runs into them here, however busy the machine is. */
const USUAL = {};

describe('a listener on localhost', () => {
  const taken: Server[] = [];
  afterEach(() => Promise.all(taken.splice(0).map(drain)));

  const listenThere = async (port = 0) => {
    const servers = await listenOnHost((_, response) => response.end('here'), port, 'localhost');
    taken.push(...servers);
    return new URL(addressOf(servers[0])).port;
  };

  it('answers at both loopback addresses, on one port', async () => {
    const port = await listenThere();
    for (const host of ['127.0.0.1', '[::1]', 'localhost']) {
      expect(await (await fetch(`http://${host}:${port}/`)).text(), host).to.equal('here');
    }
  });

  it('takes neither of them if one is taken', async () => {
    const other = await listen((_, response) => response.end('other'), 0, '::1');
    taken.push(other);
    const { port } = new URL(addressOf(other));
    expect(await failureOf(listenThere(Number(port)))).to.include({ code: 'EADDRINUSE' });
    // Nothing was left open on the other one.
    taken.push(await listen((_, response) => response.end(), Number(port), '127.0.0.1'));
  });
});
/** What a request is answered. */
const BODY = 'x'.repeat(100_000);

describe('a listener', () => {
  const servers: Server[] = [];
  const sockets: Socket[] = [];
  let told: { level: string; text: string }[];

  beforeEach(() => {
    told = [];
  });
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    await Promise.all(servers.splice(0).map(drain));
  });

  const tell = (level: string) => (details: object, message: string) =>
    void told.push({ level, text: `${message} ${JSON.stringify(details)}` });

  async function open(options: ListenOptions = {}): Promise<number> {
    const log = { info: tell('info'), warn: tell('warn') } as unknown as NonNullable<
      ListenOptions['log']
    >;
    const server = await listen(
      (asked, response) => {
        asked
          .resume()
          .on('end', () =>
            response.end('x'.repeat(asked.url === '/large' ? 20_000_000 : BODY.length)),
          );
      },
      0,
      '127.0.0.1',
      { limits: LIMITS, log, ...options },
    );
    servers.push(server);
    const address = server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  const connections = (): Promise<number> =>
    new Promise((resolve, reject) => {
      servers[0]?.getConnections((error, count) => (error ? reject(error) : resolve(count)));
    });

  /** A connection that says this, and keeps what it hears. */
  function say(port: number, text: string) {
    const socket = connect(port, '127.0.0.1');
    sockets.push(socket);
    let heard = '';
    socket.on('error', () => {});
    socket.on('data', (chunk: Buffer) => {
      heard += chunk.toString('latin1');
    });
    socket.write(text);
    return { socket, heard: () => heard, end: once(socket, 'close') };
  }

  /** One byte after the other, for as long as anybody listens. */
  function drip(socket: Socket): void {
    const timer = setInterval(() => socket.write('x'), 20);
    socket.on('close', () => clearInterval(timer));
  }

  const HEAD = 'POST /a?code=gate_ac_secret HTTP/1.1\r\nHost: x\r\n';

  const slow: readonly [what: string, start: string][] = [
    ['its request line', 'GET /'],
    ['its headers', `${HEAD}X-Slow: `],
    ['its body', `${HEAD}Content-Length: 1000000\r\n\r\n`],
  ];
  for (const [what, start] of slow) {
    it(`a client that sends ${what} byte by byte is told 408, and cut`, async () => {
      const client = say(await open(), start);
      drip(client.socket);
      await client.end;
      expect(client.heard()).to.match(/^HTTP\/1\.1 408 Request Timeout\r\nConnection: close\r\n/);
    });
  }

  it('is as patient with them as ten seconds for the headers and fifteen for a request', async () => {
    const server = await listen(() => {}, 0, '127.0.0.1');
    servers.push(server);
    const { headersTimeout, requestTimeout, timeout, keepAliveTimeout } = server;
    expect({ headersTimeout, requestTimeout, timeout, keepAliveTimeout }).to.deep.equal({
      ...{ headersTimeout: 10_000, requestTimeout: 15_000 },
      ...{ timeout: 20_000, keepAliveTimeout: 65_000 },
    });
  });

  it('a client that says nothing at all is cut', async () => {
    await say(await open(), '').end;
  });

  it('a client that never reads its answer is cut', async () => {
    const { socket } = say(await open(), '');
    socket.pause();
    // Far more than the system keeps for a reader that may still come.
    socket.write('GET /large HTTP/1.1\r\nHost: x\r\n\r\n');
    await once(socket, 'connect');
    await eventually(async () => expect(await connections()).to.equal(0));
  });

  describe('with pipelined requests', () => {
    let underWay: number;
    let mostUnderWay: number;
    let begun: number;

    /** Answers each request a turn of the event loop later, and counts those under way. */
    async function openCounting(): Promise<number> {
      underWay = mostUnderWay = begun = 0;
      const server = await listen(
        (asked, response) => {
          begun += 1;
          underWay += 1;
          mostUnderWay = Math.max(mostUnderWay, underWay);
          setImmediate(() => {
            underWay -= 1;
            response.end(`${asked.url}\n`);
          });
        },
        0,
        '127.0.0.1',
      );
      servers.push(server);
      return Number(new URL(addressOf(server)).port);
    }

    const requests = (count: number): string =>
      Array.from({ length: count }, (_, index) => `GET /${index} HTTP/1.1\r\nHost: x\r\n\r\n`).join(
        '',
      );
    const answered = (heard: string): string[] => heard.match(/^\/\d+$/gm) ?? [];
    const paths = (count: number): string[] =>
      Array.from({ length: count }, (_, index) => `/${index}`);

    it('works on one at a time, in order, and goes on with the next ones', async () => {
      const { socket, heard } = say(await openCounting(), requests(10));
      await eventually(() => expect(answered(heard())).to.deep.equal(paths(10)));
      expect(mostUnderWay).to.equal(1);
      socket.write(requests(5));
      await eventually(() => expect(answered(heard())).to.have.length(15));
      expect(mostUnderWay).to.equal(1);
      expect(heard()).to.not.include('Connection: close');
    });

    it('begins no more than 17, and ends the connection after their answers', async () => {
      const { heard, end } = say(await openCounting(), requests(2_000));
      await end;
      expect(answered(heard())).to.deep.equal(paths(17));
      expect(heard().match(/Connection: close/g)).to.have.length(1);
      expect([begun, mostUnderWay]).to.deep.equal([17, 1]);
    });

    it('begins none of those that wait on a connection that was cut', async () => {
      const { socket } = say(await openCounting(), requests(10));
      await once(servers[0] as Server, 'request');
      socket.resetAndDestroy();
      await eventually(async () => expect(await connections()).to.equal(0));
      expect(begun).to.be.below(10);
    });
  });

  const long = 'x'.repeat(17_000);
  const broken = {
    'what is no HTTP': 'gate_cs_secret\r\n\r\n',
    'a TLS handshake': '\x16\x03\x01\x02\x00\x01\x00gate_cs_secret',
    'a header that is none': 'GET / HTTP/1.1\r\nHost: x\r\nAuthorization gate_cs_secret\r\n\r\n',
    'two lengths of one body': `${HEAD}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`,
    'a header that is too large': `${HEAD}Authorization: Bearer gate_cs_secret${long}\r\n\r\n`,
    'an address that is too long': `GET /?state=gate_cs_secret${long} HTTP/1.1\r\nHost: x\r\n\r\n`,
  };
  for (const [what, text] of Object.entries(broken)) {
    // Node reads 16 KiB of headers.
    const answer = text.length < 16_384 ? '400 Bad Request' : '431 Request Header Fields Too Large';
    it(`${what} is answered ${answer}, and logged without what was sent`, async () => {
      const client = say(await open(), text);
      await client.end;
      const [head = '', body = ''] = client.heard().split('\r\n\r\n');
      expect(head).to.include(`HTTP/1.1 ${answer}\r\n`).and.to.include('\r\nConnection: close\r\n');
      const [, requestId = ''] = /X-Request-Id: (req_[0-9a-f]{16})/.exec(head) ?? [];
      expect(body).to.equal(`${answer.slice(4)} (${requestId})\n`);
      expect(told.map(({ level }) => level)).to.deep.equal(['info']);
      expect(told[0]?.text).to.include(requestId).and.to.include('"address":"127.0.0.1"');
      expect(JSON.stringify(told)).not.to.match(/gate_|xxx|Authorization/);
    });
  }

  it('what is broken in the middle of an answer ends the connection, and no answer stands in another', async () => {
    const port = await open();
    const client = say(port, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    client.socket.write('broken\r\n\r\n');
    await client.end;
    // Cut in the middle, or whole and then the refusal: never one inside the other.
    expect(client.heard()).to.match(
      /^(HTTP\/1\.1 200 .*?\r\n\r\n(x*|x{100000}HTTP\/1\.1 400 .*))?$/s,
    );
  });

  it('a client that leaves is nothing to log', async () => {
    const port = await open({ limits: USUAL });
    const { socket } = say(port, HEAD);
    await eventually(async () => expect(await connections()).to.equal(1));
    socket.resetAndDestroy();
    await eventually(async () => expect(await connections()).to.equal(0));
    expect(told).to.deep.equal([]);
  });

  it('that closes waits for answers, and for none of those whose answer is there', async () => {
    const port = await open({ limits: USUAL });
    const [server] = servers;
    if (!server) throw new Error('nothing listens');
    let isCut = false;
    server.closeAllConnections = () => {
      isCut = true;
      Object.getPrototypeOf(server).closeAllConnections.call(server);
    };
    const { socket, heard, end } = say(port, `${HEAD}Content-Length: 1\r\n\r\n`);
    await once(server, 'request');
    const closed = drain(server);
    socket.write('x');
    await Promise.all([closed, end]);
    expect(heard())
      .to.match(/^HTTP\/1.1 200 /)
      .and.match(/x{1000}$/);
    expect(isCut).to.equal(false);
  });

  it('that leaves does not wait for a connection that is kept open and idle', async () => {
    const port = await open({ limits: USUAL });
    const [server] = servers;
    if (!server) throw new Error('nothing listens');
    let isCut = false;
    server.closeAllConnections = () => {
      isCut = true;
      Object.getPrototypeOf(server).closeAllConnections.call(server);
    };
    const { heard, end } = say(port, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await eventually(() => expect(heard()).to.match(/x{100000}$/));
    await Promise.all([createDeparture().leave(server), end]);
    expect(isCut).to.equal(false);
  });

  it('that leaves answers every connection that reached it before its port closed', async () => {
    const port = await open({ limits: USUAL });
    const [server] = servers;
    if (!server) throw new Error('nothing listens');
    const request = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
    const clients = Array.from({ length: 30 }, () => say(port, request));
    // On loopback the system has completed all of them by now, and Node has accepted none.
    await Promise.all([createDeparture().leave(server), ...clients.map(({ end }) => end)]);
    for (const { heard } of clients) expect(heard()).to.match(/^HTTP\/1.1 200 .*x{1000}$/s);
  });

  it('that leaves ends connections, but keeps them in the last second before its port closes', async () => {
    const { ServerResponse, leave } = createDeparture();
    const port = await open({ limits: USUAL, ServerResponse });
    const [server] = servers;
    if (!server) throw new Error('nothing listens');
    const request = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
    let isUnreachable = false;
    const onUnreachable = (): void => {
      isUnreachable = true;
    };
    const left = leave(server, { delayMs: 2_000, onUnreachable });
    const leaving = say(port, request);
    await leaving.end;
    expect(leaving.heard()).to.include('Connection: close\r\n');

    const kept = await eventually(async () => {
      const client = say(port, request);
      await eventually(() => expect(client.heard().endsWith(BODY)).to.equal(true));
      expect(client.heard()).to.include('Connection: keep-alive');
      return client;
    });
    await eventually(() => expect(server.listening).to.equal(false));
    expect(isUnreachable).to.equal(false);
    kept.socket.write(request);
    await kept.end;
    expect(kept.heard()).to.include('Connection: close\r\n');
    expect(kept.heard().endsWith(BODY)).to.equal(true);
    await left;
  });

  it('connections beyond the greatest number are closed at once, and said so once', async () => {
    const port = await open({ maxConnections: 2, limits: USUAL });
    const kept = [say(port, 'GET / HTTP/1.1\r\nHost: x\r\n'), say(port, '')];
    await Promise.all(kept.map(({ socket }) => once(socket, 'connect')));
    for (let times = 0; times < 3; times += 1) {
      const { heard, end } = say(port, '');
      await end;
      expect(heard()).to.equal('');
    }
    expect(told.map(({ level }) => level)).to.deep.equal(['warn']);
    expect(told[0]?.text).to.include('"maxConnections":2');
    kept[0]?.socket.write('\r\n');
    await eventually(() => expect(kept[0]?.heard()).to.include('HTTP/1.1 200'));
  });

  it('who is as quick as usual notices nothing of all that', async () => {
    const port = await open({ limits: USUAL });
    const client = say(port, 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    await client.end;
    expect(client.heard()).to.match(/^HTTP\/1\.1 200 .*\r\n\r\nx{100000}$/s);
    expect(told).to.deep.equal([]);
  });
});
