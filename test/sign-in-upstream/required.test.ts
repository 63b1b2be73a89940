/** sign_in.require: users who can change what others reach need more than a password, also after a mailed link. */
import { expect } from 'chai';
import type { LinkPurpose } from '../../src/accounts/password-links/password-links.ts';
import { operatorFor, valueFrom } from '../operator/run-operator.ts';
import { said } from '../pages/client-owner.ts';
import { addPasskey, optionsFor, signInWith } from '../pages/passkeys/soft-passkey.ts';
import { eventually } from '../support/eventually.ts';
import { startsWithMail } from '../support/mail-server.ts';
import { authorizationUrl } from '../support/oauth.ts';
import { createPerson, type Page, type Person } from '../support/person.ts';
import { addPerson, passwordLink, REDIRECT_URI, type SeededPerson } from '../support/seed.ts';
import { startWithUpstream } from './service.ts';

const GRACE_SECONDS = 1_800;
const STRONG_SIGN_IN = '/profile/stronger-sign-in';
const NEW_PASSWORD = 'eight blue pallets, stacked';

describe('users who administer an organization or own a client', () => {
  const mail = startsWithMail();
  const on = startWithUpstream({
    settings: { signIn: { require: 'passkey-or-upstream', requireGraceSeconds: GRACE_SECONDS } },
    start: mail.start,
  });
  let owner: SeededPerson;
  let people = 0;

  beforeEach('an owner of a new organization', async () => {
    people += 1;
    owner = await addPerson(on.service, 'Olga Owner', `olga-${people}@example.test`);
    await makeOwner(owner);
  });

  async function makeOwner({ accountId }: SeededPerson): Promise<void> {
    const { id } = await on.service.organizations.add({ name: `Storage ${people}` });
    await on.service.memberships.setRole({ accountId }, id, 'owner');
  }

  const browser = (): Person => createPerson(on.service.issuer);
  const signedIn = async (credentials = owner): Promise<Person> => {
    const person = browser();
    await person.signIn(credentials);
    return person;
  };
  const ask = (more = {}) =>
    authorizationUrl(on.service.issuer, on.seeded.clients.otherConfidential, {
      prompt: 'consent',
      ...more,
    });
  const keys = () => on.service.apiKeys.listOf(owner.accountId);
  const afterGrace = async (): Promise<void> => {
    // The grace period starts when users are first informed.
    await signedIn();
    on.clock.advance(GRACE_SECONDS);
  };

  it('owners and admins see the end of the grace period on each page, and can use passwords until then', async () => {
    const person = await signedIn();
    const page = await person.get('/profile');
    const [, until] = /From <time datetime="([^"]+)"/.exec(page.html) ?? [];
    expect(Date.parse(until ?? '')).to.equal(on.clock.clock() + GRACE_SECONDS * 1_000);
    expect(page.html).to.include(`href="${STRONG_SIGN_IN}"`);
    on.clock.advance(100);
    const later = await (await signedIn()).get('/profile/activity');
    expect(later.html).to.include(`From <time datetime="${until}"`);
    await person.submit(await person.get('/profile/api-keys'), { name: 'Export' });
    expect(await keys()).to.have.length(1);
    expect((await person.get(STRONG_SIGN_IN)).html).to.include(said('passkey.add'));
    // A member who is no owner or admin is not asked to add a passkey.
    const member = await signedIn(on.seeded.person);
    expect((await member.get('/profile')).html).not.to.include(STRONG_SIGN_IN);
    expect((await member.get(STRONG_SIGN_IN)).location?.pathname).to.equal('/profile');
  });

  it('a password that is no longer enough is refused with the name of the passkey; a wrong one reveals nothing', async () => {
    const { passkey } = await addPasskey(on.service.issuer, await signedIn());
    await afterGrace();
    const stranger = browser();
    const page = await stranger.follow(await stranger.get(ask()));
    const wrong = await stranger.submit(page, { email: owner.email, password: 'wrong password' });
    expect(wrong.status).to.equal(401);
    for (const { html } of [page, wrong]) expect(html).not.to.include('Laptop').and.not.include('no longer enough');
    const refused = await browser().signIn(owner);
    expect(refused.status).to.equal(403);
    expect(refused.html).to.include('sign in with the passkey <bdi>Laptop</bdi>');
    const [last] = await on.service.activity.of(owner.accountId, { limit: 1 });
    expect(last?.details).to.deep.equal({ reason: 'password_alone' });
    const again = browser();
    expect((await signInWith(again, passkey)).status).to.equal(303);
    expect((await again.get('/profile')).html).not.to.include(STRONG_SIGN_IN);
  });

  it('after the grace period a password confirms no action, also if it is sent without being asked for', async () => {
    const { passkey } = await addPasskey(on.service.issuer, await signedIn());
    await afterGrace();
    const after = browser();
    await signInWith(after, passkey);
    on.clock.advance(601);
    const page = await after.submit(await after.get('/profile/api-keys'), { name: 'Late' });
    expect(page.html).to.include(said('confirm.title')).and.not.include('current_password');
    const form = page.forms.find(({ names }) => names.has('passkey'));
    const { passkey: _, ...carried } = Object.fromEntries(form?.values ?? []);
    const sent = { ...carried, current_password: owner.password };
    const alone = await after.post('/profile/api-keys', sent);
    expect(alone.html).to.include(said('confirm.title'));
    expect(await keys()).to.deep.equal([]);
    const answer = passkey.answer(await optionsFor(after, 'confirm'));
    await after.submit(page, { passkey: answer });
    expect(await keys()).to.have.length(1);
    expect((await after.get('/profile')).status).to.equal(200);
  });

  const isBlocked = async (person: Pick<Person, 'get'>): Promise<boolean> =>
    (await person.get('/profile')).location?.pathname === STRONG_SIGN_IN;
  const addOther = async (name: string): Promise<SeededPerson> =>
    addPerson(on.service, name, `${name.toLowerCase()}-${people}@example.test`);

  it('admins of an organization and owners of a client must have more than a password', async () => {
    const [admin, maker, member] = [await addOther('Ada'), await addOther('Max'), await addOther('Mo')];
    const { id } = await on.service.organizations.add({ name: `Office ${people}` });
    await on.service.memberships.setRole({ accountId: admin.accountId }, id, 'admin');
    await on.service.memberships.setRole({ accountId: member.accountId }, id, 'member');
    await on.service.clients.add({
      kind: 'confidential',
      name: 'Own',
      isNative: false,
      redirectUris: [REDIRECT_URI],
      ownerAccountId: maker.accountId,
    });
    const sessions = [await signedIn(admin), await signedIn(maker), await signedIn(member)];
    on.clock.advance(GRACE_SECONDS);
    const blocked = await Promise.all(sessions.map(isBlocked));
    expect(blocked).to.deep.equal([true, true, false]);
  });

  it('users with a passkey are not locked out while passkeys are disabled: they can link a provider', async () => {
    await addPasskey(on.service.issuer, await signedIn());
    await afterGrace();
    const { signIn } = on.service.settings;
    const settings = { signIn: { ...signIn, passkeys: false } };
    const node = await mail.start({ sharing: on.service, clock: on.clock.clock, settings });
    const person = createPerson(node.issuer);
    const page = await person.signIn(owner);
    expect(page.url.pathname).to.equal(STRONG_SIGN_IN);
    expect(page.html).to.include('value="platform"').and.not.include(said('passkey.add'));
  });

  it('the operator sees which users still need a sign-in method stronger than a password', async () => {
    const operator = operatorFor(on.service);
    const owing = async () => {
      const accounts = await valueFrom(operator, 'accounts list --owing-a-passkey');
      return accounts.map(({ email }: { email: string }) => email);
    };
    expect(await owing())
      .to.include.members([owner.email, on.seeded.other.email])
      .and.not.include(on.seeded.person.email);
    await addPasskey(on.service.issuer, await signedIn());
    expect(await owing()).not.to.include(owner.email);
  });

  const linkFor = (purpose: LinkPurpose, { accountId } = owner): Promise<string> =>
    passwordLink(on.service, { accountId }, purpose);
  const passkeysOf = ({ accountId } = owner) => on.service.passkeys.of(accountId);
  const givePasskey = async (who = owner) => (await addPasskey(on.service.issuer, await signedIn(who))).passkey;
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
    await on.signIn({ sub: member.email, email: member.email, email_verified: true });
    const provider = `provider ${on.upstream.issuer}`;
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
