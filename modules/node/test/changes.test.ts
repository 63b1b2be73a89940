/** What the vectors of a change stream and of the cache do not say: requests, failures, repeated changes, and exact times. */
import type { ServerResponse } from 'node:http';
import { mock } from 'node:test';
import { expect } from 'chai';
import { createTestClock, type TestClock } from '../../../test/support/clock.ts';
import { eventually } from '../../../test/support/eventually.ts';
import type { CallerFields } from '../src/caller.ts';
import { createChangeStream } from '../src/change-stream.ts';
import { IntrospectionFailure } from '../src/introspection-answer.ts';
import type { StreamListener } from '../src/introspection-endpoint.ts';
import { createRememberedCallers } from '../src/remembered-callers.ts';
import type { FailureReason, Identified, Introspector } from '../src/resource-server.ts';
import { API, bearer, cachedCaller, introspectorOf, type StandIn, startService, TOKEN } from './stand-in.ts';

const [ADA, BOB, CARL] = [`${TOKEN}ada`, `${TOKEN}bob`, `${TOKEN}carl`];
/** In other letters, with a blank and a parameter, which is all the same. */
const EVENTS = { 'content-type': 'Text/Event-Stream ; charset=utf-8' };
const BEAT = ':\n\n';

describe('the stream of changes of an API', () => {
  let service: StandIn;
  /** Sends the beginning of each stream. */
  let begin: (stream: ServerResponse) => unknown;
  let streams: ServerResponse[];
  /** The `Last-Event-ID` of each request for a stream. */
  let positions: unknown[];
  let revoked: Set<string>;
  let time: TestClock;
  let passed: number;
  let api: Introspector;
  let failures: FailureReason[];

  before(async () => {
    const person = { token_type: 'Bearer', client_id: 'gate_ci_a', organizations: [] };
    const answerOf = (token: string) =>
      revoked.has(token) ? undefined : { ...person, sub: `acc_${token.slice(TOKEN.length)}` };
    service = await startService(answerOf, (stream, _form, asked) => {
      streams.push(stream);
      positions.push(asked.headers['last-event-id']);
      return begin(stream);
    });
  });
  const { now } = performance;
  beforeEach(() => {
    begin = (stream) => stream.writeHead(200, EVENTS).write(BEAT);
    streams = [];
    positions = [];
    revoked = new Set();
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
  const remember = async (token: string) =>
    (await cachedCaller(api, token, () => time.advance(6))).signal as AbortSignal;
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

  it('a change stream with another content type is not trusted, and no caller is cached', async () => {
    begin = (stream) => stream.writeHead(200, { 'content-type': 'text/event-streams' }).write(BEAT);
    open();
    await eventually(() => expect(failures).to.deep.include('malformed_answer'));
    await expectAsked(ADA);
    begin = (stream) => stream.writeHead(200, EVENTS).write(BEAT);
    await remember(ADA);
  });

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

  it('if the next stream repeats the changes that a lost stream missed, only the changed callers are evicted', async () => {
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

  it('the operator of an API reads why it has no stream', async () => {
    const refused = (status: number) => (stream: ServerResponse) => stream.writeHead(status).end();
    const noEvents = 'does not answer with text/event-stream';
    const tooMany =
      'is refused for a while: this API has too many streams open ' +
      '(limits.change_streams_per_client), or sent too many wrong secrets';
    const sends = (text: string) => (stream: ServerResponse) => stream.writeHead(200, EVENTS).end(text);
    for (const [begins, reason, cause] of [
      [refused(503), 'failed', 'the change stream answered with status 503'],
      [refused(401), 'credentials_refused', 'the change stream refuses the client id or secret of this API'],
      [refused(429), 'throttled', `the change stream ${tooMany}`],
      [sends(''), 'unreachable', `${service.introspectionEndpoint}/changes ended`],
      [sends(`${BEAT}id: 7\n\n`), 'malformed_answer', 'the change stream sent an invalid event'],
      [(stream) => stream.end(), 'malformed_answer', `${service.introspectionEndpoint}/changes ${noEvents}`],
      [(stream) => stream.destroy(), 'unreachable', `${service.introspectionEndpoint} cannot be reached: ECONNRESET`],
    ] as [typeof begin, FailureReason, string][]) {
      begin = begins;
      const { promise, resolve } = Promise.withResolvers<IntrospectionFailure>();
      api = introspectorOf(API, { issuer: service.origin, live: true, onFailure: resolve });
      const { reason: found, message } = await promise;
      api.close();
      expect([found, message]).to.deep.equal([reason, cause]);
    }
  });

  const POSITIONS = ': at=s-1\n\n: at=s-2 x\n\n: x: at=s-3\n\n';
  for (const [what, position, comment, from] of [
    [
      'that claims to repeat missed changes, which the API did not request,',
      '',
      ': heartbeat-ms=250 repeated',
      undefined,
    ],
    [
      'whose comment about repeated changes has more text at its end',
      POSITIONS,
      ': heartbeat-ms=250 repeated x',
      's-1',
    ],
    ['whose comment about repeated changes has text before it', POSITIONS, ': x: heartbeat-ms=250 repeated', 's-1'],
  ] as const) {
    it(`a next stream ${what} evicts all callers`, async () => {
      open();
      await remember(ADA);
      await reopen(position, `${comment}\n\n`);
      expect(positions).to.deep.equal([undefined, from]);
      expect((await identify(ADA)).decidedBy).to.equal('service');
    });
  }

  it('if a node leaves and the stream that should replace its own is refused, its own stream stays in use', async () => {
    open();
    await remember(ADA);
    begin = (stream) => stream.writeHead(503).end();
    sendEvent(': leaving\n\n');
    await eventually(() => expect(failures).to.have.length.of.at.least(1));
    expect((await identify(ADA)).decidedBy).to.equal('memory');
  });

  it('a caller who lost access while the stream was lost stays refused after missed changes were repeated', async () => {
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
});

describe('the streams that an API opens one after the other', () => {
  const { random } = Math;
  const { now } = performance;
  let time: number;
  let streams: StreamListener[];
  let reported: (string | boolean)[];
  let stream: ReturnType<typeof createChangeStream>;

  beforeEach(() => {
    mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
    // The longest of the random pauses.
    Math.random = () => 1;
    time = 0;
    performance.now = () => time;
    streams = [];
    reported = [];
    stream = createChangeStream({
      listen(listener) {
        const at = streams.push(listener);
        return () => reported.push(`stops ${at}`);
      },
      onChange: (what) => reported.push(what),
      onStart: (isComplete) => reported.push(isComplete),
      onLost: () => reported.push('lost'),
      onFailure: ({ message }) => reported.push(message),
    });
  });
  afterEach(() => {
    stream.close();
    mock.timers.reset();
    Math.random = random;
    performance.now = now;
  });

  const end = (retryAfterSeconds?: number, which = streams.at(-1)) =>
    which?.onEnd(new IntrospectionFailure('failed', 'ended', { retryAfterSeconds }));
  function begin(): StreamListener {
    const begun = streams.at(-1) as StreamListener;
    begun.onOpen();
    begun.onText(BEAT);
    return begun;
  }
  function expectNextAfter(milliseconds: number): void {
    const count = streams.length;
    mock.timers.tick(milliseconds - 1);
    expect(streams).to.have.lengthOf(count);
    mock.timers.tick(1);
    expect(streams).to.have.lengthOf(count + 1);
  }

  it('an API waits longer after each refusal, or as Retry-After says, and up to half as long again', () => {
    const ROWS: [number | undefined, number][] = [
      ...[375, 750, 1_500, 3_000, 3_000].map((pause): [undefined, number] => [undefined, pause]),
      [7, 10_500],
      [1, 3_000],
      [86_400, 900_000],
    ];
    for (const [retryAfterSeconds, pause] of ROWS) {
      end(retryAfterSeconds);
      expectNextAfter(pause);
    }
    // A stream that had begun is replaced within a second.
    begin();
    for (const pause of [1_000, 375]) {
      end();
      expectNextAfter(pause);
    }
  });

  it('an API opens one next stream within 750 ms while its node leaves, and ends the old one a second later', () => {
    const old = begin();
    for (const _ of [1, 2]) old.onText(': leaving\n\n');
    expectNextAfter(750);
    old.onText(': leaving\n\n');
    mock.timers.tick(750);
    expect(streams).to.have.lengthOf(2);
    const next = begin();
    time = 999;
    for (const { onText } of [next, old]) onText(BEAT);
    time = 1_000;
    old.onText('data: acc_a\n\n');
    mock.timers.tick(750);
    expect(streams).to.have.lengthOf(2);
    next.onText(': leaving\n\n');
    expect(reported).to.deep.equal([false, 'acc_a', 'stops 1']);
    expectNextAfter(750);
    // Too early for a handover.
    begin().onText(': leaving\n\n');
    end(0, next);
    expect(reported.slice(3)).to.deep.equal(['stops 2', 'lost', false, 'ended']);
    expectNextAfter(750);
  });

  it('a silent stream is ended and replaced, and a closed introspector opens no other', () => {
    begin();
    time = 2_000;
    expect(stream.stands).to.equal(false);
    mock.timers.tick(100);
    expect(reported).to.deep.equal([false, 'stops 1', 'lost', 'the change stream sent nothing in time']);
    expectNextAfter(1_000);
    begin().onText(': leaving\n\n');
    mock.timers.tick(750);
    stream.close();
    expect(reported.slice(4)).to.deep.equal([false, 'stops 2', 'stops 3']);
    mock.timers.tick(10_000);
    expect(streams).to.have.lengthOf(3);
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

  /** Caches an answer. */
  function keep(token: string, organizations: CallerFields['organizations'] = [], asked = callers.now()) {
    const subject = `acc_${token}`;
    const fields = { method: 'api_key', subject, accountId: subject, organizations } as const;
    return callers.keep(token, fields, asked);
  }

  it('after a change of everything, the change of an id that only the earlier answer named evicts no caller', () => {
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

  it('after a change of everything, no answer is cached for five seconds, whichever ids changed before or after', () => {
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

  it('a caller in use is introspected again at a random time, after 40 % to 90 % of the ten minutes', () => {
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

  it('an answer is not cached if its caller was revoked meanwhile, also if the clock was set back', () => {
    const asked = callers.now();
    now -= 3_600_000;
    callers.change('acc_ada');
    now += 3_600_000;
    keep('ada', [], asked);
    expect(callers.find('ada')).to.equal(undefined);
  });

  it('a change of an id evicts every caller whose answer names the id, and none whose newer answer no longer does', () => {
    const organizations = [{ id: 'org_a', name: 'A', role: 'owner', warehouses: [] }] as const;
    for (const token of ['ada', 'bob', 'carl', 'dora']) keep(token, organizations);
    const next = keep('ada');
    callers.drop('bob');
    callers.change('org_a');
    expect(['ada', 'bob', 'carl', 'dora'].map(callers.find)).to.deep.equal([next, undefined, undefined, undefined]);
  });

  const inOrganization = (id: string) => ({ id, name: id, role: 'owner', warehouses: [] }) as const;

  it('the end of a caller whose organizations the API has replaced does not protect other callers from a change', () => {
    const changed = [inOrganization('org_a')];
    keep('ada', changed);
    keep('bob', [inOrganization('org_b')]);
    changed.splice(0, 1, inOrganization('org_b'));
    callers.drop('ada');
    callers.change('org_b');
    expect(callers.find('bob')).to.equal(undefined);
    now += 5_000;
    // The index has no trace of the caller that was dropped.
    const next = keep('ada');
    callers.change('org_a');
    expect(callers.find('ada')).to.equal(next);
  });

  it('the end of a caller whose answer names an id twice does not protect other callers from a change of this id', () => {
    for (const names of ['ada bob', 'bob ada']) {
      for (const token of names.split(' ')) {
        const organization = inOrganization('org_a');
        keep(token, token === 'ada' ? [organization, organization] : [organization]);
      }
      callers.drop('ada');
      callers.change('org_a');
      expect(callers.find('bob')).to.equal(undefined);
      now += 5_000;
    }
  });

  it('background introspections are spread over half a minute, and are repeated then if no answer has arrived', () => {
    Math.random = () => 1;
    const tokens = Array.from({ length: 60 }, (_, at) => `${at}`);
    for (const token of tokens) keep(token);
    now += 1;
    for (const token of tokens) callers.find(token);
    now += 240_000;
    for (const token of tokens) expect(callers.takeDue(500)).to.deep.equal([token]);
    now += 29_999;
    expect(callers.takeDue(MAX_AGE_MS)).to.deep.equal([]);
    now += 1;
    expect(callers.takeDue(MAX_AGE_MS)).to.deep.equal(tokens);
  });

  it('a caller without calls is evicted, and one whose signal was read only after a day', () => {
    const DAY_MS = 86_400_000;
    keep('ada');
    const { signal } = keep('bob');
    now += DAY_MS - 1;
    expect(callers.takeDue(MAX_AGE_MS)).to.deep.equal(['bob']);
    now += 30_000;
    expect(callers.takeDue(MAX_AGE_MS)).to.deep.equal([]);
    expect(signal?.aborted).to.equal(true);
  });

  it('more than 100,000 ids that change within five seconds evict all callers', () => {
    const caller = keep('ada');
    for (let at = 0; at < 100_000; at += 1) callers.change(`acc_${at}`);
    expect(callers.find('ada')).to.equal(caller);
    callers.change('acc_another');
    expect(callers.find('ada')).to.equal(undefined);
  });

  it('after an unchanged answer, the time of the next introspection is chosen at random again', () => {
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
