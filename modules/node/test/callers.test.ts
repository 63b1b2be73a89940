/** A GraphQL API in Koa that identifies its callers, with few requests. Tests of the sandbox's API cover the rest. */
import { expect } from 'chai';
import { tokensOf } from '../../../test/provider/partner-tokens.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { basic, clientCredentials, revokeCurrent } from '../../../test/support/oauth.ts';
import { apiKeyOf } from '../../../test/support/seed.ts';
import { startSeeded } from '../../../test/support/seeded.ts';
import { CallerRefused, type Introspector, mayReach, requireRight } from '../src/resource-server.ts';
import { bearer, introspectorOf, passOnTo, type StandIn, startStandIn } from './stand-in.ts';
import { startWarehouseApi, type WarehouseApi } from './warehouse-api.ts';

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

describe('a GraphQL API that identifies its callers', () => {
  const on = startSeeded();
  let api: WarehouseApi;
  const failures: string[] = [];

  before(async () => {
    const { issuer, clients } = on;
    const onFailure = ({ message }: Error): void => void failures.push(message);
    api = await startWarehouseApi(introspectorOf(clients.resourceServer, { issuer, onFailure }));
  });
  afterEach(() => expect(failures).to.deep.equal([]));

  const tokenOfPerson = async (): Promise<string> => (await on.partner.tokens(on.clients.confidential)).accessToken;

  it('the API identifies the user of a token or API key, and a machine client, which has no account', async () => {
    const { machine, confidential } = on.clients;
    const { accountId, email: username } = on.seeded.person;
    const person = { subject: accountId, accountId, username };
    const machineCaller = { subject: machine.id, accountId: null, username: null };
    const { value: key } = await apiKeyOf(on.service, on.seeded.person);
    const machineToken = tokensOf(await clientCredentials(on.issuer, machine)).accessToken;
    for (const [token, caller] of [
      [await tokenOfPerson(), { ...person, method: 'authorization_code', clientId: confidential.id }],
      [key, { ...person, method: 'api_key', clientId: null }],
      [machineToken, { ...machineCaller, method: 'client_credentials', clientId: machine.id }],
    ] as const) {
      const query = '{ caller { method subject accountId clientId username } }';
      expect((await api.query(token, query)).body).to.deep.equal({ data: { caller } });
    }
  });

  it('a caller reaches only the warehouses that its answer names, with the rights it has there', async () => {
    const { issuer, clients, service, seeded } = on;
    const foreign = await service.organizations.addWarehouse({ organizationId: seeded.elsewhere.id, name: 'Oslo' });
    const { caller } = await introspectorOf(clients.resourceServer, { issuer }).identify(bearer(await tokenOfPerson()));
    if (!caller) throw new Error('no caller');
    const { id } = seeded.warehouse;
    expect([mayReach(caller, id, 'read'), mayReach(caller, id, 'write')]).to.deep.equal([true, true]);
    for (const unreached of [foreign.id, 'wh_unknown']) {
      expect(mayReach(caller, unreached, 'read')).to.equal(false);
      expect(() => requireRight(caller, unreached, 'read'))
        .to.throw(CallerRefused)
        .with.property('name', 'CallerRefused');
    }
    requireRight(caller, id, 'write');
  });

  it('the API can list the warehouses in which its caller has a right', async () => {
    const { organization, person } = on.seeded;
    const draft = { organizationId: organization.id, name: 'Antwerp' };
    const { id } = await on.service.organizations.addWarehouse(draft);
    await on.service.memberships.setRights({ accountId: person.accountId }, id, ['read']);
    const { value } = await apiKeyOf(on.service, person);
    const namesOf = async (right: string): Promise<unknown> =>
      (await api.query(value, `{ warehouses(right: "${right}") { name } }`)).body;
    const [antwerp, rotterdam] = [{ name: 'Antwerp' }, { name: 'Rotterdam' }];
    const readable = { data: { warehouses: [antwerp, rotterdam] } };
    // The right was granted in the database, so the service learns of it a moment later.
    await eventually(async () => expect(await namesOf('read')).to.deep.equal(readable));
    expect(await namesOf('write')).to.deep.equal({ data: { warehouses: [rotterdam] } });
    expect(await namesOf('manage')).to.deep.equal({ data: { warehouses: [] } });
  });

  it('the API answers 403 if a route, not a resolver, requires a right that the caller lacks', async () => {
    const url = new URL(`/stock?warehouse=${on.seeded.warehouse.id}`, api.url);
    const headers = { authorization: `Bearer ${await tokenOfPerson()}` };
    const answer = await fetch(url, { headers });
    expect(answer.status).to.equal(403);
    expect(answer.headers.get('www-authenticate')).to.equal(
      'Bearer error="insufficient_scope", error_description="the right to manage is required for this"',
    );
    // Koa shows the message of an error only if the error allows that.
    expect(await answer.text()).to.equal('the right to manage is required for this');
  });

  it('an API sends the request that RFC 7662 defines, and sends it to introspectionEndpoint if that is set', async () => {
    const { issuer, clients } = on;
    const seen: object[] = [];
    const through = passOnTo(issuer);
    const { introspectionEndpoint } = await startStandIn((answer, form, asked) => {
      seen.push({ method: asked.method, url: asked.url, ...asked.headers, form });
      return through(answer, form, asked);
    });
    const token = tokensOf(await clientCredentials(issuer, clients.machine)).accessToken;
    const introspector = introspectorOf(clients.resourceServer, { issuer, introspectionEndpoint });
    expect(await introspector.identify(bearer(token))).to.have.property('caller');
    expect(seen).to.have.lengthOf(1);
    expect(seen[0]).to.deep.include({
      method: 'POST',
      url: '/oauth/introspect',
      // Expect the issuer's host, because the service refuses others, also at an internal address.
      host: new URL(issuer).host,
      authorization: basic(clients.resourceServer),
      'content-type': 'application/x-www-form-urlencoded',
      accept: 'application/json',
      form: `token=${token}`,
    });
  });

  describe('parallel look-ups of one token by an API without a cache', () => {
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
      const [mine, theirs] = [await machineToken(), await tokenOfPerson()];
      const identify = (token: string) => introspector.identify(bearer(token));
      const found = await Promise.all([mine, theirs, mine, theirs].map(identify));
      const ids = [on.clients.machine.id, on.seeded.person.accountId];
      expect(found.map(({ caller }) => caller?.subject)).to.deep.equal([...ids, ...ids]);
    });

    it('a look-up that starts after a revocation does not share an answer from before the revocation', async () => {
      const token = await tokenOfPerson();
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
});
