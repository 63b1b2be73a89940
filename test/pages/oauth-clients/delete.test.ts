import { expect } from 'chai';
import { partnerTokens } from '../../provider/partner-tokens.ts';
import { authorizationUrl, refresh, type TestClient } from '../../support/oauth.ts';
import { type Credentials, createPerson } from '../../support/person.ts';
import { addPerson } from '../../support/seed.ts';
import { startSeeded } from '../../support/seeded.ts';
import { type ClientOwner, isSecretValid, LIST, signInOwner, textOf } from '../client-owner.ts';

describe('deleting an OAuth client', () => {
  const on = startSeeded({ settings: { limits: { clientsPerPerson: 100 } } });
  let owner: ClientOwner;
  let client: Required<TestClient>;
  let path: string;

  before(async () => {
    owner = await signInOwner(on.service, on.seeded.person);
  });
  beforeEach(async () => {
    client = await owner.createClient('Stock Sync');
    path = `${LIST}/${client.id}/delete`;
  });

  const connect = (person: Credentials) => partnerTokens(on.issuer, { ...on.seeded, person }).tokens(client);
  const isActive = (token: string) => on.partner.isActive(token);

  it('the page to delete a client shows how many users have connected it', async () => {
    expect(textOf((await owner.get(path)).html)).to.include('No one has connected it.');
    await connect(on.seeded.other);
    expect(textOf((await owner.get(path)).html)).to.include('1 person has connected it');
    await connect(on.seeded.person);
    expect(textOf((await owner.get(path)).html)).to.include('2 people have connected it');
  });

  it('deleting a client requires entering its exact name', async () => {
    for (const confirm_name of ['', 'stock sync', 'Stock Sync!', client.id]) {
      const page = await owner.submit(await owner.get(path), { confirm_name });
      expect(page.status, confirm_name).to.equal(422);
      expect(page.html).to.include('id="name-problem"').and.include(`value="${confirm_name}"`);
    }
    expect((await owner.send(path)).status).to.equal(422);
    expect(await on.service.clients.find(client.id)).to.include({ isSuspended: false });
  });

  it('deleting a client ends the tokens of all users immediately and deletes all of its data', async () => {
    const extra = await addPerson(on.service, 'Extra', `extra${client.id}@example.test`);
    const issued = [await connect(on.seeded.person), await connect(extra), await connect(extra)];
    for (const { accessToken } of issued) expect(await isActive(accessToken)).to.equal(true);
    const done = await owner.submit(await owner.get(path), { confirm_name: ' Stock Sync ' });
    expect(done.location?.pathname).to.equal(LIST);
    const list = await owner.follow(done);
    expect(textOf(list.html)).to.include('The client is deleted.');
    expect(list.html).not.to.include(client.id);

    for (const tokens of issued) {
      expect(await isActive(tokens.accessToken)).to.equal(false);
      const { status, body } = await refresh(on.issuer, client, tokens.refreshToken);
      expect([status, body.error]).to.deep.equal([401, 'invalid_client']);
    }
    expect(await isSecretValid(on.issuer, client)).to.equal(false);
    for (const { accountId } of [on.seeded.person, extra]) {
      expect(await on.service.connections.find(accountId, client.id)).to.equal(undefined);
    }
    const asked = await createPerson(on.issuer).get(authorizationUrl(on.issuer, client));
    expect(asked.status).to.equal(400);
    expect(asked.location).to.equal(undefined);
    expect((await owner.get(`${LIST}/${client.id}`)).status).to.equal(404);
  });

  it('the deletion of a client is recorded in the logs of the owner and, as a disconnection, of connected users', async () => {
    await connect(on.seeded.other);
    await owner.send(path, { confirm_name: 'Stock Sync' });
    const [ownerEntry] = await on.service.activity.of(on.seeded.person.accountId, { limit: 1 });
    expect(ownerEntry).to.deep.include({
      action: 'client_deleted',
      actor: 'person',
      details: { client_id: client.id, client_name: 'Stock Sync', people: 1 },
    });
    const [userEntry] = await on.service.activity.of(on.seeded.other.accountId, { limit: 1 });
    const cause = 'client_deleted';
    expect(userEntry).to.deep.include({
      action: 'disconnected',
      actor: 'service',
      details: { client_id: client.id, client_name: 'Stock Sync', cause },
    });
  });

  it('two parallel requests delete the client once, and both are answered', async () => {
    const fields = { confirm_name: 'Stock Sync' };
    const clicks = await Promise.all([owner.send(path, fields), owner.send(path, fields)]);
    for (const { status } of clicks) expect(status).to.be.oneOf([303, 404]);
    expect(clicks.map(({ status }) => status)).to.include(303);
    expect(await on.service.clients.find(client.id)).to.equal(undefined);
  });
});
