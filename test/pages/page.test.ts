import { expect } from 'chai';
import type { Context } from 'koa';
import type { Account } from '../../src/accounts/account.ts';
import type { AccountRegistry } from '../../src/accounts/account-registry.ts';
import { visitorOf } from '../../src/pages/page.ts';
import type { BrowserSessions } from '../../src/provider/browser-sessions.ts';
import { FREE } from '../../src/provider/standings.ts';

describe('the signed-in user', () => {
  const account: Account = {
    id: 'acc_0123456789abcdef',
    email: 'ada@demo.test',
    name: 'Ada',
    isSuspended: false,
    hasPassword: true,
    createdAt: new Date(),
    sessionGeneration: 3,
    endedSessions: [],
    unwantedMail: [],
  };

  /** Returns the account that a session of this generation signs in, if the node cached `known`. */
  async function signedIn(generation: number, known: Account | undefined) {
    const session = {
      accountId: account.id,
      signedInAt: 0,
      proofs: [],
      uid: 'uid',
      generation,
    };
    const sessions = { current: async () => session } as Partial<BrowserSessions>;
    const accounts = { find: async () => known } as Partial<AccountRegistry>;
    const visitor = await visitorOf({ state: {} } as Context, {
      ...({ sessions, accounts } as { sessions: BrowserSessions; accounts: AccountRegistry }),
      standings: { of: async () => FREE },
    });
    return visitor?.account;
  }

  it('a user is signed out if the session has an older generation number than the account', async () => {
    expect(await signedIn(3, account)).to.equal(account);
    expect(await signedIn(2, account)).to.equal(undefined);
    expect(await signedIn(Number.NaN, account)).to.equal(undefined);
  });

  it('a user stays signed in if the session has a newer generation number than the cached account', async () => {
    expect(await signedIn(4, account)).to.equal(account);
  });

  it('a user is signed out if the account is suspended or removed', async () => {
    expect(await signedIn(3, { ...account, isSuspended: true })).to.equal(undefined);
    expect(await signedIn(3, undefined)).to.equal(undefined);
  });
});
