/** What the vectors of a change stream and of the cache do not say: requests, failures, repeated changes, and exact times. */
import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import { createTestClock, type TestClock } from '../../../test/support/clock.ts';
import { eventually } from '../../../test/support/eventually.ts';
import type { CallerFields } from '../src/caller.ts';
import { createRememberedCallers } from '../src/remembered-callers.ts';
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

  for (const comment of [': heartbeat-ms=250 repeated x', ': x: heartbeat-ms=250 repeated']) {
    it(`a comment that contains a known one and more is ignored: "${comment}"`, async () => {
      open();
      await remember(ADA);
      await reopen(': at=s-1\n\n: at=s-2 x\n\n: x: at=s-3\n\n', `${comment}\n\n`);
      expect(positions).to.deep.equal([undefined, 's-1']);
      expect((await identify(ADA)).decidedBy).to.equal('service');
    });
  }

  it('if the stream that is to replace a leaving one is refused, the leaving one stays in force', async () => {
    open();
    await remember(ADA);
    begin = (stream) => stream.writeHead(503).end();
    sendEvent(': leaving\n\n');
    await eventually(() => expect(failures).to.have.length.of.at.least(1));
    expect((await identify(ADA)).decidedBy).to.equal('memory');
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

  it('an introspection answer is not cached if its caller was revoked meanwhile and the clock was set back', async () => {
    open();
    await remember(BOB);
    time.advance(6);
    const { promise, resolve: release } = Promise.withResolvers<void>();
    held = promise;
    const before = service.asked.length;
    // The service has decided, but its answer is delayed.
    const answer = identify(ADA);
    await eventually(() => expect(service.asked).to.have.length.above(before));
    held = Promise.resolve();
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
});

const MAX_AGE_MS = 600_000;

describe('the cache of callers', () => {
  let now: number;
  let callers: ReturnType<typeof createRememberedCallers>;
  const { random } = Math;

  beforeEach(() => {
    now = 1_000_000;
    callers = createRememberedCallers({ maxSize: 100, maxAgeMs: MAX_AGE_MS, clock: () => now });
    now += 5_000;
  });
  afterEach(() => {
    Math.random = random;
  });

  /** Caches an answer that was requested just now. */
  function keep(token: string, organizations: CallerFields['organizations'] = []) {
    const subject = `acc_${token}`;
    const fields = { method: 'api_key', subject, accountId: subject, organizations } as const;
    return callers.keep(token, fields, callers.now());
  }

  it('after everything has changed, an id that only the former answer named evicts no caller', () => {
    const former = keep('ada', [{ id: 'org_a', name: 'A', role: 'owner', warehouses: [] }]);
    const ended = former.signal;
    callers.change('everything');
    expect([ended?.aborted, callers.find('ada')]).to.deep.equal([true, undefined]);
    now += 5_000;
    const next = keep('ada');
    callers.change('org_a');
    expect(callers.find('ada')).to.equal(next);
    expect(next.signal?.aborted).to.equal(false);
  });

  it('for five seconds after everything has changed no answer is cached, whichever id changed before and since', () => {
    callers.change('acc_bob');
    now += 3_000;
    callers.change('everything');
    // The change of the first id is forgotten now.
    now += 3_000;
    callers.change('acc_carl');
    keep('ada');
    expect(callers.find('ada')).to.equal(undefined);
    now += 2_000;
    const caller = keep('ada');
    expect(callers.find('ada')).to.equal(caller);
  });

  it('a caller in use is introspected again after a random part of its ten minutes, from 40 % to 90 %', () => {
    for (const [drawn, dueMs] of [
      [0, 540_000],
      [0.5, 390_000],
      [1, 240_000],
    ] as const) {
      Math.random = () => drawn;
      const token = `ada${drawn}`;
      keep(token);
      now += 1;
      callers.find(token);
      now += dueMs - 2;
      expect(callers.takeDue(MAX_AGE_MS), `${drawn}`).to.deep.equal([]);
      now += 1;
      expect(callers.takeDue(MAX_AGE_MS), `${drawn}`).to.deep.equal([token]);
      callers.drop(token);
    }
  });

  it('an answer that has not changed draws the time of the next introspection again', () => {
    Math.random = () => 0;
    const caller = keep('ada');
    Math.random = () => 1;
    now += 100_000;
    expect(keep('ada')).to.equal(caller);
    now += 1;
    callers.find('ada');
    now += 239_998;
    expect(callers.takeDue(MAX_AGE_MS)).to.deep.equal([]);
    now += 1;
    expect(callers.takeDue(MAX_AGE_MS)).to.deep.equal(['ada']);
  });
});
