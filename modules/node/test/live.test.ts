/** What the vectors of the cache do not say: objects and signals of callers, introspections in the background, limits. */
import type { ServerResponse } from 'node:http';
import { mock } from 'node:test';
import { expect } from 'chai';
import { createTestClock, type TestClock } from '../../../test/support/clock.ts';
import { eventually } from '../../../test/support/eventually.ts';
import type { Caller, Introspector } from '../src/resource-server.ts';
import { API, bearer, cachedCaller, introspectorOf, type StandIn, startService, TOKEN } from './stand-in.ts';

const [ADA, BOB, ROBOT, KEY] = ['ada', 'bob', 'robot', 'key'].map((name) => `${TOKEN}${name}`) as [
  string,
  string,
  string,
  string,
];
const organizations = [{ id: 'org_a', name: 'A', role: 'owner', warehouses: [] }];
const person = { token_type: 'Bearer', client_id: 'gate_ci_a', organizations };
const ANSWERS: Record<string, object> = {
  [ADA]: { ...person, sub: 'acc_ada', authorization: 'of-ada' },
  [BOB]: { ...person, sub: 'acc_bob', authorization: 'of-bob' },
  [ROBOT]: { ...person, sub: 'gate_ci_robot', client_id: 'gate_ci_robot', organizations: [] },
  [KEY]: { token_type: 'api_key', sub: 'acc_ada', api_key: 'key_a', organizations: [] },
};

describe('a cached caller', () => {
  let time: TestClock;
  let service: StandIn;
  let api: Introspector;
  let streams: ServerResponse[];
  let answers: Record<string, object>;

  before(async () => {
    const stream = (answer: ServerResponse) => {
      answer.writeHead(200, { 'content-type': 'text/event-stream' });
      streams.push(answer);
      const beat = () => answer.write(':\n\n');
      const beating = setInterval(beat, 1_000);
      answer.on('close', () => clearInterval(beating));
      return beat();
    };
    service = await startService((token) => answers[token], stream);
  });
  const { now } = performance;
  beforeEach(async () => {
    time = createTestClock();
    // No silence lasts too long, however slow the machine is.
    performance.now = () => 0;
    streams = [];
    answers = { ...ANSWERS };
    api = await live();
  });
  afterEach(() => {
    performance.now = now;
    api.close();
    time.restore();
  });

  /** Starts an API whose stream is trusted, so that answers from now on may be cached. */
  async function live(mostRemembered = 50_000): Promise<Introspector> {
    const { clock } = time;
    const options = { issuer: service.origin, clock, live: true, mostRemembered };
    const opened = introspectorOf(API, { ...options, onFailure: () => {} });
    await cachedCaller(opened, ADA, () => time.advance(5));
    return opened;
  }
  async function callerOf(token: string): Promise<Caller> {
    const { caller } = await api.identify(bearer(token));
    if (!caller) throw new Error('refused');
    return caller;
  }
  /** Identifies once. @returns true if the service was asked. */
  async function isAsked(token: string): Promise<boolean> {
    const count = () => service.asked.filter((form) => form.get('token') === token).length;
    const before = count();
    await api.identify(bearer(token));
    return count() > before;
  }
  async function remember(...tokens: readonly string[]): Promise<void> {
    for (const token of tokens) await callerOf(token);
    for (const token of tokens) expect(await isAsked(token), token).to.equal(false);
  }
  const announce = (what: string) => streams.at(-1)?.write(`data: ${what}\n\n`);

  it('a cached caller is the same object with the same abort signal in every call', async () => {
    await remember(ADA);
    const [first, second] = [await callerOf(ADA), await callerOf(ADA)];
    expect(first).to.equal(second);
    expect(first.signal).to.equal(second.signal);
    expect(first).to.deep.include({ method: 'authorization_code', authorization: 'of-ada' });
    expect(JSON.stringify(first)).to.not.include('signal');
  });

  it('cached callers of the same account share one list of organizations', async () => {
    answers[KEY] = { ...ANSWERS[KEY], organizations };
    await remember(ADA, KEY);
    const [ada, key] = [await callerOf(ADA), await callerOf(KEY)];
    expect(ada.organizations).to.equal(key.organizations);
  });

  it('a cached caller that keeps calling is introspected again before the ten minutes end', async () => {
    await remember(ADA, BOB);
    const { signal } = await callerOf(ADA);
    // Simulate changes that the service failed to announce.
    delete answers[ADA];
    answers[BOB] = { ...ANSWERS[BOB], organizations: [] };
    time.advance(239);
    for (const token of [ADA, BOB]) expect(await isAsked(token)).to.equal(false);
    time.advance(301);
    expect((await api.identify(bearer(ADA))).decidedBy, 'without waiting').to.equal('memory');
    await eventually(() => expect(signal?.aborted).to.equal(true));
    await eventually(async () => expect((await callerOf(BOB)).organizations).to.deep.equal([]));
    time.advance(61);
    expect(await isAsked(BOB), 'ten minutes after the first answer').to.equal(false);
  });

  it('the abort signal of a cached caller fires when the token expires, without another call', async () => {
    const expiry = time.clock() + 600_000;
    answers[BOB] = { ...ANSWERS[BOB], exp: expiry / 1_000 };
    await remember(BOB);
    time.set(new Date(expiry - 100));
    const { signal } = await callerOf(BOB);
    expect(signal?.aborted).to.equal(false);
    time.set(new Date(expiry));
    await eventually(() => expect(signal?.aborted).to.equal(true));
    // The cached caller is not used again, even if the clock is set back.
    time.set(new Date(expiry - 50));
    expect(await isAsked(BOB)).to.equal(true);
  });

  it('the abort signal of an API key can last 90 days, although timers of Node end at 24.8 days', async () => {
    const DAY = 86_400;
    answers[KEY] = { ...ANSWERS[KEY], exp: Math.floor(time.clock() / 1000) + 90 * DAY };
    await remember(KEY);
    mock.timers.enable({ apis: ['setTimeout'] });
    try {
      const { signal } = await callerOf(KEY);
      const pass = (days: number) => {
        time.advance(days * DAY);
        mock.timers.tick(days * DAY * 1_000);
      };
      for (const days of [25, 25, 25, 14]) {
        pass(days);
        expect(signal?.aborted).to.equal(false);
      }
      pass(1);
      expect(signal?.aborted).to.equal(true);
    } finally {
      mock.timers.reset();
    }
  });

  it('a cached caller whose access has changed is replaced, and the abort signal of the old object fires', async () => {
    await remember(ADA);
    const former = await callerOf(ADA);
    const { signal } = former;
    answers[ADA] = { ...ANSWERS[ADA], organizations: [] };
    // An unannounced change is noticed after ten minutes.
    time.advance(600);
    const next = await callerOf(ADA);
    expect(next).to.not.equal(former);
    expect(next.organizations).to.deep.equal([]);
    expect([signal?.aborted, next.signal?.aborted]).to.deep.equal([true, false]);
    expect(await callerOf(ADA)).to.equal(next);
  });

  it('a full cache evicts the caller that was cached first', async () => {
    api.close();
    api = await live(2);
    await remember(ADA, BOB);
    const { signal } = await callerOf(ADA);
    await callerOf(ROBOT);
    expect(signal?.aborted).to.equal(true);
    expect([await isAsked(ROBOT), await isAsked(BOB)]).to.deep.equal([false, false]);
    expect(await isAsked(ADA)).to.equal(true);
  });

  it('five seconds after a change a caller is cached again, with a lasting abort signal', async () => {
    await remember(ADA);
    const { signal } = await callerOf(ADA);
    announce('acc_ada');
    await eventually(() => expect(signal?.aborted).to.equal(true));
    const unsettled = await callerOf(ADA);
    time.advance(5);
    // The signal fires soon, because the five seconds have passed on the test clock.
    const over = unsettled.signal;
    await eventually(() => expect(over?.aborted).to.equal(true));
    expect((await callerOf(ADA)).signal?.aborted).to.equal(false);
    expect(await isAsked(ADA)).to.equal(false);
  });
});
