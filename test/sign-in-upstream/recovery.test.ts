/** Account recovery by a mailed link, an invitation or a provider, and the access each ends. */
import { expect } from 'chai';
import type { LinkPurpose } from '../../src/accounts/password-links/password-links.ts';
import { said } from '../pages/client-owner.ts';
import { addPasskey } from '../pages/passkeys/soft-passkey.ts';
import { outcomeOf } from '../provider/authorization-outcome.ts';
import { partnerTokens } from '../provider/partner-tokens.ts';
import { eventually } from '../support/eventually.ts';
import { startsWithMail } from '../support/mail-server.ts';
import { authorizationUrl } from '../support/oauth.ts';
import { createPerson, isSignedIn, type Page, type Person } from '../support/person.ts';
import { addPerson, passwordLink, type SeededPerson } from '../support/seed.ts';
import type { Traveller, UpstreamAccount } from '../support/upstream.ts';
import { startWithUpstream } from './service.ts';

const SECURITY = '/profile/security';
const REMOVE = `${SECURITY}/ways/remove`;
const NEW_PASSWORD = 'eight blue pallets, stacked';

describe('an account to which an attacker had access', () => {
  const mail = startsWithMail();
  const on = startWithUpstream({ provider: { label: 'Platform & Co' }, start: mail.start });
  let person: SeededPerson;
  let atProvider: UpstreamAccount;

  beforeEach('a user with a password and a linked provider', async () => {
    person = await addPerson(on.service, 'Pat');
    atProvider = { sub: person.email, email: person.email, email_verified: true };
    await on.signIn(atProvider);
  });

  const linkFor = (purpose: LinkPurpose, { accountId } = person): Promise<string> =>
    passwordLink(on.service, { accountId }, purpose);
  const partner = (browser?: Person) => partnerTokens(on.service.issuer, { ...on.seeded, person }, browser);
  const isActive = (token: string) => partner().isActive(token);
  const mailAbout = async (what: string): Promise<string> => (await mail.mailTo(person.email, what)).text;

  /** Creates everything that an attacker could create in the account. */
  async function attackAccount() {
    const { confidential } = on.seeded.clients;
    const { issuer } = on.service;
    const browser = createPerson(issuer);
    const { accessToken } = await partner(browser).tokens(confidential);
    const keys = await browser.get('/profile/api-keys');
    const made = await browser.follow(await browser.submit(keys, { name: 'Mine' }));
    const [, apiKey = ''] = /data-secret[^>]*>([^<]+)</.exec(made.html) ?? [];
    const again = authorizationUrl(issuer, confidential, { prompt: 'consent' });
    await addPasskey(issuer, browser, { name: 'My phone' });
    return {
      browser,
      accessToken,
      apiKey,
      // Create the link last: the passkey and the linked identity invalidate open one-time links.
      link: await linkFor('forgotten'),
      consent: await browser.follow(await browser.get(again)),
    };
  }

  const RECOVERIES: Readonly<Record<string, () => Promise<{ back: Traveller; form: Page }>>> = {
    'a mailed link': () => opened(linkFor('forgotten')),
    'an invitation of the operator': () => opened(linkFor('invitation')),
    async 'the provider'() {
      const back = on.traveller();
      await on.signIn(atProvider, back);
      const page = await back.get(SECURITY);
      // Expect no form-action, because Chromium applies it to the redirect to the provider, too.
      expect(page.headers.get('content-security-policy')).not.to.include('form-action');
      const there = await back.submit(page, { confirm_with: 'platform' });
      expect(there.location?.searchParams.get('max_age')).to.equal('0');
      return { back, form: await back.travel(there) };
    },
  };
  async function opened(path: Promise<string>) {
    const back = on.traveller();
    return { back, form: await back.open(await path) };
  }

  /** A mailed link removes no passkey: the user does so on the security page. */
  async function removeAfterSignIn(passkey: string): Promise<void> {
    const user = createPerson(on.service.issuer);
    await user.signIn({ ...person, password: NEW_PASSWORD });
    await user.submit(await user.get(`${SECURITY}/passkeys/${passkey}/remove`), {});
  }

  for (const [method, arrive] of Object.entries(RECOVERIES)) {
    it(`an account is recovered by ${method}, and nothing that the attacker created works afterwards`, async () => {
      const attack = await attackAccount();
      const { back, form } = await arrive();
      expect(form.html).to.include('Your connected app').and.include('Platform &amp; Co');
      expect(form.html).to.include('Passkey <bdi>My phone</bdi>');
      const [{ id: passkey = '' } = {}] = await on.service.passkeys.of(person.accountId);
      const all = { end_connections: 'yes', revoke_api_keys: 'yes', remove_way: passkey };
      const set = await back.submit(form, { new_password: NEW_PASSWORD, ...all });
      const after = await back.follow(set);
      if (method === 'an invitation of the operator') expect(after.url.pathname).to.equal('/profile');
      else expect(after.html).to.include(said('password.was-set'));

      expect(await isSignedIn(attack.browser)).to.equal(false);
      if (method === 'a mailed link') await removeAfterSignIn(passkey);
      expect(await on.service.passkeys.of(person.accountId)).to.deep.equal([]);
      expect((await attack.browser.get(attack.link)).status).to.equal(410);
      expect(await isActive(attack.accessToken)).to.equal(false);
      await eventually(async () => expect(await isActive(attack.apiKey)).to.equal(false));
      const approved = await attack.browser.submit(attack.consent, { decision: 'approve' });
      expect(await outcomeOf(attack.browser, approved)).to.equal('sign-in');
      expect((await createPerson(on.service.issuer).signIn(person)).status).to.equal(401);
      const ours = { ...person, password: NEW_PASSWORD };
      expect((await createPerson(on.service.issuer).signIn(ours)).url.pathname).to.equal('/profile');

      const log = await on.service.activity.of(person.accountId, { limit: 30 });
      const { details } = log.find(({ action }) => action === 'password_changed') ?? {};
      expect(details?.purpose).to.be.oneOf(['forgotten', 'invitation', 'confirmed']);
      expect(log.map(({ action }) => action)).to.include.members(['disconnected', 'api_key_revoked']);
      // The mail lists the sign-in methods that remain, because an attacker may have added them.
      expect(await mailAbout('one-time link')).to.include('Sign-in with Platform & Co, added ');
      expect(await mailAbout('A passkey was removed')).to.include('My phone');
    });
  }

  it('a signed-in user can link and unlink a provider; either ends every other session', async () => {
    const owner = on.traveller();
    await owner.signIn(person);
    const elsewhere = on.traveller();
    await on.signIn(atProvider, elsewhere);
    const [{ id = '' } = {}] = on.service.settings.signIn.providers;
    const value = `provider ${on.upstream.issuer}`;
    const query = new URLSearchParams({ remove_way: value });
    expect((await owner.get(SECURITY)).html).to.include(`href="${REMOVE}?${query}"`);
    const asked = await owner.get(`${REMOVE}?${query}`);
    expect(asked.html).to.include('Remove <bdi>Platform &amp; Co</bdi>?');
    expect([await isSignedIn(owner), await isSignedIn(elsewhere)]).to.deep.equal([true, true]);
    // The provider sends no auth_time, so the user must sign in there again; then the page repeats its question.
    const confirm = await elsewhere.submit(await elsewhere.get(`${REMOVE}?${query}`), {
      remove_way: value,
    });
    const again = await elsewhere.travel(await elsewhere.submit(confirm, { sign_in_with: id }));
    expect(again.html).to.include('Remove <bdi>Platform &amp; Co</bdi>?');
    const gone = await owner.follow(await owner.submit(asked, { remove_way: value }));
    expect(gone.html).to.include('was removed. All your other browsers were signed out');
    expect([await isSignedIn(owner), await isSignedIn(elsewhere)]).to.deep.equal([true, false]);
    on.upstream.account = { sub: `another ${person.email}` };
    const back = await owner.travel(await owner.submit(gone, { link_with: id }));
    expect(back.html).to.include('You can sign in with <bdi>Platform &amp; Co</bdi> from now on.');
    const [link] = await on.service.identities.listOf(person.accountId);
    expect(link?.subject).to.equal(`another ${person.email}`);
    await mailAbout('sign-in method was added');
    // The link of another account is not moved.
    const other = createPerson(on.service.issuer);
    await other.signIn(on.seeded.other);
    const traveller = on.traveller();
    await traveller.signIn(on.seeded.other);
    const taken = await traveller.travel(await traveller.submit(await traveller.get(SECURITY), { link_with: id }));
    expect(taken.html).to.include(said('upstream.linked-already-heading'));
    expect(await on.service.identities.listOf(on.seeded.other.accountId)).to.deep.equal([]);
  });
});

describe('a user without a password regains access if the provider no longer recognizes the user', () => {
  const on = startWithUpstream({ passwords: false, hasSecond: true });

  it("a user whose provider fails signs in once with an operator's invitation and links another provider", async () => {
    const GRACE = { sub: 'grace', email: 'grace@example.test', email_verified: true };
    const former = on.traveller();
    await on.signIn(GRACE, former);
    // Simulate a new subject at the provider, which does not match the existing link.
    expect((await on.signIn({ ...GRACE, sub: 'grace again' })).html).to.include('linked with another');
    const { accountId } = on.seeded.person;
    const make = () => passwordLink(on.service, { accountId }, 'invitation');
    const [link, waiting] = [await make(), await make()];

    const person = on.traveller();
    const form = await person.open(link);
    expect(form.html).to.include('Sign in with this link').and.not.include('new_password');
    const security = await person.follow(await person.submit(form, {}));
    expect(security.html).to.include(said('password.signed-in')).and.include('Grace Person');
    expect((await former.get('/profile')).status).to.equal(303);
    for (const expired of [link, waiting]) {
      expect((await on.traveller().get(expired)).status).to.equal(410);
    }
    const [last] = await on.service.activity.of(accountId, { limit: 1 });
    expect(last?.details).to.deep.equal({ method: 'link', purpose: 'invitation' });

    // The only sign-in method cannot be removed until there is another.
    expect(security.html).not.to.include(REMOVE);
    on.second.account = { sub: 'grace' };
    const linked = await person.travel(await person.submit(security, { link_with: 'partner' }));
    expect(linked.html).to.include('You can sign in with <bdi>Partner login</bdi> from now on.');
    const query = new URLSearchParams({ remove_way: `provider ${on.upstream.issuer}` });
    await person.submit(await person.get(`${REMOVE}?${query}`), {});
    expect((await on.signIn({ ...GRACE, sub: 'grace again' })).html).to.include('Grace Person');
  });
});
