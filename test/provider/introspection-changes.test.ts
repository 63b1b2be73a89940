/** `GET /oauth/introspect/changes`: who may open the stream, its events, and its end. */
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { createConnection } from 'node:net';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import { readValue } from '../../src/authorizations/token-formats.ts';
import { withChecksum } from '../../src/base/random-id.ts';
import { createChangeStreams } from '../../src/provider/introspection-changes.ts';
import type { ChangeFeed } from '../../src/storage/change-feed.ts';
import { eventually } from '../support/eventually.ts';
import { basic, clientCredentials, postForm, revokeCurrent, type TestClient } from '../support/oauth.ts';
import { addTestClient } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';

const PATH = '/oauth/introspect/changes';
/** The first event, with the milliseconds between heartbeats. */
const FIRST = ': heartbeat-ms=250\n\n';

/** The maximum number of streams in these tests: more than they leave open. */
const MAX = 10;

describe('the stream of changes', () => {
  const on = startSeeded({ settings: { limits: { changeStreamsPerClient: MAX } } });

  const listen = (client?: TestClient, init: RequestInit = {}) =>
    fetch(new URL(PATH, on.issuer), {
      ...init,
      headers: client ? { authorization: basic(client) } : {},
    });

  /** Opens a stream. @returns the text received so far, and whether the stream has ended */
  async function openStream(): Promise<{ text: string; hasEnded: boolean }> {
    const { body } = await listen(on.clients.resourceServer);
    const received = { text: '', hasEnded: false };
    const read = async (): Promise<void> => {
      for await (const chunk of body ?? []) received.text += Buffer.from(chunk).toString();
    };
    read()
      .catch(() => {})
      .finally(() => {
        received.hasEnded = true;
      });
    await eventually(() => expect(received.text).to.include(FIRST));
    return received;
  }

  it('only resource servers may open the stream of changes: others get 403, or 401 if not authenticated', async () => {
    const { resourceServer, confidential, public: browser } = on.clients;
    const wrong = { ...resourceServer, secret: withChecksum(`gate_cs_${'a'.repeat(43)}`) };
    for (const client of [undefined, wrong, browser]) {
      const answer = await listen(client);
      const headers: Record<string, string> = client ? { authorization: basic(client) } : {};
      const body = new URLSearchParams({ token: 'a' });
      const introspection = new URL('/oauth/introspect', on.issuer);
      const asked = await fetch(introspection, { method: 'POST', headers, body });
      expect(answer.status).to.equal(asked.status).and.to.equal(401);
      const challenge = asked.headers.get('www-authenticate');
      expect(answer.headers.get('www-authenticate')).to.equal(challenge);
      expect(await answer.json()).to.have.property('error', 'invalid_client');
    }
    expect((await listen(confidential)).status).to.equal(403);
  });

  it('the stream of changes begins at once, with headers against caching and buffering by proxies', async () => {
    const { status, headers, body } = await listen(on.clients.resourceServer);
    expect(status).to.equal(200);
    expect(headers.get('content-type')).to.equal('text/event-stream');
    expect(headers.get('cache-control')).to.equal('no-store, no-transform');
    expect(headers.get('x-accel-buffering')).to.equal('no');
    const reader = (body as ReadableStream<Uint8Array>).getReader();
    // The first event and then a heartbeat, in any pieces.
    let received = '';
    while (!/\n\n.*\n\n$/s.test(received)) received += Buffer.from((await reader.read()).value ?? []).toString();
    expect(received).to.match(/^: heartbeat-ms=250\n\n: at=[0-9a-z]+-[0-9a-z]+\n\n$/);
    await reader.cancel();
    expect((await listen(on.clients.resourceServer, { method: 'HEAD' })).status).to.equal(200);
  });

  it('the open streams of each resource server are limited, independently of other resource servers', async () => {
    const other = await addTestClient(on.service, 'Other API', { kind: 'resource-server' });
    /** Opens a stream on a separate connection, which closes with it. */
    const open = async (client: TestClient): Promise<IncomingMessage> => {
      const headers = { authorization: basic(client) };
      const [answer] = await once(get(new URL(PATH, on.issuer), { headers, agent: false }), 'response');
      return answer;
    };
    const opened: IncomingMessage[] = [];
    let answer = await open(on.clients.resourceServer);
    for (; answer.statusCode === 200; answer = await open(on.clients.resourceServer)) {
      opened.push(answer);
    }
    expect(opened.length).to.be.within(1, MAX);
    expect(answer.statusCode).to.equal(429);
    expect(answer.headers['retry-after']).to.equal('60');
    expect(JSON.parse(await text(answer))).to.include({
      error: 'too_many_streams',
      error_uri: `${on.issuer}/errors/too_many_streams`,
    });
    const ofOther = await open(other);
    expect(ofOther.statusCode).to.equal(200);
    opened.pop()?.destroy();
    await eventually(async () => {
      const again = await open(on.clients.resourceServer);
      opened.push(again);
      expect(again.statusCode).to.equal(200);
    });
    for (const stream of [ofOther].concat(opened)) stream.destroy();
  });

  it('a stream that its reader leaves before the stream opens does not count towards the maximum', async () => {
    const { host, port } = new URL(on.issuer);
    // Repeat, because the answer is sometimes faster than the end of the connection.
    const client = await eventually(async () => {
      // The node must read a new client from the database, and meanwhile the reader leaves.
      const added = await addTestClient(on.service, 'New API', { kind: 'resource-server' });
      const socket = createConnection(Number(port), '127.0.0.1');
      const head = `GET ${PATH} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: ${basic(added)}`;
      socket.write(`${head}\r\n\r\n`, () => socket.destroy());
      const line = await eventually(() => on.service.logLines.find((one) => one.includes(added.id)) ?? expect.fail());
      expect(JSON.parse(line)).to.include({ status: 499 });
      return added;
    });
    const streams = await Promise.all(Array.from({ length: MAX }, () => listen(client)));
    expect(streams.map(({ status }) => status)).to.deep.equal(Array(MAX).fill(200));
    for (const { body } of streams) await body?.cancel();
  });

  it('the stream of changes names a revoked authorization by its public id, and contains no secret', async () => {
    const received = await openStream();
    const { accessToken } = await on.partner.tokens(on.clients.confidential);
    const introspected = await postForm(
      on.issuer,
      '/oauth/introspect',
      { token: accessToken },
      { client: on.clients.resourceServer },
    );
    await revokeCurrent(on.issuer, accessToken);
    const { authorization } = introspected.body;
    await eventually(() => expect(received.text).to.include(`data: ${authorization}\n\n`));
    expect(received.text).to.match(/^(:( heartbeat-ms=250| at=[\w-]+)?\n\n|data: [\w-]+( gate_ci_[\w-]+)?\n\n)+$/);
  });

  it('a revocation is announced even if the token store has lost the token', async () => {
    const { confidential, machine } = on.clients;
    const received = await openStream();
    const { accessToken, refreshToken } = await on.partner.tokens(confidential);
    const id = String(readValue(accessToken)?.authorizationId);
    const lost = String((await clientCredentials(on.issuer, machine)).body.access_token);
    await on.service.store.endAuthorization(id);
    await on.service.store.remove('machine_token', lost);
    for (const [token, client, name] of [
      [refreshToken, confidential, id],
      [lost, machine, machine.id],
    ] as const) {
      expect(received.text).to.not.include(`data: ${name}\n\n`);
      expect((await postForm(on.issuer, '/oauth/revoke', { token }, { client })).status).to.equal(200);
      await eventually(() => expect(received.text).to.include(`data: ${name}\n\n`));
    }
  });

  it('the stream of a changed resource server ends, so that the server must authenticate again', async () => {
    const received = await openStream();
    const { id } = on.clients.resourceServer;
    await on.service.clients.suspend(id);
    await eventually(() => expect(received.hasEnded).to.equal(true));
    expect((await listen(on.clients.resourceServer)).status).to.equal(401);
    await on.service.clients.resume(id);
    // Repeat until a stream stays open, because a late announcement of the change may end the new one.
    await eventually(async () => {
      const again = await openStream();
      const mark = "SELECT pg_notify('gatehouse_named_changes', 'authorizations mark')";
      await on.service.database.query(mark);
      await eventually(() => expect(again.hasEnded || again.text.includes('mark')).to.equal(true));
      expect(again.text).to.include('mark');
    });
  });

  it('the stream of changes stays open during a reload, and announces that everything may have changed', async () => {
    const received = await openStream();
    await on.service.reload();
    await eventually(() => expect(received.text).to.include('data: everything\n\n'));
    expect(received.hasEnded).to.equal(false);
  });

  it('the stream announces the shutdown of its node, sends changes for three more seconds, and then ends', async () => {
    const received = await openStream();
    // A client that reads nothing must not delay the shutdown.
    const { port } = new URL(on.issuer);
    const socket = createConnection(Number(port), '127.0.0.1').on('error', () => {});
    const { host } = new URL(on.issuer);
    const authorization = `Authorization: ${basic(on.clients.resourceServer)}`;
    socket.write(`GET ${PATH} HTTP/1.1\r\nHost: ${host}\r\n${authorization}\r\n\r\n`);
    await once(socket, 'connect');
    const beforeLeaving = performance.now();
    const left = on.service.leave();
    await eventually(() => expect(received.text).to.include(': leaving\n\n'));
    const mark = "SELECT pg_notify('gatehouse_named_changes', 'authorizations late')";
    await on.service.database.query(mark);
    await eventually(() => expect(received.text).to.include('data: late\n\n'));
    expect(received.hasEnded).to.equal(false);
    await left;
    await eventually(() => expect(received.hasEnded).to.equal(true));
    // A timer may fire up to a millisecond early.
    expect(performance.now() - beforeLeaving).to.be.at.least(2_999);
    socket.destroy();
    // A client that has disconnected is not logged as a failure.
    expect(on.service.logLines.filter((line) => line.includes('failed'))).to.deep.equal([]);
  });
});

describe('a stream of changes', () => {
  let announce: Parameters<ChangeFeed['onChange']>[0];
  let isLive: boolean;
  /** Seconds by the clock of the database server. */
  let time: number;
  let server: number;
  let streams: ReturnType<typeof createChangeStreams>;

  beforeEach(() => {
    isLive = true;
    time = 1_000;
    server = 1;
    streams = createChangeStreams({
      get isLive() {
        return isLive;
      },
      get position() {
        return isLive ? { server, time: time * 1_000 } : undefined;
      },
      onChange: (listener) => {
        announce = listener;
      },
    } as ChangeFeed);
  });
  afterEach(() => streams.end());

  function open(after = ''): Readable {
    const stream = streams.open('gate_ci_api', 100, after);
    if (typeof stream === 'string') throw new Error(stream);
    return stream;
  }

  it('the stream of changes ends for a reader that is too slow, and the service buffers no more data for it', async () => {
    const stream = open();
    for (let count = 0; count < 10_000; count += 1) announce('accounts', 'acc_a'.padEnd(30, 'x'));
    await turn();
    expect(stream.destroyed).to.equal(false);
    expect(stream.readableLength).to.be.below(34_000);
    await eventually(() => expect(stream.destroyed).to.equal(true));
  });

  it('a stream writes any number of changes in their order to a reader that keeps up', async () => {
    const stream = open();
    const received: string[] = [];
    stream.on('data', (chunk: Buffer) => received.push(String(chunk)));
    const ids = Array.from({ length: 60_000 }, (_, index) => `acc_${index}`);
    for (const [index, id] of ids.entries()) {
      announce('accounts', id);
      if (index % 5_000 === 0) await turn();
    }
    await eventually(() => expect(received.join('')).to.include('data: acc_59999\n\n'));
    expect(received.join('').match(/acc_\d+/g)).to.deep.equal(ids);
    expect(stream.destroyed).to.equal(false);
  });

  it('a stream that continues a lost one first sends all missed changes, and is not closed if they are read slowly', async () => {
    open();
    for (let count = 0; count < 4_000; count += 1) announce('accounts', `acc_${count}`);
    time += 2;
    // They arrived long ago, which does not count as a delay of the new stream.
    const real = performance.now;
    performance.now = () => real.call(performance) + 30_000;
    try {
      const stream = open(`${server}-${(1_002 * 1_000).toString(36)}`);
      await new Promise((resolve) => setTimeout(resolve, 300));
      expect(stream.destroyed).to.equal(false);
      announce('accounts', 'acc_meanwhile');
      let received = '';
      stream.on('data', (chunk: Buffer) => {
        received += chunk;
      });
      await eventually(() => expect(received).to.include('repeated'));
      const [before = ''] = received.split(': heartbeat-ms=250 repeated');
      expect(before.match(/acc_\w+/g)).to.have.length(4_001);
      expect(before).to.include('acc_meanwhile');
    } finally {
      performance.now = real;
    }
  });

  it('a stream is closed if its reader is behind by more changes than the node keeps', async () => {
    const stream = open();
    for (let count = 0; count < 60_000; count += 1) announce('accounts', `acc_${count}`);
    await eventually(() => expect(stream.destroyed).to.equal(true));
  });

  it('a stream ends when its node receives no changes, and the node opens no new stream', async () => {
    const stream = open();
    isLive = false;
    announce('everything', '');
    expect(String(stream?.read())).to.equal(`${FIRST}data: everything\n\n`);
    expect(stream?.read()).to.equal(null);
    await once(stream as Readable, 'end');
    expect(streams.open('gate_ci_api', 100)).to.equal('away');
  });

  it('the stream of changes ends, without another heartbeat, if the node may have missed changes', async () => {
    const stream = open();
    // Report the lost feed by no event: after a stall of the process, its timers fire in any order.
    isLive = false;
    expect(await text(stream)).to.equal(FIRST);
  });

  it('a stream of changes cannot be opened at a node that is shutting down', async () => {
    const stream = open();
    streams.leave(0);
    expect(streams.open('gate_ci_api', 100)).to.equal('leaving');
    expect(await text(stream)).to.equal(`${FIRST}: leaving\n\n`);
  });

  describe('a stream that continues a lost one', () => {
    const REPEATED = ': heartbeat-ms=250 repeated\n\n';
    const positionAt = (seconds: number) => `${server}-${Math.round(seconds * 1_000).toString(36)}`;
    const beginningOf = (stream: Readable) => String(stream.read());
    const changeAt = (seconds: number, id: string): void => {
      time = seconds;
      announce('accounts', id);
    };

    beforeEach(() => {
      open();
      changeAt(1_000, 'acc_before');
      changeAt(1_010, 'acc_a');
      changeAt(1_020, 'acc_b');
    });

    it('a continued stream repeats the changes of the last two seconds before its position, and all later ones', () => {
      expect(beginningOf(open(positionAt(1_012)))).to.equal(`data: acc_a\n\ndata: acc_b\n\n${REPEATED}`);
      expect(beginningOf(open(positionAt(1_012.001)))).to.equal(`data: acc_b\n\n${REPEATED}`);
      expect(beginningOf(open(positionAt(1_030)))).to.equal(REPEATED);
    });

    it('a stream repeats no changes if the node may have forgotten changes since the requested position', async () => {
      // This node knows the changes since 1,000 seconds.
      expect(beginningOf(open(positionAt(1_001)))).to.equal(FIRST);
      changeAt(1_075, 'acc_c');
      // It forgets a change after a minute: the one of 1,010 seconds.
      expect(beginningOf(open(positionAt(1_012)))).to.equal(FIRST);
      expect(beginningOf(open(positionAt(1_012.001)))).to.equal(`data: acc_b\n\ndata: acc_c\n\n${REPEATED}`);
      for (let count = 0; count < 5_001; count += 1) changeAt(1_080, `acc_${count}`);
      expect(beginningOf(open(positionAt(1_080)))).to.equal(FIRST);
      expect(beginningOf(open(positionAt(1_082.001)))).to.equal(REPEATED);
    });

    it('a stream repeats no changes if the requested position is invalid or of another database server', () => {
      const [early, late] = [positionAt(1_012), positionAt(1_023)];
      server = 2;
      for (const text of [early, late, positionAt(1_012), '1-', '-1', '1-A', `1-${'z'.repeat(13)}`]) {
        expect(beginningOf(open(text)), text).to.equal(FIRST);
      }
    });

    it('a stream repeats nothing if its node may have missed changes since the requested position', () => {
      announce('everything', '');
      time = 1_025;
      expect(beginningOf(open(positionAt(1_021.999)))).to.equal(FIRST);
      isLive = false;
      announce('accounts', 'acc_late');
      isLive = true;
      time = 1_040;
      open();
      expect(beginningOf(open(positionAt(1_041.999)))).to.equal(FIRST);
      expect(beginningOf(open(positionAt(1_042)))).to.equal(REPEATED);
    });

    it('a stream repeats no changes if the database clock went back after the requested position was issued', () => {
      changeAt(1_015, 'acc_later');
      expect(beginningOf(open(positionAt(1_021.999)))).to.equal(FIRST);
      changeAt(1_021, 'acc_c');
      expect(beginningOf(open(positionAt(1_022)))).to.equal(`data: acc_c\n\n${REPEATED}`);
    });
  });
});
