/** Three authentication methods of one API, with the same kind of answers. */
import { expect } from 'chai';
import { tokensOf } from '../provider/partner-tokens.ts';
import { type Answer, clientCredentials } from '../support/oauth.ts';
import { apiKeyOf } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { type CalledApi, startCalledApi } from './called-api.ts';

describe('the warehouse API of the sandbox', () => {
  const on = startSeeded();
  let api: CalledApi;
  /** The bearer value of each method. The access token and the API key act for the same user. */
  let bearers: Record<'authorization_code' | 'client_credentials' | 'api_key', string>;
  let warehouses: Record<'writable' | 'readable' | 'withoutRights' | 'foreign', string>;

  before(async () => {
    const { service, issuer, seeded } = on;
    const { organizations, memberships } = service;
    const { organization, elsewhere, person, clients } = seeded;
    const add = async (organizationId: string, name: string): Promise<string> =>
      (await organizations.addWarehouse({ organizationId, name })).id;
    warehouses = {
      writable: seeded.warehouse.id,
      readable: await add(organization.id, 'Zwolle'),
      withoutRights: await add(organization.id, 'Ghent'),
      foreign: await add(elsewhere.id, 'Far Away'),
    };
    for (const who of [{ accountId: person.accountId }, { clientId: clients.machine.id }]) {
      await memberships.setRights(who, warehouses.writable, ['read', 'write']);
      await memberships.setRights(who, warehouses.readable, ['read']);
    }
    api = await startCalledApi(service, clients.resourceServer);
    bearers = {
      authorization_code: (await on.partner.tokens(clients.confidential)).accessToken,
      client_credentials: tokensOf(await clientCredentials(issuer, clients.machine)).accessToken,
      api_key: (await apiKeyOf(service, person)).value,
    };
  });

  const adjust = (bearer: string, warehouse: string): Promise<Answer> =>
    api.query(bearer, `mutation { adjustStock(warehouse: "${warehouse}", article: "Parcel crates", by: 1) { count } }`);
  const look = (bearer: string, warehouse: string): Promise<Answer> =>
    api.query(bearer, `{ stock(warehouse: "${warehouse}") { article } }`);

  it('each caller of the sandbox API can read and write only in warehouses where it has the right', async () => {
    let count = 84;
    for (const [method, bearer] of Object.entries(bearers)) {
      const written = await adjust(bearer, warehouses.writable);
      count += 1;
      expect(written.body, method).to.deep.equal({ data: { adjustStock: { count } } });
      for (const place of ['readable', 'withoutRights', 'foreign'] as const) {
        expectForbidden(await adjust(bearer, warehouses[place]), `${method} ${place}`);
      }
      for (const place of ['writable', 'readable'] as const) {
        const { body } = await look(bearer, warehouses[place]);
        expect(body, `${method} ${place}`).to.have.nested.property('data.stock[0].article');
      }
      for (const place of ['withoutRights', 'foreign'] as const) {
        expectForbidden(await look(bearer, warehouses[place]), `${method} ${place}`);
      }
      expectForbidden(await look(bearer, 'wh_nowhere'), method);
    }
  });
});

function expectForbidden({ status, body }: Answer, what: string): void {
  expect(status, what).to.equal(200);
  expect(body, what).to.have.property('data', null);
  expect(body, what).to.have.nested.property('errors[0].extensions.code', 'FORBIDDEN');
}
