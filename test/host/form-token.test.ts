/** Forms that another site sends, or that come without proof of being ours, change nothing. */
import { expect } from 'chai';
import type { Action } from '../../src/accounts/activity/activity-words.ts';
import { fieldOf } from '../pages/signed-in-person.ts';
import { eventually } from '../support/eventually.ts';
import { madeOnce } from '../support/made-once.ts';
import { authorizationUrl, pkce } from '../support/oauth.ts';
import { createPerson, type Fields, type Page, type Person } from '../support/person.ts';
import { addPerson, passwordLink } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';

describe('form tokens', () => {
  const mail = { smtpUrl: 'smtp://127.0.0.1:9', from: 'gatehouse@example.test' };
  const on = startSeeded({ settings: { mail } });

  const credentials = () => ({
    email: on.seeded.person.email,
    password: on.seeded.person.password,
  });

  async function signIn(): Promise<Person> {
    const person = createPerson(on.issuer);
    await person.signIn(on.seeded.person);
    return person;
  }
  /** For the forms that leave their person signed in. */
  const signedIn = madeOnce(signIn);

  /** Whose password stays as it is. */
  const wanda = madeOnce(() => addPerson(on.service, 'Wanda', 'wanda@example.test'));

  async function askedFor(person: Person): Promise<Page> {
    const url = authorizationUrl(on.issuer, on.clients.public, pkce().parameters);
    return person.follow(await person.get(url));
  }

  async function hasRecorded(action: Action, { accountId } = on.seeded.other): Promise<boolean> {
    const log = await on.service.activity.of(accountId, { limit: 100 });
    return log.some((entry) => entry.action === action);
  }

  const isSignedIn = async (person: Person): Promise<boolean> =>
    (await person.get('/profile')).status === 200;

  /** Every form there is: how to reach it, what to send, and how to tell that it was done. */
  const forms: Readonly<Record<string, FormUnderTest>> = {
    'the sign-in page': {
      visitor: () => createPerson(on.issuer),
      open: (person) => person.get('/login'),
      fields: credentials,
      isDone: isSignedIn,
    },
    'the sign-in of an authorization': {
      visitor: () => createPerson(on.issuer),
      open: askedFor,
      fields: credentials,
      isDone: isSignedIn,
    },
    'the approval': {
      visitor: signedIn,
      open: askedFor,
      fields: () => ({ decision: 'approve' }),
      isDone: async (person, { url }) => (await person.get(url)).status !== 200,
    },
    'the refusal': {
      visitor: signedIn,
      open: askedFor,
      fields: () => ({ decision: 'deny' }),
      isDone: async (person, { url }) => (await person.get(url)).status !== 200,
    },
    'the change of account': {
      visitor: signIn,
      open: askedFor,
      fields: () => ({ decision: 'switch-account' }),
      isDone: async (person) => !(await isSignedIn(person)),
    },
    'the password of a link': {
      visitor: () => createPerson(on.issuer),
      open: async (person) => person.open(await passwordLink(on.service, on.seeded.other)),
      fields: () => ({ new_password: 'eight blue pallets, stacked' }),
      isDone: () => hasRecorded('password_changed'),
    },
    'the wish for a new password': {
      visitor: () => createPerson(on.issuer),
      open: (person) => person.get('/forgot-password'),
      fields: () => ({ email: on.seeded.person.email }),
      isDone: () => hasRecorded('password_link_made', on.seeded.person),
    },
    'the sign-out': {
      visitor: signIn,
      open: (person) => person.get('/logout'),
      fields: () => ({}),
      isDone: async (person) => !(await isSignedIn(person)),
    },
  };

  for (const [name, form] of Object.entries(forms)) {
    it(`${name} takes its form from our own page only`, async () => {
      const person = await form.visitor();
      const page = await form.open(person);
      const fields = form.fields();
      const foreign = await foreignToken();
      const attempts: Readonly<Record<string, [Fields, Record<string, string>]>> = {
        'from another site, by Origin': [{}, { origin: 'https://evil.example' }],
        'from a page without an origin': [{}, { origin: 'null' }],
        'from another port of this host': [{}, { origin: 'http://localhost:1' }],
        'from another site, by Sec-Fetch-Site': [{}, { 'sec-fetch-site': 'cross-site' }],
        'from a sister site': [{}, { 'sec-fetch-site': 'same-site' }],
        'typed into the address bar': [{}, { 'sec-fetch-site': 'none' }],
        'without a token': [{ form_token: '' }, {}],
        'with the token of another browser': [{ form_token: foreign }, {}],
        'with a token that is too short': [{ form_token: foreign.slice(0, -1) }, {}],
        'with a token changed to another account': [
          { form_token: fieldOf(page, 'form_token').replace(/^[^.]*/, `acc_${'0'.repeat(16)}`) },
          {},
        ],
      };
      for (const [attempt, [changed, headers]] of Object.entries(attempts)) {
        const refused = await person.submit(page, { ...fields, ...changed }, headers);
        expect(refused.status, attempt).to.equal(403);
        expect(refused.html, attempt).to.include('<h1>This form could not be accepted</h1>');
        expect(refused.headers.getSetCookie(), attempt).to.deep.equal([]);
        expect(await form.isDone(person, page), attempt).to.equal(false);
      }
      const accepted = await person.submit(page, fields);
      expect(accepted.status).to.equal(303);
      await person.follow(accepted);
      await eventually(async () => expect(await form.isDone(person, page)).to.equal(true));
    });
  }

  it('a visit changes nothing, whatever its address carries', async () => {
    const person = await signedIn();
    const consent = await askedFor(person);
    const visits = [
      '/logout?form_token=x',
      `${consent.url.pathname}?decision=approve`,
      `${consent.url.pathname}?decision=switch-account`,
      `/login?${new URLSearchParams({ email: on.seeded.other.email, password: on.seeded.other.password })}`,
    ];
    for (const visit of visits) {
      await person.get(visit);
      expect((await person.get('/profile')).html, visit).to.include(on.seeded.person.email);
      expect((await person.get(consent.url)).html, visit).to.include('Warehouse Map');
    }
  });

  it('a browser without Origin and Sec-Fetch-Site signs in by its form token', async () => {
    const person = createPerson(on.issuer);
    const headers = { origin: '', 'sec-fetch-site': '' };
    const page = await person.submit(await person.get('/login'), credentials(), headers);
    expect(page.location?.pathname).to.equal('/profile');
  });

  it('the token is another one after each sign-in, sign-out and change of account', async () => {
    const person = createPerson(on.issuer);
    const tokenNow = async () => fieldOf(await person.get('/forgot-password'), 'form_token');
    const tokens = [await tokenNow()];
    for (const who of [on.seeded.person, await wanda(), on.seeded.person]) {
      await person.signIn(who);
      const [before, now] = [tokens.at(-1), await tokenNow()];
      await person.submit(await person.get('/logout'), {});
      expect(await tokenNow())
        .to.equal(tokens[0])
        .and.not.equal(now);
      expect(now).to.not.equal(before);
      tokens.push(now);
    }
    expect(new Set(tokens).size).to.equal(4);
  });

  it('whoever a page was drawn for is signed out by it, and nobody else without a question', async () => {
    const person = createPerson(on.issuer);
    const drawn = await person.signIn(on.seeded.person);
    await person.submit(drawn, {});
    const { email } = await wanda();
    await person.signIn(await wanda());
    const page = await person.follow(await person.submit(drawn, {}));
    expect(page.html).to.include('Sign out?').and.include(email);
    expect(await isSignedIn(person)).to.equal(true);
    await person.submit(page, {});
    expect(await isSignedIn(person)).to.equal(false);
  });

  /** The token of a form that another browser was given. */
  async function foreignToken(): Promise<string> {
    const token = fieldOf(await createPerson(on.issuer).get('/login'), 'form_token');
    expect(token).to.match(/^\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}$/);
    return token;
  }
});

interface FormUnderTest {
  readonly visitor: () => Promise<Person> | Person;
  readonly open: (person: Person) => Promise<Page>;
  readonly fields: () => Fields;
  readonly isDone: (person: Person, page: Page) => Promise<boolean>;
}
