import { expect } from 'chai';
import { checkPassword, hashPassword, verifyPassword } from '../../src/accounts/passwords/password.ts';

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

  it('a short, long, common or personal password, and one that is no text, is refused', async () => {
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

describe('password hash', () => {
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
