/** `POST /oauth/introspect` (RFC 7662): what a resource server is told, and who is told anything. */
import { expect } from 'chai';
import { createTestClock, type TestClock } from '../support/clock.ts';
import { eventually } from '../support/eventually.ts';
import {
  type Answer,
  ask,
  basic,
  clientCredentials,
  introspect,
  postForm,
  revokeCurrent,
  type TestClient,
} from '../support/oauth.ts';
import { type Seed, seed } from '../support/seed.ts';
import { forEachDeployment, type TestService } from '../support/service.ts';
import { type PartnerTokens, partnerTokens, tokensOf } from './partner-tokens.ts';

forEachDeployment('introspection', (start) => {
  let service: TestService;
  let seeded: Seed;
  let clients: Seed['clients'];
  let partner: PartnerTokens;
  let time: TestClock;

  before(async () => {
    time = createTestClock();
    service = await start({ clock: time.clock });
    seeded = await seed(service);
    ({ clients } = seeded);
    partner = partnerTokens(service.issuer, seeded);
  });
  after(() => time.restore());

  const seconds = (): number => Math.floor(time.clock() / 1000);
  const see = (token: string, client: TestClient = clients.resourceServer): Promise<Answer> =>
    introspect(service.issuer, client, token);

  async function expectInactive(token: string, client?: TestClient): Promise<void> {
    const { status, text } = await see(token, client);
    expect([status, text], token).to.deep.equal([200, '{"active":false}']);
  }

  const accessToken = async (client = clients.confidential): Promise<string> =>
    (await partner.tokens(client)).accessToken;

  /** The answer for a member of the seeded organization with these rights in its warehouse. */
  function reach(role: string, rights: readonly string[]) {
    const { organization, warehouse } = seeded;
    const warehouses = [{ id: warehouse.id, name: warehouse.name, rights }];
    return [
      {
        id: organization.id,
        name: organization.name,
        role,
        warehouses: rights.length === 0 ? [] : warehouses,
      },
    ];
  }

  it('tells a resource server whose the token is and what they may reach now', async () => {
    const issuedAt = seconds();
    const token = await accessToken();
    time.advance(10);
    const answer = await see(token);
    expect(answer.status).to.equal(200);
    expect(answer.headers.get('content-type')).to.match(/^application\/json\b/);
    expect(answer.headers.get('cache-control')).to.equal('no-store');
    expect(answer.body).to.deep.equal({
      active: true,
      token_type: 'Bearer',
      client_id: clients.confidential.id,
      sub: seeded.person.accountId,
      username: seeded.person.email,
      iat: issuedAt,
      exp: issuedAt + 3_600,
      iss: service.issuer,
      organizations: reach('member', ['read', 'write']),
    });
  });

  it('a machine token acts for its client, which is never taken for a person', async () => {
    const { accessToken: token } = tokensOf(
      await clientCredentials(service.issuer, clients.machine),
    );
    expect((await see(token)).body).to.deep.equal({
      active: true,
      token_type: 'Bearer',
      client_id: clients.machine.id,
      sub: clients.machine.id,
      iat: seconds(),
      exp: seconds() + 3_600,
      iss: service.issuer,
      organizations: reach('member', []),
    });
    expect(clients.machine.id).to.match(/^gate_ci_/);
    expect(seeded.person.accountId).to.match(/^acc_/);
  });

  it('a client learns that its own token is good, and no more; of others nothing', async () => {
    const token = await accessToken();
    const { body } = await see(token, clients.confidential);
    expect(body).to.include({ active: true, client_id: clients.confidential.id });
    expect(body).to.not.have.any.keys('username', 'organizations');
    await expectInactive(token, clients.otherConfidential);
    await expectInactive(token, clients.machine);
  });

  it('who does not prove to be a client is told nothing', async () => {
    const token = await accessToken();
    const path = '/oauth/introspect';
    const url = new URL(path, service.issuer);
    const form = (): URLSearchParams => new URLSearchParams({ token });
    const wrong = { ...clients.resourceServer, secret: `gate_cs_${'w'.repeat(43)}` };

    const nobody = await ask(url, { method: 'POST', body: form() });
    expect([nobody.status, nobody.body.error]).to.deep.equal([401, 'invalid_client']);
    expect(nobody.headers.get('www-authenticate')).to.match(/^Basic realm=/);
    for (const client of [wrong, clients.public]) {
      const refused = await postForm(service.issuer, path, { token }, { client });
      expect([refused.status, refused.body.error]).to.deep.equal([401, 'invalid_client']);
    }
    const bearer = await ask(url, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}` },
      body: form(),
    });
    expect([bearer.status, bearer.body.error]).to.deep.equal([400, 'invalid_request']);
  });

  it('a request that is none is 400 or 405', async () => {
    const { resourceServer: client } = clients;
    const token = await accessToken();
    const url = new URL('/oauth/introspect', service.issuer);
    const headers = { authorization: basic(client) };
    const bodies = [
      new URLSearchParams(),
      new URLSearchParams({ token: '' }),
      new URLSearchParams(`token=${token}&token=${token}`),
    ];
    for (const body of bodies) {
      const answer = await ask(url, { method: 'POST', headers, body });
      expect([answer.status, answer.body.error]).to.deep.equal([400, 'invalid_request']);
    }
    const json = { ...headers, 'content-type': 'application/json' };
    const answer = await ask(url, { method: 'POST', headers: json, body: `{"token":"${token}"}` });
    expect([answer.status, answer.body.error]).to.deep.equal([400, 'invalid_request']);
    const get = await ask(new URL(`${url}?token=${token}`), { headers });
    expect([get.status, get.headers.get('allow')]).to.deep.equal([405, 'POST']);
  });

  it('only an access token is active, whole and untouched', async () => {
    const code = await partner.code(clients.confidential);
    const { accessToken: token, refreshToken } = await partner.tokens(clients.confidential);
    const { accessToken: later } = await partner.tokens(clients.confidential);
    const [session = ''] = partner.browser.cookieHeader('/').match(/(?<=gate_session=)[^;]+/) ?? [];
    expect(session).to.have.length.above(20);
    const others = [
      refreshToken,
      code,
      session,
      clients.confidential.secret ?? '',
      clients.confidential.id,
      // Of two authorizations: the grant that one token names, and the rest of the other.
      later.slice(0, 'gate_at_'.length + 22) + token.slice('gate_at_'.length + 22),
      token.slice(0, -1),
      `${token}A`,
      ` ${token}`,
      `${token}\n`,
      token.slice('gate_at_'.length),
      token.replace('gate_at_', 'gate_mt_'),
      'gate_key_',
      'eyJhbGciOiJub25lIn0.eyJhY3RpdmUiOnRydWV9.',
      `gate_at_${'%00'.repeat(21)}xx`,
    ];
    for (const other of others) await expectInactive(other);
    await expectInactive(refreshToken, clients.confidential);
    expect((await see(token)).body.active).to.equal(true);
  });

  it('a token is active until the second of its expiry', async () => {
    const token = await accessToken();
    time.advance(3_599);
    expect((await see(token)).body.active).to.equal(true);
    time.advance(1);
    await expectInactive(token);
    time.advance(1);
    await expectInactive(token);
  });

  it('a revoked token is inactive at the next call', async () => {
    const token = await accessToken();
    expect((await see(token)).body.active).to.equal(true);
    await revokeCurrent(service.issuer, token);
    await expectInactive(token);
  });

  it('a suspended account or client is inactive at the next call, until it is resumed', async () => {
    const token = await accessToken();
    const { accessToken: machineToken } = tokensOf(
      await clientCredentials(service.issuer, clients.machine),
    );
    await service.accounts.suspend(seeded.person.accountId);
    await expectInactive(token);
    await service.accounts.resume(seeded.person.accountId);
    expect((await see(token)).body.active).to.equal(true);

    await service.clients.suspend(clients.confidential.id);
    await service.clients.suspend(clients.machine.id);
    await expectInactive(token);
    await expectInactive(machineToken);
    await service.clients.resume(clients.confidential.id);
    await service.clients.resume(clients.machine.id);
    expect((await see(token)).body.active).to.equal(true);

    await service.clients.suspend(clients.resourceServer.id);
    expect((await see(token)).status).to.equal(401);
    await service.clients.resume(clients.resourceServer.id);
  });

  it('a token of a deleted client is inactive, even if its grant were left behind', async () => {
    const token = await accessToken(clients.otherConfidential);
    expect((await see(token)).body.active).to.equal(true);
    await service.clients.remove(clients.otherConfidential.id, { revokeGrant: async () => {} });
    await expectInactive(token);
  });

  it('what the person may reach is what it is at the moment of the call', async () => {
    const { memberships } = service;
    const { organization, warehouse } = seeded;
    const who = { accountId: seeded.person.accountId };
    const token = await accessToken();
    const expectReach = (expected: unknown) =>
      eventually(async () => {
        expect((await see(token)).body.organizations).to.deep.equal(expected);
      });

    await memberships.setRights(who, warehouse.id, ['read']);
    await expectReach(reach('member', ['read']));
    await memberships.setRole(who, organization.id, 'admin');
    await expectReach(reach('admin', ['read', 'write', 'manage']));
    await memberships.setRole(who, organization.id, 'viewer');
    await expectReach(reach('viewer', ['read']));
    await memberships.remove(who, organization.id);
    await expectReach([]);
    expect((await see(token)).body.active).to.equal(true);
  });
});
