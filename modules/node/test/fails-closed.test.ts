/** No failure between an API and the service makes the API accept a caller. */
import type { Socket } from 'node:net';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { freePort } from '../../../test/support/programs.ts';
import { IntrospectionFailure, introspectionAnswer } from '../src/introspection-answer.ts';
import { introspectorOver } from '../src/introspector.ts';
import { createIntrospector, type FailureReason, type IntrospectorOptions } from '../src/resource-server.ts';
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

/** Identifies once. @returns the refusal for the caller, and the failures for the API's operator */
async function identify(options: Partial<IntrospectorOptions>) {
  const failures: IntrospectionFailure[] = [];
  const onFailure = (failure: IntrospectionFailure): void => void failures.push(failure);
  const introspector = introspectorOf(API, { issuer: ISSUER, onFailure, ...options });
  const { refusal } = await introspector.identify(bearer(TOKEN));
  return { refusal, failures };
}

function expectClosed({ refusal, failures }: Awaited<ReturnType<typeof identify>>, reason: FailureReason): void {
  expect(refusal?.status).to.equal(503);
  expect(refusal?.headers).to.include({ 'Retry-After': '2' });
  expect(failures.map((failure) => failure.reason)).to.deep.equal([reason]);
  // The answer contains no reason, and neither answer nor failures contain the token or the secret.
  expect(refusal?.body).to.not.include(failures[0]?.message);
  const reported = failures.map(({ message, stack, cause }) => [message, stack, cause]);
  expect(JSON.stringify([reported, refusal?.body])).to.not.match(/gate_(at|cs)_/);
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

  /** Defines a test in which the operator of the API reads this as the cause. */
  const closes = (title: string, reason: FailureReason, cause: string, respond: Respond, timeoutMs = 20_000) =>
    it(`an API refuses callers when ${title}`, async () => {
      const { introspectionEndpoint } = await startStandIn(respond);
      const answer = await identify({ introspectionEndpoint, timeoutMs });
      expectClosed(answer, reason);
      expect(answer.failures[0]?.message).to.match(new RegExp(`${cause}$`));
    });
  const begins: Respond = (answer) => answer.write('{"active": true, ');
  const late = '/oauth/introspect did not answer in time';
  closes('the answer starts but does not end within the time limit', 'timed_out', late, begins, 150);
  const broken = 'cannot be reached: ECONNRESET';
  closes('the connection breaks in the middle of the answer', 'unreachable', broken, (answer) => {
    answer.setHeader('content-length', 1_000);
    answer.write('{"active": true, ', () => answer.destroy());
  });
  const notJson = 'the introspection answer is not JSON';
  closes('the answer is not JSON, and its text is not passed on', 'malformed_answer', notJson, (answer) =>
    answer.end(`<h1>Bad token ${TOKEN}</h1>`),
  );
  const tooLong = '/oauth/introspect sent an answer that is too long';
  closes('the answer is too long', 'malformed_answer', tooLong, (answer) =>
    answer.end(JSON.stringify(ACTIVE) + ' '.repeat(5 * 1024 * 1024)),
  );
  for (const [coding, encode] of Object.entries({ br: brotliCompressSync, gzip: gzipSync })) {
    closes(`the answer is encoded as ${coding}, which is not decoded`, 'malformed_answer', notJson, (answer) =>
      answer.setHeader('content-encoding', coding).end(encode(JSON.stringify(ACTIVE))),
    );
  }
  closes('the service switches to another protocol', 'unreachable', 'cannot be reached: no answer', ({ socket }) =>
    socket?.write('HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n'),
  );

  it('an API refuses callers when the service at its https address speaks no TLS', async () => {
    const { introspectionEndpoint } = await startStandIn(answering(ACTIVE));
    const answer = await identify({ introspectionEndpoint: introspectionEndpoint.replace('http', 'https') });
    expectClosed(answer, 'unreachable');
    expect(answer.failures[0]?.cause)
      .to.be.an('error')
      .with.property('code')
      .that.matches(/SSL|EPROTO/);
  });

  it('the operator of an API reads what is wrong with an introspection answer', () => {
    const read = (answer: object, status = 200, headers = {}) =>
      introspectionAnswer({ status, headers, body: JSON.stringify({ ...ACTIVE, ...answer }) }, ISSUER);
    for (const [wrong, cause] of [
      [{ active: 'true' }, 'does not say whether the token is active'],
      [{ iss: 'https://other.example' }, `is not from the issuer ${ISSUER}`],
      [{ organizations: undefined }, 'has no organizations: is this client registered as a resource server?'],
      [{ organizations: {} }, 'has another value instead of a list'],
      [{ organizations: [null] }, 'has another value instead of an object'],
      [{ withheld: [1] }, 'has another value instead of a text in a list'],
      [{ sub: '' }, 'has no sub'],
      [{ exp: '9' }, 'has another value instead of a time in exp'],
      [{ iat: -1 }, 'has another value instead of a time in iat'],
      [{ username: 1 }, 'has another value instead of a text in username'],
      [{ token_type: 'mac' }, 'has an unknown token_type'],
    ] as const) {
      expect(() => read(wrong), JSON.stringify(wrong)).to.throw(`the introspection answer ${cause}`);
    }
    for (const time of [0, 253_402_300_799]) {
      expect(read({ exp: time, iat: time }).caller?.expiresAt?.getTime()).to.equal(time * 1_000);
    }
    for (const [status, cause] of [
      [401, 'refuses the client id or secret of this API'],
      [429, 'refuses this API for a while after too many wrong secrets'],
      [502, 'answered with status 502'],
    ] as const) {
      expect(() => read({}, status))
        .to.throw(IntrospectionFailure, `introspection ${cause}`)
        .with.property('name', 'IntrospectionFailure');
    }
  });

  it('an API refuses callers when its look-up fails for an unknown reason', async () => {
    const failures: IntrospectionFailure[] = [];
    const onFailure = (failure: IntrospectionFailure): void => void failures.push(failure);
    const cause = new Error('unknown');
    const endpoint = { ask: () => Promise.reject(cause), listen: () => () => {}, close() {} };
    const options = { issuer: ISSUER, clientId: 'a', clientSecret: 'b', onFailure };
    const { refusal, decidedBy } = await introspectorOver(() => endpoint, options).identify(bearer(TOKEN));
    expect([refusal?.status, decidedBy]).to.deep.equal([503, 'service']);
    expect(failures[0]).to.include({ reason: 'failed', message: 'introspection failed', cause });
  });

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

  describe('standard error', () => {
    const { error } = console;
    const { now } = performance;
    let printed: unknown[];
    beforeEach(() => {
      printed = [];
      console.error = (...texts) => printed.push(...texts);
    });
    afterEach(() => {
      console.error = error;
      performance.now = now;
    });

    it('an API without onFailure prints the reason on standard error at most once a second', async () => {
      const introspector = introspectorOf(API, { issuer: `http://127.0.0.1:${await freePort()}` });
      // Stop the clock, so that the three calls happen within one second.
      for (const [time, calls, lines] of [
        [0, 3, 1],
        [1_000, 1, 2],
      ] as const) {
        performance.now = () => time;
        for (let call = 0; call < calls; call += 1) await introspector.identify(bearer(TOKEN));
        expect(printed).to.have.lengthOf(lines);
      }
      expect(printed[0]).to.match(/^http:.*\/oauth\/introspect cannot be reached: ECONNREFUSED$/);
    });

    it('an API refuses callers even when its onFailure throws', async () => {
      const onFailure = () => {
        throw new Error('the log is full');
      };
      const { introspectionEndpoint } = await startStandIn((answer) => answer.writeHead(500).end());
      const api = introspectorOf(API, { issuer: ISSUER, introspectionEndpoint, onFailure });
      expect((await api.identify(bearer(TOKEN))).refusal?.status).to.equal(503);
      expect(String(printed)).to.equal('onFailure threw,Error: the log is full');
    });
  });

  const create = (options: Partial<IntrospectorOptions>) =>
    createIntrospector({ issuer: ISSUER, clientId: 'a', clientSecret: 'b', ...options }).close();

  it('createIntrospector refuses an option that cannot work, and says what is allowed', () => {
    for (const [wrong, allowed] of [
      [{ issuer: `${ISSUER}/` }, 'issuer must be an origin without a path'],
      [{ issuer: 'auth.example.com' }, 'issuer must be an origin without a path'],
      [{ clientId: '' }, 'clientId and clientSecret are required'],
      [{ clientSecret: '' }, 'clientId and clientSecret are required'],
      [{ timeoutMs: 0 }, 'timeoutMs must be above 0 and at most 60000'],
      [{ timeoutMs: Number.NaN }, 'timeoutMs must be above 0 and at most 60000'],
      [{ timeoutMs: 60_001 }, 'timeoutMs must be above 0 and at most 60000'],
      [{ mostRemembered: 0 }, 'mostRemembered must be a number above 0'],
      [{ rememberForMs: 999 }, 'rememberForMs must be at least 1000'],
      [{ introspectionEndpoint: 'ftp://10.0.0.7/' }, 'introspectionEndpoint must be an http or https URL'],
      [{ introspectionEndpoint: '/introspect' }, 'introspectionEndpoint must be an http or https URL'],
      [{ resource: 'api.example' }, 'resource must be an http or https URL without a fragment'],
    ] as const) {
      expect(() => create(wrong), JSON.stringify(wrong)).to.throw(TypeError, allowed);
    }
    create({ timeoutMs: 60_000, mostRemembered: 1, rememberForMs: 1_000, introspectionEndpoint: 'https://a.example' });
  });

  it('createIntrospector refuses an http issuer on another machine unless allowInsecureIssuer is set', () => {
    const REMOTE = ['auth.example.com', '10.0.0.7:3000', 'localhost.example', 'notlocalhost', '127.example', '[::2]'];
    for (const host of REMOTE) {
      const issuer = `http://${host}`;
      expect(() => create({ issuer }), host)
        .to.throw(TypeError, `${issuer} is http`)
        .with.property('message')
        .that.matches(/and forge answers\. Use the https address, or set allowInsecureIssuer/);
      create({ issuer, allowInsecureIssuer: true });
    }
    for (const host of ['localhost:3000', '127.0.0.1', '127.10.9.99:1', '[::1]:3000']) {
      create({ issuer: `http://${host}` });
    }
  });
});
