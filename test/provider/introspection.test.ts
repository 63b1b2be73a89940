/** `POST /oauth/introspect` (RFC 7662): the answers for resource servers and for other clients. */
import { expect } from 'chai';
import { apiKeyOf } from '../sandbox/called-api.ts';
import { eventually } from '../support/eventually.ts';
import { type Answer, introspect, type TestClient } from '../support/oauth.ts';
import { startSeeded } from '../support/seeded.ts';

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

  /** The expected organizations of a member with these rights in the seeded warehouse. */
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

  it('a resource server receives the owner of a token and the owner’s current access', async () => {
    const issuedAt = seconds();
    const token = await accessToken();
    on.clock.advance(10);
    const answer = await see(token);
    expect(answer.status).to.equal(200);
    expect(answer.headers.get('content-type')).to.match(/^application\/json\b/);
    expect(answer.headers.get('cache-control')).to.equal('no-store');
    const { iat, exp, ...rest } = answer.body;
    // Allow some seconds: the store's clock sets this time, and runs while the test clock stands still.
    expect(iat).to.be.within(issuedAt, issuedAt + 20);
    expect(Number(exp) - Number(iat)).to.equal(3_600);
    expect(rest).to.deep.equal({
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

  it('clients of other kinds learn only whether their own token is active, and nothing about others', async () => {
    const token = await accessToken();
    const { body } = await see(token, on.clients.confidential);
    expect(body).to.include({ active: true, client_id: on.clients.confidential.id });
    expect(body).to.not.have.any.keys('username', 'organizations', 'authorization');
    await expectInactive(token, on.clients.otherConfidential);
    await expectInactive(token, on.clients.machine);
    const { value } = await apiKeyOf(on.service, on.seeded.person);
    for (const client of [on.clients.confidential, on.clients.machine]) await expectInactive(value, client);
  });

  it('an access token is active until the second in which it expires', async () => {
    const token = await accessToken();
    const { exp } = (await see(token)).body;
    on.clock.advance(Number(exp) - seconds() - 1);
    expect((await see(token)).body.active).to.equal(true);
    on.clock.advance(1);
    await expectInactive(token);
  });

  it('introspection returns the user’s access at the moment of the call', async () => {
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
