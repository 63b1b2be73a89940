/** Which streams of changes an API trusts, and which answers it does not keep in spite of one. */
import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import type {
  FailureReason,
  Identified,
  Introspector,
} from '../../src/resource-server/resource-server.ts';
import { createTestClock, type TestClock } from '../support/clock.ts';
import { eventually } from '../support/eventually.ts';
import {
  API,
  answering,
  bearer,
  introspectorOf,
  type StandIn,
  startStandIn,
  TOKEN,
} from './stand-in.ts';

const [ADA, BOB] = [`${TOKEN}ada`, `${TOKEN}bob`];
const EVENTS = { 'content-type': 'text/event-stream; charset=utf-8' };
const BEAT = ':\n\n';

describe('the stream of changes of an API', () => {
  let service: StandIn;
  /** How the service begins a stream. */
  let begin: (stream: ServerResponse) => unknown;
  let streams: ServerResponse[];
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
    revoked = new Set();
    held = Promise.resolve();
    time = createTestClock();
    passed = 0;
    // However slow the machine is, silence lasts as long as the test says.
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
  const say = (text: string) => streams.at(-1)?.write(text);
  const streamCount = (count: number) =>
    eventually(() => expect(streams).to.have.length.of.at.least(count));

  /** Resolves with the signal of the caller, once the caller is remembered. */
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
  /** Resolves when the API has heard this, and all that was said before it. */
  async function isHeard(text: string): Promise<void> {
    const signal = await remember(BOB);
    say(`${text}data: acc_bob\n\n`);
    await eventually(() => expect(signal.aborted).to.equal(true));
  }

  for (const type of [undefined, 'text/html', 'application/json', 'text/event-streams']) {
    it(`is none with the content type ${type}: nothing is remembered`, async () => {
      const headers = type === undefined ? {} : { 'content-type': type };
      begin = (stream) => stream.writeHead(200, headers).write(BEAT);
      open();
      await eventually(() => expect(failures).to.deep.include('malformed_answer'));
      await expectAsked(ADA);
      begin = (stream) => stream.writeHead(200, EVENTS).write(BEAT);
      await remember(ADA);
    });
  }

  it('is trusted from its first heartbeat on, for which it has two seconds', async () => {
    begin = (stream) => stream.writeHead(200, EVENTS).write('x\n\ndata: acc_ada\n\n');
    open();
    await streamCount(1);
    await expectAsked(ADA);
    // Whatever else comes meanwhile, a byte at a time, is no heartbeat.
    passed += 1_999;
    say('data: acc_ada\n\nx');
    await expectAsked(ADA);
    expect(failures).to.deep.equal([]);
    passed += 1;
    await eventually(() => expect(failures).to.include('timed_out'));
    begin = (stream) => stream.writeHead(200, EVENTS).write(BEAT);
    await remember(ADA);
  });

  it('stands with a heartbeat each second, as services of before send it', async () => {
    open();
    await remember(ADA);
    for (const _ of [1, 2, 3, 4]) {
      passed += 1_000;
      await isHeard(BEAT);
    }
    expect((await identify(ADA)).decidedBy).to.equal('memory');
    expect({ failures, streams: streams.length }).to.deep.equal({ failures: [], streams: 1 });
  });

  it('stands for 0.9 seconds without a heartbeat of a service that sends one every 250 ms', async () => {
    begin = (stream) => stream.writeHead(200, EVENTS).write(': heartbeat-ms=250\n\n');
    open();
    await remember(ADA);
    passed += 899;
    expect((await identify(ADA)).decidedBy).to.equal('memory');
    passed += 1;
    expect((await identify(ADA)).decidedBy).to.equal('service');
    await eventually(() => expect(failures).to.include('timed_out'));
  });

  describe('of a node that leaves', () => {
    let signal: AbortSignal;
    let next: ServerResponse;

    /** The next one is opened, and has begun, while the former one still stands. */
    beforeEach(async () => {
      open();
      signal = await remember(ADA);
      say(': leaving\n\n');
      await streamCount(2);
      const [, second] = streams;
      if (second === undefined) throw new Error('there is no next one');
      next = second;
      // It has begun before what comes after its heartbeat.
      const marker = await remember(BOB);
      next.write('data: acc_bob\n\n');
      await eventually(() => expect(marker.aborted).to.equal(true));
    });
    const former = () => streams[0] as ServerResponse;
    /** Resolves when this was heard on the former one. */
    const isHeardOnFormer = async (): Promise<void> => {
      const marker = await remember(BOB);
      former().write(':\n\ndata: acc_bob\n\n');
      await eventually(() => expect(marker.aborted).to.equal(true));
    };

    it('is followed by the next one, and no caller is forgotten, once both were heard for a second', async () => {
      passed += 999;
      await isHeardOnFormer();
      next.write(':\n\n');
      expect(former().destroyed).to.equal(false);
      passed += 1;
      former().write(':\n\n');
      await eventually(() => expect(former().destroyed).to.equal(true));
      expect(signal.aborted).to.equal(false);
      expect((await identify(ADA)).decidedBy).to.equal('memory');
      await isHeard('');
      expect({ failures, streams: streams.length }).to.deep.equal({ failures: [], streams: 2 });
    });

    it('is followed by the next one, and every caller is forgotten, if it ended before', async () => {
      passed += 999;
      await isHeardOnFormer();
      former().destroy();
      await eventually(() => expect(signal.aborted).to.equal(true));
      expect((await identify(ADA)).decidedBy).to.equal('service');
      await isHeard('');
      expect(streams).to.have.length(2);
    });

    it('is heard together with the next one', async () => {
      next.write('data: acc_ada\n\n');
      await eventually(() => expect(signal.aborted).to.equal(true));
      signal = await remember(ADA);
      former().write('data: acc_ada\n\n');
      await eventually(() => expect(signal.aborted).to.equal(true));
    });

    it('goes on when the next one breaks, and another one is opened', async () => {
      next.destroy();
      await streamCount(3);
      expect(signal.aborted).to.equal(false);
      await isHeardOnFormer();
      expect((await identify(ADA)).decidedBy).to.equal('memory');
    });
  });

  it('keeps no answer for five seconds after a change of what it names', async () => {
    open();
    const signal = await remember(ADA);
    say('data: acc_ada\n\n');
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
    it(`forgets every caller at a line that is not understood: ${JSON.stringify(line)}`, async () => {
      open();
      const signal = await remember(ADA);
      say(`${line}\n\n`);
      await eventually(() => expect(signal.aborted).to.equal(true));
      expect((await identify(ADA)).decidedBy).to.equal('service');
      expect(failures).to.deep.equal(['malformed_answer']);
      // A newer service may say more than this version knows: what it knows, it still hears.
      await isHeard('');
      expect(streams).to.have.length(1);
    });
  }

  describe('does not keep an answer that was held', () => {
    let release: () => void;
    let answer: Promise<Identified>;

    /** Asks about Ada; the service has decided then, and its answer is on its way until `release`. */
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

    /** The answer, from before the revocation, still counts for the request that asked for it. */
    async function expectForgotten(): Promise<void> {
      release();
      const { caller } = await answer;
      expect(caller?.subject).to.equal('acc_ada');
      expect(caller?.signal?.aborted).to.equal(true);
      time.advance(6);
      expect((await identify(ADA)).refusal?.status).to.equal(401);
    }

    it('while its caller was revoked, however long ago and whatever changed since', async () => {
      revoked.add(ADA);
      await isHeard('data: acc_ada\n\n');
      time.advance(7);
      await isHeard('data: acc_other\n\n');
      await expectForgotten();
    });

    it('while its caller was revoked and the clock was put back', async () => {
      const marker = (await identify(BOB)).caller?.signal;
      time.advance(-3_600);
      revoked.add(ADA);
      say('data: acc_ada\n\ndata: acc_bob\n\n');
      await eventually(() => expect(marker?.aborted).to.equal(true));
      release();
      await answer;
      time.advance(3_600);
      expect((await identify(ADA)).refusal?.status).to.equal(401);
    });

    it('while the stream was away', async () => {
      streams.at(-1)?.destroy();
      revoked.add(ADA);
      await streamCount(2);
      await remember(BOB);
      await expectForgotten();
    });

    it('until the stream was away', async () => {
      begin = (stream) => stream.writeHead(503).end();
      streams.at(-1)?.destroy();
      revoked.add(ADA);
      await streamCount(2);
      await expectForgotten();
    });
  });
});
