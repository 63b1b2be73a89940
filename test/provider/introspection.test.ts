/** `POST /oauth/introspect` (RFC 7662): what a resource server is told, and who is told anything. */
import { expect } from 'chai';
import { eventually } from '../support/eventually.ts';
import { type Answer, clientCredentials, introspect, type TestClient } from '../support/oauth.ts';
import { startSeeded } from '../support/seeded.ts';
import { tokensOf } from './partner-tokens.ts';

describe('introspection', () => {
  const on = startSeeded({ clock: true });

  const seconds = (): number => Math.floor(on.clock.clock() / 1000);
  const see = (token: string, client: TestClient = on.clients.resourceServer): Promise<Answer> =>
    introspect(on.issuer, client, token);

  async function expectInactive(token: string, client?: TestClient): Promise<void> {
    const { status, text } = await see(token, client);
    expect(status, token).to.equal(200);
    expect(text, token).to.equal('{"active":false}');
  }

  const accessToken = async (client = on.clients.confidential): Promise<string> =>
    (await on.partner.tokens(client)).accessToken;

  /** The answer for a member of the seeded organization with these rights in its warehouse. */
  function reach(role: string, rights: readonly string[]) {
    const { organization, warehouse } = on.seeded;
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
    on.clock.advance(10);
    const answer = await see(token);
    expect(answer.status).to.equal(200);
    expect(answer.headers.get('content-type')).to.match(/^application\/json\b/);
    expect(answer.headers.get('cache-control')).to.equal('no-store');
    const { iat, exp, ...told } = answer.body;
    // By the store's clock, which goes on while ours stands still.
    expect(iat).to.be.within(issuedAt, issuedAt + 20);
    expect(Number(exp) - Number(iat)).to.equal(3_600);
    expect(told).to.deep.equal({
      active: true,
      token_type: 'Bearer',
      client_id: on.clients.confidential.id,
      sub: on.seeded.person.accountId,
      authorization: token.slice('gate_at_'.length).slice(0, 22),
      username: on.seeded.person.email,
      iss: on.issuer,
      organizations: reach('member', ['read', 'write']),
    });
  });

  it('a machine token acts for its client, which is never taken for a person', async () => {
    const { accessToken: token } = tokensOf(await clientCredentials(on.issuer, on.clients.machine));
    expect((await see(token)).body).to.deep.equal({
      active: true,
      token_type: 'Bearer',
      client_id: on.clients.machine.id,
      sub: on.clients.machine.id,
      iat: seconds(),
      exp: seconds() + 3_600,
      iss: on.issuer,
      organizations: reach('member', []),
    });
    expect(on.clients.machine.id).to.match(/^gate_ci_/);
    expect(on.seeded.person.accountId).to.match(/^acc_/);
  });

  it('a client learns that its own token is good, and no more; of others nothing', async () => {
    const token = await accessToken();
    const { body } = await see(token, on.clients.confidential);
    expect(body).to.include({ active: true, client_id: on.clients.confidential.id });
    expect(body).to.not.have.any.keys('username', 'organizations', 'authorization');
    await expectInactive(token, on.clients.otherConfidential);
    await expectInactive(token, on.clients.machine);
  });

  it('only an access token is active, whole and untouched', async () => {
    const { accessToken: token, refreshToken } = await on.partner.tokens(on.clients.confidential);
    const { accessToken: later } = await on.partner.tokens(on.clients.confidential);
    const [session = ''] =
      on.partner.browser.cookieHeader('/').match(/(?<=gate_session=)[^;]+/) ?? [];
    expect(session).to.have.length.above(20);
    const others = [
      session,
      // Of two authorizations: the grant that one token names, and the rest of the other.
      later.slice(0, 'gate_at_'.length + 22) + token.slice('gate_at_'.length + 22),
      `gate_at_${'%00'.repeat(21)}xx`,
    ];
    for (const other of others) await expectInactive(other);
    await expectInactive(refreshToken, on.clients.confidential);
    expect((await see(token)).body.active).to.equal(true);
  });

  it('a token is active until the second of its expiry', async () => {
    const token = await accessToken();
    const { exp } = (await see(token)).body;
    on.clock.advance(Number(exp) - seconds() - 1);
    expect((await see(token)).body.active).to.equal(true);
    on.clock.advance(1);
    await expectInactive(token);
  });

  it('what the person may reach is what it is at the moment of the call', async () => {
    const { memberships } = on.service;
    const { organization, warehouse } = on.seeded;
    const who = { accountId: on.seeded.person.accountId };
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
