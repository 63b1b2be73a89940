/** Whoever holds a session that was ended sees nothing and approves nothing, with whatever is open. */
import { expect } from 'chai';
import type { Queries } from '../../src/storage/queries.ts';
import { fieldOf, signedIn } from '../pages/signed-in-person.ts';
import { eventually } from '../support/eventually.ts';
import { authorizationUrl } from '../support/oauth.ts';
import { createPerson, type Fields, type Page } from '../support/person.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { addPerson, REDIRECT_URI, type SeededPerson } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { outcomeOf } from './authorization-outcome.ts';

const NEW_PASSWORD = 'eight blue pallets, stacked';

describe('a consent page in a session that was ended', () => {
  const on = startSeeded();
  let people = 0;

  const changePassword = async (victim: SeededPerson): Promise<string> => {
    const page = await (await signedIn(on.service, victim)).fillIn('/profile/security', {
      ...{ current_password: victim.password, new_password: NEW_PASSWORD },
    });
    expect(page.html).to.include('Your password is changed');
    return NEW_PASSWORD;
  };

  const ENDS: Record<string, (victim: SeededPerson) => Promise<string>> = {
    'a new password': changePassword,

    'signing out everywhere': async (victim) => {
      const { send } = await signedIn(on.service, victim);
      expect((await send('/profile/security/sign-out-everywhere')).status).to.equal(303);
      return victim.password;
    },

    'a suspension': async ({ accountId, password }) => {
      await on.service.accounts.suspend(accountId);
      return password;
    },
  };

  for (const [title, end] of Object.entries(ENDS)) {
    it(`shows nobody, takes no answer and leaves no consent behind: ${title}`, async () => {
      people += 1;
      const victim = await addPerson(on.service, 'Vic Tim', `victim-${people}@example.test`);
      const thief = createPerson(on.issuer);
      await thief.signIn(victim);
      const request = authorizationUrl(on.issuer, on.clients.confidential);
      const open = async (): Promise<Page> => thief.follow(await thief.get(request));
      const [first, second, third] = [await open(), await open(), await open()];
      expect(first.html).to.include(victim.email);
      const password = await end(victim);

      const shown = await thief.follow(await thief.get(first.url));
      expect(shown.html).to.not.include(victim.email).and.not.include(victim.name);
      expect(await outcomeOf(thief, shown)).to.equal('sign-in');
      const denied = await thief.submit(second, { decision: 'deny' });
      expect(await outcomeOf(thief, denied)).to.equal('sign-in');
      const approved = await thief.submit(third, { decision: 'approve' });
      expect(await outcomeOf(thief, approved)).to.equal('sign-in');

      await on.service.accounts.resume(victim.accountId);
      const { id } = on.clients.confidential;
      expect(await on.service.connections.find(victim.accountId, id)).to.equal(undefined);
      const own = createPerson(on.issuer);
      await own.signIn({ ...victim, password });
      expect(await outcomeOf(own, request)).to.equal('consent');
    });
  }

  it('an answer needs the session, not only what the interaction left in the browser', async () => {
    const person = createPerson(on.issuer);
    await person.signIn(on.seeded.person);
    const request = authorizationUrl(on.issuer, on.clients.otherConfidential);
    const consent = await person.follow(await person.get(request));
    const session = person.cookieHeader('/profile').split('; ');
    const others = person
      .cookieHeader(consent.url.pathname)
      .split('; ')
      .filter((cookie) => !session.includes(cookie) || cookie.startsWith('gate_form'));
    const cookie = others.join('; ');
    expect((await createPerson(on.issuer).get(consent.url, { cookie })).status).to.equal(410);
    const [[, token = ''] = []] = consent.forms.flatMap(({ values }) =>
      values.filter(([name]) => name === 'form_token'),
    );
    const fields = { form_token: token, decision: 'approve' };
    const sent = await createPerson(on.issuer).post(consent.url, fields, { cookie });
    expect(sent.status).to.equal(410);
    const { accountId } = on.seeded.person;
    const { id } = on.clients.otherConfidential;
    expect(await on.service.connections.find(accountId, id)).to.equal(undefined);
  });

  it('a redirect URI that is registered no more is not answered, whatever the answer', async () => {
    const person = createPerson(on.issuer);
    await person.signIn(on.seeded.person);
    const removed = 'https://removed.example/callback';
    const draft = { kind: 'confidential', name: 'Two Doors', isNative: false } as const;
    const redirectUris = [REDIRECT_URI, removed];
    const { client } = await on.service.clients.add({ ...draft, redirectUris });
    const url = authorizationUrl(on.issuer, { id: client.id, redirectUri: removed });
    const pages = [
      await person.follow(await person.get(url)),
      await person.follow(await person.get(url)),
    ];
    const clicked: Page[] = [];
    for (const decision of ['approve', 'deny']) {
      const page = await person.follow(await person.get(url));
      clicked.push(await person.submit(page, { decision }));
    }
    await on.service.clients.edit(client.id, { name: client.name, redirectUris: [REDIRECT_URI] });
    for (const [index, decision] of ['approve', 'deny'].entries()) {
      const page = pages[index];
      if (!page) throw new Error('no page');
      clicked.push(await person.submit(page, { decision }));
    }
    for (const click of clicked) {
      const sent = await person.follow(click);
      expect(sent.location).to.equal(undefined);
      expect(sent.status).to.equal(400);
      expect(sent.html).to.include('This app asked to send you to an unknown address');
    }
  });
});

describeOn([postgresServer], 'a form in flight', () => {
  const on = startSeeded({ on: 'postgres' });

  /** Makes the change while the request waits for it, and commits it then. */
  async function meeting(
    request: () => Promise<Page>,
    change: (tx: Queries) => Promise<unknown>,
  ): Promise<Page> {
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

  it('changes nothing but its own fields, whatever is changed beside it', async () => {
    const { clients } = on.service;
    const owner = on.seeded.person;
    const draft = { kind: 'confidential', name: 'Ours', isNative: false } as const;
    const ownerAccountId = owner.accountId;
    const { client } = await clients.add({
      ...draft,
      redirectUris: [REDIRECT_URI],
      ownerAccountId,
    });
    const person = await signedIn(on.service, owner);
    const path = `/profile/oauth-clients/${client.id}/links`;
    const form_token = fieldOf(await person.get('/errors'), 'form_token');
    const fields = { homepage_url: 'https://ours.example/', form_token };
    const { status } = await meeting(
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

  it('whose session ends keeps nothing, asks for the sign-in and holds what was typed ready', async () => {
    const { clients, apiKeys } = on.service;
    const owner = on.seeded.person;
    const draft = { kind: 'confidential', name: 'Mine', isNative: false } as const;
    const ownerAccountId = owner.accountId;
    const { client } = await clients.add({
      ...draft,
      redirectUris: [REDIRECT_URI],
      ownerAccountId,
    });
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
      const sent = await meeting(
        () => person.send(path, { ...fields, form_token }),
        async (tx) => {
          await tx.query('SELECT FROM clients WHERE id = $1 FOR UPDATE', [client.id]);
          await tx.query(
            'UPDATE accounts SET session_generation = session_generation + 1 WHERE id = $1',
            [owner.accountId],
          );
        },
      );
      const { status, location } = sent;
      expect(status, path).to.equal(303);
      expect(location?.pathname, path).to.equal('/login');
      const typed = Object.keys(fields).length > 0;
      expect(/[?&]form=/.test(decodeURIComponent(location?.search ?? '')), path).to.equal(typed);
    }
    expect(await apiKeys.listOf(owner.accountId)).to.deep.equal([]);
    const owned = await clients.listByOwner(owner.accountId);
    expect(owned.map(({ name }) => name)).to.have.members(['Mine', 'Yours']);
    expect(owned.map(({ secrets }) => secrets.length)).to.deep.equal([1, 1]);
    expect((await clients.find(client.id))?.links).to.deep.equal({});
  });
});
