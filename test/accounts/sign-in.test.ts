import { createHook } from 'node:async_hooks';
import { expect } from 'chai';
import { createAccountRegistry } from '../../src/accounts/account-registry.ts';
import { createSignIn } from '../../src/accounts/password-sign-in.ts';
import { hashPassword, verifyPassword } from '../../src/accounts/passwords/password.ts';
import { systemClock } from '../../src/base/clock.ts';
import { silentChangeFeed } from '../../src/storage/change-feed.ts';
import { testDatabase } from '../support/databases.ts';

/** Returns how many times `task` hashed, on threads of libuv: Node shows each of these as a resource. */
async function hashesOf(task: () => Promise<unknown>): Promise<number> {
  let count = 0;
  const hook = createHook({
    init(_, type) {
      // The package of Argon2 gives its work no name.
      if (type === 'undefined') count += 1;
    },
  }).enable();
  await task().finally(() => hook.disable());
  return count;
}

describe('sign-in', () => {
  const password = 'correct horse battery';
  const database = testDatabase();
  const signIn = createSignIn({ database });
  let hash: string;

  before(async () => {
    const accounts = createAccountRegistry({
      database,
      changes: silentChangeFeed,
      clock: systemClock,
    });
    hash = await hashPassword(password, { email: 'ada@demo.test' });
    await accounts.add({ email: 'ada@demo.test', name: 'Ada' });
    const suspended = await accounts.add({ email: 'gone@demo.test', name: 'Gus' });
    await database.query('UPDATE accounts SET password_hash = $1', [hash]);
    await accounts.suspend(suspended.id);
    await accounts.add({ email: 'invited@demo.test', name: 'Ines' });
  });

  for (const email of ['ada@demo.test', ' ADA@Demo.Test ']) {
    it(`the right password is accepted for the email "${email}"`, async () => {
      expect(await signIn({ email, password })).to.include({ name: 'Ada' });
    });
  }

  const refused: [reason: string, email: string, password: string][] = [
    ['a wrong password', 'ada@demo.test', 'wrong horse battery'],
    ['an empty password', 'ada@demo.test', ''],
    ['the right password with a NUL byte', 'ada@demo.test', `${password}\0`],
    ['an unknown account', 'nobody@demo.test', password],
    ['a suspended account', 'gone@demo.test', password],
    ['an account without a password', 'invited@demo.test', ''],
    ['no email address', '', password],
    ['an email address with a NUL byte', 'ada@demo.test\0', password],
    ['an email address with a lone surrogate', 'ada\uD800@demo.test', `\uDFFF${password}`],
    ['a very long email address', `${'a'.repeat(100_000)}@demo.test`, password],
    ['a very long password', 'ada@demo.test', 'a'.repeat(100_000)],
  ];
  for (const [reason, email, presented] of refused) {
    it(`a sign-in with ${reason} is refused after exactly one comparison, so its duration reveals nothing`, async () => {
      const compare = () => verifyPassword(hash, 'wrong horse battery', { email });
      const refuse = async () => {
        expect(await signIn({ email, password: presented })).to.equal('refused');
      };
      expect(await hashesOf(compare), 'the count itself').to.equal(1);
      expect(await hashesOf(refuse)).to.equal(1);
    });
  }
});
