/** How often the service is asked: equal questions at a time once, and nothing is remembered. */
import { expect } from 'chai';
import type { Introspector } from '../../src/resource-server/resource-server.ts';
import { tokensOf } from '../provider/partner-tokens.ts';
import { eventually } from '../support/eventually.ts';
import { clientCredentials, revokeCurrent } from '../support/oauth.ts';
import { startSeeded } from '../support/seeded.ts';
import { bearer, introspectorOf, passOnTo, type StandIn, startStandIn } from './stand-in.ts';

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

  it('share a few connections, which stay open', async () => {
    const tokens = await Promise.all(Array.from({ length: 20 }, machineToken));
    await Promise.all(tokens.map(status));
    await Promise.all(tokens.map(status));
    expect(standIn.connections).to.be.at.most(4);
  });
});
