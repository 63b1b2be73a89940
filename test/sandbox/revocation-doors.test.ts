/** Every way in which access ends, seen from the API on its next call. */
import { expect } from 'chai';
import { type PartnerTokens, partnerTokens, tokensOf } from '../provider/partner-tokens.ts';
import {
  clientCredentials,
  postForm,
  refresh,
  revokeCurrent,
  type TestClient,
} from '../support/oauth.ts';
import { type Seed, seed } from '../support/seed.ts';
import { forEachDeployment, type TestService } from '../support/service.ts';
import { apiKeyOf, type CalledApi, confirmAt, startCalledApi } from './called-api.ts';

forEachDeployment('the API sees on its next call that', (start) => {
  let service: TestService;
  let seeded: Seed;
  let clients: Seed['clients'];
  let partner: PartnerTokens;
  let api: CalledApi;

  before(async () => {
    service = await start();
    seeded = await seed(service);
    ({ clients } = seeded);
    partner = partnerTokens(service.issuer, seeded);
    api = await startCalledApi(service, clients.resourceServer);
  });
  after(() => api.close());

  const ofPerson = async (client: TestClient = clients.confidential): Promise<string> =>
    (await partner.tokens(client)).accessToken;
  const ofMachine = async (): Promise<string> =>
    tokensOf(await clientCredentials(service.issuer, clients.machine)).accessToken;

  it('the holder of a token revoked it', async () => {
    for (const bearer of [await ofPerson(), await ofMachine()]) {
      await api.expectLetIn(bearer);
      expect((await revokeCurrent(service.issuer, bearer)).status).to.equal(204);
      await api.expectRefused(bearer);
    }
  });

  it('a client revoked the token (RFC 7009)', async () => {
    for (const [bearer, client] of [
      [await ofPerson(), clients.confidential],
      [await ofMachine(), clients.machine],
    ] as const) {
      await api.expectLetIn(bearer);
      const form = { token: bearer };
      const { status } = await postForm(service.issuer, '/oauth/revoke', form, { client });
      expect(status).to.equal(200);
      await api.expectRefused(bearer);
    }
  });

  it('a replayed refresh token ended the authorization', async () => {
    const renew = (refreshToken: string) =>
      refresh(service.issuer, clients.confidential, refreshToken);
    const first = await partner.tokens(clients.confidential);
    const second = tokensOf(await renew(first.refreshToken));
    const third = tokensOf(await renew(second.refreshToken));
    await api.expectLetIn(third.accessToken);
    expect((await renew(first.refreshToken)).body.error).to.equal('invalid_grant');
    await api.expectRefused(third.accessToken);
  });

  it('the person disconnected the client, and only that one', async () => {
    const bearers = [await ofPerson(), await ofPerson()];
    const other = await ofPerson(clients.otherConfidential);
    const key = await apiKeyOf(service, seeded.person);
    for (const bearer of bearers) await api.expectLetIn(bearer);
    await disconnect(clients.confidential);
    for (const bearer of bearers) await api.expectRefused(bearer);
    await api.expectLetIn(other);
    await api.expectLetIn(key.value);
  });

  it('the client was suspended, until it is resumed', async () => {
    for (const [bearer, { id }] of [
      [await ofPerson(), clients.confidential],
      [await ofMachine(), clients.machine],
    ] as const) {
      await api.expectLetIn(bearer);
      await service.clients.suspend(id);
      await api.expectRefused(bearer);
      await service.clients.resume(id);
      await api.expectLetIn(bearer);
    }
  });

  it('the account was suspended, until it is resumed; a machine works on', async () => {
    const { accountId } = seeded.person;
    const key = await apiKeyOf(service, seeded.person);
    const bearers = [await ofPerson(), key.value];
    const machine = await ofMachine();
    for (const bearer of bearers) await api.expectLetIn(bearer);
    await service.accounts.suspend(accountId);
    for (const bearer of bearers) await api.expectRefused(bearer);
    await api.expectLetIn(machine);
    await service.accounts.resume(accountId);
    for (const bearer of bearers) await api.expectLetIn(bearer);
  });

  it('an API key was revoked, and only that one', async () => {
    const revoked = await apiKeyOf(service, seeded.person);
    const other = await apiKeyOf(service, seeded.person);
    const bearer = await ofPerson();
    await api.expectLetIn(revoked.value);
    const path = `/profile/api-keys/${revoked.id}/revoke`;
    expect((await confirmAt(service.issuer, seeded.person, path)).status).to.equal(303);
    await api.expectRefused(revoked.value);
    await api.expectLetIn(other.value);
    await api.expectLetIn(bearer);
  });

  it('the client was deleted by its owner', async () => {
    const { id } = clients.confidential;
    const bearer = await ofPerson();
    await api.expectLetIn(bearer);
    const path = `/profile/oauth-clients/${id}/delete`;
    const typed = { confirm_name: 'Route Planner' };
    const page = await confirmAt(service.issuer, seeded.other, path, typed);
    expect(page.status, page.html).to.equal(303);
    expect(await service.clients.find(id)).to.equal(undefined);
    await api.expectRefused(bearer);
  });

  async function disconnect({ id }: TestClient): Promise<void> {
    const path = `/profile/connections/${id}/disconnect`;
    expect((await confirmAt(service.issuer, seeded.person, path)).status).to.equal(303);
  }
});
