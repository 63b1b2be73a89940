/** A link of “Forgot your password?” sets a password, and never weakens a stronger sign-in. */
import { expect } from 'chai';
import type { LinkPurpose } from '../../src/accounts/password-links/password-links.ts';
import { said } from '../pages/client-owner.ts';
import { addPasskey, signInWith } from '../pages/passkeys/soft-passkey.ts';
import { eventually } from '../support/eventually.ts';
import { startsWithMail } from '../support/mail-server.ts';
import { createPerson, type Page, type Person } from '../support/person.ts';
import { addPerson, passwordLink, type SeededPerson } from '../support/seed.ts';
import { startWithUpstream } from './service.ts';

const GRACE_SECONDS = 1_800;
const NEW_PASSWORD = 'eight blue pallets, stacked';

describe('a mailed link to an account that has more than a password', () => {
  const mail = startsWithMail();
  const on = startWithUpstream({
    provider: { label: 'Platform' },
    settings: { signIn: { require: 'passkey-or-upstream', requireGraceSeconds: GRACE_SECONDS } },
    start: mail.start,
  });
  let owner: SeededPerson;
  let people = 0;

  beforeEach('an owner', async () => {
    people += 1;
    owner = await addPerson(on.service, 'Olga Owner', `olga-${people}@example.test`);
    await makeOwner(owner);
  });

  async function makeOwner({ accountId }: SeededPerson): Promise<void> {
    const { id } = await on.service.organizations.add({ name: `Storage ${people}` });
    await on.service.memberships.setRole({ accountId }, id, 'owner');
  }

  const browser = (): Person => createPerson(on.service.issuer);
  const linkFor = (purpose: LinkPurpose, { accountId } = owner): Promise<string> =>
    passwordLink(on.service, { accountId }, purpose);
  const passkeysOf = ({ accountId } = owner) => on.service.passkeys.of(accountId);
  const givePasskey = async (who = owner) => {
    const person = browser();
    await person.signIn(who);
    return (await addPasskey(on.service.issuer, person)).passkey;
  };
  const giveProvider = async (who = owner): Promise<string> => {
    await on.signIn({ sub: who.email, email: who.email, email_verified: true });
    return `provider ${on.upstream.issuer}`;
  };
  const mailTo = ({ email }: SeededPerson, what: string) =>
    eventually(() => {
      const found = mail.received.find(({ to, raw }) => to.includes(email) && raw.includes(what));
      if (!found) throw new Error('no such mail yet');
      return found.text;
    });
  /** Asks for a link as a user does, and returns the link of the mail. */
  const forgetPassword = async (): Promise<string> => {
    const person = browser();
    await person.submit(await person.get('/forgot-password'), { email: owner.email });
    return /http\S+\/password\?token=\S+/.exec(await mailTo(owner, 'Choose a new'))?.[0] ?? '';
  };
  /** Opens a link and sets the password, with these fields even if the page has no such checkbox. */
  async function use(link: string, removeWay: string): Promise<{ form: Page; answer: Page }> {
    const person = browser();
    const form = await person.open(link);
    const [sent] = form.forms.filter(({ names }) => names.has('new_password'));
    const values = { ...Object.fromEntries(sent?.values ?? []), new_password: NEW_PASSWORD, remove_way: removeWay };
    return { form, answer: await person.follow(await person.post('/password', values)) };
  }
  const signInWithNewPassword = (who = owner) => browser().signIn({ email: who.email, password: NEW_PASSWORD });

  it('the password of a mailed link does not replace a required passkey, which the link does not remove either', async () => {
    const passkey = await givePasskey();
    const [{ id = '' } = {}] = await passkeysOf();
    on.clock.advance(GRACE_SECONDS);
    const { form, answer } = await use(await forgetPassword(), id);
    expect(form.html).to.include('sign in with the passkey <bdi>Laptop</bdi>.');
    expect(form.html).not.to.include('name="remove_way"');
    expect(answer.html).to.include('Your password was set.').and.include('sign in with the passkey <bdi>Laptop</bdi>.');
    expect(await passkeysOf()).to.have.length(1);
    const refused = await signInWithNewPassword();
    expect(refused.status).to.equal(403);
    expect(refused.html).to.include('A password is no longer enough for you');
    const person = browser();
    await signInWith(person, passkey);
    expect((await person.get('/profile')).status).to.equal(200);
  });

  it('a mailed link keeps the provider of a user who became an owner after the page was shown', async () => {
    const member = await addPerson(on.service, 'Mo', `mo-${people}@example.test`);
    const provider = await giveProvider(member);
    const person = browser();
    const form = await person.open(await linkFor('forgotten', member));
    expect(form.html).to.include(`name="remove_way" value="${provider}"`);
    await makeOwner(member);
    await person.submit(form, { new_password: NEW_PASSWORD, remove_way: provider });
    expect(await on.service.identities.listOf(member.accountId)).to.have.length(1);
  });

  it('a mailed link removes no passkey of a user who needs only a password, and says where to remove it', async () => {
    const member = await addPerson(on.service, 'Mo', `mo-${people}@example.test`);
    await givePasskey(member);
    const [{ id = '' } = {}] = await passkeysOf(member);
    const { form, answer } = await use(await linkFor('forgotten', member), id);
    expect(form.html).to.include(said('password.kept')).and.include('Passkey <bdi>Laptop</bdi>');
    expect(answer.html).to.include(said('password.was-set'));
    expect(await passkeysOf(member)).to.have.length(1);
    expect(await mailTo(member, 'These were kept')).to.include('Passkey Laptop');
    expect((await signInWithNewPassword(member)).status).to.equal(200);
  });

  it('a mailed link does not sign in if the service has stopped using passwords since', async () => {
    await givePasskey();
    const { signIn } = on.service.settings;
    const settings = { signIn: { ...signIn, passwords: false } };
    const node = await mail.start({ sharing: on.service, clock: on.clock.clock, settings });
    const person = createPerson(node.issuer);
    const invited = await person.open(await linkFor('invitation'));
    const [, token = ''] = (await linkFor('forgotten')).split('token=');
    expect((await person.get(`/password?token=${token}`)).status).to.equal(303);
    expect((await person.get('/password')).status).to.equal(410);
    const [sent] = invited.forms.filter(({ names }) => names.has('token'));
    const values = { ...Object.fromEntries(sent?.values ?? []), token };
    expect((await person.post('/password', values)).status).to.equal(410);
    expect((await person.get('/profile')).status).to.equal(303);
  });
});
