/** Rules for passwords, their hashes, and signing in with one. */
import { hash as hashWith, type Options } from '@node-rs/argon2';
import { expect } from 'chai';
import { createSignIn } from '../../src/accounts/password-sign-in.ts';
import { checkPassword, hashPassword, verifyPassword } from '../../src/accounts/passwords/password.ts';
import { systemClock } from '../../src/base/clock.ts';
import { silentChangeFeed } from '../../src/storage/change-feed.ts';
import { createAccounts } from '../support/accounts.ts';
import { refuseChanges, testDatabase } from '../support/databases.ts';
import { hashesOf } from '../support/stopwatch.ts';

const ada = { email: 'ada.lovelace@demo.test', name: 'Ada Lovelace' };

describe('password rules', () => {
  it('a password of 12 to 256 characters in any script is accepted', async () => {
    const longest = 'correct horse battery staple '.repeat(9).slice(0, 256);
    const accepted = [
      'twelve chars',
      'ÄÖÜ äöü ß €λ中',
      '                x',
      '😀😁😂🤣😃😄😅😆😉😊😋😎',
      'nul\0nul\0nul\0nul!',
    ];
    for (const password of [...accepted, 'kH8$wq!zPr2m', longest]) {
      expect(await checkPassword(password, ada), password).to.deep.equal([]);
    }
  });

  it('a password that is too short, too long, common, personal or not text is refused', async () => {
    const refused: [password: string, code: string][] = [
      ['elevenchars', 'password_too_short'],
      ['😀'.repeat(11), 'password_too_short'],
      ['u\u0308'.repeat(11), 'password_too_short'],
      [`${'correct horse battery staple '.repeat(9).slice(0, 256)}!`, 'password_too_long'],
      ['lone \uD800 surrogate', 'password_not_text'],
      ['1QAZ2wsx3edc', 'password_common'],
      ['Password1!Password1!', 'password_common'],
      ['aaaaaaaaaaaa', 'password_common'],
      ['Gatehouse2024', 'password_common'],
      // The demo password, which every first start prints.
      ['gatehouse-demo', 'password_common'],
      ['ada.lovelace@demo.test', 'password_common'],
      ['Ada Lovelace 1815', 'password_common'],
    ];
    for (const [password, code] of refused) {
      expect(await checkPassword(password, ada), password).to.have.nested.property('[0].code', code);
    }
  });
});

describe('a password hash matches only its own password', () => {
  const password = `\uFFFD Bücher ${'correct horse battery staple '.repeat(9)}`.slice(0, 256);
  const turn = { email: 'ada@demo.test' };
  let hash: string;

  before(async () => {
    hash = await hashPassword(password, turn);
  });

  it('a password hash names its algorithm', () => {
    expect(hash).to.match(/^\$argon2id\$/);
  });

  it('a password hash matches its password in any Unicode normalization', async () => {
    expect(await verifyPassword(hash, password.normalize('NFD'), turn)).to.equal(true);
  });

  it('a password hash matches no other password', async () => {
    for (const other of [
      '',
      password.toUpperCase(),
      `${password}\0`,
      password.slice(0, -1),
      `${password.slice(0, -1)}!`,
      // UTF-8 cannot encode a lone surrogate: hashing replaces it with the replacement character.
      `\uD800${password.slice(1)}`,
    ]) {
      expect(await verifyPassword(hash, other, turn), other).to.equal(false);
    }
  });

  it('no password matches an account without a hash, and comparing does not block the event loop', async () => {
    const events: string[] = [];
    const comparing = verifyPassword(undefined, password, turn).then((isRight) => {
      events.push('compared');
      return isRight;
    });
    // Between promises the event loop handles nothing, so what another thread computes cannot arrive there.
    for (let turns = 0; turns < 100; turns += 1) await undefined;
    events.push('meanwhile');
    expect(await comparing).to.equal(false);
    expect(events).to.deep.equal(['meanwhile', 'compared']);
  });
});

/** A former cost. */
const CHEAP: Options = { memoryCost: 8 * 1024, timeCost: 1, parallelism: 1 };

describe('sign-in', () => {
  const password = 'correct horse battery';
  const database = testDatabase();
  const signIn = createSignIn({ database });
  let hash: string;

  before(async () => {
    const accounts = createAccounts({
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

  it('a sign-in replaces a stored password hash of another cost, but only if the password is right', async () => {
    const cheap = await hashWith(password, CHEAP);
    const email = 'ada@demo.test';
    const stored = async (name = 'Ada') => {
      const rows = await database.query<{ hash: string }>(
        'SELECT password_hash AS hash FROM accounts WHERE name = $1',
        [name],
      );
      return rows[0]?.hash;
    };
    await database.query('UPDATE accounts SET password_hash = $1', [cheap]);
    expect(await signIn({ email, password: 'wrong horse battery' })).to.equal('refused');
    expect(await hashesOf(() => signIn({ email: 'gone@demo.test', password }))).to.equal(1);
    expect([await stored(), await stored('Gus')]).to.deep.equal([cheap, cheap]);

    const [cost = ''] = /^.*\$(?=.*\$)/.exec(hash) ?? [];
    expect(await hashesOf(() => signIn({ email, password }))).to.equal(2);
    expect(await stored()).to.satisfy((text: string) => text.startsWith(cost));
    expect(await hashesOf(() => signIn({ email, password }))).to.equal(1);
  });

  it('a sign-in succeeds even if the password hash cannot be replaced, and the failure is reported', async () => {
    const cheap = await hashWith(password, CHEAP);
    await database.query('UPDATE accounts SET password_hash = $1', [cheap]);
    const accept = await refuseChanges(database, 'UPDATE ON accounts');
    const reported: string[] = [];
    const log = { warn: (_: unknown, text?: string) => void reported.push(`${text}`) };
    const signInWithLog = createSignIn({ database, log });
    expect(await signInWithLog({ email: 'ada@demo.test', password })).to.include({ name: 'Ada' });
    expect(reported).to.deep.equal(['a password hash could not be renewed']);
    await accept();
  });
});
