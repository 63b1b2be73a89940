/** sign_in.require: users who can change what others reach need more than a password. */
import { expect } from 'chai';
import { operatorFor, valueFrom } from '../operator/run-operator.ts';
import { said } from '../pages/client-owner.ts';
import { addPasskey, optionsFor, signInWith } from '../pages/passkeys/soft-passkey.ts';
import { authorizationUrl } from '../support/oauth.ts';
import { createPerson, type Page, type Person } from '../support/person.ts';
import { addPerson, REDIRECT_URI, type SeededPerson } from '../support/seed.ts';
import { startsOn } from '../support/service.ts';
import { startWithUpstream } from './service.ts';

const GRACE_SECONDS = 1_800;
const STRONG_SIGN_IN = '/profile/stronger-sign-in';

describe('users who administer an organization or own a client', () => {
  const on = startWithUpstream({
    settings: { signIn: { require: 'passkey-or-upstream', requireGraceSeconds: GRACE_SECONDS } },
  });
  const start = startsOn();
  let owner: SeededPerson;
  let people = 0;

  beforeEach('an owner of a new organization', async () => {
    people += 1;
    owner = await addPerson(on.service, 'Olga Owner', `olga-${people}@example.test`);
    const { id } = await on.service.organizations.add({ name: `Storage ${people}` });
    await on.service.memberships.setRole({ accountId: owner.accountId }, id, 'owner');
  });

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

  it('after the grace period users confirm actions with a passkey; a session started with a passkey stays strong', async () => {
    const { passkey } = await addPasskey(on.service.issuer, await signedIn());
    const signInByPasskey = async (): Promise<Person> => {
      const person = browser();
      await signInWith(person, passkey);
      on.clock.advance(601);
      return person;
    };
    const askFor = async (person: Person, name: string): Promise<Page> =>
      person.submit(await person.get('/profile/api-keys'), { name });
    const { password } = owner;

    const before = await signInByPasskey();
    const asked = await askFor(before, 'Export');
    expect(asked.html).to.include(said('confirm.title')).and.include('current_password');
    await before.submit(asked, { current_password: password });
    expect(await keys()).to.have.length(1);
    const again = await before.follow(await before.get(ask({ prompt: 'login consent' })));
    await before.follow(await before.submit(again, { email: owner.email, password }));
    expect((await before.get('/profile')).html).not.to.include(STRONG_SIGN_IN);

    on.clock.advance(GRACE_SECONDS);
    const after = await signInByPasskey();
    const page = await askFor(after, 'Late');
    expect(page.html).to.include(said('confirm.title')).and.not.include('current_password');
    const form = page.forms.find(({ names }) => names.has('passkey'));
    const { passkey: _, ...carried } = Object.fromEntries(form?.values ?? []);
    const sent = { ...carried, current_password: password };
    const alone = await after.post('/profile/api-keys', sent);
    expect(alone.html).to.include(said('confirm.title'));
    expect(await keys()).to.have.length(1);
    const answer = passkey.answer(await optionsFor(after, 'confirm'));
    await after.submit(page, { passkey: answer });
    expect(await keys()).to.have.length(2);
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
    const node = await start({ sharing: on.service, clock: on.clock.clock, settings });
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
});
