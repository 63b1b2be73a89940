/** `GET /oauth/introspect/changes`: who may listen, what it promises, and when it ends. */
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { createConnection } from 'node:net';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import { createChangeStreams } from '../../src/provider/introspection-changes.ts';
import type { ChangeFeed, ChangeTopic } from '../../src/storage/change-feed.ts';
import { eventually } from '../support/eventually.ts';
import { basic, postForm, revokeCurrent, type TestClient } from '../support/oauth.ts';
import { addTestClient } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';

const PATH = '/oauth/introspect/changes';
/** Says how soon the next heartbeat comes. */
const FIRST = ': heartbeat-ms=250\n\n';

/** More than the other tests leave open. */
const MAX = 10;

describe('the stream of changes', () => {
  const on = startSeeded({ settings: { limits: { changeStreamsPerClient: MAX } } });

  const listen = (client?: TestClient, init: RequestInit = {}) =>
    fetch(new URL(PATH, on.issuer), {
      ...init,
      headers: client ? { authorization: basic(client) } : {},
    });

  /** @returns what was heard so far, and whether the stream has ended. */
  async function heard(): Promise<{ text: string; hasEnded: boolean }> {
    const { body } = await listen(on.clients.resourceServer);
    const so = { text: '', hasEnded: false };
    const read = async (): Promise<void> => {
      for await (const chunk of body ?? []) so.text += Buffer.from(chunk).toString();
    };
    read()
      .catch(() => {})
      .finally(() => {
        so.hasEnded = true;
      });
    await eventually(() => expect(so.text).to.include(FIRST));
    return so;
  }

  it('is for resource servers: the others are answered as at introspection', async () => {
    const { resourceServer, confidential, public: browser } = on.clients;
    const wrong = { ...resourceServer, secret: `gate_cs_${'a'.repeat(43)}` };
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

  it('is passed on as it is, and begins at once', async () => {
    const { status, headers, body } = await listen(on.clients.resourceServer);
    expect(status).to.equal(200);
    expect(headers.get('content-type')).to.equal('text/event-stream');
    expect(headers.get('cache-control')).to.equal('no-store, no-transform');
    expect(headers.get('x-accel-buffering')).to.equal('no');
    const reader = (body as ReadableStream<Uint8Array>).getReader();
    // The first is the beginning, and the others come by themselves.
    for (const heartbeat of [FIRST, ':\n\n']) {
      const { value } = await reader.read();
      expect(Buffer.from(value ?? []).toString()).to.equal(heartbeat);
    }
    await reader.cancel();
    expect((await listen(on.clients.resourceServer, { method: 'HEAD' })).status).to.equal(200);
  });

  it('is refused to a client that has too many, until it closes one, and to no other client', async () => {
    const other = await addTestClient(on.service, 'Other API', { kind: 'resource-server' });
    /** On a connection of its own, which closes with it. */
    const open = async (client: TestClient): Promise<IncomingMessage> => {
      const headers = { authorization: basic(client) };
      const [answer] = await once(
        get(new URL(PATH, on.issuer), { headers, agent: false }),
        'response',
      );
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
    const theirs = await open(other);
    expect(theirs.statusCode).to.equal(200);
    opened.pop()?.destroy();
    await eventually(async () => {
      const again = await open(on.clients.resourceServer);
      opened.push(again);
      expect(again.statusCode).to.equal(200);
    });
    for (const stream of [theirs].concat(opened)) stream.destroy();
  });

  it('names what a request ended before that is answered, and nothing secret', async () => {
    const so = await heard();
    const { accessToken } = await on.partner.tokens(on.clients.confidential);
    const introspected = await postForm(
      on.issuer,
      '/oauth/introspect',
      { token: accessToken },
      { client: on.clients.resourceServer },
    );
    await revokeCurrent(on.issuer, accessToken);
    const { authorization } = introspected.body;
    await eventually(() => expect(so.text).to.include(`data: ${authorization}\n\n`));
    expect(so.text).to.match(/^(:( heartbeat-ms=250)?\n\n|data: [\w-]+( gate_ci_[\w-]+)?\n\n)+$/);
  });

  it('ends for a resource server that is changed: it shows again who it is', async () => {
    const so = await heard();
    const { id } = on.clients.resourceServer;
    await on.service.clients.suspend(id);
    await eventually(() => expect(so.hasEnded).to.equal(true));
    expect((await listen(on.clients.resourceServer)).status).to.equal(401);
    await on.service.clients.resume(id);
    // The database tells of the change once more, in order: then it is over.
    await eventually(async () => {
      const again = await heard();
      const mark = "SELECT pg_notify('gatehouse_named_changes', 'authorizations mark')";
      await on.service.database.query(mark);
      await eventually(() => expect(again.hasEnded || again.text.includes('mark')).to.equal(true));
      expect(again.text).to.include('mark');
    });
  });

  it('outlives a reload, which says that everything may have changed', async () => {
    const so = await heard();
    await on.service.reload();
    await eventually(() => expect(so.text).to.include('data: everything\n\n'));
    expect(so.hasEnded).to.equal(false);
  });

  it('of a node that leaves asks for the next one, and ends three seconds after the port', async () => {
    const so = await heard();
    // A reader that reads nothing does not hold it up either.
    const { port } = new URL(on.issuer);
    const socket = createConnection(Number(port), '127.0.0.1').on('error', () => {});
    const { host } = new URL(on.issuer);
    const authorization = `Authorization: ${basic(on.clients.resourceServer)}`;
    socket.write(`GET ${PATH} HTTP/1.1\r\nHost: ${host}\r\n${authorization}\r\n\r\n`);
    await once(socket, 'connect');
    const beforeLeaving = performance.now();
    const left = on.service.leave();
    await eventually(() => expect(so.text).to.include(': leaving\n\n'));
    const mark = "SELECT pg_notify('gatehouse_named_changes', 'authorizations late')";
    await on.service.database.query(mark);
    await eventually(() => expect(so.text).to.include('data: late\n\n'));
    expect(so.hasEnded).to.equal(false);
    await left;
    await eventually(() => expect(so.hasEnded).to.equal(true));
    expect(performance.now() - beforeLeaving).to.be.at.least(3_000);
    socket.destroy();
    // And that somebody listened no more was no failure of ours.
    expect(on.service.logLines.filter((line) => line.includes('failed'))).to.deep.equal([]);
  });
});

describe('a stream of changes', () => {
  let tell: Parameters<ChangeFeed['onChange']>[0];
  let isLive: boolean;
  let streams: ReturnType<typeof createChangeStreams>;

  beforeEach(() => {
    isLive = true;
    streams = createChangeStreams({
      get isLive() {
        return isLive;
      },
      onChange: (listener) => {
        tell = listener;
      },
    } as ChangeFeed);
  });
  afterEach(() => streams.end());

  function open(): Readable {
    const stream = streams.open('gate_ci_api', 100);
    if (typeof stream === 'string') throw new Error(stream);
    return stream;
  }

  it('of a reader that is too slow ends, and keeps nothing for it', async () => {
    const stream = open();
    for (let count = 0; count < 10_000; count += 1) tell('accounts', 'acc_a'.padEnd(30, 'x'));
    await turn();
    expect(stream?.destroyed).to.equal(true);
    expect(stream?.readableLength).to.be.below(70_000);
  });

  it('is there only while the node itself hears of changes', async () => {
    const stream = open();
    isLive = false;
    tell('everything', '');
    expect(String(stream?.read())).to.equal(`${FIRST}data: everything\n\n`);
    expect(stream?.read()).to.equal(null);
    await once(stream as Readable, 'end');
    expect(streams.open('gate_ci_api', 100)).to.equal('away');
  });

  it('brings no heartbeat of a node that is not sure to hear of changes, and ends', async () => {
    const stream = open();
    // No event says so: the process was stalled, and its timers fire in any order.
    isLive = false;
    expect(await text(stream)).to.equal(FIRST);
  });

  it('is opened by no node that leaves', async () => {
    const stream = open();
    streams.leave(0);
    expect(streams.open('gate_ci_api', 100)).to.equal('away');
    expect(await text(stream)).to.equal(`${FIRST}: leaving\n\n`);
  });

  it('names what changed by public ids', () => {
    const stream = open();
    const changes: readonly [ChangeTopic, string][] = [
      ['accounts', 'acc_a'],
      ['access', 'gate_ci_a'],
      ['clients', 'gate_ci_a'],
      ['connections', 'acc_a gate_ci_a'],
      ['authorizations', 'an-id'],
      ['organizations', 'org_a'],
      ['api-keys', 'a-hash'],
      ['api-key-ids', 'key_a'],
      ['everything', ''],
    ];
    for (const change of changes) tell(...change);
    const said = String(stream?.read()).match(/(?<=data: ).*/g);
    const ids = ['acc_a', 'gate_ci_a', 'gate_ci_a', 'acc_a gate_ci_a', 'an-id'];
    expect(said).to.deep.equal([...ids, 'org_a', 'key_a', 'everything']);
  });
});
