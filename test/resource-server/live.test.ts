/** An API that remembers its callers, and hears at once what is no longer true. */

import type { ServerResponse } from 'node:http';
import { mock } from 'node:test';
import { expect } from 'chai';
import type { Caller, Introspector } from '../../src/resource-server/resource-server.ts';
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
const TOKENS = [ADA, BOB, ROBOT, KEY];

describe('a caller is remembered', () => {
  let time: TestClock;
  let service: StandIn;
  let api: Introspector;
  let streams: ServerResponse[];
  let answers: Record<string, object>;
  let isOpening: boolean;
  let isBeating: boolean;
  let heardAt: number;

  before(async () => {
    service = await startStandIn((answer, form, asked) => {
      if (asked.method === 'GET') {
        if (!isOpening) return answer.writeHead(503).end();
        answer.writeHead(200, { 'content-type': 'text/event-stream' });
        streams.push(answer);
        const beat = () => isBeating && answer.write(':\n\n');
        const beating = setInterval(beat, 1_000);
        answer.on('close', () => clearInterval(beating));
        return beat();
      }
      const found = answers[new URLSearchParams(form).get('token') ?? ''];
      const iss = service.origin;
      return answering({ active: found !== undefined, iss, ...found })(answer, form, asked);
    });
  });
  const { now } = performance;
  beforeEach(async () => {
    time = createTestClock();
    // Whole, so that sums of it are exact.
    heardAt = Math.floor(now.call(performance));
    // However slow the machine is, silence lasts as long as the test says.
    performance.now = () => heardAt;
    streams = [];
    answers = { ...ANSWERS };
    isOpening = true;
    isBeating = true;
    api = await live();
  });
  afterEach(() => {
    performance.now = now;
    api.close();
    time.restore();
  });

  async function live(mostRemembered = 50_000): Promise<Introspector> {
    const before = streams.length;
    const { clock } = time;
    const options = { issuer: service.origin, clock, live: true, mostRemembered };
    const opened = introspectorOf(API, { ...options, onFailure: () => {} });
    await stands(opened, before + 1);
    return opened;
  }
  /** Resolves when the stream is there, and what is asked from now on may be remembered. */
  async function stands(opened: Introspector, count: number): Promise<void> {
    await eventually(async () => {
      expect(streams).to.have.length.of.at.least(count);
      // It begins when its first word is heard, and that may be after this.
      time.advance(5);
      await callerOf(ADA, opened);
      expect(await isAsked(ADA, opened)).to.equal(false);
    });
  }
  async function callerOf(token: string, by = api): Promise<Caller> {
    const { caller } = await by.identify(bearer(token));
    if (!caller) throw new Error('refused');
    return caller;
  }
  /** Identifies once. @returns whether the service was asked about it. */
  async function isAsked(token: string, by = api): Promise<boolean> {
    const count = () => service.asked.filter((form) => form.get('token') === token).length;
    const before = count();
    await by.identify(bearer(token));
    return count() > before;
  }
  async function remember(...tokens: readonly string[]): Promise<void> {
    for (const token of tokens) await callerOf(token);
    for (const token of tokens) expect(await isAsked(token), token).to.equal(false);
  }
  const tokenIn = (form: URLSearchParams) => form.get('token');
  const say = (what: string) => streams.at(-1)?.write(`data: ${what}\n\n`);

  it('until the service names what is no longer true, and nobody else is asked about', async () => {
    for (const [what, ...dropped] of [
      ['of-ada', ADA],
      ['acc_ada', ADA, KEY],
      ['gate_ci_a', ADA, BOB],
      ['gate_ci_robot', ROBOT],
      ['key_a', KEY],
      ['org_a', ADA, BOB],
      ['acc_bob gate_ci_a', BOB],
      ['acc_bob gate_ci_other'],
      ['acc_stranger'],
      ['everything', ...TOKENS],
    ] as const) {
      await remember(...TOKENS);
      const signals = await Promise.all(
        TOKENS.map(async (token) => (await callerOf(token)).signal),
      );
      say(what);
      // What comes after it on the same stream was heard after it.
      const marker = (await callerOf(KEY)).signal;
      if (!dropped.some((token) => token === KEY)) say('key_a');
      await eventually(() => expect(marker?.aborted).to.equal(true));
      const isDropped = TOKENS.map(
        (token) => token === KEY || dropped.some((one) => one === token),
      );
      expect(
        signals.map((signal) => signal?.aborted),
        what,
      ).to.deep.equal(isDropped);
      for (const [at, token] of TOKENS.entries()) {
        expect(await isAsked(token), `${what}: ${token}`).to.equal(isDropped[at]);
      }
      time.advance(6);
    }
  });

  it('and is the same one, with one signal, in every call', async () => {
    await remember(ADA);
    const [first, second] = [await callerOf(ADA), await callerOf(ADA)];
    expect(first).to.equal(second);
    expect(first.signal).to.equal(second.signal);
    expect(first).to.deep.include({ method: 'authorization_code', authorization: 'of-ada' });
    expect(JSON.stringify(first)).to.not.include('signal');
  });

  it('with the organizations that callers of one account share', async () => {
    answers[KEY] = { ...ANSWERS[KEY], organizations };
    await remember(ADA, KEY);
    const [ada, key] = [await callerOf(ADA), await callerOf(KEY)];
    expect(ada.organizations).to.equal(key.organizations);
  });

  it('not beyond the expiry of the token, nor for longer than ten minutes', async () => {
    answers[BOB] = { ...ANSWERS[BOB], exp: Math.floor(time.clock() / 1000) + 60 };
    await remember(ADA, BOB);
    time.advance(58);
    expect([await isAsked(ADA), await isAsked(BOB)]).to.deep.equal([false, false]);
    time.advance(2);
    expect([await isAsked(ADA), await isAsked(BOB)]).to.deep.equal([false, true]);
    time.advance(540);
    expect(await isAsked(ADA)).to.equal(true);
  });

  it('and one who calls is asked about again in the background, before ten minutes are over', async () => {
    await remember(ADA, BOB);
    const { signal } = await callerOf(ADA);
    // The service would tell of it, and for some reason did not.
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

  it('but one who does not call again is forgotten, unless something may wait for the signal', async () => {
    await callerOf(ADA);
    await callerOf(BOB);
    const { signal } = await callerOf(BOB);
    time.advance(5);
    const count = () => service.asked.filter((form) => form.has('token')).map(tokenIn);
    const before = count().length;
    time.advance(545);
    await eventually(() => expect(count().slice(before)).to.deep.equal([BOB]));
    expect(signal?.aborted).to.equal(false);
  });

  it('until the token expires: its signal fires then, without another call', async () => {
    const expiry = time.clock() + 600_000;
    answers[BOB] = { ...ANSWERS[BOB], exp: expiry / 1_000 };
    await remember(BOB);
    time.set(new Date(expiry - 100));
    const { signal } = await callerOf(BOB);
    expect(signal?.aborted).to.equal(false);
    time.set(new Date(expiry));
    await eventually(() => expect(signal?.aborted).to.equal(true));
    // Not even by a clock that was put back.
    time.set(new Date(expiry - 50));
    expect(await isAsked(BOB)).to.equal(true);
  });

  it('for the 90 days of a key, though no timer of Node waits longer than 24.8 days', async () => {
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

  it('and one who reaches something else is another caller: the signal of the former one fires', async () => {
    await remember(ADA);
    const former = await callerOf(ADA);
    const { signal } = former;
    answers[ADA] = { ...ANSWERS[ADA], organizations: [] };
    // No change was announced, and ten minutes later it is found out all the same.
    time.advance(600);
    const next = await callerOf(ADA);
    expect(next).to.not.equal(former);
    expect(next.organizations).to.deep.equal([]);
    expect([signal?.aborted, next.signal?.aborted]).to.deep.equal([true, false]);
    expect(await callerOf(ADA)).to.equal(next);
  });

  it('not after the clock was put back', async () => {
    await remember(ADA);
    time.advance(-3_600);
    expect(await isAsked(ADA)).to.equal(true);
  });

  it('but nobody is remembered as refused', async () => {
    const unknown = `${TOKEN}unknown`;
    expect([await isAsked(unknown), await isAsked(unknown)]).to.deep.equal([true, true]);
  });

  it('unless there are more than the API wants: then not who was asked about first', async () => {
    api.close();
    api = await live(2);
    await remember(ADA, BOB);
    const { signal } = await callerOf(ADA);
    await callerOf(ROBOT);
    expect(signal?.aborted).to.equal(true);
    expect([await isAsked(ROBOT), await isAsked(BOB)]).to.deep.equal([false, false]);
    expect(await isAsked(ADA)).to.equal(true);
  });

  it('not from an answer that another node may have given before it heard of the change', async () => {
    await remember(ADA, BOB);
    const { signal } = await callerOf(ADA);
    say('acc_ada');
    await eventually(() => expect(signal?.aborted).to.equal(true));
    expect([await isAsked(ADA), await isAsked(ADA), await isAsked(BOB)]).to.deep.equal([
      true,
      true,
      false,
    ]);
    const unsettled = await callerOf(ADA);
    const again = unsettled.signal;
    // Another node says later what is true.
    delete answers[ADA];
    expect(await isAsked(ADA)).to.equal(true);
    expect(again?.aborted).to.equal(true);
  });

  it('and who was told to come again is not told so a second time', async () => {
    await remember(ADA);
    const { signal } = await callerOf(ADA);
    say('acc_ada');
    await eventually(() => expect(signal?.aborted).to.equal(true));
    const unsettled = await callerOf(ADA);
    time.advance(5);
    // Its time is over, whatever the timer would wait for.
    const over = unsettled.signal;
    await eventually(() => expect(over?.aborted).to.equal(true));
    expect((await callerOf(ADA)).signal?.aborted).to.equal(false);
    expect(await isAsked(ADA)).to.equal(false);
  });

  it('not while the stream is broken, and nobody of before it stands again', async () => {
    await remember(ADA);
    const { signal } = await callerOf(ADA);
    isOpening = false;
    streams.at(-1)?.destroy();
    await eventually(() => expect(signal?.aborted).to.equal(true));
    expect([await isAsked(ADA), await isAsked(ADA)]).to.deep.equal([true, true]);
    // Nobody would tell.
    expect((await callerOf(ADA)).signal?.aborted).to.equal(true);
    isOpening = true;
    await stands(api, 2);
    expect((await callerOf(ADA)).signal?.aborted).to.equal(false);
  });

  it('not once nothing was heard for two seconds', async () => {
    await remember(ADA, KEY);
    const [{ signal }, marker] = [await callerOf(ADA), (await callerOf(KEY)).signal];
    isBeating = false;
    say('key_a');
    await eventually(() => expect(marker?.aborted).to.equal(true));
    heardAt += 1_999;
    expect(await isAsked(ADA)).to.equal(false);
    heardAt += 1;
    expect([await isAsked(ADA), await isAsked(ADA)]).to.deep.equal([true, true]);
    await eventually(() => expect(signal?.aborted).to.equal(true));
    // What the stream of before says is not believed; another one is.
    say('acc_bob');
    isBeating = true;
    await stands(api, 2);
  });
});
