import { expect } from 'chai';
import { createTestClock, type TestClock } from '../support/clock.ts';
import {
  authorizationUrl,
  exchangeCode,
  introspect,
  refresh,
  type TestClient,
} from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { addPerson, type Seed, seed } from '../support/seed.ts';
import { forEachDeployment, type TestService } from '../support/service.ts';
import { type ClientOwner, isSecretGood, LIST, signInOwner, textOf } from './client-owner.ts';

forEachDeployment('deleting an OAuth client', (start) => {
  let service: TestService;
  let seeded: Seed;
  let owner: ClientOwner;
  let client: Required<TestClient>;
  let path: string;
  let time: TestClock;

  before(async () => {
    time = createTestClock();
    service = await start({ clock: time.clock });
    seeded = await seed(service);
  });
  after(() => time.restore());
  beforeEach(async () => {
    owner = await signInOwner(service, seeded.person);
    client = await owner.createClient('Stock Sync');
    path = `${LIST}/${client.id}/delete`;
  });
  afterEach(() =>
    service.clients.remove(client.id, { revokeGrant: async () => {} }).catch(() => {}),
  );

  async function connect(credentials: { email: string; password: string }) {
    const { issuer } = service;
    const person = createPerson(issuer);
    const redirect = await person.authorize(authorizationUrl(issuer, client), credentials);
    const code = redirect.searchParams.get('code') ?? '';
    const { body } = await exchangeCode(issuer, client, code);
    return { access: String(body.access_token), refresh: String(body.refresh_token) };
  }
  const isActive = async (token: string) =>
    (await introspect(service.issuer, seeded.clients.resourceServer, token)).body.active;

  it('says how many people it affects', async () => {
    expect(textOf((await owner.get(path)).html)).to.include('Nobody has it connected.');
    await connect(seeded.other);
    expect(textOf((await owner.get(path)).html)).to.include('1 person has it connected');
    await connect(seeded.person);
    expect(textOf((await owner.get(path)).html)).to.include('2 people have it connected');
  });

  it('needs its name, typed as it is', async () => {
    for (const confirm_name of ['', 'stock sync', 'Stock Sync!', client.id]) {
      const page = await owner.submit(await owner.get(path), { confirm_name });
      expect(page.status, confirm_name).to.equal(422);
      expect(page.html).to.include('id="name-problem"').and.include(`value="${confirm_name}"`);
    }
    expect((await owner.post(path)).status).to.equal(422);
    expect(await service.clients.find(client.id)).to.include({ isSuspended: false });
  });

  it('ends every token of everybody at once, and leaves nothing', async () => {
    const extra = await addPerson(service, 'Extra', `extra${client.id}@example.test`);
    const grants = [await connect(seeded.person), await connect(extra), await connect(extra)];
    for (const { access } of grants) expect(await isActive(access)).to.equal(true);
    const grantIds = [
      ...(await service.connections.grantsOf(seeded.person.accountId, client.id)),
      ...(await service.connections.grantsOf(extra.accountId, client.id)),
    ];
    expect(grantIds).to.have.length(3);

    const done = await owner.submit(await owner.get(path), { confirm_name: ' Stock Sync ' });
    expect(done.location?.pathname).to.equal(LIST);
    const list = await owner.follow(done);
    expect(textOf(list.html)).to.include('The client is deleted.');
    expect(list.html).not.to.include(client.id);

    for (const tokens of grants) {
      expect(await isActive(tokens.access)).to.equal(false);
      const { status, body } = await refresh(service.issuer, client, tokens.refresh);
      expect([status, body.error]).to.deep.equal([401, 'invalid_client']);
    }
    expect(await isSecretGood(service.issuer, client)).to.equal(false);
    for (const grantId of grantIds) {
      expect(await service.store.read('grant', grantId)).to.equal(undefined);
      expect(await service.store.readFamily(grantId)).to.equal(undefined);
    }
    const asked = await createPerson(service.issuer).get(authorizationUrl(service.issuer, client));
    expect(asked.status).to.equal(400);
    expect(asked.location).to.equal(undefined);
    expect((await owner.get(`${LIST}/${client.id}`)).status).to.equal(404);
  });

  it('is recorded in the log of the owner; those connected find their connection ended', async () => {
    await connect(seeded.other);
    await owner.post(path, { confirm_name: 'Stock Sync' });
    const [entry] = await service.activity.of(seeded.person.accountId, { limit: 1 });
    expect(entry).to.deep.include({
      ...{ action: 'client_deleted', actor: 'person' },
      details: { client_id: client.id, client_name: 'Stock Sync', people: 1 },
    });
    const [theirs] = await service.activity.of(seeded.other.accountId, { limit: 1 });
    const cause = 'client_deleted';
    expect(theirs).to.deep.include({
      ...{ action: 'disconnected', actor: 'service' },
      details: { client_id: client.id, client_name: 'Stock Sync', cause },
    });
  });

  it('two clicks at once delete it once, and both are answered', async () => {
    const fields = { confirm_name: 'Stock Sync' };
    const clicks = await Promise.all([owner.post(path, fields), owner.post(path, fields)]);
    for (const { status } of clicks) expect(status).to.be.oneOf([303, 404]);
    expect(clicks.map(({ status }) => status)).to.include(303);
    expect(await service.clients.find(client.id)).to.equal(undefined);
  });

  it('asks for the password when the sign-in is old, and carries the name along', async () => {
    time.advance(601);
    const asked = await owner.post(path, { confirm_name: 'Stock Sync' });
    expect(textOf(asked.html)).to.include('Confirm it is you');
    expect(await service.clients.find(client.id)).to.include({ isSuspended: false });
    const { password } = seeded.person;
    const done = await owner.submit(asked, { current_password: password });
    expect(done.location?.pathname).to.equal(LIST);
    expect(await service.clients.find(client.id)).to.equal(undefined);
  });

  it('a link, another site and a form without its token delete nothing', async () => {
    const fields = { confirm_name: 'Stock Sync' };
    await owner.get(`${path}?confirm_name=Stock+Sync`);
    const attempts = [
      await owner.post(path, { ...fields, form_token: '' }),
      await owner.post(path, fields, { 'sec-fetch-site': 'cross-site' }),
      await owner.post(path, fields, { origin: 'https://evil.example' }),
    ];
    for (const { status } of attempts) expect(status).to.equal(403);
    expect(await service.clients.find(client.id)).to.include({ isSuspended: false });
  });
});
