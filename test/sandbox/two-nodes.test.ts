/** Access that ends on one node is over on the other, which remembers what it was told before. */
import { expect } from 'chai';
import { type PartnerTokens, partnerTokens, tokensOf } from '../provider/partner-tokens.ts';
import { eventually } from '../support/eventually.ts';
import { clientCredentials, revokeCurrent } from '../support/oauth.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { type Seed, seed } from '../support/seed.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { apiKeyOf, type CalledApi, confirmAt, startCalledApi } from './called-api.ts';

describeOn([postgresServer, redisServer], 'two nodes on PostgreSQL and Redis', () => {
  /** Where people and operators change things. */
  let node: TestService;
  /** Where the API asks. */
  let otherNode: TestService;
  let seeded: Seed;
  let clients: Seed['clients'];
  let partner: PartnerTokens;
  let api: CalledApi;

  before(async () => {
    node = await startTestService({ deployment: 'postgres+redis' });
    otherNode = await startTestService({ beside: node });
    seeded = await seed(node);
    ({ clients } = seeded);
    partner = partnerTokens(node.issuer, seeded);
    api = await startCalledApi(otherNode, clients.resourceServer);
  });
  after(async () => {
    await api?.close();
    await otherNode?.close();
    await node?.close();
  });

  const ofPerson = async (): Promise<string> =>
    (await partner.tokens(clients.confidential)).accessToken;
  const ofMachine = async (): Promise<string> =>
    tokensOf(await clientCredentials(node.issuer, clients.machine)).accessToken;
  const organizationsOf = async (bearer: string): Promise<unknown> =>
    (await api.query(bearer, '{ organizations { id } }')).body;

  /** Lets the other node answer, and so remember, before anything is changed. */
  async function remembered(...bearers: readonly string[]): Promise<void> {
    for (const bearer of bearers) await api.expectLetIn(bearer);
  }

  it('a removed membership, of a person and of a machine client', async () => {
    const { organization, person } = seeded;
    for (const [bearer, who] of [
      [await ofPerson(), { accountId: person.accountId }],
      [(await apiKeyOf(node, person)).value, { accountId: person.accountId }],
      [await ofMachine(), { clientId: clients.machine.id }],
    ] as const) {
      await node.memberships.setRole(who, organization.id, 'viewer');
      await eventually(async () => {
        const organizations = [{ id: organization.id }];
        expect(await organizationsOf(bearer)).to.deep.equal({ data: { organizations } });
      });
      await node.memberships.remove(who, organization.id);
      await eventually(async () => {
        expect(await organizationsOf(bearer)).to.deep.equal({ data: { organizations: [] } });
      });
    }
  });

  it('a suspended account', async () => {
    const bearers = [await ofPerson(), (await apiKeyOf(node, seeded.person)).value];
    await remembered(...bearers);
    await node.accounts.suspend(seeded.person.accountId);
    for (const bearer of bearers) await eventually(() => api.expectRefused(bearer));
    await node.accounts.resume(seeded.person.accountId);
    for (const bearer of bearers) await eventually(() => api.expectLetIn(bearer));
  });

  it('a suspended client', async () => {
    for (const [bearer, { id }] of [
      [await ofPerson(), clients.confidential],
      [await ofMachine(), clients.machine],
    ] as const) {
      await remembered(bearer);
      await node.clients.suspend(id);
      await eventually(() => api.expectRefused(bearer));
      await node.clients.resume(id);
      await eventually(() => api.expectLetIn(bearer));
    }
  });

  it('a revoked token, on the very next call', async () => {
    const bearer = await ofPerson();
    await remembered(bearer);
    await revokeCurrent(node.issuer, bearer);
    await api.expectRefused(bearer);
  });

  it('an ended connection, on the very next call', async () => {
    const bearers = [await ofPerson(), await ofPerson()];
    await remembered(...bearers);
    const path = `/profile/connections/${clients.confidential.id}/disconnect`;
    expect((await confirmAt(node.issuer, seeded.person, path)).status).to.equal(303);
    for (const bearer of bearers) await api.expectRefused(bearer);
  });

  it('a revoked API key', async () => {
    const { id, value } = await apiKeyOf(node, seeded.person);
    await remembered(value);
    const path = `/profile/api-keys/${id}/revoke`;
    expect((await confirmAt(node.issuer, seeded.person, path)).status).to.equal(303);
    await eventually(() => api.expectRefused(value));
  });

  it('a deleted client', async () => {
    const bearer = await ofMachine();
    await remembered(bearer);
    await node.clients.remove(clients.machine.id, { revokeGrant: async () => {} });
    await eventually(() => api.expectRefused(bearer));
  });

  it('the API itself, once its own client is suspended: nobody is let in', async () => {
    const bearer = await ofPerson();
    await remembered(bearer);
    await node.clients.suspend(clients.resourceServer.id);
    await eventually(async () => {
      expect((await api.query(bearer, '{ caller { subject } }')).status).to.equal(503);
    });
    await node.clients.resume(clients.resourceServer.id);
    await eventually(() => api.expectLetIn(bearer));
  });
});
