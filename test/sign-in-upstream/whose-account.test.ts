/** The account to which a sign-in with a provider leads: linked once, never moved or duplicated. */
import { expect } from 'chai';
import { SessionEnded } from '../../src/accounts/activity/activity.ts';
import { said } from '../pages/client-owner.ts';
import { GRACE, setExternalId, startWithUpstream } from './service.ts';

describe('a user who signs in with a provider never gets the account of another user', () => {
  const on = startWithUpstream();
  const accounts = async () => (await on.service.accounts.list()).items.length;
  const linked = () => on.service.database.query('SELECT FROM account_identities');
  const linksOf = (id: string) => on.service.identities.listOf(id);

  before('an account whose address contains a k', () =>
    on.service.accounts.add({ email: 'kim@example.test', name: 'Kim' }),
  );

  const STRANGERS: Readonly<Record<string, unknown>> = {
    'that is not verified': { email_verified: false },
    'whose email_verified is not a boolean': { email_verified: 'true' },
    'without email_verified': { email_verified: undefined },
    // An address that only Unicode folding makes equal: for a mail server these are two mailboxes.
    'that only looks the same': { email: 'ɢrace@example.test' },
    'with an invisible soft hyphen': { email: 'grace@ex\u00adample.test' },
    'in full-width letters': { email: 'ｇrace@example.test' },
    // NFC turns the Kelvin sign (U+212A) into a plain K.
    'with a Kelvin sign instead of a K': { email: '\u212Aim@example.test' },
  };
  it('if the provider has not verified the email address, the page says so, even if no account has this address', async () => {
    for (const email of [GRACE.email, 'nobody@example.test']) {
      const page = await on.signIn({ sub: 'unverified', email, email_verified: false });
      expect(page.status).to.equal(403);
      expect(page.html).to.include(said('upstream.unverified-heading')).and.not.include('no account');
    }
    const logged = on.service.logLines.filter((text) => text.includes('"subject":"unverified"'));
    expect(logged).to.have.lengthOf(2);
    for (const text of logged) expect(text).to.include('"reason":"unverified"');
  });

  for (const [which, claims] of Object.entries(STRANGERS)) {
    it(`a user gets no account for an address ${which}`, async () => {
      const page = await on.signIn({ ...GRACE, sub: 'stranger', ...(claims as object) });
      expect(page.status).to.equal(403);
      expect(await linked()).to.deep.equal([]);
    });
  }

  it("a provider's user whose account is suspended cannot sign in, and gets no link", async () => {
    const { accountId } = on.seeded.person;
    await on.service.accounts.suspend(accountId);
    const page = await on.signIn(GRACE);
    expect(page.status).to.equal(403);
    expect(page.html).to.include(said('upstream.suspended-heading'));
    expect(await linksOf(accountId)).to.deep.equal([]);
    await on.service.accounts.resume(accountId);
    expect((await on.signIn(GRACE)).html).to.include('Grace Person');
    await on.service.accounts.suspend(accountId);
    expect((await on.signIn(GRACE)).status).to.equal(403);
    await on.service.accounts.resume(accountId);
  });

  it('a user gets no new sign-in method while the account is being suspended', async () => {
    const { accountId } = on.seeded.other;
    const { database, identities, passkeys } = on.service;
    // Bypass this node's cache, as if another node suspended the account just after it was read.
    await database.query('UPDATE accounts SET suspended_at = now() WHERE id = $1', [accountId]);
    const identity = { issuer: on.upstream.issuer, subject: 'late' };
    const linking = database.transaction((tx) => identities.link(accountId, identity, tx));
    expect(await linking).to.equal('taken');
    const passkey = { credentialId: 'late', publicKey: 'key', counter: 0, transports: [] };
    const adding = passkeys.add({
      ...passkey,
      accountId,
      name: 'Late',
      maySync: false,
      isSynced: false,
      challenge: { text: 'asked before', seconds: 60 },
      requireMayAdd: async () => {},
      origin: { address: '192.0.2.9', browser: 'Firefox', session: { uid: 'theirs', generation: 1 } },
    });
    expect(await adding.catch((error) => error)).to.be.instanceOf(SessionEnded);
    expect(await linksOf(accountId)).to.deep.equal([]);
    expect(await passkeys.of(accountId)).to.deep.equal([]);
    await on.service.accounts.resume(accountId);
  });

  it('a user never gets the account of another subject, whatever email address the provider sends', async () => {
    const { accountId } = on.seeded.person;
    // Simulate that the provider gave the address to another user.
    const page = await on.signIn({ ...GRACE, sub: 'the next Grace' });
    expect(page.status).to.equal(403);
    expect(page.html).to.include('linked with another account');
    expect((await linksOf(accountId)).map(({ subject }) => subject)).to.deep.equal([GRACE.sub]);
    const [last] = await on.service.activity.of(accountId, { limit: 1 });
    expect(last).to.deep.include({ action: 'sign_in_refused' });
    expect(last?.details).to.include({ reason: 'taken', subject: 'the next Grace' });
  });

  it('parallel first sign-ins with a provider create one link', async () => {
    const oscar = { sub: 'oscar', email: 'oscar@example.test', email_verified: true };
    on.upstream.account = oscar;
    const people = Array.from({ length: 5 }, () => on.traveller());
    const pages = await Promise.all(people.map((person) => on.signIn(oscar, person)));
    for (const page of pages) expect(page.html).to.include('Oscar Other');
    expect(await linksOf(on.seeded.other.accountId)).to.have.lengthOf(1);
    expect(await accounts()).to.equal(3);
  });
});

describe('a provider may send an external id as a number if the number is exact', () => {
  const on = startWithUpstream({ provider: { match: 'external_id', accountClaim: 'emp' } });
  const signInWith = (emp: string) => {
    on.upstream.lie = { text: (json) => json.replace(/}$/, `,"emp":${emp}}`) };
    return on.signIn({ sub: `employee ${emp}`, name: 'Employee' });
  };

  before('accounts whose ids a rounded number could match', async () => {
    for (const [name, externalId] of [
      ['Anna Arnold', '9007199254740992'],
      ['Zoe Zero', '0'],
      ['Nina Number', '17'],
    ] as const) {
      const email = `${externalId}@example.test`;
      const { id } = await on.service.accounts.add({ email, name });
      await setExternalId(on.service, id, externalId);
    }
  });

  for (const emp of ['9007199254740993', '9007199254740992', '-0', '17.5', '1e400', 'true', '[17]']) {
    it(`an external id that the provider sends as ${emp} is refused, and the log contains the reason`, async () => {
      const page = await signInWith(emp);
      expect(page.status).to.equal(403);
      expect(page.html).to.include('does not prove who you are');
      const log = on.service.logLines.slice(-5).join();
      expect(log).to.include('the claim emp is neither a text nor');
      const links = await on.service.database.query('SELECT FROM account_identities');
      expect(links).to.have.lengthOf(0);
    });
  }

  it('an external id is accepted as an exact number, and as a string', async () => {
    expect((await signInWith('17')).html).to.include('Nina Number');
    expect((await signInWith('"9007199254740992"')).html).to.include('Anna Arnold');
  });
});
