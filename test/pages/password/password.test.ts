import { expect } from 'chai';
import { createPerson, type Page, type Person } from '../../support/person.ts';
import { addPerson, passwordLink, type SeededPerson } from '../../support/seed.ts';
import { startSeeded } from '../../support/seeded.ts';
import { said, textOf } from '../client-owner.ts';

const NEW_PASSWORD = 'eight blue pallets, stacked';

describe('the page of a password link', () => {
  const on = startSeeded({ clock: true });
  let credentials: SeededPerson;
  let visitor: Person;

  beforeEach(async () => {
    credentials = await addPerson(on.service, 'Pat');
    visitor = createPerson(on.issuer);
  });

  const isExpired = ({ status, html }: { status: number; html: string }): boolean =>
    status === 410 && textOf(html).includes(said('password-link.title'));

  it('the page of a one-time link sets the password, which then works at the sign-in', async () => {
    const path = await passwordLink(on.service, credentials, 'invitation');
    const form = await visitor.open(path);
    expect(textOf(form.html)).to.include(said('password.set-title')).and.include(credentials.email);
    const profile = await visitor.follow(await visitor.submit(form, { new_password: NEW_PASSWORD }));
    expect(profile.url.pathname).to.equal('/profile');
    const there = createPerson(on.issuer);
    expect((await there.signIn({ ...credentials, password: NEW_PASSWORD })).url.pathname).to.equal('/profile');
    expect(isExpired(await visitor.get(path))).to.equal(true);
  });

  it('without a mail server there is neither a "Forgot password?" link nor the page for it', async () => {
    expect((await visitor.get('/login')).html).not.to.include('/forgot-password');
    expect((await visitor.get('/forgot-password')).status).to.equal(404);
    expect((await visitor.post('/forgot-password', { email: 'a@b.test' })).status).to.equal(404);
  });

  it('a password link expires after a day, and then gets the same answer as an unknown link', async () => {
    const path = await passwordLink(on.service, credentials, 'invitation');
    const form = await visitor.open(path);
    on.clock.advance(86_400);
    const late = await visitor.get(path);
    // The choice of a language leads back to the requested address.
    const withoutAddress = ({ html }: Page) => html.replace(/(?<=name="drawn_at" value=")[^"]*/, '');
    expect(isExpired(late)).to.equal(true);
    expect(isExpired(await visitor.submit(form, { new_password: NEW_PASSWORD }))).to.equal(true);
    for (const query of ['', '?token=', '?token=x', `?token=${'x'.repeat(43)}`, '?token=%00']) {
      const page = await visitor.get(`/password${query}`);
      expect(isExpired(page), query).to.equal(true);
      expect(withoutAddress(page)).to.equal(withoutAddress(late));
    }
    expect(late.html).to.include('href="/login"');
  });

  it('the token of a password link is removed from the URL immediately, and the page can be reloaded', async () => {
    const path = await passwordLink(on.service, credentials, 'invitation');
    const answer = await visitor.get(path);
    expect([answer.status, answer.location?.href]).to.deep.equal([303, `${on.issuer}/password`]);
    expect(answer.html).to.not.include(path.slice('/password?token='.length));
    for (let load = 0; load < 2; load += 1) {
      expect(textOf((await visitor.get('/password')).html)).to.include(credentials.email);
    }
    // Another browser lacks the cookie; opening the link in a browser does not consume it.
    expect(isExpired(await createPerson(on.issuer).get('/password'))).to.equal(true);
    const form = await visitor.get('/password');
    expect((await visitor.submit(form, { new_password: NEW_PASSWORD })).status).to.equal(303);
    expect(isExpired(await visitor.get('/password'))).to.equal(true);
    expect(visitor.cookieNames).to.not.include('gate_link');
  });

  it('the token of a password link is in no log, and in no URL after the form was sent', async () => {
    const path = await passwordLink(on.service, credentials, 'invitation');
    const token = path.slice('/password?token='.length);
    const form = await visitor.open(path);
    expect(form.headers.get('referrer-policy')).to.equal('same-origin');
    expect(form.headers.get('cache-control')).to.equal('no-store');
    const refused = await visitor.submit(form, { new_password: 'not-this-1' });
    expect(refused.status).to.equal(422);
    expect(refused.url.search).to.equal('');
    expect(refused.html).to.not.include('not-this-1');
    const set = await visitor.submit(form, { new_password: NEW_PASSWORD });
    expect(String(set.location)).not.to.include(token);
    expect(on.service.logLines.join()).to.include('"/password"').and.not.include(token);
  });

  it("a password link cannot set another account's password, whatever the form contains", async () => {
    const other = await addPerson(on.service, 'Eve');
    const form = await visitor.open(await passwordLink(on.service, credentials, 'invitation'));
    const fields = { account_id: other.accountId, email: other.email, purpose: 'forgotten' };
    const sent = Object.fromEntries(form.forms.find(({ names }) => names.has('token'))?.values ?? []);
    await visitor.post('/password', { ...sent, ...fields, new_password: NEW_PASSWORD });
    expect((await createPerson(on.issuer).signIn(other)).url.pathname).to.equal('/profile');
    const mine = { ...credentials, password: NEW_PASSWORD };
    expect((await createPerson(on.issuer).signIn(mine)).url.pathname).to.equal('/profile');
  });
});
