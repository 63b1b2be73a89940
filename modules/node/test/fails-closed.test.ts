/** No failure between an API and the service makes the API accept a caller. */
import type { Socket } from 'node:net';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { freePort } from '../../../test/support/programs.ts';
import {
  createIntrospector,
  type FailureReason,
  type IntrospectionFailure,
  type IntrospectorOptions,
} from '../src/resource-server.ts';
import { API, answering, bearer, introspectorOf, type Respond, startStandIn, TOKEN } from './stand-in.ts';

const ISSUER = 'https://auth.example.com';
const ACTIVE = {
  active: true,
  token_type: 'Bearer',
  client_id: 'gate_ci_partner',
  sub: 'acc_person',
  iss: ISSUER,
  organizations: [],
};

interface Outcome {
  readonly status: number;
  readonly headers: object;
  readonly body: string;
  readonly failures: readonly IntrospectionFailure[];
}

/** Identifies once. @returns the answer for the caller, and the failures for the API's operator */
async function identify(options: Partial<IntrospectorOptions>): Promise<Outcome> {
  const failures: IntrospectionFailure[] = [];
  const onFailure = (failure: IntrospectionFailure): void => void failures.push(failure);
  const introspector = introspectorOf(API, { issuer: ISSUER, onFailure, ...options });
  const { refusal } = await introspector.identify(bearer(TOKEN));
  if (!refusal) return { status: 200, headers: {}, body: '', failures };
  return { status: refusal.status, headers: refusal.headers, body: refusal.body, failures };
}

/** Identifies once at a stand-in that responds with `respond`. */
async function identifyAt(respond: Respond, options: Partial<IntrospectorOptions> = {}) {
  const { introspectionEndpoint } = await startStandIn(respond);
  return identify({ introspectionEndpoint, ...options });
}

function expectClosed(answer: Outcome, reason: FailureReason, retryAfter = '2'): void {
  expect(answer.status).to.equal(503);
  expect(answer.headers).to.include({ 'Retry-After': retryAfter });
  expect(answer.failures.map((failure) => failure.reason)).to.deep.equal([reason]);
  // The answer contains no reason, and neither answer nor failures contain the token or the secret.
  expect(answer.body).to.not.include(answer.failures[0]?.message);
  const reported = answer.failures.map(({ message, stack, cause }) => [message, stack, cause]);
  expect(JSON.stringify([reported, answer.body])).to.not.match(/gate_(at|cs)_/);
}

describe('an API fails closed', () => {
  it('an API refuses callers when nothing listens at the address', async () => {
    expectClosed(await identify({ issuer: `http://127.0.0.1:${await freePort()}` }), 'unreachable');
  });

  it('an API refuses callers when the service hangs, within the time limit of the API', async () => {
    const { introspectionEndpoint } = await startStandIn(() => {});
    const ended: number[] = [];
    const hang = async (timeoutMs: number): Promise<void> => {
      expectClosed(await identify({ introspectionEndpoint, timeoutMs }), 'timed_out');
      ended.push(timeoutMs);
    };
    await Promise.all([hang(500), hang(100)]);
    expect(ended).to.deep.equal([100, 500]);
  });

  const closes = (title: string, reason: FailureReason, respond: Respond, timeoutMs = 20_000) =>
    it(`an API refuses callers when ${title}`, async () => {
      expectClosed(await identifyAt(respond, { timeoutMs }), reason);
    });
  const begins: Respond = (answer) => answer.write('{"active": true, ');
  closes('the answer starts but does not end within the time limit', 'timed_out', begins, 150);
  closes('the connection breaks in the middle of the answer', 'unreachable', (answer) => {
    answer.setHeader('content-length', 1_000);
    answer.write('{"active": true, ', () => answer.destroy());
  });
  closes('the answer is not JSON, and its text is not passed on', 'malformed_answer', (answer) =>
    answer.end(`<h1>Bad token ${TOKEN}</h1>`),
  );
  closes('the answer is too long', 'malformed_answer', (answer) =>
    answer.end(JSON.stringify(ACTIVE) + ' '.repeat(5 * 1024 * 1024)),
  );
  for (const [coding, encode] of Object.entries({ br: brotliCompressSync, gzip: gzipSync })) {
    closes(`the answer is encoded as ${coding}, which is not decoded`, 'malformed_answer', (answer) =>
      answer.setHeader('content-encoding', coding).end(encode(JSON.stringify(ACTIVE))),
    );
  }
  closes('the service switches to another protocol', 'unreachable', ({ socket }) =>
    socket?.write('HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n'),
  );

  it('an API accepts a caller even if its keep-alive connection was closed in the meantime', async () => {
    const used = new Set<Socket>();
    const standIn = await startStandIn((answer, form, asked) => {
      if (used.has(asked.socket)) return asked.socket.destroy();
      used.add(asked.socket);
      return answering(ACTIVE)(answer, form, asked);
    });
    const { introspectionEndpoint } = standIn;
    const introspector = introspectorOf(API, { issuer: ISSUER, introspectionEndpoint });
    for (const connections of [1, 2, 3]) {
      expect(await introspector.identify(bearer(TOKEN))).to.have.property('caller');
      expect(standIn.connections).to.equal(connections);
    }
  });

  it('an API without onFailure prints the reason on standard error at most once a second', async () => {
    const printed: unknown[] = [];
    const { error } = console;
    const { now } = performance;
    console.error = (...texts) => printed.push(...texts);
    // Stop the clock, so that the three calls happen within one second.
    performance.now = () => 0;
    try {
      const issuer = `http://127.0.0.1:${await freePort()}`;
      const introspector = introspectorOf(API, { issuer });
      for (const _ of [1, 2, 3]) await introspector.identify(bearer(TOKEN));
      expect(printed).to.have.lengthOf(1);
      performance.now = () => 1_000;
      await introspector.identify(bearer(TOKEN));
    } finally {
      console.error = error;
      performance.now = now;
    }
    expect(printed).to.have.lengthOf(2);
    expect(printed[0]).to.match(/^http:.*\/oauth\/introspect cannot be reached: ECONNREFUSED$/);
  });

  it('an API refuses callers even when its onFailure throws', async () => {
    const printed: unknown[] = [];
    const { error } = console;
    console.error = (...texts) => printed.push(...texts);
    try {
      const { introspectionEndpoint } = await startStandIn((answer) => answer.writeHead(500).end());
      const onFailure = () => {
        throw new Error('the log is full');
      };
      const api = introspectorOf(API, { issuer: ISSUER, introspectionEndpoint, onFailure });
      expect((await api.identify(bearer(TOKEN))).refusal?.status).to.equal(503);
    } finally {
      console.error = error;
    }
    expect(String(printed)).to.include('the log is full');
  });

  it('createIntrospector throws for invalid options', () => {
    for (const wrong of [
      { issuer: `${ISSUER}/` },
      { issuer: 'auth.example.com' },
      { clientId: '' },
      { clientSecret: '' },
      { timeoutMs: 0 },
      { timeoutMs: Number.NaN },
      { timeoutMs: 60_001 },
      { mostRemembered: 0 },
      { introspectionEndpoint: 'ftp://10.0.0.7/' },
    ]) {
      const options = { issuer: ISSUER, clientId: 'a', clientSecret: 'b', ...wrong };
      expect(() => createIntrospector(options), JSON.stringify(wrong)).to.throw(TypeError);
    }
  });

  it('createIntrospector refuses an http issuer on another machine unless allowInsecureIssuer is set', () => {
    const create = (issuer: string, more: Partial<IntrospectorOptions> = {}) =>
      createIntrospector({ issuer, clientId: 'a', clientSecret: 'b', ...more }).close();
    const REMOTE = ['auth.example.com', '10.0.0.7:3000', 'localhost.example', '127.example', '[::2]'];
    for (const host of REMOTE) {
      const issuer = `http://${host}`;
      expect(() => create(issuer), host).to.throw(TypeError, `${issuer} is http`);
      create(issuer, { allowInsecureIssuer: true });
    }
    for (const host of ['localhost:3000', '127.0.0.1', '127.9.9.9:1', '[::1]:3000']) {
      create(`http://${host}`);
    }
  });
});
