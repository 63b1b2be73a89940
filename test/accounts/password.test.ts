import { performance } from 'node:perf_hooks';
import { expect } from 'chai';
import { checkPassword, hashPassword, verifyPassword } from '../../src/accounts/password.ts';

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
    it(`accepts ${JSON.stringify(password.slice(0, 30))}, ${[...password].length} long`, () => {
      expect(checkPassword(password, ada)).to.deep.equal([]);
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
    ['ada.lovelace@demo.test', 'password_common'],
    ['ada.lovelace123', 'password_common'],
    ['Ada Lovelace 1815', 'password_common'],
    ['adalovelace1815', 'password_common'],
  ];
  for (const [password, code] of refused) {
    it(`refuses ${JSON.stringify(password.slice(0, 30))}: ${code}`, () => {
      expect(checkPassword(password, ada)).to.have.nested.property('[0].code', code);
    });
  }

  it('256 characters are accepted and 257 are not', () => {
    const long = 'correct horse battery staple '.repeat(9).slice(0, 256);
    expect(checkPassword(long, ada)).to.deep.equal([]);
    expect(checkPassword(`${long}!`, ada)).to.have.nested.property('[0].code', 'password_too_long');
  });
});

describe('password hash', () => {
  it('only the password itself matches', async () => {
    const hash = await hashPassword('correct horse battery');
    expect(hash).to.match(/^\$argon2id\$/);
    expect(await verifyPassword(hash, 'correct horse battery')).to.equal(true);
    for (const wrong of ['', 'correct horse battery\0', 'Correct horse battery', 'correct horse']) {
      expect(await verifyPassword(hash, wrong)).to.equal(false);
    }
  });

  it('a long password is never truncated', async () => {
    const long = 'correct horse battery staple '.repeat(9).slice(0, 256);
    const hash = await hashPassword(long);
    expect(await verifyPassword(hash, long)).to.equal(true);
    expect(await verifyPassword(hash, `${long.slice(0, -1)}!`)).to.equal(false);
  });

  it('the same characters match however they were composed', async () => {
    const hash = await hashPassword('Bücher Bücher Bücher');
    expect(await verifyPassword(hash, 'Bu\u0308cher Bu\u0308cher Bu\u0308cher')).to.equal(true);
  });

  it('a lone surrogate does not stand for the replacement character', async () => {
    const hash = await hashPassword('twelve chars \uFFFD');
    expect(await verifyPassword(hash, 'twelve chars \uD800')).to.equal(false);
  });

  it('without a hash nothing matches, after as much work as with one', async () => {
    const hash = await hashPassword('correct horse battery');
    expect(await verifyPassword(undefined, 'correct horse battery')).to.equal(false);
    const fastest = async (candidate: string | undefined) => {
      const times: number[] = [];
      for (let attempt = 0; attempt < 5; attempt += 1) {
        const start = performance.now();
        await verifyPassword(candidate, 'wrong horse battery');
        times.push(performance.now() - start);
      }
      return Math.min(...times);
    };
    expect((await fastest(undefined)) / (await fastest(hash))).to.be.within(0.6, 1.6);
  });
});
