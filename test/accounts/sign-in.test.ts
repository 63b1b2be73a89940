import { expect } from 'chai';
import { createAccountRegistry } from '../../src/accounts/account-registry.ts';
import { createSignIn, type SignIn } from '../../src/accounts/sign-in.ts';
import { systemClock } from '../../src/clock.ts';
import { silentChangeFeed } from '../../src/storage/change-feed.ts';
import type { OpenDatabase } from '../../src/storage/database.ts';
import { forEachDatabase } from '../support/databases.ts';

forEachDatabase('sign in', (open) => {
  const password = 'correct horse battery';
  let database: OpenDatabase;
  let signIn: SignIn;

  before(async () => {
    database = await open();
    signIn = createSignIn({ database });
    const accounts = createAccountRegistry({
      database,
      changes: silentChangeFeed,
      clock: systemClock,
    });
    await accounts.add({ email: 'ada@demo.test', name: 'Ada', password });
    await accounts.add({ email: 'invited@demo.test', name: 'Ines' });
    const gone = await accounts.add({ email: 'gone@demo.test', name: 'Gus', password });
    await accounts.suspend(gone.id);
  });

  it('the right password of the person is accepted, the email in any case', async () => {
    for (const email of ['ada@demo.test', ' ADA@Demo.Test ']) {
      expect(await signIn({ email, password })).to.include({ name: 'Ada' });
    }
  });

  const refused: [reason: string, email: string, password: string][] = [
    ['a wrong password', 'ada@demo.test', 'wrong horse battery'],
    ['an empty password', 'ada@demo.test', ''],
    ['the right password with a NUL byte', 'ada@demo.test', `${password}\0`],
    ['an unknown person', 'nobody@demo.test', password],
    ['a suspended account', 'gone@demo.test', password],
    ['an account without a password', 'invited@demo.test', ''],
    ['no email address', '', password],
    ['an email address with a NUL byte', 'ada@demo.test\0', password],
    ['an email address with a lone surrogate', 'ada\uD800@demo.test', `\uDFFF${password}`],
    ['a very long email address', `${'a'.repeat(100_000)}@demo.test`, password],
    ['a very long password', 'ada@demo.test', 'a'.repeat(100_000)],
  ];
  for (const [reason, email, presented] of refused) {
    it(`${reason} is refused, without saying so`, async () => {
      expect(await signIn({ email, password: presented })).to.equal('refused');
    });
  }
});
