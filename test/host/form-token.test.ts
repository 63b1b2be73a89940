/** Forms from another site, or without a valid form token, change nothing (CSRF). */
import { expect } from 'chai';
import { said } from '../pages/client-owner.ts';
import { fieldOf, signedIn } from '../pages/signed-in-person.ts';
import { madeOnce } from '../support/made-once.ts';
import { authorizationUrl, pkce } from '../support/oauth.ts';
import { createPerson, isSignedIn } from '../support/person.ts';
import { addPerson } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';

describe('form tokens', () => {
  const mail = { smtpUrl: 'smtp://127.0.0.1:9', from: 'gatehouse@example.test' };
  const on = startSeeded({ settings: { mail } });

  /** A second account, of a user named Wanda. */
  const wanda = madeOnce(() => addPerson(on.service, 'Wanda', 'wanda@example.test'));

  /** The paths to which pages send forms. The POST endpoints for programs have other tests. */
  const forms = (): string[] =>
    on.service
      .routes()
      .filter(({ method, path }) => method === 'POST' && !path.startsWith('/oauth/'))
      .map(({ path }) => path.replace(/:\w+/g, 'x'));

  it('every form is accepted only from pages of the issuer', async () => {
    const person = await signedIn(on, on.seeded.person);
    const own = fieldOf(await person.get('/profile'), 'form_token');
    const foreign = fieldOf(await createPerson(on.issuer).get('/login'), 'form_token');
    expect(foreign).to.match(/^\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}$/);
    const changed = own.replace(/^[^.]*/, `acc_${'0'.repeat(16)}`);
    const attempts: Readonly<Record<string, [token: string, headers: Record<string, string>]>> = {
      'from another site, by Origin': [own, { origin: 'https://evil.example' }],
      'from a page without an origin': [own, { origin: 'null' }],
      'from another port of this host': [own, { origin: 'http://localhost:1' }],
      'from another site, by Sec-Fetch-Site': [own, { 'sec-fetch-site': 'cross-site' }],
      'from a sister site': [own, { 'sec-fetch-site': 'same-site' }],
      'typed into the address bar': [own, { 'sec-fetch-site': 'none' }],
      'without a token': ['', {}],
      'with the token of another browser': [foreign, {}],
      'with a token that is too short': [foreign.slice(0, -1), {}],
      'with a token changed to another account': [changed, {}],
    };
    expect(forms()).to.have.length.above(30);
    for (const [index, path] of forms().entries()) {
      // Two attempts at each form, and each attempt at several forms: one function checks them all.
      const two = Object.entries(attempts).filter((_, at, { length }) => (at - index) % (length / 2) === 0);
      expect(two).to.have.length(2);
      for (const [attempt, [form_token, headers]] of two) {
        const refused = await person.post(path, { form_token }, headers);
        expect(refused.status, `${path} ${attempt}`).to.equal(403);
        const why = attempt.includes('token') ? 'Allow cookies' : 'another site';
        expect(refused.html, attempt).to.include(why);
        expect(refused.headers.getSetCookie(), attempt).to.deep.equal([]);
      }
    }
  });

  it('every form of the profile redirects a signed-out user to the sign-in, with the address of the form', async () => {
    const stranger = createPerson(on.issuer);
    const form_token = fieldOf(await stranger.get('/login'), 'form_token');
    for (const path of forms().filter((one) => one.startsWith('/profile'))) {
      const { status, location } = await stranger.post(path, { form_token });
      expect(status, path).to.equal(303);
      expect(location?.pathname, path).to.equal('/login');
      expect(location?.searchParams.get('return_to'), path).to.equal(path);
    }
  });

  it('a GET request changes nothing, whatever its query contains', async () => {
    const person = await signedIn(on, on.seeded.person);
    const url = authorizationUrl(on.issuer, on.clients.public, pkce().parameters);
    const consent = await person.open(url);
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

  it('a browser that sends neither Origin nor Sec-Fetch-Site can sign in with its form token', async () => {
    const person = createPerson(on.issuer);
    const headers = { origin: '', 'sec-fetch-site': '' };
    const { email, password } = on.seeded.person;
    const page = await person.submit(await person.get('/login'), { email, password }, headers);
    expect(page.location?.pathname).to.equal('/profile');
  });

  it('the form token changes with each sign-in, sign-out and change of account', async () => {
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

  it('a sign-out form signs out the user for whom it was rendered, and asks before signing out another', async () => {
    const person = await signedIn(on, on.seeded.person);
    const rendered = await person.get('/errors');
    await person.submit(rendered, {});
    const { email } = await wanda();
    await person.signIn(await wanda());
    const page = await person.follow(await person.submit(rendered, {}));
    expect(page.html).to.include(said('sign-out.heading')).and.include(email);
    expect(await isSignedIn(person)).to.equal(true);
    await person.submit(page, {});
    expect(await isSignedIn(person)).to.equal(false);
  });
});
