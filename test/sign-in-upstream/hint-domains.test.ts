/** Domains whose people come from a provider: an address leads there, and tells nothing of an account. */
import { expect } from 'chai';
import { authorizationUrl } from '../support/oauth.ts';
import { GRACE, startWithUpstream } from './service.ts';

const DOMAIN = 'example.test';
const SAID = `People of ${DOMAIN} sign in with Warehouse platform.`;

describe('an address whose domain is that of a provider', () => {
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

  it('leads there without a password, with the address, whoever has an account', async () => {
    for (const email of [on.seeded.person.email, 'Nobody@EXAMPLE.test', 'jo@ＥＸＡＭＰＬＥ.test']) {
      const { location, status } = await typed(email);
      expect(status, email).to.equal(303);
      expect(location?.origin).to.equal(on.upstream.issuer);
      expect(location?.searchParams.get('login_hint')).to.equal(email);
    }
    for (const email of ['jo@sub.example.test', 'jo@test', DOMAIN, '', 'x@example.test@y.test']) {
      const page = await typed(email);
      expect(page.status, email).to.equal(422);
      expect(page.html).to.include('Enter your password.').and.not.include(SAID);
    }
  });

  it('leads from a partner through it to the consent page', async () => {
    on.upstream.account = GRACE;
    const person = on.traveller();
    const url = authorizationUrl(on.service.issuer, on.seeded.clients.confidential);
    const page = await person.follow(await person.get(url));
    const there = await person.submit(page, { email: GRACE.email, password: '' });
    expect((await person.travel(there)).html).to.include('Route Planner');
  });

  it('signs in with a password where it has one, and a wrong one says the way, to anybody', async () => {
    expect((await typed('nobody@example.test', 'wrong password')).html).to.include(SAID);
    const { email, password } = on.seeded.person;
    const wrong = await typed(email, 'wrong password');
    expect(wrong.status).to.equal(401);
    expect(wrong.html).to.include(`is not right. ${SAID}`);
    expect((await typed(email, password)).location?.pathname).to.equal('/profile');
  });

  it('is told the way where a password is forgotten, whoever has an account', async () => {
    const answers = [];
    for (const email of [on.seeded.person.email, 'nobody@example.test']) {
      const person = on.traveller();
      const form = await person.get(`/forgot-password?email=${email}`);
      expect(form.html).to.include(SAID);
      answers.push((await person.follow(await person.submit(form, { email }))).html);
    }
    expect(answers[0]).to.include(`on its way. ${SAID}`).and.equal(answers[1]);
  });
});

describe('without passwords and with several providers, an address', () => {
  const on = startWithUpstream({
    provider: { hintDomains: [DOMAIN] },
    hasSecond: true,
    passwords: false,
  });

  it('leads to its own; of any other nothing is known', async () => {
    const person = on.traveller();
    const page = await person.get('/login');
    expect(page.html).not.to.include('name="password"');
    const { location } = await person.submit(page, { email: GRACE.email });
    expect(location?.origin).to.equal(on.upstream.issuer);
    const other = await person.submit(page, { email: 'jo@other.test' });
    expect(other.status).to.equal(422);
    expect(other.html).to.include('Choose how you sign in.');
  });

  it('that a client names leads there unasked, and back to the choice', async () => {
    const person = on.traveller();
    const more = { login_hint: GRACE.email };
    const url = authorizationUrl(on.service.issuer, on.seeded.clients.confidential, more);
    const there = await person.follow(await person.get(url));
    expect(there.location?.origin).to.equal(on.upstream.issuer);
    on.upstream.isCancelling = true;
    const back = await person.travel(there);
    const [, again = ''] = /href="(\/interaction\/[^"]+)"/.exec(back.html) ?? [];
    expect((await person.get(again)).html).to.include('Partner login');
  });
});
