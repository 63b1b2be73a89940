/** A user's passkeys: added, used to sign in and to confirm, renamed, removed. */
import { expect } from 'chai';
import { setExternalId, startWithUpstream } from '../../sign-in-upstream/service.ts';
import { eventually } from '../../support/eventually.ts';
import { startsWithMail } from '../../support/mail-server.ts';
import { authorizationUrl } from '../../support/oauth.ts';
import { createPerson } from '../../support/person.ts';
import { addPerson, removePassword, type SeededPerson } from '../../support/seed.ts';
import { startSeeded } from '../../support/seeded.ts';
import { said, textOf } from '../client-owner.ts';
import { type SignedInPerson, signedIn } from '../signed-in-person.ts';
import { addPasskey, NEW, optionsFor, SECURITY, signInWith } from './soft-passkey.ts';

describe('users can add, use, rename and remove passkeys', () => {
  const mail = startsWithMail();
  const on = startSeeded({ clock: true, on: mail.start });
  let person: SignedInPerson & SeededPerson;

  beforeEach(async () => {
    person = await signedIn(on.service, await addPerson(on.service, 'Pat'));
  });

  const log = () => on.service.activity.of(person.accountId, { limit: 10 });
  const passkeys = () => on.service.passkeys.of(person.accountId);
  const subjects = () => mail.received.filter(({ to }) => to.includes(person.email)).map(({ subject }) => subject);

  it('passkeys require user verification, are discoverable, and are bound to this host', async () => {
    const asked = await optionsFor(person, 'add');
    const handle = asked.user.id;
    expect(asked).to.deep.include({
      rp: { id: 'localhost', name: 'Gatehouse' },
      attestation: 'none',
      authenticatorSelection: {
        residentKey: 'required',
        requireResidentKey: true,
        userVerification: 'required',
      },
    });
    expect(asked.user).to.deep.equal({ id: handle, name: person.email, displayName: 'Pat' });
    // The user handle is the same for all passkeys of an account and does not reveal the account.
    expect((await optionsFor(person, 'add')).user.id).to.equal(handle);
    expect(Buffer.from(handle, 'base64url')).to.have.length(48);
    expect(handle).not.to.include(person.accountId);
    const toSignIn = await optionsFor(createPerson(on.issuer), 'sign-in');
    expect(toSignIn).to.deep.include({
      rpId: 'localhost',
      userVerification: 'required',
      allowCredentials: [],
    });
    expect(toSignIn.challenge).to.have.length(75);
  });

  it('passkeys can be added, listed and renamed, and mail announces a new one', async () => {
    const { answer } = await addPasskey(on.issuer, person, { name: '  Work laptop ' });
    const page = await person.follow(answer);
    expect(textOf(page.html)).to.match(/Passkey added.*Work laptop Synced: .* Last used Never/);
    const [added] = await passkeys();
    expect(added).to.include({ name: 'Work laptop', isSynced: true });
    const { answer: other } = await addPasskey(on.issuer, person, { name: '\u202e', lie: { flags: 5 } });
    expect(textOf((await person.follow(other)).html)).to.match(/An unknown browser On one device only/);
    const path = `${SECURITY}/passkeys/${added?.id}`;
    expect(textOf((await person.fillIn(path, { name: 'Phone' })).html)).to.include('Phone Synced');
    const nameless = await person.submit(await person.get(path), { name: ' ' });
    expect([nameless.status, textOf(nameless.html)]).to.satisfy(
      ([status, text]: [number, string]) => status === 422 && text.includes('1 to 60 visible'),
    );
    expect((await log()).map(({ action }) => action)).to.deep.equal(['passkey_added', 'passkey_added', 'signed_in']);
    expect((await person.get('/profile/activity')).html).to.include(said('action.passkey_added'));
    const wanted = Array(2).fill('A passkey was added to your Gatehouse account');
    await eventually(() => expect(subjects()).to.include.members(wanted));
    // Other users cannot see or change these passkeys.
    const stranger = await signedIn(on.service, on.seeded.other);
    expect((await stranger.get(path)).status).to.equal(404);
    expect((await stranger.send(path, { name: 'Mine' })).status).to.equal(404);
    for (const ask of [stranger.get, stranger.send]) {
      const answer = await stranger.follow(await ask(`${path}/remove`));
      expect(textOf(answer.html)).to.include(said('security.already-removed'));
    }
    expect((await passkeys()).map(({ name }) => name)).to.have.members(['Phone', 'An unknown browser']);
  });

  it('a passkey signs a user in like a password does, in a new session', async () => {
    const { passkey } = await addPasskey(on.issuer, person);
    const browser = createPerson(on.issuer);
    const session = (): string | undefined => /gate_session=([^;]+)/.exec(browser.cookieHeader('/'))?.[1];
    await browser.signIn(on.seeded.other);
    const before = session();
    const openInAnotherTab = passkey.answer(await optionsFor(browser, 'sign-in'));
    await browser.submit(await browser.get('/logout'), {});
    const path = '/profile/connections';
    const page = await browser.follow(await browser.get(path));
    const arrived = await browser.submit(page, { passkey: openInAnotherTab });
    expect(arrived.location?.pathname).to.equal(path);
    expect((await browser.get('/profile')).html).to.include(person.email);
    expect(session()).not.to.equal(before);
    const [last] = await log();
    expect(last).to.deep.include({ action: 'signed_in' });
    expect(last?.details).to.include({ method: 'passkey', passkey_name: 'Laptop' });
    expect(textOf((await browser.get('/profile/activity')).html)).to.include('Signed in with the passkey Laptop');
    expect((await passkeys())[0]?.lastUsedAt).to.deep.equal(new Date(on.clock.clock()));
    const unknown = 'We noticed a new sign-in to your Gatehouse account';
    await eventually(() => expect(subjects().filter((one) => one === unknown)).to.have.length(2));
    // From now on the browser is known to have a passkey.
    await browser.submit(await browser.get('/logout'), {});
    expect((await signInWith(browser, passkey)).status).to.equal(303);
    await addPasskey(on.issuer, browser, { name: 'Other' });
    await eventually(() => expect(subjects().filter((one) => one !== unknown)).to.have.length(2));
    expect(subjects().filter((one) => one === unknown)).to.have.length(2);
  });

  it('a passkey signs in its own user, not the previous one of the browser, also with prompt=login', async () => {
    const { passkey } = await addPasskey(on.issuer, person);
    const shared = createPerson(on.issuer);
    await shared.signIn(on.seeded.other);
    const url = authorizationUrl(on.issuer, on.clients.confidential, { prompt: 'login consent' });
    const page = await shared.follow(await signInWith(shared, passkey, { path: url }));
    expect(page.html).to.include(person.email).and.not.include(on.seeded.other.email);
  });

  it('renaming a passkey that was removed meanwhile gets an error page, even after signing in again', async () => {
    await addPasskey(on.issuer, person);
    const [passkey] = await passkeys();
    const page = await person.get(`${SECURITY}/passkeys/${passkey?.id}`);
    await on.service.database.query('DELETE FROM passkeys WHERE account_id = $1', [person.accountId]);
    await person.submit(await person.get('/logout'), {});
    await person.signIn(person);
    const answer = await person.submit(page, { name: 'Mine' });
    expect([answer.status, answer.html.includes('<main')]).to.deep.equal([404, true]);
  });

  it('a removed passkey no longer signs in; the only sign-in method cannot be removed', async () => {
    const { passkey } = await addPasskey(on.issuer, person);
    on.clock.advance(1);
    const { passkey: second } = await addPasskey(on.issuer, person, { name: 'Phone' });
    await removePassword(on.service, person);
    const [first, other] = (await passkeys()).map(({ id }) => `${SECURITY}/passkeys/${id}/remove`);
    const removed = await person.fillIn(first ?? '');
    expect(textOf(removed.html)).to.include(said('passkey.removed')).and.not.include('Laptop');
    expect(textOf(removed.html)).to.include(said('security.only-method'));
    expect(removed.html).not.to.include(other);
    const secondTab = await person.follow(await person.send(first ?? ''));
    expect(textOf(secondTab.html)).to.include(said('security.already-removed'));
    const refused = await signInWith(createPerson(on.issuer), passkey);
    expect([refused.status, refused.html.includes(said('passkey.gone'))]).to.deep.equal([401, true]);
    const page = await person.follow(await person.send(other ?? ''));
    expect(textOf(page.html)).to.include(said('security.only-method'));
    expect(await passkeys()).to.have.length(1);
    expect((await signInWith(createPerson(on.issuer), second)).status).to.equal(303);
    expect((await log()).find(({ action }) => action === 'passkey_removed')?.details).to.include({
      passkey_name: 'Laptop',
    });
    const wanted = 'A passkey was removed from your Gatehouse account';
    await eventually(() => expect(subjects()).to.include(wanted));
  });

  it('only signed-in users can add passkeys, and requests for WebAuthn options store nothing', async () => {
    const stranger = createPerson(on.issuer);
    const count = async () => {
      const rows = await on.service.database.query(
        'SELECT FROM used_challenges UNION ALL SELECT FROM accounts WHERE passkey_handle IS NOT NULL',
      );
      return rows.length;
    };
    const before = await count();
    for (const _ of [1, 2, 3]) await optionsFor(stranger, 'sign-in');
    for (const path of ['/passkey-options/confirm', '/passkey-options/add', NEW]) {
      expect((await stranger.get(path)).location?.pathname, path).to.equal('/login');
    }
    expect(await count()).to.equal(before);
  });

  it('an answered passkey challenge is stored until it expires, and then deleted', async () => {
    on.clock.advance(601);
    await on.service.clean();
    const { passkey } = await addPasskey(on.issuer, await signedIn(on.service, on.seeded.person));
    expect((await signInWith(createPerson(on.issuer), passkey)).status).to.equal(303);
    const used = async () => (await on.service.database.query('SELECT FROM used_challenges')).length;
    on.clock.advance(599);
    await on.service.clean();
    expect(await used()).to.equal(2);
    on.clock.advance(2);
    await on.service.clean();
    expect(await used()).to.equal(0);
  });

  it('disabled passkeys are on no page, and their endpoints answer 404', () =>
    on.service.withSettings({ signIn: { passkeys: false } }, async () => {
      for (const path of ['/passkey-options/sign-in', '/passkey-options/add', NEW]) {
        expect((await person.get(path)).status, path).to.equal(404);
      }
      for (const page of [await person.get(SECURITY), await createPerson(on.issuer).get('/login')]) {
        expect(page.html.toLowerCase()).not.to.include('passkey').and.not.include('webauthn');
      }
    }));
});

describe('passkeys in addition to a provider, without passwords', () => {
  const on = startWithUpstream({ provider: { match: 'external_id' }, passwords: false });
  const LINUS = { sub: 'employee-17', email: 'linus@example.test', email_verified: false };
  let accountId: string;

  before('an imported account with an external id', async () => {
    ({ id: accountId } = await on.service.accounts.add({ email: LINUS.email, name: 'Linus' }));
    await setExternalId(on.service, accountId, LINUS.sub);
    on.upstream.account = LINUS;
  });

  /** Signs in with the provider, to which the user is redirected without a question. */
  async function signInAtProvider(): Promise<ReturnType<typeof on.traveller>> {
    const person = on.traveller();
    const page = await person.travel(await person.get('/profile'));
    expect(page.url.pathname).to.equal('/profile');
    return person;
  }

  it('users of a sign-in provider can add a passkey, which the sign-in page then offers in this browser', async () => {
    const person = await signInAtProvider();
    // The provider does not say when the user authenticated, so a confirmation is required.
    const confirm = await person.submit(await person.get(NEW), { sign_in_with: 'platform' });
    const page = await person.travel(confirm);
    expect(page.html).to.include(said('passkey.create')).and.include(said('upstream.confirmed'));
    const { passkey } = await addPasskey(on.service.issuer, person);
    await person.submit(await person.get('/logout'), {});
    const login = await person.get('/login');
    expect(login.html).to.include(said('sign-in.with-passkey')).and.include('Warehouse platform');
    expect(login.html).not.to.include('name="password"').and.not.include('<span>or</span>');
    expect((await signInWith(person, passkey)).status).to.equal(303);
    expect((await person.get('/profile')).html).to.include('Linus');
    // A browser without a known passkey is redirected to the provider without a question.
    expect((await on.traveller().get('/login')).location?.origin).to.equal(on.upstream.issuer);
  });
});
