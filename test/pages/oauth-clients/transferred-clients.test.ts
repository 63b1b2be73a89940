/** The pages of a client that the operator gives to another owner. */
import { expect } from 'chai';
import { authorizationUrl, refresh, type TestClient } from '../../support/oauth.ts';
import { addPerson, type SeededPerson } from '../../support/seed.ts';
import { startSeeded } from '../../support/seeded.ts';
import { type ClientOwner, LIST, signInOwner, textOf } from '../client-owner.ts';

const SUPPORT = 'help@example.test';

describe('the transfer of an OAuth client keeps its tokens valid and gives control to the new owner', () => {
  const on = startSeeded({
    clock: true,
    settings: { brand: { name: 'Gatehouse', support: SUPPORT } },
  });
  let giver: SeededPerson;
  let receiver: SeededPerson;
  let from: ClientOwner;
  let to: ClientOwner;
  let client: Required<TestClient>;
  let path: string;

  const transfer = () => on.service.clients.transfer(client.id, receiver.accountId);

  beforeEach(async () => {
    [giver, receiver] = [await addPerson(on.service, 'Greta'), await addPerson(on.service, 'Ruth')];
    [from, to] = [await signInOwner(on.service, giver), await signInOwner(on.service, receiver)];
    client = await from.createClient('Stock Sync');
    path = `${LIST}/${client.id}`;
  });

  it('connections and tokens of a transferred client stay valid, and the new owner is shown', async () => {
    const user = on.partner.browser;
    const tokens = await on.partner.tokens(client);
    await transfer();
    expect((await from.get(path)).status).to.equal(404);
    expect(textOf((await to.get(path)).html)).to.include('You, since');
    expect(await on.partner.isActive(tokens.accessToken)).to.equal(true);
    expect((await refresh(on.issuer, client, tokens.refreshToken)).status).to.equal(200);
    const connection = await user.get(`/profile/connections/${client.id}`);
    expect(textOf(connection.html)).to.include('Made by Ruth');
    const asked = await user.get(authorizationUrl(on.issuer, client));
    expect(textOf((await user.follow(asked)).html)).to.include('it has belonged to Ruth');
  });

  it('after a client transfer, the new owner is asked to rotate all secrets that existed before the transfer', async () => {
    // A node whose clock was ahead has created a secret of the former owner.
    on.clock.advance(120);
    await on.service.clients.addSecret(client.id);
    on.clock.advance(-60);
    await transfer();
    on.clock.advance(120);
    const former = async (page: string) =>
      (await to.get(path + page)).html.match(/the former owner may know this secret/g)?.length ?? 0;
    expect(textOf((await to.get(path)).html)).to.include('The former owner may know 2 secrets of this client.');
    expect(await former('/secrets')).to.equal(2);
    const [first, second] = (await on.service.clients.find(client.id))?.secrets ?? [];
    await to.send(`${path}/remove-secret`, { secret_id: first?.id ?? '' });
    await to.send(`${path}/rotate-secret`);
    expect(await former('/secrets')).to.equal(1);
    await to.send(`${path}/remove-secret`, { secret_id: second?.id ?? '' });
    expect(await former('/secrets')).to.equal(0);
    expect((await to.get(path)).html).to.not.include('former owner');
  });

  it('a change by the former owner that is in progress during the transfer has no effect', async () => {
    const { clients } = on.service;
    const original = { ...clients };
    const links = { homepage_url: 'https://thief.example/', support_url: '', privacy_url: '' };
    const uri = 'https://thief.example/callback';
    const secrets = () =>
      on.service.database.query('SELECT id, client_id, secret_hash FROM client_secrets ORDER BY id');
    for (const [method, page, fields] of [
      ['edit', 'settings', { name: 'Stock Sync', redirect_uris: [client.redirectUri, uri] }],
      ['edit', 'links', links],
      ['edit', 'redirect-uris', { redirect_uri: uri }],
      ['addSecret', 'rotate-secret', {}],
      ['suspend', 'delete', { confirm_name: 'Stock Sync' }],
    ] as const) {
      await clients.transfer(client.id, giver.accountId);
      Object.assign(clients, {
        [method]: async (...args: unknown[]) => {
          await transfer();
          return Reflect.apply(original[method], clients, args);
        },
      });
      const before = await secrets();
      const answer = await from
        .send(`${path}/${page}`, fields)
        .finally(() => Object.assign(clients, { [method]: original[method] }));
      expect(answer.status, page).to.equal(404);
      const after = await clients.findByOwner(receiver.accountId, client.id);
      expect(after, page).to.deep.include({ isSuspended: false, links: {} });
      expect(after?.redirectUris, page).to.deep.equal([client.redirectUri]);
      expect(await secrets()).to.deep.equal(before);
    }
  });
});
