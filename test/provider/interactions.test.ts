/** Sign-in and consent with several tabs, repeated clicks, other users, and expiry. */
import { expect } from 'chai';
import { said } from '../pages/client-owner.ts';
import { fieldOf, signedIn } from '../pages/signed-in-person.ts';
import { eventually } from '../support/eventually.ts';
import { authorizationUrl, type Parameters } from '../support/oauth.ts';
import { type Credentials, createPerson, type Page, type Person } from '../support/person.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { startSeeded } from '../support/seeded.ts';
import { answerIn, outcomeOf } from './authorization-outcome.ts';

describe('interactions', () => {
  const on = startSeeded({ clock: true });

  /** A request that asks for consent, even if the client was approved before. */
  function request(parameters: Parameters = {}): URL {
    const { confidential } = on.clients;
    return authorizationUrl(on.issuer, confidential, { prompt: 'consent', ...parameters });
  }

  const signInAs = (credentials: Credentials) => signedIn(on.service, credentials);

  /** Opens a request. @returns the page that it reaches */
  const pageFor = async (person: Person, parameters?: Parameters): Promise<Page> => person.open(request(parameters));

  /** Sends a form, and follows redirects to the next page or the client. */
  const answer = async (person: Person, page: Page, fields: Record<string, string>): Promise<Page> =>
    person.follow(await person.submit(page, fields));

  const credentialsOf = ({ email, password }: Credentials) => ({ email, password });

  function expectGone(page: Page): void {
    expect(page.status).to.equal(410);
    expect(page.location).to.equal(undefined);
    expect(page.html).to.include(said('errors.request-closed-heading')).and.include('href="/profile"');
  }

  /** Returns the link of the page that starts the request again. */
  function restartOf(page: Page): URL {
    const [, href = ''] = /href="(\/oauth\/authorize\?[^"]*)"/.exec(page.html) ?? [];
    return new URL(href.replaceAll('&amp;', '&'), on.issuer);
  }

  async function expectSignedIn(person: Person, { email }: Credentials): Promise<void> {
    const profile = await person.get('/profile');
    expect(profile.status).to.equal(200);
    expect(profile.html).to.include(email);
  }

  it('two authorization requests in one browser each return their own state', async () => {
    const person = createPerson(on.issuer);
    const first = await pageFor(person, { state: 'first' });
    const second = await pageFor(person, { state: 'second' });
    const credentials = credentialsOf(on.seeded.person);
    const secondConsent = await answer(person, second, credentials);
    const firstConsent = await answer(person, first, credentials);
    const answers = [
      answerIn(await answer(person, firstConsent, { decision: 'approve' })),
      answerIn(await answer(person, secondConsent, { decision: 'approve' })),
    ];
    expect(answers.map(({ state }) => state)).to.deep.equal(['first', 'second']);
    expect(new Set(answers.map(({ code }) => code)).size).to.equal(2);
  });

  it('an answered authorization request cannot be answered, reloaded or resumed again', async () => {
    const person = await signInAs(on.seeded.person);
    const consent = await pageFor(person);
    const approved = await person.submit(consent, { decision: 'approve' });
    expect(await outcomeOf(person, approved)).to.equal('code');

    const again = [
      await person.submit(consent, { decision: 'approve' }),
      await person.submit(consent, { decision: 'deny' }),
      await person.get(consent.url),
      await person.get(approved.location ?? ''),
    ];
    // The name of the record that marks the request as answered must not work as an interaction.
    for (const url of [`${consent.url}-answered`, `${approved.location}-answered`]) {
      expectGone(await person.get(url));
    }
    for (const page of again) {
      expectGone(page);
      expect(await outcomeOf(person, restartOf(page))).to.equal('consent');
    }
  });

  it('a second click on Sign in gets a page with a link to the consent page', async () => {
    const person = createPerson(on.issuer);
    const signIn = await pageFor(person);
    const consent = await answer(person, signIn, credentialsOf(on.seeded.person));
    expect(await outcomeOf(person, consent)).to.equal('consent');
    const again = await answer(person, signIn, credentialsOf(on.seeded.person));
    expectGone(again);
    expect(await outcomeOf(person, restartOf(again))).to.equal('consent');
  });

  it('an authorization request can be answered only in the browser that started it', async () => {
    const person = await signInAs(on.seeded.person);
    const consent = await pageFor(person);
    const thief = await signInAs(on.seeded.other);
    expectGone(await thief.get(consent.url));
    const own = await pageFor(thief);
    const fields = { form_token: fieldOf(own, 'form_token'), decision: 'approve' };
    expectGone(await thief.post(consent.url, fields));

    const approved = await person.submit(consent, { decision: 'approve' });
    expectGone(await thief.get(approved.location ?? ''));
    expect(await outcomeOf(person, approved)).to.equal('code');
  });

  it('the cookies of one authorization request do not open the page of another', async () => {
    const person = await signInAs(on.seeded.person);
    const consent = await pageFor(person);
    const headers = { cookie: person.cookieHeader(consent.url.pathname) };
    const browser = createPerson(on.issuer);
    expect((await browser.get(consent.url, headers)).status).to.equal(200);
    expectGone(await browser.get(`/interaction/${'x'.repeat(43)}`, headers));
  });

  it('an authorization request expires after an hour', async () => {
    const person = await signInAs(on.seeded.person);
    const consent = await pageFor(person);
    on.clock.advance(3_599);
    expect((await person.get(consent.url)).status).to.equal(200);
    on.clock.advance(1);
    expectGone(await person.get(consent.url));
    expectGone(await person.submit(consent, { decision: 'approve' }));
  });

  it('"Not you?" ends the session and asks for a sign-in, for the same authorization request', async () => {
    const person = await signInAs(on.seeded.person);
    const consent = await pageFor(person, { state: 'mine' });
    const signIn = await answer(person, consent, { decision: 'switch-account' });
    expect(await outcomeOf(person, '/profile')).to.equal('sign-in');
    const other = await answer(person, signIn, credentialsOf(on.seeded.other));
    expect(other.html).to.include(on.seeded.other.email).and.not.include(on.seeded.person.email);
    expect(answerIn(await answer(person, other, { decision: 'approve' })).state).to.equal('mine');
    await expectSignedIn(person, on.seeded.other);
  });

  it('a sign-in gives the session a new identifier, which an approval does not change', async () => {
    const person = await signInAs(on.seeded.person);
    const identifier = () => /gate_session=([^;]+)/.exec(person.cookieHeader('/'))?.[1];
    const signIn = await pageFor(person, { prompt: 'login consent' });
    const before = identifier();
    const consent = await answer(person, signIn, credentialsOf(on.seeded.person));
    const afterSignIn = identifier();
    await answer(person, consent, { decision: 'approve' });
    expect(afterSignIn).to.be.a('string').and.not.equal(before);
    expect(identifier()).to.equal(afterSignIn);
  });

  it('a sign-in page left open accepts a different user after a sign-in in another tab', async () => {
    const person = createPerson(on.issuer);
    const signIn = await pageFor(person, { state: 'mine' });
    await person.signIn(on.seeded.person);
    const consent = await answer(person, signIn, credentialsOf(on.seeded.other));
    expect(consent.html).to.include(on.seeded.other.email).and.not.include(on.seeded.person.email);
    expect(answerIn(await answer(person, consent, { decision: 'approve' })).state).to.equal('mine');
  });

  it('a consent page left open cannot be answered by another user who signed in since', async () => {
    const client = on.clients.otherConfidential;
    const person = await signInAs(on.seeded.person);
    const url = authorizationUrl(on.issuer, client);
    const consent = await person.open(url);
    await person.submit(await person.get('/logout'), {});
    await person.signIn(on.seeded.other);

    for (const decision of ['approve', 'deny', 'switch-account']) {
      const refused = await person.submit(consent, { decision });
      expect(refused.status).to.equal(409);
      expect(refused.html).to.include(`You are now signed in as <bdi>${on.seeded.other.name}</bdi>`);
      const asked = await person.open(restartOf(refused));
      expect(asked.html).to.include(on.seeded.other.email).and.not.include(on.seeded.person.email);
    }
    for (const { accountId } of [on.seeded.person, on.seeded.other]) {
      expect(await on.service.connections.find(accountId, client.id)).to.equal(undefined);
    }
  });
});

describeOn([postgresServer], 'a sign-in that is interrupted', () => {
  const on = startSeeded({ on: 'postgres' });

  it('a sign-in whose request ended during the password check is not recorded', async () => {
    const { person } = on.seeded;
    const { database, store } = on.service;
    const browser = createPerson(on.issuer);
    const asked = await browser.open(authorizationUrl(on.issuer, on.clients.confidential));
    const { submitted } = await database.transaction(async (tx) => {
      await tx.query('LOCK TABLE accounts IN ACCESS EXCLUSIVE MODE');
      const submitted = browser.submit(asked, { email: person.email, password: person.password });
      await eventually(async () => {
        const waiting = "wait_event_type = 'Lock' AND query LIKE '%email_key = $1%'";
        const rows = await database.query(`SELECT FROM pg_stat_activity WHERE ${waiting}`);
        expect(rows).to.have.length(1);
      });
      await store.remove('interaction', asked.url.pathname.split('/').at(-1) ?? '');
      return { submitted };
    });
    expect((await submitted).location?.pathname).to.equal(asked.url.pathname);
    const records = await on.service.activity.of(person.accountId, { limit: 5 });
    expect(records.map(({ action }) => action)).to.not.include('signed_in');
  });
});
