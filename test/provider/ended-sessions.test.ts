/** Pages and forms that stay open while their session ends or their content is removed. */
import { expect } from 'chai';
import type { Queries } from '../../src/storage/queries.ts';
import { fieldOf, signedIn } from '../pages/signed-in-person.ts';
import { eventually } from '../support/eventually.ts';
import { authorizationUrl } from '../support/oauth.ts';
import { createPerson, type Fields, type Page } from '../support/person.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { addTestClient, REDIRECT_URI } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';

describe('a consent page that is left open', () => {
  const on = startSeeded();

  it('a consent page can be answered only with the session cookie; cookies of the interaction do not suffice', async () => {
    const person = await signedIn(on.service, on.seeded.person);
    const request = authorizationUrl(on.issuer, on.clients.otherConfidential);
    const consent = await person.open(request);
    const session = person.cookieHeader('/profile').split('; ');
    const others = person
      .cookieHeader(consent.url.pathname)
      .split('; ')
      .filter((cookie) => !session.includes(cookie) || cookie.startsWith('gate_form'));
    const cookie = others.join('; ');
    expect((await createPerson(on.issuer).get(consent.url, { cookie })).status).to.equal(410);
    const fields = { form_token: fieldOf(consent, 'form_token'), decision: 'approve' };
    const sent = await createPerson(on.issuer).post(consent.url, fields, { cookie });
    expect(sent.status).to.equal(410);
    const { accountId } = on.seeded.person;
    const { id } = on.clients.otherConfidential;
    expect(await on.service.connections.find(accountId, id)).to.equal(undefined);
  });

  it('neither Approve nor Deny uses a redirect URI that was removed while the consent page was open', async () => {
    const person = await signedIn(on.service, on.seeded.person);
    const removed = 'https://removed.example/callback';
    const redirectUris = [removed, REDIRECT_URI];
    const client = await addTestClient(on.service, 'Two Doors', { redirectUris });
    const url = authorizationUrl(on.issuer, client);
    const clicked: Page[] = [];
    const open: Page[] = [];
    for (const decision of ['approve', 'deny']) {
      open.push(await person.open(url));
      clicked.push(await person.submit(await person.open(url), { decision }));
    }
    await on.service.clients.edit(client.id, { name: 'Two Doors', redirectUris: [REDIRECT_URI] });
    const [first, second] = open as [Page, Page];
    clicked.push(
      await person.submit(first, { decision: 'approve' }),
      await person.submit(second, { decision: 'deny' }),
    );
    for (const click of clicked) {
      const sent = await person.follow(click);
      expect(sent.location).to.equal(undefined);
      expect(sent.status).to.equal(400);
      expect(sent.html).to.include('This app’s return address is not registered');
    }
  });
});

describe('the stored record of a session that was signed out elsewhere', () => {
  const on = startSeeded({ clock: true });

  it('no request with its cookie lets it last longer', async () => {
    const person = await signedIn(on.service, on.seeded.person);
    const { database, sessionList, store } = on.service;
    const [{ uid = '' } = {}] = await database.query<{ uid: string }>('SELECT uid FROM browser_sessions');
    const authorize = authorizationUrl(on.issuer, on.clients.confidential, { prompt: 'none' });
    const expiry = async () => (await store.readSessionByUid(uid))?.expiresAt;
    const askAll = async () => {
      on.clock.advance(60);
      for (const path of [authorize, '/profile', '/login']) await person.get(path);
      await person.post('/oauth/token/refresh', {});
      return expiry();
    };
    const before = await expiry();
    const used = await askAll();
    expect(used).to.be.above(before ?? 0);
    await sessionList.end(on.seeded.person.accountId, uid, async () => {});
    expect(await askAll()).to.equal(used);
  });
});

describeOn([postgresServer], 'a form in flight', () => {
  const on = startSeeded({ on: 'postgres' });

  /** Makes the change in a transaction, sends the request, and commits once the request waits for a lock. */
  async function duringChange(request: () => Promise<Page>, change: (tx: Queries) => Promise<unknown>): Promise<Page> {
    const { sent } = await on.service.database.transaction(async (tx) => {
      await change(tx);
      const sent = request();
      await eventually(async () => {
        const waiting = await on.service.database.query(
          "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
        );
        expect(waiting).to.have.length(1);
      });
      return { sent };
    });
    return sent;
  }

  it('a form for a client changes only its own fields, and keeps concurrent changes of other fields', async () => {
    const { clients } = on.service;
    const owner = on.seeded.person;
    const client = await addTestClient(on.service, 'Ours', { ownerAccountId: owner.accountId });
    const person = await signedIn(on.service, owner);
    const path = `/profile/oauth-clients/${client.id}/links`;
    const form_token = fieldOf(await person.get('/errors'), 'form_token');
    const fields = { homepage_url: 'https://ours.example/', form_token };
    const { status } = await duringChange(
      () => person.send(path, fields),
      (tx) =>
        tx.query("UPDATE clients SET name = 'Yours', redirect_uris = $2 WHERE id = $1", [
          client.id,
          ['https://other.example/'],
        ]),
    );
    expect(status).to.equal(303);
    const { name, redirectUris, links } = (await clients.find(client.id)) ?? {};
    expect({ name, redirectUris, links }).to.deep.equal({
      name: 'Yours',
      redirectUris: ['https://other.example/'],
      links: { homepage: 'https://ours.example/' },
    });
  });

  it('a form sent after its session ended saves nothing, asks for a sign-in and keeps the values as a draft', async () => {
    const { clients, apiKeys } = on.service;
    const owner = on.seeded.person;
    const client = await addTestClient(on.service, 'Mine', { ownerAccountId: owner.accountId });
    const own = `/profile/oauth-clients/${client.id}`;
    const forms: readonly (readonly [path: string, fields: Fields])[] = [
      ['/profile/api-keys', { name: 'Left behind', expires_in_days: '30' }],
      ['/profile/oauth-clients/new', { name: 'Left behind', redirect_uris: REDIRECT_URI }],
      [`${own}/settings`, { name: 'Left behind', redirect_uris: REDIRECT_URI }],
      [`${own}/links`, { homepage_url: 'https://left.example/' }],
      [`${own}/rotate-secret`, {}],
    ];
    for (const [path, fields] of forms) {
      const person = await signedIn(on.service, owner);
      const form_token = fieldOf(await person.get('/errors'), 'form_token');
      const sent = await duringChange(
        () => person.send(path, { ...fields, form_token }),
        async (tx) => {
          await tx.query('SELECT FROM clients WHERE id = $1 FOR UPDATE', [client.id]);
          await tx.query('UPDATE accounts SET session_generation = session_generation + 1 WHERE id = $1', [
            owner.accountId,
          ]);
        },
      );
      const { status, location } = sent;
      expect(status, path).to.equal(303);
      expect(location?.pathname, path).to.equal('/login');
      const hasDraft = Object.keys(fields).length > 0;
      expect(/[?&]form=/.test(decodeURIComponent(location?.search ?? '')), path).to.equal(hasDraft);
    }
    expect(await apiKeys.listOf(owner.accountId)).to.deep.equal([]);
    const owned = await clients.listByOwner(owner.accountId);
    expect(owned.map(({ name }) => name)).to.have.members(['Mine', 'Yours']);
    expect(owned.map(({ secrets }) => secrets.length)).to.deep.equal([1, 1]);
    expect((await clients.find(client.id))?.links).to.deep.equal({});
  });
});
