/** Notification mails to users about their account, and which of them they can switch off. */
import { expect } from 'chai';
import { atEndOfFile } from '../support/end-of-run.ts';
import { eventually } from '../support/eventually.ts';
import { startMailServer, startsWithMail } from '../support/mail-server.ts';
import { authorizationUrl, pkce } from '../support/oauth.ts';
import { createPerson, type Page } from '../support/person.ts';
import { addPerson } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { startTestService } from '../support/service.ts';
import { addPasskey, signInWith } from './passkeys/soft-passkey.ts';
import { signedIn } from './signed-in-person.ts';

describe('mail about an account', () => {
  const mail = startsWithMail();
  const on = startSeeded({
    on: mail.start,
  });

  const subjects = (): string[] => mail.received.map(({ raw }) => /^Subject: (.*)$/m.exec(raw)?.[1]?.trim() ?? '');

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
    const page = await owner.get('/profile/security');
    expect(page.html.match(/name="mail" value="\w+" checked/g)).to.have.length(6);
    await owner.submit(page, { mail: [] });
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
    const asked = () => mail.received.filter(({ raw }) => raw.includes('waiting for your approval'));
    const connected = () => mail.received.filter(({ text }) => text.includes('connected an app to your account'));
    await eventually(() => expect(asked()).to.have.length(2));
    // A mail about the second request would be sent before the mail about the second connection.
    await eventually(() => expect(connected().length).to.be.at.least(3));
    expect(asked().flatMap(({ to }) => to)).to.have.members([olga.email, arno.email]);
    expect(asked()[0]?.text)
      .to.include('Mia Member connected the app Stock Reports')
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
    expect(refusalMail?.text).to.include('two devices: Laptop.').and.include('remove that passkey, even if');
  });

  it('mails are in the language that the user has chosen', async () => {
    const gerda = await addPerson(on.service, 'Gerda', 'gerda@example.test');
    await on.service.accounts.setLanguage(gerda.accountId, 'de');
    await createPerson(on.issuer).signIn(gerda);
    const mine = () => mail.received.find(({ to }) => to.includes(gerda.email));
    await eventually(() => expect(mine(), 'the mail').to.not.equal(undefined));
    expect(mine()?.raw).to.include('Subject: Neue Anmeldung bei Ihrem Konto bei Gatehouse');
    expect(mine()?.text).to.include('Guten Tag Gerda,').and.include('IP-Adresse 127.0.0.1');
    expect(mine()?.html).to.include('<html lang="de">').and.include('Sicherheitsseite');
  });
});

describe('mail before an API key expires', () => {
  const mail = startsWithMail();
  const on = startSeeded({ on: mail.start, clock: true });
  const [WEEK, DAY] = [7 * 86_400, 86_400];

  it('a user gets one mail a week before an API key expires, from whichever node', async () => {
    const { service } = on;
    const isAlone = service.database.embedded;
    const settings = service.settings.mail && { mail: service.settings.mail };
    const another = { sharing: service, clock: on.clock.clock, ...(settings && { settings }) };
    const nodes = isAlone ? [service] : [service, await startTestService(another)];
    const quiet = await addPerson(service, 'Quinn Quiet', 'quinn@example.test');
    await service.accounts.setUnwantedMail(quiet.accountId, ['key_expiry']);
    const gone = await addPerson(service, 'Gus Gone', 'gus@example.test');
    await service.accounts.suspend(gone.accountId);
    const add = (accountId: string, name: string, days: number | undefined, maxDays = 0) =>
      service.apiKeys.add({ accountId, name, expiresInDays: days, maxDays }, { address: '::1', browser: '' });
    const { person } = on.seeded;
    const { key } = await add(person.accountId, 'Nightly export', 30);
    await add(person.accountId, 'Endless', undefined);
    await add(quiet.accountId, 'Unwanted', 30);
    await add(gone.accountId, 'Suspended', 30);
    const cleanAll = () => Promise.all(nodes.flatMap((node) => [node.clean(), node.clean()]));

    on.clock.advance(30 * DAY - WEEK - 1);
    await add(person.accountId, 'Two weeks', 14, 14);
    await add(person.accountId, 'Short', 13, 13);
    await cleanAll();
    expect(mail.received).to.deep.equal([]);
    on.clock.advance(1);
    await cleanAll();
    await eventually(() => expect(mail.received).to.have.length(1));
    const [first] = mail.received;
    expect(first?.to).to.deep.equal([person.email]);
    expect(first?.raw).to.include('Subject: One of your Gatehouse API keys expires soon');
    expect(first?.text)
      .to.include(`Nightly export, which ends in ${key.lastFour}, expires on`)
      .and.include('/profile/api-keys');

    on.clock.advance(WEEK);
    await cleanAll();
    await eventually(() => expect(mail.received).to.have.length(2));
    expect(mail.received[1]?.text).to.include('Two weeks');
    on.clock.advance(WEEK);
    await cleanAll();
    // Closing a node waits for the mail in progress.
    for (const node of nodes.slice(1)) await node.close();
    expect(mail.received).to.have.length(2);
  });
});

describe('API keys without a mail server', () => {
  const on = startSeeded({ clock: true });

  it('the mail about an expiring API key is sent later if no mail server is set yet', async () => {
    const { accountId } = on.seeded.person;
    const origin = { address: '::1', browser: '' };
    await on.service.apiKeys.add({ accountId, name: 'Export', expiresInDays: 30 }, origin);
    on.clock.advance(25 * 86_400);
    await on.service.clean();
    const server = await startMailServer();
    atEndOfFile(server.close);
    const mail = { smtpUrl: server.url, from: 'gatehouse@localhost' };
    await on.service.apply({ ...on.service.settings, mail });
    await on.service.clean();
    await eventually(() => expect(server.received).to.have.length(1));
  });

  it('the mail about an expiring API key is sent an hour later if the mail server did not accept it', async () => {
    const { accountId } = on.seeded.person;
    const origin = { address: '::1', browser: '' };
    await on.service.apiKeys.add({ accountId, name: 'Import', expiresInDays: 30 }, origin);
    const server = await startMailServer();
    atEndOfFile(server.close);
    const withMail = (smtpUrl: string) =>
      on.service.apply({ ...on.service.settings, mail: { smtpUrl, from: 'gatehouse@localhost' } });
    await withMail('smtp://127.0.0.1:1');
    on.clock.advance(25 * 86_400);
    await on.service.clean();
    const failures = () => on.service.logLines.filter((line) => line.includes('key_expiry was not mailed'));
    await eventually(() => expect(failures()).to.have.length(1));
    await on.service.clean();
    await withMail(server.url);
    await on.service.clean();
    on.clock.advance(3_601);
    await on.service.clean();
    await on.service.clean();
    await eventually(() => expect(server.received).to.have.length(1));
    expect(failures()).to.have.length(1);
    on.clock.advance(3_601);
    await on.service.clean();
    expect(server.received).to.have.length(1);
  });
});
