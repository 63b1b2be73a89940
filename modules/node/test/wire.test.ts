/** The module reads what the wire contract contains as its test vectors say. */
import { mock } from 'node:test';
import { expect } from 'chai';
import type { Caller } from '../src/caller.ts';
import { IntrospectionFailure, refuseOtherStatus } from '../src/introspection-answer.ts';
import type { StreamListener } from '../src/introspection-endpoint.ts';
import { type Identified, introspectorOver } from '../src/introspector.ts';
import { receivedToken } from '../src/received-token.ts';
import type { Refusal } from '../src/resource-server.ts';
import { connectStream } from '../src/stream-connection.ts';
import { API, bearer, introspectorOf, startStandIn, TOKEN } from './stand-in.ts';
import {
  ANSWERS,
  type AnswerMembers,
  type CacheStep,
  type CacheVector,
  REQUESTS,
  STREAMS,
  TIMELINES,
} from './vectors.ts';

const ISSUER = 'https://auth.example.com';

const shownRefusal = ({ status, headers }: Refusal) => ({
  status,
  ...(headers['WWW-Authenticate'] !== undefined && {
    www_authenticate: headers['WWW-Authenticate'].replace(/(?<=description=")[^"]+/, '…'),
  }),
  ...(headers['Retry-After'] !== undefined && { retry_after: headers['Retry-After'] }),
});

/** Returns the caller as the vectors show it: names with underscores, times in seconds. */
const shownCaller = ({ expiresAt, ...caller }: Caller): object =>
  JSON.parse(
    JSON.stringify(caller)
      .replaceAll('"accountId":', '"account_id":')
      .replaceAll('"clientId":', '"client_id":')
      .replaceAll('"externalId":', '"external_id":')
      .replaceAll('"apiKey":', '"api_key":')
      .replace(/\}$/, expiresAt ? `,"expires_at":${expiresAt.getTime() / 1000}}` : '}'),
  );

describe('the test vectors of introspection answers', () => {
  for (const { title, status, headers, body, outcome } of ANSWERS) {
    it(`the module reads the answer of the vector: ${title}`, async () => {
      const { introspectionEndpoint } = await startStandIn((answer) =>
        answer.writeHead(status, headers).end(status === 204 ? undefined : body),
      );
      const reasons: string[] = [];
      const onFailure = ({ reason }: IntrospectionFailure): void => void reasons.push(reason);
      const api = introspectorOf(API, { issuer: ISSUER, introspectionEndpoint, onFailure });
      const { caller, refusal } = await api.identify(bearer(TOKEN));
      if (caller) expect({ caller: shownCaller(caller) }).to.deep.equal(outcome);
      else {
        const [reason] = reasons;
        expect({ refusal: shownRefusal(refusal), ...(reason && { reason }) }).to.deep.equal(outcome);
      }
    });
  }
});

describe('the test vectors of Authorization headers', () => {
  for (const { title, query, content_type, authorization, outcome } of REQUESTS) {
    it(`the module reads the request of the vector: ${title}`, () => {
      const sent = authorization.flatMap((value) => ['Authorization', value]);
      const { token, refusal } = receivedToken({
        headers: {},
        url: `/graphql${query && '?'}${query}`,
        rawHeaders: ['Content-Type', content_type, ...sent],
      });
      const found = refusal ? { refusal: shownRefusal(refusal) } : { token };
      expect(found).to.deep.equal(outcome);
    });
  }
});

describe('headers as a plain object or as Node received them', () => {
  it('only the Authorization header is read, in any letter case, and no other header of the same length', () => {
    const headers = { AUTHORIZATION: `Bearer ${TOKEN}`, 'Cache-Control': 'no-cache' };
    const rawHeaders = Object.entries(headers).flat();
    for (const received of [{ headers }, { headers: {}, rawHeaders }]) {
      expect(receivedToken({ ...received, url: '/graphql' })).to.deep.equal({ token: TOKEN });
    }
  });
});

describe('the time after which a throttled API may retry', () => {
  it('a Retry-After that is not a positive number of seconds is ignored', () => {
    const asked = (value: string): unknown => {
      try {
        refuseOtherStatus({ status: 429, headers: { 'retry-after': value } });
      } catch (error) {
        return (error as IntrospectionFailure).retryAfterSeconds;
      }
      throw new Error('the answer was accepted');
    };
    expect(['7', '-7', '0', '1.5', 'soon'].map(asked)).to.deep.equal([7, undefined, undefined, undefined, undefined]);
  });
});

const { now } = performance;

describe('the test vectors of the change stream', () => {
  afterEach(() => {
    performance.now = now;
  });

  for (const { title, pieces, events } of STREAMS) {
    it(`the module reads the stream of the vector: ${title}`, () => {
      const heard: string[] = [];
      let time = 0;
      performance.now = () => time;
      let stream: StreamListener | undefined;
      const connection = connectStream(
        (listener) => {
          stream = listener;
          return () => {};
        },
        {
          onStart: () => heard.push('begins'),
          onHeard: () => {},
          onChange: (what) => heard.push(`changed ${what}`),
          onLeaving: () => heard.push('leaving'),
          onUnknown: () => heard.push('unknown line'),
          onLost: () => heard.push('lost'),
        },
      );
      stream?.onOpen();
      for (const { after_ms, text } of pieces) {
        time += after_ms;
        if (text !== null) stream?.onText(text);
        else if (connection.isSilent()) heard.push('lost');
      }
      expect(heard).to.deep.equal(events);
    });
  }
});

describe('the test vectors of the cache', () => {
  const { random } = Math;
  beforeEach(() => {
    mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
    Math.random = () => 0.5;
  });
  afterEach(() => {
    mock.timers.reset();
    performance.now = now;
    Math.random = random;
  });

  for (const vector of TIMELINES) {
    it(`the module caches as the vector says: ${vector.title}`, async () => {
      const run = createTimeline(vector);
      for (const step of vector.steps) await run.play(step);
      await run.end();
    });
  }
});

interface OpenStream extends StreamListener {
  /** The time of its next heartbeat; undefined before the headers. */
  beatsAt?: number;
  isStopped: boolean;
}

/** Plays a timeline against the module, whose timers, clocks and transport are the test's. */
function createTimeline({ answers: first }: CacheVector) {
  let time = 0;
  let aheadMs = 0;
  let isBeating = true;
  let isServiceSilent = false;
  const answers = { ...first };
  const streams: OpenStream[] = [];
  const latest = new Map<string, AbortSignal | undefined>();
  const waiting: { at: number; resolve: () => void }[] = [];
  const calls: Promise<void>[] = [];
  performance.now = () => time;

  const api = introspectorOver(
    () => ({
      async ask(token) {
        const name = token.slice(TOKEN.length);
        const answer = answers[name] ?? null;
        if (isServiceSilent) throw new IntrospectionFailure('timed_out', 'no answer');
        const { at_ms, answered_at_ms = at_ms } = current;
        if (current.call === name && answered_at_ms > time) {
          await new Promise<void>((resolve) => waiting.push({ at: answered_at_ms, resolve }));
        }
        return { status: 200, headers: {}, body: JSON.stringify(answerBody(answer)) };
      },
      listen(listener) {
        const stream: OpenStream = { ...listener, isStopped: false };
        streams.push(stream);
        return () => {
          stream.isStopped = true;
        };
      },
      close() {},
    }),
    {
      issuer: ISSUER,
      clientId: 'gate_ci_api',
      clientSecret: 'gate_cs_api',
      live: true,
      clock: () => time + aheadMs,
      onFailure: () => {},
    },
  );
  let current: CacheStep = { at_ms: 0 };

  const open = (): OpenStream[] => streams.filter(({ isStopped, beatsAt }) => !isStopped && beatsAt !== undefined);

  /** Lets the time pass: heartbeats, timers and delayed answers happen in their order. */
  async function passUntil(end: number): Promise<void> {
    while (time < end) {
      const step = Math.min(end - time, 50);
      time += step;
      for (const stream of open()) {
        if (!isBeating || time < (stream.beatsAt ?? 0)) continue;
        stream.beatsAt = time + 250;
        stream.onText(':\n\n');
      }
      for (const { at, resolve } of waiting) if (at <= time) resolve();
      mock.timers.tick(step);
      await settled();
    }
  }

  async function changeStream(step: CacheStep): Promise<void> {
    const [old, next] = open();
    if (step.stream === 'opens') {
      const asked = streams.find(({ isStopped, beatsAt }) => !isStopped && beatsAt === undefined);
      if (!asked) throw new Error('the API has not asked for a stream');
      const delay = step.first_heartbeat_ms ?? 0;
      asked.beatsAt = time + (delay || 250);
      asked.onOpen();
      if (delay === 0) asked.onText(': heartbeat-ms=250\n\n');
    } else {
      // After a complete handover the API itself has ended the old stream.
      const ending = step.stream === 'new breaks' ? next : old;
      const isHandedOver = step.stream === 'old ends' && next === undefined;
      if (!isHandedOver) ending?.onEnd(new IntrospectionFailure('unreachable', 'ended'));
    }
  }

  async function identify({ call = '', decided_by, refused }: CacheStep): Promise<void> {
    const { caller, decidedBy }: Identified = await api.identify(bearer(`${TOKEN}${call}`));
    expect({ decidedBy, isRefused: caller === undefined }).to.deep.equal({
      decidedBy: decided_by,
      isRefused: refused === true,
    });
    if (caller) latest.set(call, caller.signal);
  }

  return {
    async play(step: CacheStep): Promise<void> {
      await passUntil(step.at_ms);
      current = step;
      const { clock_set_to_ms, service, answer, line, call, ended } = step;
      if (clock_set_to_ms !== undefined) aheadMs = clock_set_to_ms - time;
      if (step.heartbeats) isBeating = false;
      if (service) isServiceSilent = service === 'silent';
      Object.assign(answers, answer);
      if (step.stream) await changeStream(step);
      if (line !== undefined)
        open()
          .at(step.on === 'old' ? 0 : -1)
          ?.onText(`${line}\n\n`);
      await settled();
      const label = JSON.stringify(step);
      if (call !== undefined) {
        const done = identify(step).catch((error: Error) => {
          throw new Error(`${label}: ${error.message}`);
        });
        if (step.answered_at_ms === undefined) await done;
        else calls.push(done);
      }
      if (!ended) return;
      const fired = [...latest].filter(([, signal]) => signal?.aborted).map(([name]) => name);
      expect(fired.sort(), label).to.deep.equal([...ended].sort());
    },
    async end(): Promise<void> {
      await Promise.all(calls);
      api.close();
    },
  };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

const answerBody = (answer: AnswerMembers | null): object =>
  answer === null
    ? { active: false }
    : {
        active: true,
        iss: ISSUER,
        token_type: 'api_key' in answer ? 'api_key' : 'Bearer',
        ...answer,
        organizations: answer.organizations.map((id) => ({
          id,
          name: id,
          role: 'member',
          warehouses: [],
        })),
      };
