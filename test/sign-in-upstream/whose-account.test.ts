/** Whose account somebody comes in with: linked once, never moved, never a second one. */
import { expect } from 'chai';
import { SessionEnded } from '../../src/accounts/activity/activity.ts';
import { GRACE, startWithUpstream } from './service.ts';

describe('somebody who comes from a provider', () => {
  const on = startWithUpstream();
  const accounts = async () => (await on.service.accounts.list()).items.length;
  const linked = () => on.service.database.query('SELECT FROM account_identities');
  const linksOf = (id: string) => on.service.identities.listOf(id);

  before('an account whose address has a k', () =>
    on.service.accounts.add({ email: 'kim@example.test', name: 'Kim' }),
  );

  const STRANGERS: Readonly<Record<string, unknown>> = {
    'not verified': { email_verified: false },
    'verified in other words': { email_verified: 'true' },
    'of which nobody says that it is verified': { email_verified: undefined },
    // Folded it is the same; to a mail server it is another mailbox.
    'that only looks the same': { email: 'ɢrace@example.test' },
    'with a letter that folds to one of it': { email: 'grace@ex\u00adample.test' },
    'in full-width letters': { email: 'ｇrace@example.test' },
    // NFC makes a plain K of the Kelvin sign.
    'with a letter that is normalized to one of it': { email: '\u212Aim@example.test' },
  };
  it('reads that the provider has not verified the address, with and without an account', async () => {
    for (const email of [GRACE.email, 'nobody@example.test']) {
      const page = await on.signIn({ sub: 'unverified', email, email_verified: false });
      expect(page.status).to.equal(403);
      expect(page.html)
        .to.include('Your email address is not verified')
        .and.not.include('no account');
    }
    const said = on.service.logLines.filter((text) => text.includes('"subject":"unverified"'));
    expect(said).to.have.lengthOf(2);
    for (const text of said) expect(text).to.include('"reason":"unverified"');
  });

  for (const [which, claims] of Object.entries(STRANGERS)) {
    it(`is nobody by an address ${which}`, async () => {
      const page = await on.signIn({ ...GRACE, sub: 'stranger', ...(claims as object) });
      expect(page.status).to.equal(403);
      expect(await linked()).to.deep.equal([]);
    });
  }

  it('stays out while the account is suspended, and gets no link', async () => {
    const { accountId } = on.seeded.person;
    await on.service.accounts.suspend(accountId);
    const page = await on.signIn(GRACE);
    expect(page.status).to.equal(403);
    expect(page.html).to.include('Your account is suspended');
    expect(await linksOf(accountId)).to.deep.equal([]);
    await on.service.accounts.resume(accountId);
    expect((await on.signIn(GRACE)).html).to.include('Grace Person');
    await on.service.accounts.suspend(accountId);
    expect((await on.signIn(GRACE)).status).to.equal(403);
    await on.service.accounts.resume(accountId);
  });

  it('gets no way to sign in at the moment in which the account is suspended', async () => {
    const { accountId } = on.seeded.other;
    const { database, identities, passkeys } = on.service;
    // Written past this node, as by another one just after this one read the account.
    await database.query('UPDATE accounts SET suspended_at = now() WHERE id = $1', [accountId]);
    const identity = { issuer: on.upstream.issuer, subject: 'late' };
    const linking = database.transaction((tx) => identities.link(accountId, identity, tx));
    expect(await linking).to.equal('taken');
    const passkey = { credentialId: 'late', publicKey: 'key', counter: 0, transports: [] };
    const adding = passkeys.add({
      ...passkey,
      ...{ accountId, name: 'Late', aaguid: '', maySync: false, isSynced: false },
      challenge: { text: 'asked before', seconds: 60 },
      origin: {
        address: '192.0.2.9',
        browser: 'Firefox',
        session: { uid: 'theirs', generation: 1 },
      },
    });
    expect(await adding.catch((error) => error)).to.be.instanceOf(SessionEnded);
    expect(await linksOf(accountId)).to.deep.equal([]);
    expect(await passkeys.of(accountId)).to.deep.equal([]);
    await on.service.accounts.resume(accountId);
  });

  it('is not the same as another subject of that provider, whatever its address says', async () => {
    const { accountId } = on.seeded.person;
    // The address was given to somebody else there.
    const page = await on.signIn({ ...GRACE, sub: 'the next Grace' });
    expect(page.status).to.equal(403);
    expect(page.html).to.include('linked with another account');
    expect((await linksOf(accountId)).map(({ subject }) => subject)).to.deep.equal([GRACE.sub]);
    const [last] = await on.service.activity.of(accountId, { limit: 1 });
    expect(last).to.deep.include({ action: 'sign_in_refused' });
    expect(last?.details).to.include({ reason: 'taken', subject: 'the next Grace' });
  });

  it('gets one link, however many sign in at once', async () => {
    const oscar = { sub: 'oscar', email: 'oscar@example.test', email_verified: true };
    on.upstream.account = oscar;
    const people = Array.from({ length: 5 }, () => on.traveller());
    const pages = await Promise.all(people.map((person) => on.signIn(oscar, person)));
    for (const page of pages) expect(page.html).to.include('Oscar Other');
    expect(await linksOf(on.seeded.other.accountId)).to.have.lengthOf(1);
    expect(await accounts()).to.equal(3);
  });
});

describe('somebody without an account, where accounts are opened', () => {
  const on = startWithUpstream({ provider: { create: true, match: 'none' } });
  const accounts = async () => (await on.service.accounts.list()).items.length;
  const NEW = { sub: 'new', email: 'new@example.test', email_verified: true, name: 'Nora New' };

  it('gets one, without any access, however many sign in at once', async () => {
    const people = Array.from({ length: 4 }, () => on.traveller());
    const pages = await Promise.all(people.map((person) => on.signIn(NEW, person)));
    for (const page of pages) expect(page.html).to.include('Nora New');
    const account = await on.service.accounts.findByEmail(NEW.email);
    const id = account?.id ?? '';
    expect(await on.service.access.accessOf({ accountId: id })).to.deep.equal([]);
    expect(await on.service.identities.listOf(id)).to.have.lengthOf(1);
    expect(await accounts()).to.equal(3);
  });

  it('gets none by an address that is not verified, or that somebody has', async () => {
    const unverified = { ...NEW, sub: 'two', email: 'two@example.test', email_verified: false };
    const refused = await on.signIn(unverified);
    expect(refused.status).to.equal(403);
    expect(refused.html).to.include('Your email address is not verified');
    expect((await on.signIn({ ...GRACE, sub: 'three' })).status).to.equal(403);
    // Normalized each is an address that the provider did not verify; or mail would change it.
    for (const email of ['\u212Aai@example.test', ' ned@example.test', 'ned<x@example.test']) {
      expect((await on.signIn({ ...NEW, sub: 'four', email })).status, email).to.equal(403);
    }
    expect(await accounts()).to.equal(3);
  });

  it('gets its address for a name, where the name claims to be somebody else', async () => {
    for (const [sub, name] of [
      ['service', 'Gatehouse Security'],
      ['organization', 'N\u043erthern L\u043egistics'],
    ] as const) {
      const email = `${sub}@example.test`;
      await on.signIn({ sub, email, email_verified: true, name });
      expect(await on.service.accounts.findByEmail(email)).to.include({ name: email });
    }
  });
});

describe('an external id that a provider sends as a number', () => {
  const on = startWithUpstream({ provider: { match: 'external_id', accountClaim: 'emp' } });
  const signInWith = (emp: string) => {
    on.upstream.lie = { text: (json) => json.replace(/}$/, `,"emp":${emp}}`) };
    return on.signIn({ sub: `employee ${emp}`, name: 'Employee' });
  };

  before('people whose ids a rounded number could name', async () => {
    for (const [name, externalId] of [
      ['Anna Arnold', '9007199254740992'],
      ['Zoe Zero', '0'],
      ['Nina Number', '17'],
    ]) {
      const email = `${externalId}@example.test`;
      const { id } = await on.service.accounts.add({ email, name: name ?? '' });
      const sql = 'UPDATE accounts SET external_id = $1 WHERE id = $2';
      await on.service.database.query(sql, [externalId, id]);
      on.service.accounts.forget(id);
    }
  });

  for (const emp of [
    '9007199254740993',
    '9007199254740992',
    '-0',
    '17.5',
    '1e400',
    'true',
    '[17]',
  ]) {
    it(`lets nobody in as ${emp}, and the log says why`, async () => {
      const page = await signInWith(emp);
      expect(page.status).to.equal(403);
      expect(page.html).to.include('does not prove who you are');
      const log = on.service.logLines.slice(-5).join();
      expect(log).to.include('its claim emp is neither a text nor');
      const links = await on.service.database.query('SELECT FROM account_identities');
      expect(links).to.have.lengthOf(0);
    });
  }

  it('is the account’s where the number was read exactly, and as a text', async () => {
    expect((await signInWith('17')).html).to.include('Nina Number');
    expect((await signInWith('"9007199254740992"')).html).to.include('Anna Arnold');
  });
});
