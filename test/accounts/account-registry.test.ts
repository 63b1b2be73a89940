import { expect } from 'chai';
import { type ChangeFeed, silentChangeFeed } from '../../src/storage/change-feed.ts';
import { refusalOf } from '../clients/refusals.ts';
import { createAccounts } from '../support/accounts.ts';
import { testDatabase } from '../support/databases.ts';

/** A change feed that announces nothing: only the registry that changes a value removes it from the cache. */
const liveAndSilent: ChangeFeed = { ...silentChangeFeed, isLive: true };

describe('account registry', () => {
  const clock = () => Date.parse('2031-02-03T04:05:06.789Z');
  const database = testDatabase();
  const accounts = createAccounts({ database, changes: silentChangeFeed, clock });

  it('text that is too long, or that PostgreSQL cannot store, is refused and finds no account', async () => {
    const texts = ['nul\0@demo.test', 'lone\uD800@demo.test', `${'a'.repeat(300)}@demo.test`];
    for (const text of texts) {
      expect(await refusalOf(accounts.add({ email: text, name: 'Ada' }))).to.equal('email_invalid');
      expect(await refusalOf(accounts.add({ email: 'new@demo.test', name: text }))).to.be.oneOf([
        'name_invalid',
        'accepted',
      ]);
      expect(await accounts.findByEmail(text)).to.equal(undefined);
      expect(await accounts.find(text)).to.equal(undefined);
      expect(await refusalOf(accounts.suspend(text))).to.equal('account_unknown');
    }
  });

  it('a password is checked before it is stored, and only its hash is stored', async () => {
    const person = { email: 'pw@demo.test', name: 'Petra' };
    const short = accounts.add({ ...person, password: 'short' });
    expect(await refusalOf(short)).to.equal('password_refused');
    const added = await accounts.add({ ...person, password: 'correct horse battery' });
    expect(added.hasPassword).to.equal(true);
    const stored = await database.query('SELECT * FROM accounts');
    expect(JSON.stringify(stored)).to.not.include('correct horse');
  });

  it('a changed account is read with its change at once, before the change feed announces it', async () => {
    const registry = createAccounts({ database, changes: liveAndSilent, clock });
    const { id } = await registry.add({ email: 'live@demo.test', name: 'Livia' });
    const found = async () => {
      const { isSuspended, sessionGeneration } = (await registry.find(id)) ?? {};
      return { isSuspended, sessionGeneration };
    };
    expect(await found()).to.deep.equal({ isSuspended: false, sessionGeneration: 0 });
    await registry.suspend(id);
    expect(await found()).to.deep.equal({ isSuspended: true, sessionGeneration: 1 });
    await registry.endSessions(id);
    expect(await found()).to.deep.equal({ isSuspended: true, sessionGeneration: 2 });
  });
});
