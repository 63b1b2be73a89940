import { expect } from 'chai';
import { shapeOf } from '../../src/operator/explain/token-shape.ts';

const x = (length: number): string => 'x'.repeat(length);
const TOKEN = `gate_at_${x(89)}`;

describe('the shape of a value', () => {
  it('is right for each kind that Gatehouse gives out', () => {
    for (const [value, kind] of [
      [TOKEN, 'access_token'],
      [`gate_mt_${x(43)}`, 'machine_token'],
      [`gate_rt_${x(66)}`, 'refresh_token'],
      [`gate_rt_${x(73)}`, 'refresh_token'],
      [`gate_ac_${x(65)}`, 'code'],
      [`gate_cs_${x(43)}`, 'client_secret'],
      [`gate_key_${x(43)}`, 'api_key'],
      [`gate_ci_${x(22)}`, 'client_id'],
    ] as const) {
      expect(shapeOf(value)).to.deep.equal({ kind, faults: [] });
    }
  });

  it('is told to be wrong by what is wrong with it, and shows nothing of what may be secret', () => {
    for (const [value, fault] of [
      ['', 'is empty'],
      [TOKEN.slice(0, -3), 'lacks 3 of 97 characters: it was cut off'],
      [`${TOKEN}zz`, 'has 2 characters more than the 97 there are'],
      [`${TOKEN}\n`, 'has a line break after character 97'],
      [`${TOKEN}\0`, 'has a NUL character after character 97'],
      [`${TOKEN} `, 'has a space after character 97'],
      [`${TOKEN}\u200b`, 'has the character U+200B after character 97'],
      [`Bearer ${TOKEN}`, "has 'B' and 6 more in front of gate_at_"],
      [`"${TOKEN}"`, `has '"' in front of gate_at_`],
      [`gate_at_${x(40)}%2B${x(22)}`, "has '%' and 24 more after character 48"],
      ['eyJhbGciOiJub25lIn0.e30.', 'is a JWT, and begins with none'],
      ['swordfish', 'begins with none of the prefixes'],
      [TOKEN.toUpperCase(), 'is in the wrong letter case: copy it again'],
    ] as const) {
      expect(shapeOf(value).faults[0], JSON.stringify(value)).to.contain(fault);
    }
  });
});
