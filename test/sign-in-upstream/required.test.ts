/** sign_in.require: who could change what others reach signs in with more than a password. */
import { expect } from 'chai';
import { operatorBeside, valueFrom } from '../operator/run-operator.ts';
import { addPasskey, optionsFor, signInWith } from '../pages/passkeys/soft-passkey.ts';
import { authorizationUrl, introspect } from '../support/oauth.ts';
import { createPerson, type Page, type Person } from '../support/person.ts';
import { addPerson, passwordLink, REDIRECT_URI, type SeededPerson } from '../support/seed.ts';
import { startsOn } from '../support/service.ts';
import { startWithUpstream } from './service.ts';

const GRACE_SECONDS = 1_800;
const STRONGER = '/profile/stronger-sign-in';

describe('people with power over others', () => {
  const on = startWithUpstream({
    settings: { signIn: { require: 'passkey-or-upstream', requireGraceSeconds: GRACE_SECONDS } },
  });
  const start = startsOn();
  let owner: SeededPerson;
  let people = 0;

  beforeEach('an owner of an organization of their own', async () => {
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
  const isConsent = ({ forms }: Page): boolean => forms.some(({ names }) => names.has('decision'));
  const keys = () => on.service.apiKeys.listOf(owner.accountId);
  const afterGrace = async (): Promise<void> => {
    // It begins when they are first told.
    await signedIn();
    on.clock.advance(GRACE_SECONDS);
  };

  it('are told until when, on each page, and go on with a password meanwhile', async () => {
    const person = await signedIn();
    const page = await person.get('/profile');
    const [, until] = /From <time datetime="([^"]+)"/.exec(page.html) ?? [];
    expect(Date.parse(until ?? '')).to.equal(on.clock.clock() + GRACE_SECONDS * 1_000);
    expect(page.html).to.include(`href="${STRONGER}"`);
    on.clock.advance(100);
    const later = await (await signedIn()).get('/profile/activity');
    expect(later.html).to.include(`From <time datetime="${until}"`);
    await person.submit(await person.get('/profile/api-keys'), { name: 'Export' });
    expect(await keys()).to.have.length(1);
    expect((await person.get(STRONGER)).html).to.include('Add a passkey');
    // Who only works in an organization is asked for nothing.
    const member = await signedIn(on.seeded.person);
    expect((await member.get('/profile')).html).not.to.include(STRONGER);
    expect((await member.get(STRONGER)).location?.pathname).to.equal('/profile');
  });

  it('do nothing in a session of before, once the grace is over; what acts for them works on', async () => {
    const person = await signedIn();
    const form = await person.get('/profile/api-keys');
    const { accountId } = owner;
    const key = { accountId, name: 'Export', expiresInDays: undefined };
    const { value } = await on.service.apiKeys.add(key, { address: '127.0.0.1', browser: '' });
    const consent = await person.follow(await person.get(ask()));
    expect(isConsent(consent)).to.equal(true);
    on.clock.advance(GRACE_SECONDS - 1);
    expect((await person.get('/profile')).status).to.equal(200);
    on.clock.advance(1);
    for (const page of [
      await person.get('/profile'),
      await person.get('/profile/organizations'),
      await person.submit(form, { name: 'Late' }),
      await person.submit(consent, { decision: 'approve' }),
      await person.follow(await person.get(ask())),
    ]) {
      expect((page.location ?? page.url).pathname, page.html).to.equal(STRONGER);
    }
    expect(await keys()).to.have.length(1);
    const { body } = await introspect(on.service.issuer, on.seeded.clients.resourceServer, value);
    expect(body.active).to.equal(true);
    const { id } = on.seeded.clients.otherConfidential;
    expect(await on.service.connections.find(owner.accountId, id)).to.equal(undefined);
    expect((await person.get('/logout')).status).to.equal(200);
  });

  it('reach with a password only where they add a passkey, and then what waited', async () => {
    const before = await signedIn();
    await afterGrace();
    const person = browser();
    const page = await person.follow(await person.get(ask()));
    const wrong = await person.submit(page, { email: owner.email, password: 'wrong password' });
    expect(wrong.status).to.equal(401);
    expect(wrong.html).not.to.include('passkey Laptop').and.not.include('no longer enough');
    const held = await person.follow(
      await person.submit(page, { email: owner.email, password: owner.password }),
    );
    expect(held.url.pathname).to.equal(STRONGER);
    expect((await person.get('/profile/oauth-clients')).location?.pathname).to.equal(STRONGER);
    const { passkey, answer } = await addPasskey(on.service.issuer, person);
    expect(isConsent(await person.follow(answer)), answer.html).to.equal(true);
    expect((await person.get('/profile/oauth-clients')).status).to.equal(200);

    // With a password alone nobody adds another one now, in a session of before neither.
    for (const path of ['/profile/security/passkeys/new', '/profile/security/ways']) {
      expect((await before.get(path)).location?.pathname).to.equal(STRONGER);
    }
    expect((await before.get(STRONGER)).html)
      .to.include('Laptop')
      .and.not.include('Add a passkey');
    const refused = await browser().signIn(owner);
    expect(refused.status).to.equal(403);
    expect(refused.html).to.include('sign in with the passkey Laptop');
    const [last] = await on.service.activity.of(owner.accountId, { limit: 1 });
    expect(last?.details).to.deep.equal({ reason: 'password_alone' });
    const again = browser();
    expect((await signInWith(again, passkey)).status).to.equal(303);
    expect((await again.get('/profile')).html).not.to.include(STRONGER);
  });

  it('or link a provider, which lets them in from then on', async () => {
    await afterGrace();
    const person = on.traveller();
    const held = await person.signIn(owner);
    expect(held.url.pathname).to.equal(STRONGER);
    expect(held.headers.get('content-security-policy')).not.to.include('form-action');
    const olga = { sub: `olga-${people}` };
    on.upstream.account = olga;
    const linked = await person.travel(await person.submit(held, { link_with: 'platform' }));
    expect(linked.url.pathname).to.equal('/profile');
    expect((await browser().signIn(owner)).html).to.include('sign in with Warehouse platform');
    expect((await on.signIn(olga)).html)
      .to.include('Olga Owner')
      .and.not.include(STRONGER);
  });

  it('confirm that it is them with more than a password, and stay who came in by more', async () => {
    const { passkey } = await addPasskey(on.service.issuer, await signedIn());
    const inByPasskey = async (): Promise<Person> => {
      const person = browser();
      await signInWith(person, passkey);
      on.clock.advance(601);
      return person;
    };
    const askFor = async (person: Person, name: string): Promise<Page> =>
      person.submit(await person.get('/profile/api-keys'), { name });
    const { password } = owner;

    const before = await inByPasskey();
    const asked = await askFor(before, 'Export');
    expect(asked.html).to.include('Confirm it is you').and.include('current_password');
    await before.submit(asked, { current_password: password });
    expect(await keys()).to.have.length(1);
    const again = await before.follow(await before.get(ask({ prompt: 'login consent' })));
    await before.follow(await before.submit(again, { email: owner.email, password }));
    expect((await before.get('/profile')).html).not.to.include(STRONGER);

    on.clock.advance(GRACE_SECONDS);
    const after = await inByPasskey();
    const page = await askFor(after, 'Late');
    expect(page.html).to.include('Confirm it is you').and.not.include('current_password');
    const form = page.forms.find(({ names }) => names.has('passkey'));
    const { passkey: _, ...carried } = Object.fromEntries(form?.values ?? []);
    const sent = { ...carried, current_password: password };
    const alone = await after.post('/profile/api-keys', sent);
    expect(alone.html).to.include('Confirm it is you');
    expect(await keys()).to.have.length(1);
    const answer = passkey.answer(await optionsFor(after, 'confirm'));
    await after.submit(page, { passkey: answer });
    expect(await keys()).to.have.length(2);
    expect((await after.get('/profile')).status).to.equal(200);
  });

  const isHeldBack = async (person: Pick<Person, 'get'>): Promise<boolean> =>
    (await person.get('/profile')).location?.pathname === STRONGER;
  const addMore = async (name: string): Promise<SeededPerson> =>
    addPerson(on.service, name, `${name.toLowerCase()}-${people}@example.test`);

  it('are also who only administers an organization, and who only owns a client', async () => {
    const [admin, maker, member] = [
      await addMore('Ada'),
      await addMore('Max'),
      await addMore('Mo'),
    ];
    const { id } = await on.service.organizations.add({ name: `Office ${people}` });
    await on.service.memberships.setRole({ accountId: admin.accountId }, id, 'admin');
    await on.service.memberships.setRole({ accountId: member.accountId }, id, 'member');
    await on.service.clients.add({
      ...{ kind: 'confidential', name: 'Own', isNative: false, redirectUris: [REDIRECT_URI] },
      ownerAccountId: maker.accountId,
    });
    const sessions = [await signedIn(admin), await signedIn(maker), await signedIn(member)];
    on.clock.advance(GRACE_SECONDS);
    const heldBack = await Promise.all(sessions.map(isHeldBack));
    expect(heldBack).to.deep.equal([true, true, false]);
  });

  it('are asked where all they have is a link with a provider that was removed, and listed', async () => {
    await on.service.database.transaction((tx) =>
      on.service.identities.link(
        owner.accountId,
        { issuer: 'https://gone.example', subject: owner.email },
        tx,
      ),
    );
    const owing = await valueFrom(operatorBeside(on.service), 'accounts list --owing-a-passkey');
    expect(owing.map(({ email }: { email: string }) => email)).to.include(owner.email);
    await afterGrace();
    const held = await signedIn();
    expect(await isHeldBack(held)).to.equal(true);
    expect((await held.get(STRONGER)).html).to.include('Add a passkey');
  });

  it('are not locked out by a passkey while passkeys are off: they link a provider', async () => {
    await addPasskey(on.service.issuer, await signedIn());
    await afterGrace();
    const { signIn } = on.service.settings;
    const settings = { signIn: { ...signIn, passkeys: false } };
    const node = await start({ beside: on.service, clock: on.clock.clock, settings });
    const person = createPerson(node.issuer);
    const page = await person.signIn(owner);
    expect(page.url.pathname).to.equal(STRONGER);
    expect(page.html).to.include('value="platform"').and.not.include('Add a passkey');
  });

  it('come back with the operator’s link where no mail is sent: no other one could say who asks', async () => {
    await addPasskey(on.service.issuer, await signedIn());
    const open = async (purpose: 'forgotten' | 'invitation') =>
      browser().open(await passwordLink(on.service, owner, purpose));
    const mailed = await open('forgotten');
    expect(mailed.html).to.include('ask your administrator for a link');
    expect(mailed.forms.map(({ action }) => action)).not.to.include('/password/recovery');
    expect((await open('invitation')).html).to.include('Also remove <bdi>the passkey Laptop</bdi>');
  });

  it('are named to the operator as long as they have nothing but a password', async () => {
    const operator = operatorBeside(on.service);
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
