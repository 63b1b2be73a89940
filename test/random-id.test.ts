import { createHmac } from 'node:crypto';
import { expect } from 'chai';
import { hmacSha256, randomId } from '../src/base/random-id.ts';

describe('random ids are unique, and random in every position', () => {
  it('random ids have the requested length, are unique and random in every position, even if they share a buffer of random bytes', () => {
    const ids = Array.from({ length: 5_000 }, (_, index) => randomId('x_', 22 + (index % 22)));
    for (const [index, id] of ids.entries()) {
      expect(id).to.match(new RegExp(`^x_[A-Za-z0-9_-]{${22 + (index % 22)}}$`));
    }
    expect(new Set(ids.map((id) => id.slice(0, 10))).size).to.equal(ids.length);
    const long = ids.map(() => randomId('x_', 43));
    for (let place = 2; place < 45; place += 1) {
      expect(new Set(long.map((id) => id[place])).size, `place ${place}`).to.equal(64);
    }
  });

  it('the HMAC matches the test values of RFC 4231, and the HMAC of Node for texts and keys of any length', () => {
    const hex = (key: string, text: string) => Buffer.from(hmacSha256(key)(text), 'base64url').toString('hex');
    // Test cases 1 and 2: the others have keys that are no UTF-8.
    expect(hex('\v'.repeat(20), 'Hi There')).to.match(/^b0344c61d8db38535ca8afceaf0bf12b.*c9833da726e9376c2e32cff7$/);
    expect(hex('Jefe', 'what do ya want for nothing?')).to.match(/^5bdcc146bf60754e.*964ec3843$/);
    for (const length of [0, 1, 63, 64, 65, 199, 200, 201, 1_000]) {
      const [key, text] = ['k\u00e9'.repeat(length), 'a\ud83d\ude00\u20ac'.repeat(length).slice(0, length)];
      const mac = hmacSha256(key);
      const expected = createHmac('sha256', key).update(text).digest('base64url');
      // A second time, after a longer text: nothing of it is left.
      expect([mac(text), mac('x'.repeat(200)) && mac(text)], `${length}`).to.deep.equal([expected, expected]);
    }
  });
});
