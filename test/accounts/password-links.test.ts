import { expect } from 'chai';
import type { Account } from '../../src/accounts/account.ts';
import { createActivity, SessionEnded } from '../../src/accounts/activity/activity.ts';
import { createPasswordChanges } from '../../src/accounts/password-links/password-changes.ts';
import { createPasswordLinks } from '../../src/accounts/password-links/password-links.ts';
import { createSignIn } from '../../src/accounts/password-sign-in.ts';
import { inTurn } from '../../src/accounts/passwords/work.ts';
import { createSessionList } from '../../src/accounts/session-list.ts';
import { silentChangeFeed } from '../../src/storage/change-feed.ts';
import { createAccounts } from '../support/accounts.ts';
import { testDatabase } from '../support/databases.ts';
import { hashesOf } from '../support/stopwatch.ts';

const DAY = 86_400_000;
const PASSWORD = 'seven green forklifts';
const ANOTHER = 'eight blue pallets, stacked';
const origin = { address: '203.0.113.7', browser: 'curl/8.5.0' };

describe('a password link works once, and becomes invalid if the password, address or status of its account changes', () => {
  let now = Date.parse('2031-02-03T04:05:06Z');
  const database = testDatabase();
  const parts = { database, changes: silentChangeFeed, clock: () => now };
  const activity = createActivity(parts);
  const accounts = createAccounts(parts);
  const links = createPasswordLinks({ ...parts, accounts, activity });
  const changes = createPasswordChanges({ accounts, links, activity });
  let account: Account;

  beforeEach(async () => {
    await database.query('TRUNCATE accounts, activity CASCADE');
    account = await accounts.add({ email: 'ada@demo.test', name: 'Ada' });
  });

  const make = async (): Promise<string> => (await links.make(account, 'invitation', origin)).token;

  it('a link that expires while its password waits to be hashed sets no password', async () => {
    const token = await make();
    expect(await links.find(token)).to.be.ok;
    now += DAY;
    expect(await database.transaction((tx) => links.use(token, tx))).to.equal(false);
  });

  it('a password set by one link, or by the user, invalidates every other password link', async () => {
    const [first, second] = [await make(), await make()];
    await changes.useLink(second, { origin, password: PASSWORD });
    expect(await changes.useLink(first, { origin, password: ANOTHER })).to.equal(undefined);

    const third = await make();
    const now = await accounts.find(account.id);
    await changes.change(now ?? account, ANOTHER, origin);
    expect(await links.find(third)).to.equal(undefined);
  });

  it('a password link stays valid if the password is refused', async () => {
    const token = await make();
    for (const password of ['short', 'ada@demo.test', 'x'.repeat(257), 'passwordpassword']) {
      const refused = await changes.useLink(token, { origin, password }).catch((error) => error);
      expect(refused, password).to.include({ code: 'password_refused' });
    }
    expect(await changes.useLink(token, { origin, password: PASSWORD })).to.be.ok;
  });

  it('a link used in 30 parallel requests sets one password, and hashes it once', async () => {
    const token = await make();
    let set: unknown[] = [];
    const hashes = await hashesOf(async () => {
      set = await Promise.all(Array.from({ length: 30 }, () => changes.useLink(token, { origin, password: ANOTHER })));
    });
    expect(set.filter(Boolean)).to.have.length(1);
    expect(hashes).to.equal(1);
  });

  it('the links of a suspended account are invalid, and stay invalid after it is resumed', async () => {
    const before = await make();
    await accounts.suspend(account.id);
    const meanwhile = await make();
    for (const step of ['suspended', 'resumed']) {
      for (const token of [before, meanwhile]) {
        expect(await links.find(token), step).to.equal(undefined);
        expect(await changes.useLink(token, { origin, password: PASSWORD }), step).to.equal(undefined);
      }
      await accounts.resume(account.id);
    }
    expect(await links.find(await make())).to.be.ok;
  });

  it('a password link for an email address is invalid once the account has another address', async () => {
    const before = await make();
    await accounts.changeEmail(account.id, 'king@demo.test');
    // Make the link for an account that was read before the change: it is mailed to the former address.
    const meanwhile = await make();
    for (const token of [before, meanwhile]) {
      expect(await changes.useLink(token, { origin, password: PASSWORD })).to.equal(undefined);
    }
  });

  it('a password change that was requested before a recovery is refused if its hash is ready only after the recovery', async () => {
    const before = await changes.useLink(await make(), { origin, password: PASSWORD });
    const session = { uid: 'theirs', generation: before?.account.sessionGeneration ?? 0 };
    const recorded = { ...session, accountId: account.id, cookieHash: 'hash' };
    await createSessionList(parts).record(recorded, { begunAt: new Date(now), origin });
    // An attacker who knows the password changes it; the hash of the new one waits until after the
    // recovery. At most three are made at once.
    const { promise: isRecovered, resolve: endRecovery } = Promise.withResolvers<void>();
    const busy = [1, 2, 3].map((number) => inTurn({ email: `busy-${number}@demo.test` }, () => isRecovered));
    const late = changes.change(account, ANOTHER, { ...origin, session }).catch((error) => error);
    const recovered = await changes.useLink(await make(), { origin });
    expect(recovered?.account).to.include({ hasPassword: true });
    endRecovery();
    await Promise.all(busy);
    expect(await late).to.be.instanceOf(SessionEnded);
    const attempt = { email: account.email, password: ANOTHER };
    expect(await createSignIn({ database })(attempt)).to.equal('refused');
  });

  it('a link that is created right after re-authentication is valid for ten minutes', async () => {
    const session = { accountId: account.id, uid: 'uid', cookieHash: 'hash', generation: account.sessionGeneration };
    await createSessionList(parts).record(session, { begunAt: new Date(now), origin });
    const { token } = await links.make(account, 'confirmed', { ...origin, session });
    now += 599_999;
    expect(await links.find(token)).to.include({ purpose: 'confirmed' });
    now += 1;
    expect(await links.find(token)).to.equal(undefined);
  });
});
