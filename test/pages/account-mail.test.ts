/** Notification mails to users about their account, and which of them they can switch off. */
import { expect } from 'chai';
import { eventually } from '../support/eventually.ts';
import { startsWithMail } from '../support/mail-server.ts';
import { authorizationUrl } from '../support/oauth.ts';
import { createPerson, type Page } from '../support/person.ts';
import { addPerson } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { addPasskey, signInWith } from './passkeys/soft-passkey.ts';
import { signedIn } from './signed-in-person.ts';

describe('users get one mail for each important event of their account', () => {
  const mail = startsWithMail();
  const on = startSeeded({ on: mail.start });

  const subjects = (): string[] => mail.received.map(({ subject }) => subject);

  it('mail announces a new browser, connection, API key and password, each once', async () => {
    const { person } = on.seeded;
    const owner = await signedIn(on.service, person);
    await owner.submit(await owner.get('/logout'), {});
    await owner.signIn(person);
    const request = () => authorizationUrl(on.issuer, on.clients.confidential, { prompt: 'consent' });
    await owner.authorize(request(), person);
    await owner.authorize(request(), person);
    const form = await owner.get('/profile/api-keys');
    for (const _ of [1, 2]) await owner.submit(form, { name: 'Export', expires_in_days: '30' });
    await owner.fillIn('/profile/security', {
      current_password: person.password,
      new_password: 'eight blue pallets, stacked',
    });
    await eventually(() => expect(mail.received).to.have.length(4));
    expect(subjects()).to.have.members([
      'We noticed a new sign-in to your Gatehouse account',
      'An app was connected to your Gatehouse account',
      'A new API key can access your Gatehouse account',
      'Your Gatehouse password was changed',
    ]);
    const texts = mail.received.map(({ text }) => text).join('\n');
    expect(texts).to.include('Route Planner').and.include('Export').and.include('127.0.0.1');
    expect(texts).to.not.include('gate_key_');
    expect(mail.received.map(({ to }) => to)).to.deep.equal(Array(4).fill([person.email]));
  });

  it('no mail is sent for events that the user switched off; mail about a password change cannot be switched off', async () => {
    const { other } = on.seeded;
    const owner = await signedIn(on.service, other);
    await eventually(() => expect(mail.received).to.have.length(5));
    await on.service.accounts.setUnwantedMail(other.accountId, ['mail_of_a_later_version']);
    const page = await owner.get('/profile/security');
    expect(page.html.match(/name="mail" value="\w+" checked/g)).to.have.length(5);
    await owner.submit(await owner.get('/logout'), {});
    const login = await owner.follow(await owner.submit(page, { mail: [''] }));
    const { email, password } = other;
    const back = await owner.follow(await owner.submit(login, { email, password }));
    expect(back.html)
      .to.include('You had to sign in again')
      .and.not.match(/name="mail"[^>]*checked/);
    await owner.submit(back, { mail: [''] });
    await createPerson(on.issuer).signIn(other);
    await owner.authorize(authorizationUrl(on.issuer, on.clients.otherConfidential), other);
    await owner.fillIn('/profile/api-keys', { name: 'Export', expires_in_days: '30' });
    await owner.fillIn('/profile/security', {
      current_password: other.password,
      new_password: 'eight blue pallets, stacked',
    });
    await eventually(() => expect(mail.received).to.have.length(6));
    expect(subjects().at(-1)).to.equal('Your Gatehouse password was changed');
    expect((await owner.get('/profile/security')).html).to.not.match(/name="mail"[^>]*checked/);
    const { unwantedMail } = (await on.service.accounts.find(other.accountId)) ?? expect.fail('no account');
    expect(unwantedMail).to.have.length(6).and.include('mail_of_a_later_version');
  });

  it('approvals of one connection in two browsers at the same moment send one mail', async () => {
    const twin = await addPerson(on.service, 'Tom Twice', 'tom@example.test');
    const browsers = [await signedIn(on.service, twin), await signedIn(on.service, twin)];
    const connected = () =>
      mail.received.filter(
        ({ to, text }) => to.includes(twin.email) && text.includes('connected an app to your account'),
      );
    for (const round of [1, 2, 3]) {
      const consents = await Promise.all(
        browsers.map((one) => one.open(authorizationUrl(on.issuer, on.clients.confidential))),
      );
      const approve = (consent: Page, index: number) => browsers[index]?.submit(consent, { decision: 'approve' });
      const approved = await Promise.all(consents.map(approve));
      const pages = await Promise.all(approved.map((page, n) => page && browsers[n]?.follow(page)));
      expect(pages.map((page) => new URL(`${page?.location}`).searchParams.has('code'))).to.deep.equal([true, true]);
      const clientId = on.clients.confidential.id;
      const ended = { accountId: twin.accountId, clientId };
      expect(await on.service.connections.end(ended, 'person_disconnected')).to.have.length(1);
      await eventually(() => expect(connected()).to.have.length.at.least(round));
    }
    // A later mail of the same person: all mails about the connections were sent before it.
    await browsers[0]?.fillIn('/profile/api-keys', { name: 'Export', expires_in_days: '30' });
    await eventually(() => expect(subjects().at(-1)).to.include('A new API key'));
    expect(connected()).to.have.length(3);
  });

  it('a user gets mail about a passkey that was refused because it may be a copy, whichever browser used it', async () => {
    const carl = await addPerson(on.service, 'Carl', 'carl@example.test');
    const owner = await signedIn(on.service, carl);
    const { passkey } = await addPasskey(on.issuer, owner, { lie: { counter: 5 } });
    passkey.counter = 4;
    expect((await signInWith(createPerson(on.issuer), passkey)).status).to.equal(401);
    const subject = 'A passkey of your Gatehouse account was refused';
    const { to, text } = await mail.mailTo(carl.email, subject);
    expect(to).to.deep.equal([carl.email]);
    expect(text).to.include('two devices: Laptop.').and.include('remove that passkey, even if');
  });
});
