/** How often the service is asked: equal questions at a time once, and nothing is remembered. */
import { expect } from 'chai';
import type { Introspector } from '../../src/resource-server/resource-server.ts';
import { tokensOf } from '../provider/partner-tokens.ts';
import { createTestClock, type TestClock } from '../support/clock.ts';
import { eventually } from '../support/eventually.ts';
import { clientCredentials, revokeCurrent } from '../support/oauth.ts';
import { startSeeded } from '../support/seeded.ts';
import {
  API,
  answering,
  bearer,
  introspectorOf,
  passOnTo,
  type StandIn,
  startStandIn,
  TOKEN,
} from './stand-in.ts';

/** Holds answers back while it is closed. */
function createGate() {
  let open = (): void => {};
  let opened = Promise.resolve();
  const gate = {
    arrivals: 0,
    close(): void {
      opened = new Promise((resolve) => {
        open = resolve;
      });
    },
    open: () => open(),
    async pass(): Promise<void> {
      gate.arrivals += 1;
      await opened;
    },
  };
  return gate;
}

describe('equal look-ups', () => {
  const on = startSeeded();
  let standIn: StandIn;
  let introspector: Introspector;
  const gate = createGate();

  before(async () => {
    const { issuer, clients } = on;
    standIn = await startStandIn(passOnTo(issuer, gate.pass));
    const { introspectionEndpoint } = standIn;
    const options = { issuer, introspectionEndpoint, maxConnections: 4 };
    introspector = introspectorOf(clients.resourceServer, options);
  });
  afterEach(() => gate.open());

  const machineToken = async (): Promise<string> =>
    tokensOf(await clientCredentials(on.issuer, on.clients.machine)).accessToken;
  const personToken = async (): Promise<string> =>
    (await on.partner.tokens(on.clients.confidential)).accessToken;
  const status = async (token: string): Promise<number> =>
    (await introspector.identify(bearer(token))).refusal?.status ?? 200;
  const times = (count: number, token: string) =>
    Array.from({ length: count }, () => status(token));
  const questions = (token: string) =>
    standIn.asked.filter((form) => form.get('token') === token).length;
  /** Resolves when the service has answered one more question, and its answer is held back. */
  async function oneAnswerHeld(before = gate.arrivals): Promise<void> {
    gate.close();
    await eventually(() => expect(gate.arrivals).to.be.above(before));
  }

  it('at the same time make one request', async () => {
    const token = await machineToken();
    expect(await Promise.all(times(50, token))).to.deep.equal(Array(50).fill(200));
    expect(questions(token)).to.equal(1);
  });

  it('one after the other make one request each: nothing is remembered', async () => {
    const token = await machineToken();
    for (const expected of [1, 2, 3]) {
      expect(await status(token)).to.equal(200);
      expect(questions(token)).to.equal(expected);
    }
  });

  it('of different tokens are not mixed up', async () => {
    const [mine, theirs] = [await machineToken(), await personToken()];
    const identify = (token: string) => introspector.identify(bearer(token));
    const found = await Promise.all([mine, theirs, mine, theirs].map(identify));
    const ids = [on.clients.machine.id, on.seeded.person.accountId];
    expect(found.map(({ caller }) => caller?.subject)).to.deep.equal([...ids, ...ids]);
  });

  it('that come after a revocation do not share an answer from before it', async () => {
    const token = await personToken();
    const held = oneAnswerHeld();
    const early = times(3, token);
    await held;
    expect((await revokeCurrent(on.issuer, token)).status).to.equal(204);
    const late = times(20, token);
    gate.open();
    expect(await Promise.all(early)).to.deep.equal([200, 200, 200]);
    expect(await Promise.all(late)).to.deep.equal(Array(20).fill(401));
    expect(questions(token)).to.equal(2);
  });

  it('on their way when the API is told of a revocation are made again', async () => {
    for (const tell of [
      (token: string) => introspector.forget(token),
      () => introspector.forgetAll(),
    ]) {
      const token = await personToken();
      const held = oneAnswerHeld();
      const early = status(token);
      await held;
      await revokeCurrent(on.issuer, token);
      tell(token);
      gate.open();
      expect(await early).to.equal(401);
      expect(questions(token)).to.equal(2);
    }
  });

  it('share a few connections, which stay open', async () => {
    const tokens = await Promise.all(Array.from({ length: 20 }, machineToken));
    await Promise.all(tokens.map(status));
    await Promise.all(tokens.map(status));
    expect(standIn.connections).to.be.at.most(4);
  });
});

describe('a caller is remembered', () => {
  let time: TestClock;
  let standIn: StandIn;
  let answer: { active: boolean; exp?: number };
  let cacheControl: string;

  before(async () => {
    standIn = await startStandIn((response, ...rest) => {
      const caller = {
        token_type: 'Bearer',
        client_id: 'gate_ci_a',
        sub: 'acc_a',
        organizations: [],
      };
      const body = { ...caller, iss: standIn.origin, ...answer };
      return answering(body, { 'cache-control': cacheControl })(response, ...rest);
    });
  });
  beforeEach(() => {
    time = createTestClock();
    answer = { active: true };
    cacheControl = 'private, max-age=60';
  });
  afterEach(() => time.restore());

  const remembering = (cacheSeconds: number): Introspector =>
    introspectorOf(API, { issuer: standIn.origin, cacheSeconds, clock: time.clock });
  /** Identifies once. @returns whether the service was asked about it. */
  const isAsked = async (by: Introspector): Promise<boolean> => {
    const before = standIn.asked.length;
    await by.identify(bearer(TOKEN));
    return standIn.asked.length > before;
  };

  it('as long as the API and the service allow, and no longer', async () => {
    const api = remembering(5);
    expect(await isAsked(api)).to.equal(true);
    time.advance(4.9);
    expect(await isAsked(api)).to.equal(false);
    time.advance(0.1);
    expect(await isAsked(api)).to.equal(true);
    cacheControl = 'max-age=2';
    time.advance(5);
    expect(await isAsked(api)).to.equal(true);
    time.advance(1.9);
    expect(await isAsked(api)).to.equal(false);
    time.advance(0.1);
    expect(await isAsked(api)).to.equal(true);
  });

  it('not at all unless the API and the service both say so', async () => {
    const unless = remembering(0);
    expect([await isAsked(unless), await isAsked(unless)]).to.deep.equal([true, true]);
    const api = remembering(5);
    for (cacheControl of ['no-store', 'no-store, max-age=60', 'no-cache, max-age=60', 'private']) {
      expect([await isAsked(api), await isAsked(api)]).to.deep.equal([true, true]);
    }
  });

  it('not beyond the expiry of the token', async () => {
    const api = remembering(5);
    answer = { active: true, exp: Math.floor(time.clock() / 1000) + 3 };
    await isAsked(api);
    time.advance(1.9);
    expect(await isAsked(api)).to.equal(false);
    time.advance(1.1);
    expect(await isAsked(api)).to.equal(true);
  });

  it('not after the clock was put back', async () => {
    const api = remembering(5);
    await isAsked(api);
    time.advance(-3600);
    expect(await isAsked(api)).to.equal(true);
  });

  it('not past a revocation that the API was told of', async () => {
    const api = remembering(5);
    for (const tell of [() => api.forget(TOKEN), () => api.forgetAll()]) {
      await isAsked(api);
      expect(await isAsked(api)).to.equal(false);
      tell();
      expect(await isAsked(api)).to.equal(true);
    }
  });

  it('but nobody is remembered as refused', async () => {
    const api = remembering(5);
    answer = { active: false };
    expect([await isAsked(api), await isAsked(api)]).to.deep.equal([true, true]);
  });
});
