/** Every way in which access ends, seen from the API on its next call, whichever node it asks. */
import { expect } from 'chai';
import { operatorBeside } from '../operator/run-operator.ts';
import { tokensOf } from '../provider/partner-tokens.ts';
import { eventually } from '../support/eventually.ts';
import {
  clientCredentials,
  postForm,
  refresh,
  revokeCurrent,
  type TestClient,
} from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { startSeeded } from '../support/seeded.ts';
import { startsOn, type TestService } from '../support/service.ts';
import { apiKeyOf, type CalledApi, confirmAt, startCalledApi } from './called-api.ts';

/** How soon the API sees what is told from node to node. */
type Hears = (check: () => Promise<void>) => Promise<void>;

describe('the API sees on its next call that', () => {
  itSees(
    async (node) => node,
    (check) => check(),
  );
});

describeOn([postgresServer, redisServer], 'the API, which asks another node, sees that', () => {
  const start = startsOn();
  itSees((node) => start({ beside: node }), eventually);
});

describe('the API, which remembers, hears that', () => {
  itSees(async (node) => node, eventually, true);
});

describeOn([postgresServer, redisServer], 'the API, which another node tells, hears that', () => {
  const start = startsOn();
  itSees((node) => start({ beside: node }), eventually, true);
});

/** @param asked answers the node that the API asks, beside the one where everything is changed. */
function itSees(
  asked: (node: TestService) => Promise<TestService>,
  hears: Hears,
  live = false,
): void {
  /** What the asked node finds in the token store, an API that remembers must be told. */
  const sees: Hears = live ? hears : (check) => check();
  const on = startSeeded();
  let clients: typeof on.clients;
  let api: CalledApi;

  before(async () => {
    ({ clients } = on);
    api = await startCalledApi(await asked(on.service), clients.resourceServer, live);
  });

  const ofPerson = async (client: TestClient = clients.confidential): Promise<string> =>
    (await on.partner.tokens(client)).accessToken;
  const ofMachine = async (): Promise<string> =>
    tokensOf(await clientCredentials(on.issuer, clients.machine)).accessToken;
  const keyOfPerson = () => apiKeyOf(on.service, on.seeded.person);

  async function expectLetIn(bearers: readonly string[]): Promise<void> {
    for (const bearer of bearers) await api.expectLetIn(bearer);
  }
  async function expectRefused(bearers: readonly string[]): Promise<void> {
    for (const bearer of bearers) await api.expectRefused(bearer);
  }

  it('the holder of a token revoked it', async () => {
    for (const bearer of [await ofPerson(), await ofMachine()]) {
      await api.expectLetIn(bearer);
      expect((await revokeCurrent(on.issuer, bearer)).status).to.equal(204);
      await sees(() => api.expectRefused(bearer));
    }
  });

  it('a client revoked the token (RFC 7009)', async () => {
    for (const [bearer, client] of [
      [await ofPerson(), clients.confidential],
      [await ofMachine(), clients.machine],
    ] as const) {
      await api.expectLetIn(bearer);
      const form = { token: bearer };
      const { status } = await postForm(on.issuer, '/oauth/revoke', form, { client });
      expect(status).to.equal(200);
      await sees(() => api.expectRefused(bearer));
    }
  });

  it('the operator repeated an end that a restored token store had undone', async () => {
    const bearer = await ofPerson();
    const form = { token: bearer };
    const { resourceServer: client, confidential } = clients;
    const { body } = await postForm(on.issuer, '/oauth/introspect', form, { client });
    // As after such a restore: recorded as ended, and active in the token store.
    await on.service.database.query(
      `INSERT INTO ended_authorizations (id, at, cause, account_id, client_id)
        VALUES ($1, now(), 'client_revoked', $2, $3)`,
      [body.authorization, on.seeded.person.accountId, confidential.id],
    );
    await api.expectLetIn(bearer);
    const { exitCode, errors } = await operatorBeside(on.service)('revoke --recorded --yes');
    expect(exitCode, errors).to.equal(0);
    await sees(() => api.expectRefused(bearer));
  });

  it('a replayed refresh token ended the authorization', async () => {
    const renew = (refreshToken: string) => refresh(on.issuer, clients.confidential, refreshToken);
    const first = await on.partner.tokens(clients.confidential);
    const second = tokensOf(await renew(first.refreshToken));
    const third = tokensOf(await renew(second.refreshToken));
    await api.expectLetIn(third.accessToken);
    expect((await renew(first.refreshToken)).body.error).to.equal('invalid_grant');
    await sees(() => api.expectRefused(third.accessToken));
  });

  it('the person disconnected the client, and only that one', async () => {
    const ended = [await ofPerson(), await ofPerson()];
    const others = [await ofPerson(clients.otherConfidential), (await keyOfPerson()).value];
    await expectLetIn([...ended, ...others]);
    const path = `/profile/connections/${clients.confidential.id}/disconnect`;
    await confirmAt(on.partner.browser, path);
    await hears(() => expectRefused(ended));
    await expectLetIn(others);
  });

  it('the client was suspended, until it is resumed', async () => {
    for (const [bearer, { id }] of [
      [await ofPerson(), clients.confidential],
      [await ofMachine(), clients.machine],
    ] as const) {
      await api.expectLetIn(bearer);
      await on.service.clients.suspend(id);
      await hears(() => api.expectRefused(bearer));
      await on.service.clients.resume(id);
      await hears(() => api.expectLetIn(bearer));
    }
  });

  it('the account was suspended, until it is resumed; a machine works on', async () => {
    const { accountId } = on.seeded.person;
    const bearers = [await ofPerson(), (await keyOfPerson()).value];
    const machine = await ofMachine();
    await expectLetIn(bearers);
    await on.service.accounts.suspend(accountId);
    await hears(() => expectRefused(bearers));
    await api.expectLetIn(machine);
    await on.service.accounts.resume(accountId);
    await hears(() => expectLetIn(bearers));
  });

  it('an API key was revoked, and only that one', async () => {
    const revoked = await keyOfPerson();
    const others = [(await keyOfPerson()).value, await ofPerson()];
    await expectLetIn([revoked.value, ...others]);
    await confirmAt(on.partner.browser, `/profile/api-keys/${revoked.id}/revoke`);
    await hears(() => api.expectRefused(revoked.value));
    await expectLetIn(others);
  });

  it('a membership was removed, of a person or a machine client', async () => {
    const { organization, person } = on.seeded;
    const ofAccount = { accountId: person.accountId };
    for (const [bearer, who] of [
      [await ofPerson(), ofAccount],
      [(await keyOfPerson()).value, ofAccount],
      [await ofMachine(), { clientId: clients.machine.id }],
    ] as const) {
      const expectOrganizations = (...organizations: readonly { id: string }[]) =>
        // Changed past the service, and so from node to node in any case.
        eventually(async () => {
          const { body } = await api.query(bearer, '{ organizations { id } }');
          expect(body).to.deep.equal({ data: { organizations } });
        });
      await on.service.memberships.setRole(who, organization.id, 'viewer');
      await expectOrganizations({ id: organization.id });
      await on.service.memberships.remove(who, organization.id);
      await expectOrganizations();
    }
  });

  it('its own client was suspended, which lets nobody in', async () => {
    const bearer = await ofPerson();
    await api.expectLetIn(bearer);
    const { id } = clients.resourceServer;
    await on.service.clients.suspend(id);
    await hears(async () => {
      expect((await api.query(bearer, '{ caller { subject } }')).status).to.equal(503);
    });
    await on.service.clients.resume(id);
    await hears(() => api.expectLetIn(bearer));
  });

  it('the client was deleted by its owner', async () => {
    const { id } = clients.confidential;
    const bearer = await ofPerson();
    await api.expectLetIn(bearer);
    const owner = createPerson(on.issuer);
    await owner.signIn(on.seeded.other);
    const typed = { confirm_name: 'Route Planner' };
    await confirmAt(owner, `/profile/oauth-clients/${id}/delete`, typed);
    expect(await on.service.clients.find(id)).to.equal(undefined);
    await hears(() => api.expectRefused(bearer));
  });
}
