/** A mailed link alone cannot recover an account that needs more than a password. */
import { expect } from 'chai';
import type { LinkPurpose } from '../../src/accounts/password-links/password-links.ts';
import { addPasskey, optionsFor, signInWith } from '../pages/passkeys/soft-passkey.ts';
import { eventually } from '../support/eventually.ts';
import { startsWithMail } from '../support/mail-server.ts';
import { createPerson, type Page, type Person } from '../support/person.ts';
import { addPerson, passwordLink, type SeededPerson } from '../support/seed.ts';
import { startWithUpstream } from './service.ts';

const GRACE_SECONDS = 1_800;
const HOUR = 3_600;
const WAIT = 48 * HOUR;
const NEW_PASSWORD = 'eight blue pallets, stacked';
const STARTED = 'Someone asked to recover your Gatehouse account';
const REMOVED = 'A passkey was removed from your Gatehouse account';

describe('recovering an account that needs more than a password by a mailed link', () => {
  const mail = startsWithMail();
  const on = startWithUpstream({
    settings: {
      signIn: {
        require: 'passkey-or-upstream',
        requireGraceSeconds: GRACE_SECONDS,
        recoveryWaitSeconds: WAIT,
      },
    },
    start: mail.start,
  });
  let owner: SeededPerson;
  let people = 0;

  beforeEach('an owner', async () => {
    people += 1;
    owner = await addPerson(on.service, 'Olga Owner', `olga-${people}@example.test`);
    const { id } = await on.service.organizations.add({ name: `Storage ${people}` });
    await on.service.memberships.setRole({ accountId: owner.accountId }, id, 'owner');
  });

  const browser = (): Person => createPerson(on.service.issuer);
  const linkFor = (purpose: LinkPurpose, { accountId } = owner): Promise<string> =>
    passwordLink(on.service, { accountId }, purpose);
  const passkeys = () => on.service.passkeys.of(owner.accountId);
  const withPasskey = async (who = owner) => {
    const person = browser();
    await person.signIn(who);
    const { passkey } = await addPasskey(on.service.issuer, person);
    return { person, passkey };
  };
  const isWaitPage = ({ html }: Page): boolean => html.includes('Recover your account');
  const mailsOf = (subject: string, { email } = owner) =>
    mail.received.filter(({ to, raw }) => to.includes(email) && raw.includes(subject));
  const mailOf = (subject: string, who = owner) =>
    eventually(() => {
      const [found] = mailsOf(subject, who);
      if (!found) throw new Error('no such mail yet');
      return found.text;
    });
  const stopLinkIn = (text: string): URL => new URL(/http\S+\/stop-recovery\?token=\S+/.exec(text)?.[0] ?? '');
  const tokenIn = ({ forms }: Page): string =>
    forms.flatMap(({ values }) => values).find(([name]) => name === 'token')?.[1] ?? '';
  /** Starts a recovery, as an attacker who reads the mailbox can do. */
  const startRecovery = async (): Promise<Page> => {
    const attacker = browser();
    const page = await attacker.open(await linkFor('forgotten'));
    return attacker.follow(await attacker.submit(page, { token: tokenIn(page) }));
  };
  const tickPasskey = async (): Promise<string> => (await passkeys())[0]?.id ?? '';
  /** Sends the form that the page of a link without a wait would have. */
  async function send(link: string, fields: Record<string, string> = {}): Promise<Page> {
    const person = browser();
    const page = await person.get('/forgot-password');
    const token = new URL(link, on.service.issuer).searchParams.get('token') ?? '';
    const form = page.forms.find(({ names }) => names.has('email'));
    const [, formToken = ''] = form?.values.find(([name]) => name === 'form_token') ?? [];
    return person.post('/password', {
      token,
      form_token: formToken,
      new_password: NEW_PASSWORD,
      ...fields,
    });
  }
  const canSignInWith = async (password: string): Promise<boolean> =>
    (await browser().signIn({ email: owner.email, password })).status === 200;

  it('a mailed link does not immediately remove a passkey or set a password, during or after the grace period', async () => {
    await withPasskey();
    for (const seconds of [0, GRACE_SECONDS]) {
      on.clock.advance(seconds);
      const link = await linkFor('forgotten');
      const page = await browser().open(link);
      expect(isWaitPage(page)).to.equal(true);
      expect(page.html).to.include('the passkey <bdi>Laptop</bdi>').and.include('After 2 days');
      const sent = await send(link, { remove_way: await tickPasskey() });
      expect(sent.status).to.equal(403);
      expect(isWaitPage(sent)).to.equal(true);
      expect(await passkeys()).to.have.length(1);
    }
    expect(await canSignInWith(NEW_PASSWORD)).to.equal(false);
  });

  it('after the grace period a mailed link does not immediately set a password for a user without a passkey', async () => {
    const early = await send(await linkFor('forgotten'));
    expect(early.status).to.equal(303);
    await browser().signIn({ ...owner, password: NEW_PASSWORD });
    on.clock.advance(GRACE_SECONDS);
    expect((await send(await linkFor('forgotten'))).status).to.equal(403);
  });

  it('a mailed link starts a waiting time, announced by mail, after which another link recovers the account', async () => {
    await withPasskey();
    on.clock.advance(GRACE_SECONDS);
    const started = await startRecovery();
    expect(started.url.pathname).to.equal('/login');
    expect(started.html).to.include('The recovery was started. From ');
    const text = await mailOf(STARTED);
    expect(text).to.include('If not, stop the recovery');
    const [entry] = await on.service.activity.of(owner.accountId, { limit: 1 });
    expect(entry?.details).to.deep.equal({ changed: 'recovery started' });

    on.clock.advance(WAIT - 1);
    const early = await linkFor('forgotten');
    expect((await browser().open(early)).html).to.include('The recovery was started on');
    expect((await send(early)).status).to.equal(403);
    on.clock.advance(1);
    const person = browser();
    const page = await person.open(early);
    expect(page.html).to.include('a password alone is not enough');
    const fields = { new_password: NEW_PASSWORD, remove_way: await tickPasskey() };
    await person.follow(await person.submit(page, fields));
    expect(await passkeys()).to.deep.equal([]);
    expect(await canSignInWith(NEW_PASSWORD)).to.equal(true);
    await mailOf(REMOVED);
    // The completed wait cannot be used a second time.
    expect((await send(await linkFor('forgotten'))).status).to.equal(403);
  });

  it('several mailed links start only one waiting time, and each mail about it can stop the recovery', async () => {
    await withPasskey();
    const pages = await Promise.all(
      [browser(), browser()].map(async (attacker) => {
        const page = await attacker.open(await linkFor('forgotten'));
        return { attacker, page };
      }),
    );
    const answers = await Promise.all(
      pages.map(({ attacker, page }) => attacker.submit(page, { token: tokenIn(page) })),
    );
    expect(answers.map(({ status }) => status)).to.deep.equal([303, 303]);
    const mails = mailsOf(STARTED);
    expect(mails).to.have.length.within(1, 2);
    on.clock.advance(100);
    const later = await browser().open(await linkFor('forgotten'));
    expect(later.html).to.include('The recovery was started on').and.not.include('Start the recovery');
    expect(mailsOf(STARTED)).to.have.length(mails.length);
    for (const { text } of mails) {
      expect((await browser().get(stopLinkIn(text))).status).to.equal(200);
    }
    on.clock.advance(WAIT - 100);
    expect(isWaitPage(await browser().open(await linkFor('forgotten')))).to.equal(false);
  });

  it('a recovery must be completed within a week after its waiting time', async () => {
    await withPasskey();
    await startRecovery();
    on.clock.advance(WAIT + 7 * 24 * HOUR);
    const page = await browser().open(await linkFor('forgotten'));
    expect(page.html).to.include('Start the recovery');
    await startRecovery();
    await eventually(() => expect(mailsOf(STARTED)).to.have.length(2));
    const [former, latter] = mailsOf(STARTED).map(({ text }) => stopLinkIn(text));
    expect((await browser().get(former ?? '')).status).to.equal(410);
    expect((await browser().get(latter ?? '')).status).to.equal(200);
  });

  it('the link in the mail stops a recovery without a sign-in, and only by its form', async () => {
    await withPasskey();
    await startRecovery();
    const link = stopLinkIn(await mailOf(STARTED));
    const stranger = browser();
    const page = await stranger.open(link);
    expect(page.html).to.include('Stop the recovery of your account?');
    await browser().open(link);
    on.clock.advance(WAIT - HOUR);
    const waiting = await linkFor('forgotten');
    const stopped = await stranger.submit(page, { token: link.searchParams.get('token') ?? '' });
    expect(stopped.html).to.include('The recovery was stopped');
    expect((await browser().get(waiting)).status).to.equal(410);
    on.clock.advance(HOUR);
    expect((await send(await linkFor('forgotten'))).status).to.equal(403);
    expect((await browser().open(link)).status).to.equal(410);
    const [, entry] = await on.service.activity.of(owner.accountId, { limit: 2 });
    expect(entry?.details).to.deep.equal({ changed: 'recovery stopped' });
    const forged = new URL(link);
    forged.searchParams.set('token', `${link.searchParams.get('token')}x`);
    for (const url of [forged, '/stop-recovery', '/stop-recovery?token=a.b', '/stop-recovery?token=%00']) {
      expect((await browser().get(url)).status, String(url)).to.equal(410);
    }
  });

  it('the profile and security pages show the waiting time of a recovery, which the user can stop there', async () => {
    const { person } = await withPasskey();
    expect((await person.get('/profile')).html).not.to.include('This was not me');
    await startRecovery();
    for (const path of ['/profile', '/profile/security']) {
      const page = await person.get(path);
      expect(page.html).to.include('Someone asked to recover your account');
    }
    const page = await person.get('/profile/security');
    const form = page.forms.find(({ action }) => action.endsWith('/stop-recovery'));
    const sent = await person.post(form?.action ?? '', Object.fromEntries(form?.values ?? []));
    expect((await person.follow(sent)).html).to.include('The recovery was stopped');
    on.clock.advance(WAIT);
    expect((await send(await linkFor('forgotten'))).status).to.equal(403);
  });

  const PROVES: Readonly<Record<string, (given: Awaited<ReturnType<typeof withPasskey>>) => Promise<unknown>>> = {
    'signs in with the passkey': ({ passkey }) => signInWith(browser(), passkey),

    async 'confirms an action with the passkey'({ person, passkey }) {
      on.clock.advance(601);
      const asked = await person.submit(await person.get('/profile/api-keys'), { name: 'Export' });
      await person.submit(asked, { passkey: passkey.answer(await optionsFor(person, 'confirm')) });
    },

    'changes the password': async ({ person }) => {
      const page = await person.get('/profile/security');
      const { password } = owner;
      await person.submit(page, { current_password: password, new_password: NEW_PASSWORD });
    },

    'is suspended and resumed': async () => {
      await on.service.accounts.suspend(owner.accountId);
      await on.service.accounts.resume(owner.accountId);
    },

    'gets another email address': () =>
      on.service.accounts.changeEmail(owner.accountId, `moved-${people}@example.test`),
  };
  for (const [what, prove] of Object.entries(PROVES)) {
    it(`the waiting time of a recovery is cancelled when the user ${what}`, async () => {
      const given = await withPasskey();
      await startRecovery();
      await prove(given);
      on.clock.advance(WAIT);
      expect((await send(await linkFor('forgotten'))).status).to.equal(403);
      expect(await passkeys()).to.have.length(1);
    });
  }

  it('the waiting time of a recovery does not start if the mail about it cannot be sent', async () => {
    await withPasskey();
    const away = { smtpUrl: 'smtp://127.0.0.1:1', from: 'gatehouse@localhost' };
    const node = await mail.start({
      sharing: on.service,
      clock: on.clock.clock,
      settings: { mail: away },
    });
    const attacker = createPerson(node.issuer);
    const page = await attacker.open(await linkFor('forgotten'));
    const answer = await attacker.follow(await attacker.submit(page, { token: tokenIn(page) }));
    expect(answer.html).to.include('so the recovery was not started');
    on.clock.advance(WAIT);
    expect((await send(await linkFor('forgotten'))).status).to.equal(403);
  });

  it('a recovery by an invitation from the operator has no waiting time', async () => {
    await withPasskey();
    on.clock.advance(GRACE_SECONDS);
    const sent = await send(await linkFor('invitation'), { remove_way: await tickPasskey() });
    expect(sent.status).to.equal(303);
    expect(await passkeys()).to.deep.equal([]);
    await mailOf(REMOVED);
  });

  it('a user who needs only a password recovers without a waiting time; the passkey is removed, and mail announces it', async () => {
    const member = await addPerson(on.service, 'Mo', `mo-${people}@example.test`);
    await withPasskey(member);
    const [passkey] = await on.service.passkeys.of(member.accountId);
    const sent = await send(await linkFor('forgotten', member), { remove_way: passkey?.id ?? '' });
    expect(sent.status).to.equal(303);
    expect(await on.service.passkeys.of(member.accountId)).to.deep.equal([]);
    expect(await mailOf(REMOVED, member)).to.include('Laptop');
  });
});
