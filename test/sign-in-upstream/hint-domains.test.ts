/** Email domains of a provider: entering an address redirects there and reveals no accounts. */
import { expect } from 'chai';
import { said } from '../pages/client-owner.ts';
import { authorizationUrl } from '../support/oauth.ts';
import { GRACE, startWithUpstream } from './service.ts';

const DOMAIN = 'example.test';
const PROVIDER_HINT = `People of ${DOMAIN} sign in with Warehouse platform.`;

describe("an email address with a provider's domain", () => {
  const on = startWithUpstream({
    provider: { hintDomains: [DOMAIN] },
    hasSecond: true,
    settings: { mail: { smtpUrl: 'smtp://127.0.0.1:9', from: 'gatehouse@localhost' } },
  });
  const typed = async (email: string, password = '', path = '/login') => {
    const person = on.traveller();
    const page = await person.follow(await person.get(path));
    return person.submit(page, { email, password });
  };

  it("an email address of a provider's domain redirects there with a login hint, even without an account", async () => {
    for (const email of [on.seeded.person.email, 'Nobody@EXAMPLE.test', 'jo@ＥＸＡＭＰＬＥ.test']) {
      const { location, status } = await typed(email);
      expect(status, email).to.equal(303);
      expect(location?.origin).to.equal(on.upstream.issuer);
      expect(location?.searchParams.get('login_hint')).to.equal(email);
    }
    for (const email of ['jo@sub.example.test', 'jo@test', DOMAIN, '', 'x@example.test@y.test']) {
      const page = await typed(email);
      expect(page.status, email).to.equal(422);
      expect(page.html).to.include(said('sign-in.password-missing')).and.not.include(PROVIDER_HINT);
    }
    // A browser sends the form without a password.
    const [field] = /<input id="password"[^>]*>/.exec((await on.traveller().get('/login')).html) ?? [];
    expect(field).to.not.match(/\brequired\b/);
  });

  it("an email address of a provider's domain leads a client's user through the provider to the consent page", async () => {
    on.upstream.account = GRACE;
    const person = on.traveller();
    const url = authorizationUrl(on.service.issuer, on.seeded.clients.confidential);
    const page = await person.follow(await person.get(url));
    const there = await person.submit(page, { email: GRACE.email, password: '' });
    expect((await person.travel(there)).html).to.include('Route Planner');
  });

  it("a user of a provider's domain can use a password; after a wrong one the page names the provider", async () => {
    expect((await typed('nobody@example.test', 'wrong password')).html).to.include(PROVIDER_HINT);
    const { email, password } = on.seeded.person;
    const wrong = await typed(email, 'wrong password');
    expect(wrong.status).to.equal(401);
    expect(wrong.html).to.include(`Wrong email address or password. ${PROVIDER_HINT}`);
    expect((await typed(email, password)).location?.pathname).to.equal('/profile');
  });

  it('the page for a forgotten password names the provider of the domain, even without an account', async () => {
    const answers = [];
    for (const email of [on.seeded.person.email, 'nobody@example.test']) {
      const person = on.traveller();
      const form = await person.get(`/forgot-password?email=${email}`);
      expect(form.html).to.include(PROVIDER_HINT);
      const { html } = await person.follow(await person.submit(form, { email }));
      // Each browser has its own form token.
      answers.push(html.replaceAll(/name="form_token" value="[^"]+"/g, ''));
    }
    expect(answers[0]).to.include(`on its way. ${PROVIDER_HINT}`).and.equal(answers[1]);
  });
});

describe('an email address, without passwords and with several providers', () => {
  const on = startWithUpstream({
    provider: { hintDomains: [DOMAIN] },
    hasSecond: true,
    passwords: false,
  });

  it('an email address redirects to the provider of its domain; other domains have no provider', async () => {
    const person = on.traveller();
    const page = await person.get('/login');
    expect(page.html).not.to.include('name="password"');
    const { location } = await person.submit(page, { email: GRACE.email });
    expect(location?.origin).to.equal(on.upstream.issuer);
    const other = await person.submit(page, { email: 'jo@other.test' });
    expect(other.status).to.equal(422);
    expect(other.html).to.include(said('sign-in.choose'));
  });

  it('an email address in login_hint redirects to its provider immediately; cancelling returns to the choice', async () => {
    const person = on.traveller();
    const more = { login_hint: GRACE.email };
    const url = authorizationUrl(on.service.issuer, on.seeded.clients.confidential, more);
    const there = await person.follow(await person.get(url));
    expect(there.location?.origin).to.equal(on.upstream.issuer);
    on.upstream.isCancelling = true;
    const back = await person.travel(there);
    expect(back.url.pathname).to.match(/^\/interaction\//);
    expect(back.html).to.include('Partner login');
  });
});
