import { expect } from 'chai';
import { describeInBrowser } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { type MailServer, startMailServer } from '../support/mail-server.ts';
import { createPerson, type Person } from '../support/person.ts';
import { type Seed, seed } from '../support/seed.ts';
import { forEachDeployment, startTestService, type TestService } from '../support/service.ts';
import { textOf } from './client-owner.ts';

const PATH = '/forgot-password';
const NEW_PASSWORD = 'eight blue pallets, stacked';
const FROM = 'gatehouse@example.test';

/** The link of a message. */
const linkIn = (text: string): URL => new URL(/http\S+\/password\?token=\S+/.exec(text)?.[0] ?? '');

forEachDeployment('“Forgot password?”', (start) => {
  let service: TestService;
  let seeded: Seed;
  let mailServer: MailServer;
  let visitor: Person;

  before(async () => {
    mailServer = await startMailServer(['gate', 'p@ss word']);
    const mail = { smtpUrl: mailServer.url, from: `Gatehouse <${FROM}>` };
    service = await start({ settings: { mail } });
    seeded = await seed(service);
  });
  after(() => mailServer.close());
  beforeEach(() => {
    visitor = createPerson(service.issuer);
  });

  const ask = async (email: string) =>
    visitor.follow(await visitor.submit(await visitor.get(PATH), { email }));
  const mailsTo = (email: string) => mailServer.received.filter(({ to }) => to.includes(email));

  it('is offered on the sign-in page, and mails a link that works', async () => {
    const { email } = seeded.person;
    expect((await visitor.get('/login')).html).to.include(`href="${PATH}"`);
    const answer = await ask(email.toUpperCase());
    expect(answer.status).to.equal(200);
    const mail = await eventually(() => {
      const [first] = mailsTo(email);
      if (!first) throw new Error('no mail yet');
      return first;
    });
    expect(mail.from).to.equal(FROM);
    expect(mail.raw).to.match(/^Subject: Choose a new Gatehouse password$/m);
    expect(mail.raw).to.match(/^Content-Type: text\/plain/m);
    expect(mail.text).to.include('Hello Grace Person').and.include(service.issuer);

    const link = linkIn(mail.text);
    expect(link.origin).to.equal(service.issuer);
    const form = await visitor.get(link);
    const login = await visitor.follow(await visitor.submit(form, { new_password: NEW_PASSWORD }));
    expect(textOf(login.html)).to.include('Your password is set.');
    const token = link.searchParams.get('token') ?? '';
    expect(service.logLines.join()).not.to.include(token);
    const log = await service.activity.of(seeded.person.accountId, { limit: 5 });
    expect(log.map(({ action }) => action)).to.include('password_link_made');
  });

  it('answers the same for unknown, suspended and known addresses', async () => {
    await service.accounts.suspend(seeded.other.accountId);
    const { length } = mailsTo(seeded.person.email);
    const answers = [];
    for (const email of [seeded.other.email, 'nobody@example.test', seeded.person.email]) {
      answers.push(await ask(email));
    }
    const known = answers.at(-1);
    await eventually(() => expect(mailsTo(seeded.person.email)).to.have.length(length + 1));
    const log = await service.activity.of(seeded.other.accountId, { limit: 5 });
    expect(log.map(({ action }) => action)).not.to.include('password_link_made');
    for (const { status, html, url } of answers) {
      expect([status, html, url.href]).to.deep.equal([known?.status, known?.html, known?.url.href]);
    }
    await service.accounts.resume(seeded.other.accountId);
    expect(mailsTo('nobody@example.test')).to.deep.equal([]);
    expect(mailsTo(seeded.other.email)).to.deep.equal([]);
  });

  it('answers before anything is looked up or sent', async () => {
    // A mail server that takes long must not be seen in the answer for a known address.
    const form = await visitor.get(PATH);
    const before = mailServer.received.length;
    const answer = await visitor.submit(form, { email: seeded.other.email });
    expect(answer.status).to.equal(303);
    expect(mailServer.received.length).to.equal(before);
    await eventually(() => expect(mailsTo(seeded.other.email)).to.have.length(1));
  });

  it('nobody’s mailbox is filled: three links an hour, asked for at once or not', async () => {
    const { id } = await service.accounts.add({ email: 'often@example.test', name: 'Often' });
    await Promise.all(Array.from({ length: 8 }, () => ask('often@example.test')));
    await eventually(() => expect(mailsTo('often@example.test')).to.have.length(3));
    const log = await service.activity.of(id, { limit: 20 });
    expect(log).to.have.length(3);
    const last = await ask('often@example.test');
    expect(textOf(last.html)).to.include('is on its way');
  });

  it('what is no address is said to be none', async () => {
    for (const email of ['', 'ada', 'a@b', 'a b@c.test', 'x\r\nBcc: eve@example.test@e.test']) {
      const page = await visitor.submit(await visitor.get(PATH), { email });
      expect(page.status, email).to.equal(422);
      expect(page.html).to.match(/id="problem" role="alert"/);
    }
  });

  it('a hostile name cannot add a header or another recipient', async () => {
    const name = 'Eve" <eve@evil.example>, x';
    await service.accounts.add({ email: 'named@example.test', name });
    await ask('named@example.test');
    const mail = await eventually(() => {
      const [first] = mailsTo('named@example.test');
      if (!first) throw new Error('no mail yet');
      return first;
    });
    expect(mail.to).to.deep.equal(['named@example.test']);
  });

  it('a form from elsewhere sends nothing', async () => {
    const form = await visitor.get(PATH);
    const elsewhere = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' };
    const sent = await visitor.submit(form, { email: seeded.person.email }, elsewhere);
    expect(sent.status).to.equal(403);
  });
});

describe('without a mail server', () => {
  let service: TestService;

  before(async () => {
    service = await startTestService();
  });
  after(() => service.close());

  it('there is no “Forgot password?”, and no page behind it', async () => {
    const visitor = createPerson(service.issuer);
    expect((await visitor.get('/login')).html).not.to.include(PATH);
    expect((await visitor.get(PATH)).status).to.equal(404);
    expect((await visitor.post(PATH, { email: 'a@b.test' })).status).to.equal(404);
  });
});

describe('a mail server that is away', () => {
  it('is told to the operator; the person’s answer is the same, and nothing is held up', async () => {
    const mailServer = await startMailServer();
    const mail = { smtpUrl: mailServer.url, from: FROM };
    await mailServer.close();
    const service = await startTestService({ settings: { mail } });
    try {
      const { person } = await seed(service);
      const visitor = createPerson(service.issuer);
      const form = await visitor.get(PATH);
      const answer = await visitor.follow(await visitor.submit(form, { email: person.email }));
      expect(textOf(answer.html)).to.include('is on its way');
      await eventually(() => {
        expect(service.logLines.join()).to.include('a link to set a password was not mailed');
      });
      expect(service.logLines.join()).not.to.include('token=');
    } finally {
      await service.close();
    }
  });
});

describeInBrowser('“Forgot password?” in a browser', (visit) => {
  it('a person gets a link by mail and chooses a new password', async () => {
    const mailServer = await startMailServer();
    const mail = { smtpUrl: mailServer.url, from: FROM };
    const service = await startTestService({ settings: { mail } });
    try {
      const { person } = await seed(service);
      const { page, problems } = await visit();
      await page.goto(`${service.issuer}/profile`);
      await page.getByRole('link', { name: 'Forgot your password?' }).click();
      await page.getByLabel('Email address').fill(person.email);
      await page.getByRole('button', { name: 'Send the link' }).click();
      await page.getByRole('heading', { name: 'Look into your mail' }).waitFor();
      await eventually(() => expect(mailServer.received).to.have.length(1));
      await page.goto(linkIn(mailServer.received[0]?.text ?? '').href);
      await page.getByLabel('New password').fill(NEW_PASSWORD);
      await page.getByRole('button', { name: 'Set password' }).click();
      await page.getByLabel('Email address').fill(person.email);
      await page.getByLabel('Password', { exact: true }).fill(NEW_PASSWORD);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByRole('heading', { name: 'Your profile' }).waitFor();
      expect(problems).to.deep.equal([]);
    } finally {
      await service.close();
      await mailServer.close();
    }
  });
});
