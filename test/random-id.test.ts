import { expect } from 'chai';
import { randomId } from '../src/base/random-id.ts';

describe('random ids', () => {
  it('random ids have the requested length and are unique, even if they share a buffer of random bytes', () => {
    const ids = Array.from({ length: 5_000 }, (_, index) => randomId('x_', 22 + (index % 22)));
    for (const [index, id] of ids.entries()) {
      expect(id).to.match(new RegExp(`^x_[A-Za-z0-9_-]{${22 + (index % 22)}}$`));
    }
    expect(new Set(ids.map((id) => id.slice(0, 10))).size).to.equal(ids.length);
  });
});
