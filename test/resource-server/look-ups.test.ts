import { expect } from 'chai';
import {
  createIntrospector,
  type Introspector,
} from '../../src/resource-server/resource-server.ts';
import { createTestClock, type TestClock } from '../support/clock.ts';
import { eventually } from '../support/eventually.ts';
import { revokeCurrent } from '../support/oauth.ts';
import { type Seed, seed } from '../support/seed.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { answering, passOnTo, type StandIn, startStandIn } from './stand-in.ts';
import { machineToken, personToken } from './tokens.ts';

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
  let service: TestService;
  let seeded: Seed;
  let standIn: StandIn;
  let introspector: Introspector;
  const gate = createGate();

  before(async () => {
    service = await startTestService();
    seeded = await seed(service);
    standIn = await startStandIn(passOnTo(service.issuer, gate.pass));
    const { id, secret = '' } = seeded.clients.resourceServer;
    introspector = createIntrospector({
      issuer: service.issuer,
      introspectionEndpoint: standIn.introspectionEndpoint,
      clientId: id,
      clientSecret: secret,
      timeoutMs: 10_000,
      maxConnections: 4,
    });
  });
  afterEach(() => gate.open());
  after(async () => {
    introspector.close();
    await standIn.close();
    await service.close();
  });

  const status = async (token: string): Promise<number> => {
    const headers = { authorization: `Bearer ${token}` };
    return (await introspector.identify({ headers })).refusal?.status ?? 200;
  };
  const times = (count: number, token: string) =>
    Array.from({ length: count }, () => status(token));
  const questions = (token: string) =>
    standIn.asked.filter((form) => form.get('token') === token).length;
  /** Resolves when the service has answered one more question, and its answer is held back. */
  const oneAnswerHeld = async (before = gate.arrivals): Promise<void> => {
    gate.close();
    await eventually(() => expect(gate.arrivals).to.be.above(before));
  };

  it('at the same time make one request', async () => {
    const token = await machineToken(service.issuer, seeded.clients.machine);
    expect(await Promise.all(times(50, token))).to.deep.equal(Array(50).fill(200));
    expect(questions(token)).to.equal(1);
  });

  it('one after the other make one request each: nothing is remembered', async () => {
    const token = await machineToken(service.issuer, seeded.clients.machine);
    for (const expected of [1, 2, 3]) {
      expect(await status(token)).to.equal(200);
      expect(questions(token)).to.equal(expected);
    }
  });

  it('of different tokens are not mixed up', async () => {
    const [mine, theirs] = [
      await machineToken(service.issuer, seeded.clients.machine),
      await personToken(service.issuer, seeded.clients.confidential, seeded.person),
    ];
    const identify = (token: string) =>
      introspector.identify({ headers: { authorization: `Bearer ${token}` } });
    const found = await Promise.all([mine, theirs, mine, theirs].map(identify));
    const ids = [seeded.clients.machine.id, seeded.person.accountId];
    expect(found.map(({ caller }) => caller?.subject)).to.deep.equal([...ids, ...ids]);
  });

  it('that come after a revocation do not share an answer from before it', async () => {
    const token = await personToken(service.issuer, seeded.clients.confidential, seeded.person);
    const held = oneAnswerHeld();
    const early = times(3, token);
    await held;
    expect((await revokeCurrent(service.issuer, token)).status).to.equal(204);
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
      const token = await personToken(service.issuer, seeded.clients.confidential, seeded.person);
      const held = oneAnswerHeld();
      const early = status(token);
      await held;
      await revokeCurrent(service.issuer, token);
      tell(token);
      gate.open();
      expect(await early).to.equal(401);
      expect(questions(token)).to.equal(2);
    }
  });

  it('share a few connections, which stay open', async () => {
    const { machine } = seeded.clients;
    const tokens = await Promise.all(
      Array.from({ length: 20 }, () => machineToken(service.issuer, machine)),
    );
    await Promise.all(tokens.map(status));
    await Promise.all(tokens.map(status));
    expect(standIn.connections).to.be.at.most(4);
  });
});

describe('a caller is remembered', () => {
  const TOKEN = `gate_at_${'a'.repeat(43)}`;
  let time: TestClock;
  let standIn: StandIn;
  let answer: { active: boolean; exp?: number };
  let cacheControl: string;
  let introspector: Introspector | undefined;

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
  after(() => standIn.close());
  beforeEach(() => {
    time = createTestClock();
    answer = { active: true };
    cacheControl = 'private, max-age=60';
  });
  afterEach(() => {
    introspector?.close();
    time.restore();
  });

  const remembering = (cacheSeconds: number): Introspector => {
    const { origin: issuer } = standIn;
    const credentials = { clientId: 'gate_ci_api', clientSecret: 'gate_cs_api' };
    introspector = createIntrospector({ issuer, ...credentials, cacheSeconds, clock: time.clock });
    return introspector;
  };
  /** Identifies once. @returns whether the service was asked about it. */
  const isAsked = async (by: Introspector): Promise<boolean> => {
    const before = standIn.asked.length;
    await by.identify({ headers: { authorization: `Bearer ${TOKEN}` } });
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
    unless.close();
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
