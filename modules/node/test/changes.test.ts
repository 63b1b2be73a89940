/** The change streams that an API trusts, and answers that it does not cache despite a stream. */
import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import { createTestClock, type TestClock } from '../../../test/support/clock.ts';
import { eventually } from '../../../test/support/eventually.ts';
import type { FailureReason, Identified, Introspector } from '../src/resource-server.ts';
import { API, answering, bearer, introspectorOf, type StandIn, startStandIn, TOKEN } from './stand-in.ts';

const [ADA, BOB, CARL] = [`${TOKEN}ada`, `${TOKEN}bob`, `${TOKEN}carl`];
const EVENTS = { 'content-type': 'text/event-stream; charset=utf-8' };
const BEAT = ':\n\n';

describe('the stream of changes of an API', () => {
  let service: StandIn;
  /** Sends the beginning of each stream. */
  let begin: (stream: ServerResponse) => unknown;
  let streams: ServerResponse[];
  /** The `Last-Event-ID` of each request for a stream. */
  let positions: unknown[];
  let revoked: Set<string>;
  let held: Promise<void>;
  let time: TestClock;
  let passed: number;
  let api: Introspector;
  let failures: FailureReason[];

  before(async () => {
    service = await startStandIn(async (answer, form, asked) => {
      if (asked.method === 'GET') {
        streams.push(answer);
        positions.push(asked.headers['last-event-id']);
        return begin(answer);
      }
      const token = new URLSearchParams(form).get('token') ?? '';
      const name = token.slice(TOKEN.length);
      const caller = { token_type: 'Bearer', client_id: 'gate_ci_a', sub: `acc_${name}` };
      const active = !revoked.has(token);
      const body = { ...caller, iss: service.origin, organizations: [], active };
      await held;
      return answering(body)(answer, form, asked);
    });
  });
  const { now } = performance;
  beforeEach(() => {
    begin = (stream) => stream.writeHead(200, EVENTS).write(BEAT);
    streams = [];
    positions = [];
    revoked = new Set();
    held = Promise.resolve();
    time = createTestClock();
    passed = 0;
    // The test decides how long a silence lasts, however slow the machine is.
    performance.now = () => passed;
    failures = [];
  });
  afterEach(() => {
    performance.now = now;
    api.close();
    time.restore();
  });

  function open(): void {
    const onFailure = ({ reason }: { reason: FailureReason }) => void failures.push(reason);
    const options = { issuer: service.origin, clock: time.clock, live: true, timeoutMs: 15_000 };
    api = introspectorOf(API, { ...options, onFailure });
  }
  const identify = (token: string): Promise<Identified> => api.identify(bearer(token));
  const sendEvent = (text: string) => streams.at(-1)?.write(text);
  const streamCount = (count: number) => eventually(() => expect(streams).to.have.length.of.at.least(count));

  /** Caches the caller of this token. @returns the signal of the caller */
  async function remember(token: string): Promise<AbortSignal> {
    let found: Identified | undefined;
    await eventually(async () => {
      time.advance(6);
      await identify(token);
      found = await identify(token);
      expect(found.decidedBy).to.equal('memory');
    });
    return found?.caller?.signal as AbortSignal;
  }
  async function expectAsked(token: string): Promise<void> {
    for (const _ of [1, 2]) {
      time.advance(6);
      expect((await identify(token)).decidedBy).to.equal('service');
    }
  }
  /** Resolves when the API has received this text, and everything sent before it. */
  async function isReceived(text: string): Promise<void> {
    const signal = await remember(BOB);
    sendEvent(`${text}data: acc_bob\n\n`);
    await eventually(() => expect(signal.aborted).to.equal(true));
  }

  for (const type of [undefined, 'text/html', 'application/json', 'text/event-streams']) {
    it(`a change stream with the content type ${type} is not trusted, and no caller is cached`, async () => {
      const headers = type === undefined ? {} : { 'content-type': type };
      begin = (stream) => stream.writeHead(200, headers).write(BEAT);
      open();
      await eventually(() => expect(failures).to.deep.include('malformed_answer'));
      await expectAsked(ADA);
      begin = (stream) => stream.writeHead(200, EVENTS).write(BEAT);
      await remember(ADA);
    });
  }

  /** Ends the stream after this position, and waits for the next, which begins with this text. */
  async function reopen(position: string, beginning: string): Promise<void> {
    begin = (stream) => stream.writeHead(200, EVENTS).write(beginning);
    await isReceived(position);
    const count = streams.length;
    streams.at(-1)?.end();
    await streamCount(count + 1);
    // The next stream is in force when it delivers a change.
    const signal = () => identify(BOB).then(({ caller }) => caller?.signal);
    await eventually(async () => expect((await signal())?.aborted).to.equal(false));
  }

  it('after a lost stream, a next one that repeats the missed changes evicts only the changed callers', async () => {
    open();
    await remember(ADA);
    const signal = await remember(CARL);
    await reopen(': at=s-1\n\n', `data: acc_ada\n\n: heartbeat-ms=250 repeated\n\n`);
    expect(positions).to.deep.equal([undefined, 's-1']);
    expect((await identify(CARL)).decidedBy).to.equal('memory');
    expect((await identify(ADA)).decidedBy).to.equal('service');
    // While the stream was lost, the end of this access would not have been announced.
    expect(signal.aborted).to.equal(true);
    expect((await identify(CARL)).caller?.signal?.aborted).to.equal(false);
  });

  it('after a lost stream, a next one that does not repeat the missed changes evicts all callers', async () => {
    open();
    await remember(ADA);
    await reopen(': at=s-1\n\n', ': heartbeat-ms=250\n\n');
    expect(positions).to.deep.equal([undefined, 's-1']);
    expect((await identify(ADA)).decidedBy).to.equal('service');
  });

  it('a refused stream is reported as one, with its status', async () => {
    const messages: string[] = [];
    begin = (stream) => stream.writeHead(503).end();
    const onFailure = ({ message }: Error) => void messages.push(message);
    api = introspectorOf(API, { issuer: service.origin, live: true, onFailure });
    await eventually(() => expect(messages[0]).to.equal('the change stream answered with status 503'));
  });

  it('a stream that says without a request that it repeats changes evicts all callers', async () => {
    open();
    await remember(ADA);
    await reopen('', ': heartbeat-ms=250 repeated\n\n');
    expect(positions).to.deep.equal([undefined, undefined]);
    expect((await identify(ADA)).decidedBy).to.equal('service');
  });

  it('a caller who was refused while the stream was lost is not accepted after its changes were repeated', async () => {
    open();
    await remember(ADA);
    await isReceived(': at=s-1\n\n');
    let goOn = () => {};
    const held = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    begin = (stream) => held.then(() => stream.writeHead(200, EVENTS).write(': heartbeat-ms=250 repeated\n\n'));
    streams.at(-1)?.end();
    await streamCount(2);
    revoked.add(ADA);
    expect((await identify(ADA)).refusal?.status).to.equal(401);
    goOn();
    await remember(BOB);
    expect((await identify(ADA)).refusal?.status).to.equal(401);
  });

  it('a change stream is trusted from its first heartbeat, which must arrive within two seconds', async () => {
    begin = (stream) => stream.writeHead(200, EVENTS).write('x\n\ndata: acc_ada\n\n');
    open();
    await streamCount(1);
    await expectAsked(ADA);
    // Other events and incomplete lines do not count as a heartbeat.
    passed += 1_999;
    sendEvent('data: acc_ada\n\nx');
    await expectAsked(ADA);
    expect(failures).to.deep.equal([]);
    passed += 1;
    await eventually(() => expect(failures).to.include('timed_out'));
    begin = (stream) => stream.writeHead(200, EVENTS).write(BEAT);
    await remember(ADA);
  });

  it('a change stream that announces no interval is trusted with one heartbeat a second', async () => {
    open();
    await remember(ADA);
    for (const _ of [1, 2, 3, 4]) {
      passed += 1_000;
      await isReceived(BEAT);
    }
    expect((await identify(ADA)).decidedBy).to.equal('memory');
    expect({ failures, streams: streams.length }).to.deep.equal({ failures: [], streams: 1 });
  });

  it('a change stream that announced a heartbeat every 250 ms is trusted for 0.9 seconds without one', async () => {
    begin = (stream) => stream.writeHead(200, EVENTS).write(': heartbeat-ms=250\n\n');
    open();
    await remember(ADA);
    passed += 899;
    expect((await identify(ADA)).decidedBy).to.equal('memory');
    passed += 1;
    expect((await identify(ADA)).decidedBy).to.equal('service');
    await eventually(() => expect(failures).to.include('timed_out'));
  });

  describe('the stream of a node that is shutting down', () => {
    let signal: AbortSignal;
    let next: ServerResponse;

    /** Opens the next stream, which is trusted, while the former one is still open. */
    beforeEach(async () => {
      open();
      signal = await remember(ADA);
      sendEvent(': leaving\n\n');
      await streamCount(2);
      const [, second] = streams;
      if (second === undefined) throw new Error('no second stream');
      next = second;
      // Wait for an event after the stream's first heartbeat: then the stream is trusted.
      const marker = await remember(BOB);
      next.write('data: acc_bob\n\n');
      await eventually(() => expect(marker.aborted).to.equal(true));
    });
    const former = () => streams[0] as ServerResponse;
    /** Resolves when a heartbeat on the former stream was received. */
    const isReceivedOnFormer = async (): Promise<void> => {
      const marker = await remember(BOB);
      former().write(':\n\ndata: acc_bob\n\n');
      await eventually(() => expect(marker.aborted).to.equal(true));
    };

    it('a new change stream replaces the former, without evicting callers, after both were open for a second', async () => {
      passed += 999;
      await isReceivedOnFormer();
      next.write(':\n\n');
      expect(former().destroyed).to.equal(false);
      passed += 1;
      former().write(':\n\n');
      await eventually(() => expect(former().destroyed).to.equal(true));
      expect(signal.aborted).to.equal(false);
      expect((await identify(ADA)).decidedBy).to.equal('memory');
      await isReceived('');
      expect({ failures, streams: streams.length }).to.deep.equal({ failures: [], streams: 2 });
    });

    it('if the former change stream ends in the first second of its successor, every cached caller is evicted', async () => {
      passed += 999;
      await isReceivedOnFormer();
      former().destroy();
      await eventually(() => expect(signal.aborted).to.equal(true));
      expect((await identify(ADA)).decidedBy).to.equal('service');
      await isReceived('');
      expect(streams).to.have.length(2);
    });

    it('while a change stream is being replaced, both streams are read', async () => {
      next.write('data: acc_ada\n\n');
      await eventually(() => expect(signal.aborted).to.equal(true));
      signal = await remember(ADA);
      former().write('data: acc_ada\n\n');
      await eventually(() => expect(signal.aborted).to.equal(true));
    });

    it('if a new change stream breaks, the former one stays in use and another stream is opened', async () => {
      next.destroy();
      await streamCount(3);
      expect(signal.aborted).to.equal(false);
      await isReceivedOnFormer();
      expect((await identify(ADA)).decidedBy).to.equal('memory');
    });
  });

  it('no introspection answer is cached for five seconds after the stream announced a change', async () => {
    open();
    const signal = await remember(ADA);
    sendEvent('data: acc_ada\n\n');
    await eventually(() => expect(signal.aborted).to.equal(true));
    for (const seconds of [0, 4.999]) {
      time.advance(seconds);
      for (const _ of [1, 2]) expect((await identify(ADA)).decidedBy).to.equal('service');
    }
    time.advance(0.001);
    expect((await identify(ADA)).decidedBy).to.equal('service');
    expect((await identify(ADA)).decidedBy).to.equal('memory');
  });

  for (const line of [
    'event: changed',
    'retry: 1000',
    'data',
    'data:acc_ada',
    'data: acc_ada\r',
    'data: acc_other gate_ci_other acc_ada',
    'data: {"changed":["acc_ada"]}',
    '<html>',
  ]) {
    it(`an unknown line of the change stream evicts every cached caller: ${JSON.stringify(line)}`, async () => {
      open();
      const signal = await remember(ADA);
      sendEvent(`${line}\n\n`);
      await eventually(() => expect(signal.aborted).to.equal(true));
      expect((await identify(ADA)).decidedBy).to.equal('service');
      expect(failures).to.deep.equal(['malformed_answer']);
      // Send an unknown line, as a newer service may: known events still work.
      await isReceived('');
      expect(streams).to.have.length(1);
    });
  }

  describe('changes while an answer is delayed', () => {
    let release: () => void;
    let answer: Promise<Identified>;

    /**
     * Asks about the token of Ada. The service has decided, but its answer is delayed until
     * `release`.
     */
    beforeEach(async () => {
      open();
      await remember(BOB);
      time.advance(6);
      held = new Promise((resolve) => {
        release = resolve;
      });
      const before = service.asked.length;
      answer = identify(ADA);
      await eventually(() => expect(service.asked).to.have.length.above(before));
      held = Promise.resolve();
    });
    afterEach(() => release());

    /**
     * Expects that the answer from before the revocation is used only for the request that waited
     * for it.
     */
    async function expectForgotten(): Promise<void> {
      release();
      const { caller } = await answer;
      expect(caller?.subject).to.equal('acc_ada');
      expect(caller?.signal?.aborted).to.equal(true);
      time.advance(6);
      expect((await identify(ADA)).refusal?.status).to.equal(401);
    }

    it('an introspection answer is not cached if its caller was revoked while the request was pending', async () => {
      revoked.add(ADA);
      await isReceived('data: acc_ada\n\n');
      time.advance(7);
      await isReceived('data: acc_other\n\n');
      await expectForgotten();
    });

    it('an introspection answer is not cached if its caller was revoked meanwhile and the clock was set back', async () => {
      const marker = (await identify(BOB)).caller?.signal;
      time.advance(-3_600);
      revoked.add(ADA);
      sendEvent('data: acc_ada\n\ndata: acc_bob\n\n');
      await eventually(() => expect(marker?.aborted).to.equal(true));
      release();
      await answer;
      time.advance(3_600);
      expect((await identify(ADA)).refusal?.status).to.equal(401);
    });

    it('an introspection answer is not cached if the change stream was interrupted meanwhile', async () => {
      streams.at(-1)?.destroy();
      revoked.add(ADA);
      await streamCount(2);
      await remember(BOB);
      await expectForgotten();
    });

    it('an introspection answer is not cached if the change stream has ended meanwhile', async () => {
      begin = (stream) => stream.writeHead(503).end();
      streams.at(-1)?.destroy();
      revoked.add(ADA);
      await streamCount(2);
      await expectForgotten();
    });
  });
});
