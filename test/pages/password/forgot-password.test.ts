import { expect } from 'chai';
import { eventually } from '../../support/eventually.ts';
import { startMailServer, startsWithMail } from '../../support/mail-server.ts';
import { createPerson, type Person } from '../../support/person.ts';
import { addPerson } from '../../support/seed.ts';
import { startSeeded } from '../../support/seeded.ts';
import { said, textOf } from '../client-owner.ts';

const PATH = '/forgot-password';
const NEW_PASSWORD = 'eight blue pallets, stacked';

/** Reads the link from the text of a mail. */
const linkIn = (text: string): URL => new URL(/http\S+\/password\?token=\S+/.exec(text)?.[0] ?? '');

describe('“Forgot password?”', () => {
  const { start, received, mailTo } = startsWithMail();
  const on = startSeeded({ on: start });
  let visitor: Person;

  beforeEach(() => {
    visitor = createPerson(on.issuer);
  });

  const ask = async (email: string) => visitor.follow(await visitor.submit(await visitor.get(PATH), { email }));
  const mailsTo = (email: string) => received.filter(({ to }) => to.includes(email));

  it('the sign-in page links to the form for a forgotten password, which mails a working link', async () => {
    const { email } = on.seeded.person;
    expect((await visitor.get('/login')).html).to.include(`href="${PATH}"`);
    const answer = await ask(email.toUpperCase());
    expect(answer.status).to.equal(200);
    const mail = await mailTo(email, 'Choose a new');
    expect(mail.from).to.equal('gatehouse@localhost');
    expect(mail.raw).to.match(/^Subject: Choose a new Gatehouse password$/m);
    expect(mail.raw).to.match(/^Content-Type: text\/plain/m);
    expect(mail.text).to.include('Hello Grace Person').and.include(on.issuer);

    const link = linkIn(mail.text);
    expect(link.origin).to.equal(on.issuer);
    const form = await visitor.open(link);
    const login = await visitor.follow(await visitor.submit(form, { new_password: NEW_PASSWORD }));
    expect(textOf(login.html)).to.include(said('password.was-set'));
    const token = link.searchParams.get('token') ?? '';
    expect(on.service.logLines.join()).not.to.include(token);
    const log = await on.service.activity.of(on.seeded.person.accountId, { limit: 5 });
    expect(log.map(({ action }) => action)).to.include('password_link_made');
  });

  it('the form for a forgotten password answers the same for unknown, suspended and known addresses', async () => {
    await on.service.accounts.suspend(on.seeded.other.accountId);
    const { length } = mailsTo(on.seeded.person.email);
    const answers = [];
    for (const email of [on.seeded.other.email, 'nobody@example.test', on.seeded.person.email]) {
      answers.push(await ask(email));
    }
    const known = answers.at(-1);
    await eventually(() => expect(mailsTo(on.seeded.person.email)).to.have.length(length + 1));
    const log = await on.service.activity.of(on.seeded.other.accountId, { limit: 5 });
    expect(log.map(({ action }) => action)).not.to.include('password_link_made');
    for (const { status, html, url } of answers) {
      expect({ status, html, at: url.href }).to.deep.equal({
        status: known?.status,
        html: known?.html,
        at: known?.url.href,
      });
    }
    await on.service.accounts.resume(on.seeded.other.accountId);
    expect(mailsTo('nobody@example.test')).to.deep.equal([]);
    expect(mailsTo(on.seeded.other.email)).to.deep.equal([]);
  });

  it('the form for a forgotten password answers before the account lookup and the mail', async () => {
    // Check that the page looks up no account: the time of a lookup would distinguish known
    // addresses.
    const form = await visitor.get(PATH);
    const { email } = await on.service.accounts.add({ email: 'slow@example.test', name: 'Slow' });
    await on.service.database.transaction(async (tx) => {
      await tx.query('LOCK TABLE accounts, password_links');
      expect((await visitor.submit(form, { email })).status).to.equal(303);
      expect(mailsTo(email)).to.deep.equal([]);
    });
    await mailTo(email, 'Choose a new');
  });

  it('at most three password links an hour are mailed to one address, also for parallel requests', async () => {
    const { id } = await on.service.accounts.add({ email: 'often@example.test', name: 'Often' });
    await Promise.all(Array.from({ length: 8 }, () => ask('often@example.test')));
    await eventually(() => expect(mailsTo('often@example.test')).to.have.length(3));
    const log = await on.service.activity.of(id, { limit: 20 });
    expect(log).to.have.length(3);
    const last = await ask('often@example.test');
    expect(textOf(last.html)).to.include(said('forgot-password.sent')).and.include('at most 3 links an hour');
  });

  it('the form for a forgotten password refuses an invalid email address', async () => {
    for (const email of ['', 'ada', 'a@b', 'a b@c.test', 'x\r\nBcc: eve@example.test@e.test']) {
      const page = await visitor.submit(await visitor.get(PATH), { email });
      expect(page.status, email).to.equal(422);
      expect(page.html).to.match(/id="problem" role="alert"/);
    }
  });

  it('an unreachable mail server is logged for the operator, and neither changes nor delays the answer to the user', async () => {
    const away = await startMailServer();
    await away.close();
    await on.service.withSettings({ mail: { smtpUrl: away.url, from: 'gatehouse@localhost' } }, async () => {
      const { email } = await addPerson(on.service, 'Pat');
      expect(textOf((await ask(email)).html)).to.include(said('forgot-password.sent'));
      await eventually(() => {
        expect(on.service.logLines.join()).to.include('a link to set a password was not mailed');
      });
      expect(on.service.logLines.join()).not.to.include('token=');
    });
  });
});
