/** Notification mails to users about their account, and which of them they can switch off. */
import { expect } from 'chai';
import { eventually } from '../support/eventually.ts';
import { startsWithMail } from '../support/mail-server.ts';
import { authorizationUrl, pkce } from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { addPerson } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { addPasskey, signInWith } from './passkeys/soft-passkey.ts';
import { signedIn } from './signed-in-person.ts';

describe('mail about an account', () => {
  const mail = startsWithMail();
  const on = startSeeded({
    on: mail.start,
  });

  const subjects = (): string[] =>
    mail.received.map(({ raw }) => /^Subject: (.*)$/m.exec(raw)?.[1]?.trim() ?? '');

  it('mail announces a new browser, connection, API key and password, each once', async () => {
    const { person } = on.seeded;
    const owner = await signedIn(on.service, person);
    await owner.submit(await owner.get('/logout'), {});
    await owner.signIn(person);
    const request = () =>
      authorizationUrl(on.issuer, on.clients.confidential, { prompt: 'consent' });
    await owner.authorize(request(), person);
    await owner.authorize(request(), person);
    const form = await owner.get('/profile/api-keys');
    for (const _ of [1, 2]) await owner.submit(form, { name: 'Export', expires_in_days: '30' });
    await owner.fillIn('/profile/security', {
      ...{ current_password: person.password, new_password: 'eight blue pallets, stacked' },
    });
    await eventually(() => expect(mail.received).to.have.length(4));
    expect(subjects()).to.have.members([
      ...[
        'A new browser signed in to your Gatehouse account',
        'A client now acts for you at Gatehouse',
      ],
      ...['A new Gatehouse API key acts as you', 'Your Gatehouse password was changed'],
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
    const page = await owner.get('/profile/security');
    expect(page.html.match(/name="mail" value="\w+" checked/g)).to.have.length(3);
    await owner.submit(page, { mail: [] });
    await createPerson(on.issuer).signIn(other);
    await owner.authorize(authorizationUrl(on.issuer, on.clients.otherConfidential), other);
    await owner.fillIn('/profile/api-keys', { name: 'Export', expires_in_days: '30' });
    await owner.fillIn('/profile/security', {
      ...{ current_password: other.password, new_password: 'eight blue pallets, stacked' },
    });
    await eventually(() => expect(mail.received).to.have.length(6));
    expect(subjects().at(-1)).to.equal('Your Gatehouse password was changed');
    expect((await owner.get('/profile/security')).html).to.not.match(/name="mail"[^>]*checked/);
  });

  it('owners and admins get at most one mail an hour about clients that wait for an approval', async () => {
    const olga = await addPerson(on.service, 'Olga Owner', 'olga@example.test');
    const arno = await addPerson(on.service, 'Arno Admin', 'arno@example.test');
    const { id } = on.seeded.organization;
    await on.service.memberships.setRole(olga, id, 'owner');
    await on.service.memberships.setRole(arno, id, 'admin');
    const owner = await signedIn(on.service, olga);
    await owner.send(`/profile/organizations/${id}/policy`, { clients: 'ask', api_keys: 'allow' });
    const person = await addPerson(on.service, 'Mia Member', 'mia@example.test');
    await on.service.memberships.setRole(person, id, 'member');
    const browser = createPerson(on.issuer);
    for (const client of [on.clients.otherConfidential, on.clients.public]) {
      await browser.authorize(authorizationUrl(on.issuer, client, pkce().parameters), person);
    }
    const asked = () => mail.received.filter(({ raw }) => raw.includes('waits for your approval'));
    const connected = () =>
      mail.received.filter(({ text }) => text.includes('was approved to act'));
    await eventually(() => expect(asked()).to.have.length(2));
    // A mail about the second request would be sent before the mail about the second connection.
    await eventually(() => expect(connected().length).to.be.at.least(3));
    expect(asked().flatMap(({ to }) => to)).to.have.members([olga.email, arno.email]);
    expect(asked()[0]?.text)
      .to.include('Mia Member connected Stock Reports')
      .and.include(`/profile/organizations/${id}`);
  });

  it('mail announces a passkey that was refused as a copy, whichever browser used it', async () => {
    const carl = await addPerson(on.service, 'Carl', 'carl@example.test');
    const owner = await signedIn(on.service, carl);
    const { passkey } = await addPasskey(on.issuer, owner, { lie: { counter: 5 } });
    passkey.counter = 4;
    expect((await signInWith(createPerson(on.issuer), passkey)).status).to.equal(401);
    const subject = 'A passkey of your Gatehouse account was refused';
    await eventually(() => expect(subjects()).to.include(subject));
    const refusalMail = mail.received[subjects().indexOf(subject)];
    expect(refusalMail?.to).to.deep.equal([carl.email]);
    expect(refusalMail?.text).to.include('copied: Laptop.').and.include('If it was you, remove');
  });
});
