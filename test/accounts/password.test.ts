import { expect } from 'chai';
import { checkPassword, hashPassword, verifyPassword } from '../../src/accounts/passwords/password.ts';

const ada = { email: 'ada.lovelace@demo.test', name: 'Ada Lovelace' };

describe('password rules', () => {
  const accepted = [
    'correct horse battery staple',
    'twelve chars',
    'ÄÖÜ äöü ß €λ中',
    '                x',
    'kH8$wq!zPr2m',
    '😀😁😂🤣😃😄😅😆😉😊😋😎',
    'nul\0nul\0nul\0nul!',
    'x'.repeat(4) + 'correct horse '.repeat(18),
  ];
  for (const password of accepted) {
    it(`the password ${JSON.stringify(password.slice(0, 30))}, ${[...password].length} characters long, is accepted`, async () => {
      expect(await checkPassword(password, ada)).to.deep.equal([]);
    });
  }

  const refused: [password: string, code: string][] = [
    ['', 'password_too_short'],
    ['elevenchars', 'password_too_short'],
    ['😀'.repeat(11), 'password_too_short'],
    ['u\u0308'.repeat(11), 'password_too_short'],
    [`${'correct horse '.repeat(18)}12345`, 'password_too_long'],
    ['lone \uD800 surrogate', 'password_not_text'],
    ['1qaz2wsx3edc', 'password_common'],
    ['1QAZ2wsx3edc', 'password_common'],
    ['password1234', 'password_common'],
    ['!!Sunshine2024!!', 'password_common'],
    ['Password1!Password1!', 'password_common'],
    ['aaaaaaaaaaaa', 'password_common'],
    ['123412341234', 'password_common'],
    ['Gatehouse2024', 'password_common'],
    ['gatehousegatehouse', 'password_common'],
    // The demo password, which every first start prints.
    ['gatehouse-demo', 'password_common'],
    ['Gatehouse-Demo 2024!', 'password_common'],
    ['ada.lovelace@demo.test', 'password_common'],
    ['ada.lovelace123', 'password_common'],
    ['Ada Lovelace 1815', 'password_common'],
    ['adalovelace1815', 'password_common'],
  ];
  for (const [password, code] of refused) {
    it(`the password ${JSON.stringify(password.slice(0, 30))} is refused with ${code}`, async () => {
      expect(await checkPassword(password, ada)).to.have.nested.property('[0].code', code);
    });
  }

  it('a password of 256 characters is accepted, and one of 257 is refused', async () => {
    const long = 'correct horse battery staple '.repeat(9).slice(0, 256);
    expect(await checkPassword(long, ada)).to.deep.equal([]);
    const [problem] = await checkPassword(`${long}!`, ada);
    expect(problem).to.have.property('code', 'password_too_long');
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

  for (const [what, other] of [
    ['an empty password', ''],
    ['the password in another case', password.toUpperCase()],
    ['the password with a NUL byte behind it', `${password}\0`],
    ['a long password without its last character', password.slice(0, -1)],
    ['a long password with another last character', `${password.slice(0, -1)}!`],
    // UTF-8 cannot encode a lone surrogate: hashing replaces it with the replacement character.
    ['a lone surrogate in place of the replacement character', `\uD800${password.slice(1)}`],
  ] as const) {
    it(`a password hash does not match ${what}`, async () => {
      expect(await verifyPassword(hash, other, turn)).to.equal(false);
    });
  }

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
