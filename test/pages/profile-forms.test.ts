/** Rules that hold for every profile form that changes something, with forms of each kind. */
import { expect } from 'chai';
import type { Action } from '../../src/accounts/activity/activity-words.ts';
import { createPerson, type Fields, type Page, type Person } from '../support/person.ts';
import { addTestClient, apiKeyOf } from '../support/seed.ts';
import { type Seeded, startSeeded } from '../support/seeded.ts';
import { LIST, said, textOf } from './client-owner.ts';
import { fieldOf, type SignedInPerson, signedIn } from './signed-in-person.ts';

const HOSTILE = `<img src=x onerror=alert(1)>"'&<%= 1 %>`;
const LIMIT = { limit_places: 'all', limit_rights: 'read', limit_last_day: '' };
const REDIRECT_URIS = ['https://a.example/', 'https://b.example/'];

interface FormUnderTest {
  /** Creates what the form needs. @returns the path and the fields to send. */
  readonly open: (on: Seeded) => Promise<readonly [path: string, fields?: Fields]>;
  /** The action that the user's activity log contains afterwards. */
  readonly action?: Action;
  readonly details?: object;
  /** True if the form concerns one object, which other users must not find. */
  readonly isSingleObject?: true;
  /** The answer to a second tab that ends it again; the same as for an unknown object. */
  readonly already?: string;
  /** The values that the form contains again after a sign-in, if it was sent without a session. */
  readonly typed?: readonly string[];
  /** True if the form requires a recent sign-in. */
  readonly needsRecentSignIn?: true;
}

async function newClient({ service, seeded }: Seeded) {
  const { id, secret } = await addTestClient(service, 'Stock Sync', { ownerAccountId: seeded.person.accountId });
  const [secretRecord] = (await service.clients.find(id))?.secrets ?? [];
  return { path: `${LIST}/${id}`, clientId: id, secret, secretId: secretRecord?.id ?? '' };
}

async function newConnection({ clients, partner }: Seeded) {
  await partner.code(clients.confidential);
  return '/profile/connections';
}

/**
 * Forms of each kind. That each form has the steps of its kind is in test/host/routes.test.ts. The last two end
 * sessions, so keep them last.
 */
const forms: Readonly<Record<string, FormUnderTest>> = {
  'a new OAuth client': {
    open: async () => [`${LIST}/new`, { name: HOSTILE, redirect_uris: REDIRECT_URIS }],
    action: 'client_added',
    details: { client_name: HOSTILE, redirect_uris: REDIRECT_URIS },
    typed: [HOSTILE, ...REDIRECT_URIS],
    needsRecentSignIn: true,
  },
  'a change of a client': {
    open: async (on) => [`${(await newClient(on)).path}/settings`, { name: HOSTILE, redirect_uris: REDIRECT_URIS }],
    action: 'client_changed',
    details: { client_name: HOSTILE, redirect_uris: REDIRECT_URIS },
    typed: [HOSTILE, ...REDIRECT_URIS],
    isSingleObject: true,
    needsRecentSignIn: true,
  },
  'the removal of a secret': {
    open: async (on) => {
      const { path, clientId, secretId } = await newClient(on);
      await on.service.clients.addSecret(clientId);
      return [`${path}/remove-secret`, { secret_id: secretId }];
    },
    action: 'client_secret_removed',
    isSingleObject: true,
    already: said('oauth-clients.no-such-secret'),
    needsRecentSignIn: true,
  },
  'the deletion of a client': {
    open: async (on) => [`${(await newClient(on)).path}/delete`, { confirm_name: 'Stock Sync' }],
    action: 'client_deleted',
    details: { client_name: 'Stock Sync' },
    typed: ['Stock Sync'],
    isSingleObject: true,
    needsRecentSignIn: true,
  },
  'the end of an API key': {
    open: async ({ service, seeded: { person } }) => {
      const { id } = await apiKeyOf(service, person);
      return [`/profile/api-keys/${id}/revoke`];
    },
    action: 'api_key_revoked',
    isSingleObject: true,
    already: said('api-keys.no-such'),
    needsRecentSignIn: true,
  },
  'the end of a connection': {
    open: async (on) => [`${await newConnection(on)}/${on.clients.confidential.id}/disconnect`],
    action: 'disconnected',
    isSingleObject: true,
    already: said('connections.one-already'),
  },
  'the limit of a connection': {
    open: async (on) => [`${await newConnection(on)}/${on.clients.confidential.id}`, LIMIT],
    action: 'account_changed',
    details: { changed: 'limit of Route Planner' },
    typed: ['read'],
    needsRecentSignIn: true,
  },
  'a sign-out everywhere': {
    open: async () => ['/profile/security/sign-out-everywhere'],
    action: 'signed_out_everywhere',
  },
  'a change of the password': {
    open: async ({ seeded }) => [
      '/profile/security/password',
      { current_password: seeded.person.password, new_password: seeded.person.password },
    ],
    action: 'password_changed',
  },
};

describe('profile forms of each kind follow the same rules', () => {
  const on = startSeeded({
    clock: true,
    settings: { limits: { clientsPerPerson: 100, apiKeysPerPerson: 100 } },
  });
  let person: SignedInPerson;
  let other: SignedInPerson;

  /** One browser, in which another user is signed in now, and the form tokens from before. */
  let shared: { tab: Person; tokens: Readonly<Record<string, string>> };
  /** The same user after a second sign-in, and the form token of the first session. */
  let again: { tab: Person; token: string };

  before(async () => {
    person = await signedIn(on.service, on.seeded.person);
    other = await signedIn(on.service, on.seeded.other);
    const tab = createPerson(on.issuer);
    const signedOut = fieldOf(await tab.get('/login'), 'form_token');
    const ofPerson = fieldOf(await tab.signIn(on.seeded.person), 'form_token');
    await tab.submit(await tab.get('/logout'), {});
    await tab.signIn(on.seeded.other);
    shared = { tab, tokens: { 'no user': signedOut, 'the previous user': ofPerson } };
    const own = createPerson(on.issuer);
    const token = fieldOf(await own.signIn(on.seeded.person), 'form_token');
    await own.submit(await own.get('/logout'), {});
    again = { tab: own, token };
  });

  async function recordsOf(action: Action | undefined, { accountId } = on.seeded.person) {
    const log = await on.service.activity.of(accountId, { limit: 100 });
    return log.filter((entry) => entry.action === action);
  }

  for (const [title, { open, action, isSingleObject, already }] of Object.entries(forms)) {
    const recorded = () => recordsOf(action);

    it(`${title} is refused if the form is from a page of another user or session`, async () => {
      const [path, fields = {}] = await open(on);
      const all = async () => [await recorded(), await recordsOf(action, on.seeded.other)];
      const before = await all();
      const now = `You are now signed in as ${on.seeded.other.name}`;
      for (const [formSession, form_token] of Object.entries(shared.tokens)) {
        const answer = await shared.tab.post(path, { ...fields, form_token });
        expect(answer.status, formSession).to.equal(409);
        expect(textOf(answer.html)).to.include(now);
        expectTyped(answer, fields);
      }
      if ((await again.tab.get('/profile')).location) await again.tab.signIn(on.seeded.person);
      const answer = await again.tab.post(path, { ...fields, form_token: again.token });
      expect(answer.status).to.equal(409);
      expect(textOf(answer.html)).to.include(said('errors.signed-in-again-heading'));
      expectTyped(answer, fields);
      expect(await all()).to.deep.equal(before);
    });

    if (isSingleObject)
      it(`${title} by another user gets the same answer as for an unknown id, and changes nothing`, async () => {
        const [path, fields] = await open(on);
        const before = await recorded();
        const { accountId } = on.seeded.person;
        const spoofed = { ...fields, account_id: accountId, owner: accountId };
        const nowhere = path.replace(/(?<=gate_ci_|key_)[\w-]+/, (id) => '0'.repeat(id.length));
        for (const [who, at] of [
          [other, path],
          [person, nowhere],
        ] as const) {
          const isOfClient = path.startsWith(LIST);
          for (const send of [() => who.get(at), () => who.send(at, spoofed)]) {
            const answer = await send();
            expect(answer.status, at).to.equal(already && !isOfClient ? 303 : 404);
            const { html } = await who.follow(answer);
            expect(html).not.to.include('Stock Sync');
            if (already && !isOfClient) expect(textOf(html)).to.include(already);
          }
        }
        expect(await recorded()).to.deep.equal(before);
      });

    if (already)
      it(`${title}, sent again in a second tab, shows the page, which says that it has already ended`, async () => {
        const [path, fields] = await open(on);
        const asked = await person.get(`${path}?${new URLSearchParams(fields)}`);
        expect((await person.submit(asked, {})).status).to.equal(303);
        const before = await recorded();
        const again = await person.follow(await person.submit(asked, {}));
        expect(again.status).to.equal(200);
        expect(textOf(again.html)).to.include(already);
        expect(await recorded()).to.deep.equal(before);
      });

    it(`${title} takes effect once when its form is sent, and never by a GET request`, async () => {
      const [path, fields = {}] = await open(on);
      const before = await recorded();
      await person.get(`${path}?${new URLSearchParams(fields)}`);
      expect(await recorded()).to.deep.equal(before);
      const sent = await person.send(path, fields);
      expect(sent.status, textOf(sent.html)).to.equal(303);
      expect(await recorded()).to.have.length(before.length + (action ? 1 : 0));
    });
  }

  for (const [title, { open, action, typed }] of Object.entries(forms)) {
    // Of the forms without typed values, those with a secret are enough.
    if (!typed && action && action !== 'password_changed') continue;
    const outcome = typed ? 'is restored after the sign-in, for its user only' : 'stores no draft';
    it(`the form for ${title}, sent after the session ended, ${outcome}`, async () => {
      const [path, fields = {}] = await open(on);
      const before = await recordsOf(action);
      const secret = 'never kept, never shown';
      const browser = await signedIn(on.service, on.seeded.person);
      const form = await browser.get('/profile');
      await browser.submit(await browser.get('/logout'), {});
      const secrets = { client_secret: secret, current_password: secret, new_password: secret };
      const form_token = fieldOf(form, 'form_token');
      const sent = await browser.post(path, { ...fields, ...secrets, form_token });
      const login = await browser.follow(sent);
      const name = login.url.searchParams.get('form');
      if (!typed) {
        expect(name).to.equal(null);
        return;
      }

      const { email, password } = on.seeded.other;
      const others = await browser.follow(await browser.submit(login, { email, password }));
      // A page of an object of the first user leads others to their list.
      if (others.url.pathname === path) expect(others.url.searchParams.get('form')).to.equal(name);
      expect(others.html).not.to.include(said('form.draft-kept'));
      await browser.submit(await browser.get('/logout'), {});
      const own = { email: on.seeded.person.email, password: on.seeded.person.password };
      const back = await browser.follow(await browser.submit(login, own));
      expect(back.url.pathname).to.equal(path);
      const values = back.forms.flatMap((one) => one.values.map(([, value]) => value));
      expect(values).to.include.members([...typed]);
      expect(back.html).not.to.include(secret).and.not.include('<img');
      expect(await recordsOf(action)).to.deep.equal(before);
    });
  }

  // Keep these tests last: they move the clock, after which no sign-in is recent.
  for (const [title, { open, action, details = {}, needsRecentSignIn }] of Object.entries(forms)) {
    if (!needsRecentSignIn) continue;
    const recorded = () => recordsOf(action);
    it(`${title} requires a confirmation if the sign-in is old, and keeps the entered values`, async () => {
      const [path, fields] = await open(on);
      const before = await recorded();
      on.clock.advance(601);
      const asked = await person.send(path, fields);
      expect(textOf(asked.html)).to.include(said('confirm.title'));
      expect(asked.html).not.to.include('<img');
      expect(await recorded()).to.deep.equal(before);
      const { password } = on.seeded.person;
      const done = await person.submit(asked, { current_password: password });
      expect(done.status).to.equal(303);
      const [latest, ...earlier] = await recorded();
      expect(earlier).to.deep.equal(before);
      expect(latest?.details).to.deep.include(details);
      // After the confirmation, the sign-in is recent again.
      const again = await person.send(...(await open(on)));
      expect(again.status).to.equal(303);
    });
  }

  it('a wrong password does not confirm an action of the profile', async () => {
    const keys = () => on.service.apiKeys.listOf(on.seeded.other.accountId);
    const before = await keys();
    on.clock.advance(601);
    const asked = await other.fillIn('/profile/api-keys', { name: 'x', expires_in_days: '30' });
    const wrong = await other.submit(asked, { current_password: 'not this one, no' });
    expect(wrong.status).to.equal(401);
    expect(textOf(wrong.html)).to.include(said('confirm.title')).and.include('not your password');
    expect(textOf(wrong.html)).not.to.include('email address');
    expect(wrong.html).not.to.include('not this one, no');
    expect(await keys()).to.deep.equal(before);
  });
});

/** Expects a name and redirect URIs as text or in their fields, but never a secret. */
function expectTyped({ html }: Page, fields: Fields): void {
  const { name, redirect_uris = [], current_password, new_password, client_secret } = fields;
  if (name !== undefined) expect(html).to.include('&lt;img src=x onerror=alert(1)&gt;');
  for (const uri of redirect_uris) expect(html).to.include(uri);
  for (const secret of [current_password, new_password, client_secret]) {
    if (secret !== undefined) expect(html).to.not.include(secret);
  }
  for (const list of html.split('<dl')) {
    const terms = list.match(/<dt>.*?<\/dt>/g) ?? [];
    expect([...new Set(terms)], 'each term once').to.deep.equal(terms);
  }
}
