/** Introspection by an API without a cache: parallel look-ups of one token share a request. */
import { expect } from 'chai';
import { tokensOf } from '../../../test/provider/partner-tokens.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { clientCredentials, revokeCurrent } from '../../../test/support/oauth.ts';
import { startSeeded } from '../../../test/support/seeded.ts';
import type { Introspector } from '../src/resource-server.ts';
import { bearer, introspectorOf, passOnTo, type StandIn, startStandIn } from './stand-in.ts';

/** Creates a gate that delays answers while it is closed. */
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

describe('token look-ups', () => {
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
  const personToken = async (): Promise<string> => (await on.partner.tokens(on.clients.confidential)).accessToken;
  const status = async (token: string): Promise<number> =>
    (await introspector.identify(bearer(token))).refusal?.status ?? 200;
  const times = (count: number, token: string) => Array.from({ length: count }, () => status(token));
  const questions = (token: string) => standIn.asked.filter((form) => form.get('token') === token).length;
  /** Resolves when the service has sent one more answer, which is delayed. */
  async function oneAnswerDelayed(before = gate.arrivals): Promise<void> {
    gate.close();
    await eventually(() => expect(gate.arrivals).to.be.above(before));
  }

  it('parallel look-ups of one token share one introspection request', async () => {
    const token = await machineToken();
    expect(await Promise.all(times(50, token))).to.deep.equal(Array(50).fill(200));
    expect(questions(token)).to.equal(1);
  });

  it('sequential look-ups of one token send one introspection request each, because no answer is cached', async () => {
    const token = await machineToken();
    for (const expected of [1, 2, 3]) {
      expect(await status(token)).to.equal(200);
      expect(questions(token)).to.equal(expected);
    }
  });

  it('parallel look-ups of different tokens each get their own answer', async () => {
    const [mine, theirs] = [await machineToken(), await personToken()];
    const identify = (token: string) => introspector.identify(bearer(token));
    const found = await Promise.all([mine, theirs, mine, theirs].map(identify));
    const ids = [on.clients.machine.id, on.seeded.person.accountId];
    expect(found.map(({ caller }) => caller?.subject)).to.deep.equal([...ids, ...ids]);
  });

  it('a look-up that starts after a revocation does not share an answer from before the revocation', async () => {
    const token = await personToken();
    const held = oneAnswerDelayed();
    const early = times(3, token);
    await held;
    expect((await revokeCurrent(on.issuer, token)).status).to.equal(204);
    const late = times(20, token);
    gate.open();
    expect(await Promise.all(early)).to.deep.equal([200, 200, 200]);
    expect(await Promise.all(late)).to.deep.equal(Array(20).fill(401));
    expect(questions(token)).to.equal(2);
  });

  it('token look-ups share a few connections, which stay open', async () => {
    const tokens = await Promise.all(Array.from({ length: 20 }, machineToken));
    await Promise.all(tokens.map(status));
    await Promise.all(tokens.map(status));
    expect(standIn.connections).to.be.at.most(4);
  });
});
