import { expect } from 'chai';
import { createAccountRegistry } from '../../src/accounts/account-registry.ts';
import { hashPassword, verifyPassword } from '../../src/accounts/password.ts';
import { createSignIn, type SignIn } from '../../src/accounts/sign-in.ts';
import { systemClock } from '../../src/clock.ts';
import { silentChangeFeed } from '../../src/storage/change-feed.ts';
import { openTestDatabase } from '../support/databases.ts';
import { createOpened } from '../support/opened.ts';

const TIMES = 5;

/** Processor time, not time: what other programs do meanwhile does not count. Microseconds. */
async function workOf(task: () => Promise<unknown>): Promise<number> {
  const works: number[] = [];
  for (let time = 0; time < TIMES; time += 1) {
    const before = process.cpuUsage();
    await task();
    const { user, system } = process.cpuUsage(before);
    works.push(user + system);
  }
  return works.sort((a, b) => a - b)[Math.floor(TIMES / 2)] ?? 0;
}

describe('the work of a sign-in', () => {
  const opened = createOpened();
  const password = 'correct horse battery';
  let signIn: SignIn;
  let oneComparison: number;

  before(async () => {
    const database = await opened.add(openTestDatabase('embedded'), ({ close }) => close());
    const parts = { database, changes: silentChangeFeed, clock: systemClock };
    const accounts = createAccountRegistry(parts);
    await accounts.add({ email: 'ada@demo.test', name: 'Ada', password });
    await accounts.add({ email: 'invited@demo.test', name: 'Ines' });
    const gone = await accounts.add({ email: 'gone@demo.test', name: 'Gus', password });
    await accounts.suspend(gone.id);
    signIn = createSignIn({ database });
    const hash = await hashPassword(password);
    oneComparison = await workOf(() => verifyPassword(hash, 'wrong horse battery'));
  });
  after(opened.closeAll);

  for (const [who, email] of [
    ['a wrong password', 'ada@demo.test'],
    ['an unknown person', 'nobody@demo.test'],
    ['an account without a password', 'invited@demo.test'],
    ['a suspended account', 'gone@demo.test'],
    ['no email address', ''],
  ] as const) {
    it(`is one comparison of a password for ${who}`, async () => {
      const work = await workOf(() => signIn({ email, password: 'wrong horse battery' }));
      // None would be next to nothing, two would be twice as much.
      expect(work / oneComparison).to.be.within(0.6, 1.7);
    });
  }
});
