import { expect } from 'chai';
import {
  createIntrospector,
  type Introspector,
} from '../../src/resource-server/resource-server.ts';
import { eventually } from '../support/eventually.ts';
import { type Answer, postForm, revokeCurrent } from '../support/oauth.ts';
import { type Seed, seed } from '../support/seed.ts';
import { forEachDeployment, type TestService } from '../support/service.ts';
import { answering, startStandIn } from './stand-in.ts';
import { machineToken, personToken } from './tokens.ts';
import { startWarehouseApi, type WarehouseApi } from './warehouse-api.ts';

const CALLER = '{ caller { method subject accountId clientId username } }';

forEachDeployment('a GraphQL API that asks who is calling', (start) => {
  let service: TestService;
  let seeded: Seed;
  let introspector: Introspector;
  let api: WarehouseApi;
  const failures: string[] = [];

  before(async () => {
    service = await start();
    seeded = await seed(service);
    const { id, secret = '' } = seeded.clients.resourceServer;
    introspector = createIntrospector({
      issuer: service.issuer,
      clientId: id,
      clientSecret: secret,
      // The machine of the tests may be busy; how long is too long is the subject of another suite.
      timeoutMs: 10_000,
      onFailure: ({ message }) => failures.push(message),
    });
    api = await startWarehouseApi(introspector);
  });
  after(async () => {
    await api.close();
    introspector.close();
    expect(failures).to.deep.equal([]);
  });

  const tokenOfPerson = (client = seeded.clients.confidential) =>
    personToken(service.issuer, client, seeded.person);
  const tokenOfMachine = () => machineToken(service.issuer, seeded.clients.machine);
  const receive = (token: string, warehouse: string) =>
    api.query(token, `mutation { receive(warehouse: "${warehouse}", count: 7) }`);

  it('knows the person behind an access token, and the client', async () => {
    const { accountId, email } = seeded.person;
    const answer = await api.query(await tokenOfPerson(), CALLER);
    expect(answer.body).to.deep.equal({
      data: {
        caller: {
          method: 'authorization_code',
          subject: accountId,
          accountId,
          clientId: seeded.clients.confidential.id,
          username: email,
        },
      },
    });
  });

  it('knows a machine client, and takes it for nobody’s account', async () => {
    const { id } = seeded.clients.machine;
    const answer = await api.query(await tokenOfMachine(), CALLER);
    expect(answer.body).to.deep.equal({
      data: {
        caller: {
          method: 'client_credentials',
          subject: id,
          accountId: null,
          clientId: id,
          username: null,
        },
      },
    });
  });

  it('lists organizations and warehouses with role and rights', async () => {
    const rotterdam = { ...named(seeded.warehouse), rights: ['read', 'write'] };
    const northern = { ...named(seeded.organization), role: 'member' };
    const query = '{ organizations { id name role warehouses { id name rights } } }';
    const person = await api.query(await tokenOfPerson(), query);
    const machine = await api.query(await tokenOfMachine(), query);
    expect(person.body).to.deep.equal({
      data: { organizations: [{ ...northern, warehouses: [rotterdam] }] },
    });
    expect(machine.body).to.deep.equal({
      data: { organizations: [{ ...northern, warehouses: [] }] },
    });
  });

  it('enforces rights per warehouse', async () => {
    const { organizations, memberships } = service;
    const { accountId } = seeded.person;
    const add = (organizationId: string, name: string) =>
      organizations.addWarehouse({ organizationId, name });
    const readable = await add(seeded.organization.id, 'Antwerp');
    const withoutRights = await add(seeded.organization.id, 'Ghent');
    const foreign = await add(seeded.elsewhere.id, 'Far away');
    await memberships.setRights({ accountId }, readable.id, ['read']);

    const token = await tokenOfPerson();
    await eventually(async () => {
      const answer = await api.query(token, '{ warehouses(right: "read") { name } }');
      const warehouses = [{ name: 'Antwerp' }, { name: 'Rotterdam' }];
      expect(answer.body).to.deep.equal({ data: { warehouses } });
    });
    const writable = await api.query(token, '{ warehouses(right: "write") { name } }');
    expect(writable.body).to.deep.equal({ data: { warehouses: [{ name: 'Rotterdam' }] } });

    expect((await receive(token, seeded.warehouse.id)).body).to.deep.equal({
      data: { receive: 7 },
    });
    for (const { id } of [readable, withoutRights, foreign, { id: 'wh_nowhere' }]) {
      expectForbidden(await receive(token, id));
    }
  });

  it('answers 403 where a route, not a resolver, needs the right', async () => {
    const url = new URL(`/stock?warehouse=${seeded.warehouse.id}`, api.url);
    const headers = { authorization: `Bearer ${await tokenOfPerson()}` };
    const answer = await fetch(url, { headers });
    expect(answer.status).to.equal(403);
    expect(answer.headers.get('www-authenticate')).to.equal(
      'Bearer error="insufficient_scope", error_description="this needs the right to manage there"',
    );
  });

  it('gives a machine client the rights that were given to it, from the next call on', async () => {
    const token = await tokenOfMachine();
    expectForbidden(await receive(token, seeded.warehouse.id));
    const { id: clientId } = seeded.clients.machine;
    await service.memberships.setRights({ clientId }, seeded.warehouse.id, ['write']);
    await eventually(async () => {
      expect((await receive(token, seeded.warehouse.id)).body).to.deep.equal({
        data: { receive: 7 },
      });
    });
  });

  describe('sees on the next call that', () => {
    it('the client revoked its current token', async () => {
      const token = await tokenOfPerson();
      await expectLetIn(token);
      await revokeCurrent(service.issuer, token);
      await expectRefused(token);
    });

    it('a library revoked the token (RFC 7009)', async () => {
      for (const [token, client] of [
        [await tokenOfPerson(), seeded.clients.confidential],
        [await tokenOfMachine(), seeded.clients.machine],
      ] as const) {
        await expectLetIn(token);
        await postForm(service.issuer, '/oauth/revoke', { token }, { client });
        await expectRefused(token);
      }
    });

    it('the account was suspended, and resumed', async () => {
      const token = await tokenOfPerson();
      await expectLetIn(token);
      await service.accounts.suspend(seeded.person.accountId);
      await expectRefused(token);
      await service.accounts.resume(seeded.person.accountId);
      await expectLetIn(token);
    });

    it('the client was suspended, and resumed', async () => {
      for (const [token, { id }] of [
        [await tokenOfPerson(), seeded.clients.confidential],
        [await tokenOfMachine(), seeded.clients.machine],
      ] as const) {
        await expectLetIn(token);
        await service.clients.suspend(id);
        await expectRefused(token);
        await service.clients.resume(id);
        await expectLetIn(token);
      }
    });

    it('a membership was removed', async () => {
      const token = await tokenOfPerson(seeded.clients.otherConfidential);
      const { accountId } = seeded.person;
      await service.memberships.remove({ accountId }, seeded.organization.id);
      await eventually(async () => {
        const answer = await api.query(token, '{ organizations { id } }');
        expect(answer.body).to.deep.equal({ data: { organizations: [] } });
      });
      expectForbidden(await receive(token, seeded.warehouse.id));
    });
  });

  async function expectLetIn(token: string): Promise<void> {
    const answer = await api.query(token, '{ caller { subject } }');
    expect(answer.status, answer.text).to.equal(200);
    expect(answer.body).to.have.property('data');
  }

  async function expectRefused(token: string): Promise<void> {
    const answer = await api.query(token, '{ caller { subject } }');
    expect(answer.status).to.equal(401);
    expect(answer.headers.get('www-authenticate')).to.match(/^Bearer error="invalid_token", /);
    expect(answer.body).to.not.have.property('data');
  }
});

const named = ({ id, name }: { id: string; name: string }) => ({ id, name });

function expectForbidden({ status, body }: Answer): void {
  expect(status).to.equal(200);
  expect(body).to.have.property('data', null);
  expect(body).to.have.nested.property('errors[0].extensions.code', 'FORBIDDEN');
}

describe('a GraphQL API that is called with a personal API key', () => {
  it('knows the person behind it, and no client', async () => {
    const organizations = [
      {
        id: 'org_a',
        name: 'Northern Logistics',
        role: 'owner',
        warehouses: [{ id: 'wh_a', name: 'Rotterdam', rights: ['read', 'write', 'manage'] }],
      },
    ];
    const standIn = await startStandIn((...asked) =>
      answering({
        active: true,
        token_type: 'api_key',
        sub: 'acc_ada',
        username: 'ada@example.test',
        iss: standIn.origin,
        organizations,
      })(...asked),
    );
    const introspector = createIntrospector({
      issuer: standIn.origin,
      clientId: 'gate_ci_api',
      clientSecret: 'gate_cs_api',
    });
    const headers = { authorization: `Bearer gate_key_${'a'.repeat(43)}` };
    const { caller } = await introspector.identify({ headers });
    expect(caller).to.deep.equal({
      method: 'api_key',
      subject: 'acc_ada',
      accountId: 'acc_ada',
      username: 'ada@example.test',
      organizations,
    });
    introspector.close();
    await standIn.close();
  });
});
