/** The way of a person through sign-in and consent: tabs, second clicks, other people, time. */
import { expect } from 'chai';
import { fieldOf } from '../pages/signed-in-person.ts';
import { authorizationUrl, type Parameters } from '../support/oauth.ts';
import { type Credentials, createPerson, type Page, type Person } from '../support/person.ts';
import { startSeeded } from '../support/seeded.ts';
import { answerIn, outcomeOf } from './authorization-outcome.ts';

describe('interactions', () => {
  const on = startSeeded({ clock: true });

  /** A request that asks for consent, whatever was approved before. */
  function request(parameters: Parameters = {}): URL {
    const { confidential } = on.clients;
    return authorizationUrl(on.issuer, confidential, { prompt: 'consent', ...parameters });
  }

  async function signedIn(credentials: Credentials): Promise<Person> {
    const person = createPerson(on.issuer);
    await person.signIn(credentials);
    return person;
  }

  /** The person in one browser, where neither the sign-in nor parallel clicks are the subject. */
  async function me(): Promise<Person> {
    const { browser } = on.partner;
    if (!browser.cookieNames.includes('gate_session')) await browser.signIn(on.seeded.person);
    return browser;
  }

  /** The page that a request leads to. */
  const pageFor = async (person: Person, parameters?: Parameters): Promise<Page> =>
    person.follow(await person.get(request(parameters)));

  /** Sends a form and follows as far as the next page or the client. */
  const answer = async (
    person: Person,
    page: Page,
    fields: Record<string, string>,
  ): Promise<Page> => person.follow(await person.submit(page, fields));

  const credentialsOf = ({ email, password }: Credentials) => ({ email, password });

  function expectOver(page: Page): void {
    expect(page.status).to.equal(410);
    expect(page.location).to.equal(undefined);
    expect(page.html).to.include('This request is over').and.include('href="/profile"');
  }

  /** Where the page says that the request goes on. */
  function restartOf(page: Page): URL {
    const [, href = ''] = /href="(\/oauth\/authorize\?[^"]*)"/.exec(page.html) ?? [];
    return new URL(href.replaceAll('&amp;', '&'), on.issuer);
  }

  async function expectSignedIn(person: Person, { email }: Credentials): Promise<void> {
    const profile = await person.get('/profile');
    expect(profile.status).to.equal(200);
    expect(profile.html).to.include(email);
  }

  it('two requests in one browser both end with their own state', async () => {
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

  it('of several clicks on Approve one gets the code, the others a calm page', async () => {
    const person = await signedIn(on.seeded.person);
    const consent = await pageFor(person);
    const approve = (): Promise<Page> => person.submit(consent, { decision: 'approve' });
    const approved = await Promise.all([approve(), approve(), approve(), approve()]);
    const pages = await Promise.all(approved.map((page) => person.follow(page)));
    const [answered, ...others] = pages.sort((a, b) => a.status - b.status);
    expect(answered && answerIn(answered)).to.have.property('code');
    for (const page of others) expectOver(page);
  });

  it('an answered request is over: sent again, reloaded, resumed again', async () => {
    const person = await me();
    const consent = await pageFor(person);
    const approved = await person.submit(consent, { decision: 'approve' });
    expect(await outcomeOf(person, approved)).to.equal('code');

    const again = [
      await person.submit(consent, { decision: 'approve' }),
      await person.submit(consent, { decision: 'deny' }),
      await person.get(consent.url),
      await person.get(approved.location ?? ''),
    ];
    // What is remembered of it is no interaction itself.
    for (const url of [`${consent.url}-answered`, `${approved.location}-answered`]) {
      expectOver(await person.get(url));
    }
    for (const page of again) {
      expectOver(page);
      expect(await outcomeOf(person, restartOf(page))).to.equal('consent');
    }
  });

  it('a second click on Sign in finds the way on to the consent', async () => {
    const person = createPerson(on.issuer);
    const signIn = await pageFor(person);
    const consent = await answer(person, signIn, credentialsOf(on.seeded.person));
    expect(await outcomeOf(person, consent)).to.equal('consent');
    const again = await answer(person, signIn, credentialsOf(on.seeded.person));
    expectOver(again);
    expect(await outcomeOf(person, restartOf(again))).to.equal('consent');
  });

  it('a request belongs to the browser it began in', async () => {
    const person = await me();
    const consent = await pageFor(person);
    const thief = await signedIn(on.seeded.other);
    expectOver(await thief.get(consent.url));
    const own = await pageFor(thief);
    const [token = ''] = own.forms.flatMap(({ values }) =>
      values.filter(([name]) => name === 'form_token').map(([, value]) => value),
    );
    const fields = { form_token: token, decision: 'approve' };
    expectOver(await thief.post(consent.url, fields));

    const approved = await person.submit(consent, { decision: 'approve' });
    expectOver(await thief.get(approved.location ?? ''));
    expect(await outcomeOf(person, approved)).to.equal('code');
  });

  it('a page is of the request in its address, whichever cookies are sent to it', async () => {
    const consent = await pageFor(await me());
    const headers = { cookie: (await me()).cookieHeader(consent.url.pathname) };
    const browser = createPerson(on.issuer);
    expect((await browser.get(consent.url, headers)).status).to.equal(200);
    expectOver(await browser.get(`/interaction/${'x'.repeat(43)}`, headers));
  });

  it('a request waits for an hour', async () => {
    const person = await me();
    const consent = await pageFor(person);
    on.clock.advance(3_599);
    expect((await person.get(consent.url)).status).to.equal(200);
    on.clock.advance(1);
    expectOver(await person.get(consent.url));
    expectOver(await person.submit(consent, { decision: 'approve' }));
  });

  it('"Not you?" ends the session and asks who it is, for the same request', async () => {
    const person = await signedIn(on.seeded.person);
    const consent = await pageFor(person, { state: 'mine' });
    const signIn = await answer(person, consent, { decision: 'switch-account' });
    expect(await outcomeOf(person, '/profile')).to.equal('sign-in');
    const other = await answer(person, signIn, credentialsOf(on.seeded.other));
    expect(other.html).to.include(on.seeded.other.email).and.not.include(on.seeded.person.email);
    expect(answerIn(await answer(person, other, { decision: 'approve' })).state).to.equal('mine');
    await expectSignedIn(person, on.seeded.other);
  });

  it('prompt=login asks for the password of whoever is signed in', async () => {
    const person = await signedIn(on.seeded.person);
    const signIn = await pageFor(person, { prompt: 'login', state: 'mine' });
    expect(await outcomeOf(person, signIn)).to.equal('sign-in');
    const after = await answer(person, signIn, credentialsOf(on.seeded.person));
    // Connected by now or not: there is nothing but the approval left to ask.
    expect(await outcomeOf(person, after)).to.be.oneOf(['consent', 'code']);
    await expectSignedIn(person, on.seeded.person);
  });

  it('the session gets another identifier from a sign-in, and keeps it through an approval', async () => {
    const person = await signedIn(on.seeded.person);
    const identifier = () => /gate_session=([^;]+)/.exec(person.cookieHeader('/'))?.[1];
    const signIn = await pageFor(person, { prompt: 'login consent' });
    const before = identifier();
    const consent = await answer(person, signIn, credentialsOf(on.seeded.person));
    const signedInAnew = identifier();
    await answer(person, consent, { decision: 'approve' });
    expect(signedInAnew).to.be.a('string').and.not.equal(before);
    expect(identifier()).to.equal(signedInAnew);
  });

  it('prompt=login lets another person sign in, whose session it is from then on', async () => {
    const person = await signedIn(on.seeded.person);
    const signIn = await pageFor(person, { prompt: 'login consent', state: 'mine' });
    const consent = await answer(person, signIn, credentialsOf(on.seeded.other));
    expect(consent.html).to.include(on.seeded.other.email).and.not.include(on.seeded.person.email);
    const told = answerIn(await answer(person, consent, { decision: 'approve' }));
    expect(told).to.include({ state: 'mine' }).and.have.property('code');
    await expectSignedIn(person, on.seeded.other);
  });

  it('a sign-in left open lets another person in than the one of another tab', async () => {
    const person = createPerson(on.issuer);
    const signIn = await pageFor(person, { state: 'mine' });
    await person.signIn(on.seeded.person);
    const consent = await answer(person, signIn, credentialsOf(on.seeded.other));
    expect(consent.html).to.include(on.seeded.other.email).and.not.include(on.seeded.person.email);
    expect(answerIn(await answer(person, consent, { decision: 'approve' })).state).to.equal('mine');
  });

  it('a consent left open is not given by the person who signed in since', async () => {
    const client = on.clients.otherConfidential;
    const person = await signedIn(on.seeded.person);
    const url = authorizationUrl(on.issuer, client);
    const consent = await person.follow(await person.get(url));
    await person.submit(await person.get('/logout'), {});
    await person.signIn(on.seeded.other);

    for (const decision of ['approve', 'deny', 'switch-account']) {
      const refused = await person.submit(consent, { decision });
      expect(refused.status).to.equal(409);
      expect(refused.html).to.include(`You are now signed in as ${on.seeded.other.name}`);
      const asked = await person.follow(await person.get(restartOf(refused)));
      expect(asked.html).to.include(on.seeded.other.email).and.not.include(on.seeded.person.email);
    }
    for (const { accountId } of [on.seeded.person, on.seeded.other]) {
      expect(await on.service.connections.find(accountId, client.id)).to.equal(undefined);
    }
  });

  it('a consent is not given with a form of before the sign-in', async () => {
    const person = createPerson(on.issuer);
    const form_token = fieldOf(await person.get('/login'), 'form_token');
    await person.signIn(on.seeded.person);
    const consent = await pageFor(person);
    const early = await person.submit(consent, { decision: 'approve', form_token });
    expect(early.status).to.equal(409);
    expect((await person.get(consent.url)).status).to.equal(200);
  });
});
