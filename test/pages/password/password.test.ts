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
  let people = 0;

  beforeEach(async () => {
    people += 1;
    credentials = await addPerson(on.service, 'Pat', `pat-${people}@example.test`);
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

  it('only a user who had access before sees that all other sessions end', async () => {
    const { email } = credentials;
    const { id: accountId } = await on.service.accounts.add({ email: `new-${email}`, name: 'New' });
    const added = { ...credentials, accountId, email: `new-${email}` };
    const note = 'signs you out everywhere else';
    expect((await visitor.open(await passwordLink(on.service, added, 'invitation'))).html).to.not.include(note);
    expect((await visitor.open(await passwordLink(on.service, credentials, 'invitation'))).html).to.include(note);
    expect((await visitor.open(await passwordLink(on.service, credentials))).html).to.include(note);
  });

  it('the page to set a password distinguishes a first password from a new one', async () => {
    const forgotten = await visitor.open(await passwordLink(on.service, credentials));
    expect(textOf(forgotten.html)).to.include(said('password.choose-title'));
  });

  it('a password link expires after a day, and then looks like an unknown link', async () => {
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

  it('setting a password also ends the connections of the account, if requested', async () => {
    const { person, clients } = on.seeded;
    const { accessToken } = await on.partner.tokens(clients.confidential);
    for (const isEnding of [false, true]) {
      const form = await visitor.open(await passwordLink(on.service, person));
      expect(textOf(form.html)).to.include('Your connected app');
      const fields = { new_password: NEW_PASSWORD, ...(isEnding && { end_connections: 'yes' }) };
      expect((await visitor.submit(form, fields)).status).to.equal(303);
      expect(await on.partner.isActive(accessToken)).to.equal(!isEnding);
    }
    const form = await visitor.open(await passwordLink(on.service, person));
    expect(form.html).not.to.include('end_connections');
  });

  it('the page of a one-time link shows why a password is refused, and the link stays valid', async () => {
    const form = await visitor.open(await passwordLink(on.service, credentials, 'invitation'));
    for (const new_password of ['', 'short', 'x'.repeat(257), 'passwordpassword']) {
      const page = await visitor.submit(form, { new_password });
      expect(page.status, new_password).to.equal(422);
      expect(page.html).to.match(/id="problem" role="alert"/);
      if (new_password) expect(page.html).not.to.include(`"${new_password}"`);
    }
    const corrected = await visitor.submit(form, { new_password: NEW_PASSWORD });
    expect(corrected.status).to.equal(303);
  });

  it('long and unusual passwords are stored without truncation', async () => {
    const password = `${' ä🔑 '.repeat(50)}end`;
    const form = await visitor.open(await passwordLink(on.service, credentials, 'invitation'));
    expect((await visitor.submit(form, { new_password: password })).status).to.equal(303);
    const other = createPerson(on.issuer);
    const wrong = { ...credentials, password: password.slice(0, -1) };
    expect((await other.signIn(wrong)).url.pathname).to.equal('/login');
    const right = { ...credentials, password };
    expect((await other.signIn(right)).url.pathname).to.equal('/profile');
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
    const refused = await visitor.submit(form, { new_password: 'short' });
    expect(refused.url.search).to.equal('');
    const set = await visitor.submit(form, { new_password: NEW_PASSWORD });
    expect(String(set.location)).not.to.include(token);
    expect(on.service.logLines.join()).to.include('"/password"').and.not.include(token);
  });

  it("a password link cannot set another account's password, whatever the form contains", async () => {
    const other = await addPerson(on.service, 'Eve', `eve-${people}@example.test`);
    const form = await visitor.open(await passwordLink(on.service, credentials, 'invitation'));
    const fields = { account_id: other.accountId, email: other.email, purpose: 'forgotten' };
    const [token = ''] = form.forms[0]?.values.find(([name]) => name === 'token')?.slice(1) ?? [];
    const [formToken = ''] = form.forms[0]?.values.find(([name]) => name === 'form_token')?.slice(1) ?? [];
    await visitor.post('/password', {
      ...fields,
      token,
      form_token: formToken,
      new_password: NEW_PASSWORD,
    });
    expect((await createPerson(on.issuer).signIn(other)).url.pathname).to.equal('/profile');
    const mine = { ...credentials, password: NEW_PASSWORD };
    expect((await createPerson(on.issuer).signIn(mine)).url.pathname).to.equal('/profile');
  });
});
