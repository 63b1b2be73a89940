import { expect } from 'chai';
import { withChecksum } from '../../src/base/random-id.ts';
import { shapeOf } from '../../src/operator/show/forms.ts';

const x = (length: number): string => 'x'.repeat(length);
const TOKEN = withChecksum(`gate_at_${x(89)}`);

describe('the format of a value', () => {
  it('each kind of value that Gatehouse issues is recognized', () => {
    for (const [value, kind] of [
      [TOKEN, 'access_token'],
      [withChecksum(`gate_mt_${x(43)}`), 'machine_token'],
      [withChecksum(`gate_rt_${x(66)}`), 'refresh_token'],
      [withChecksum(`gate_rt_${x(73)}`), 'refresh_token'],
      [withChecksum(`gate_ac_${x(65)}`), 'code'],
      [withChecksum(`gate_cs_${x(43)}`), 'client_secret'],
      [withChecksum(`gate_key_${x(43)}`), 'api_key'],
      [`gate_ci_${x(22)}`, 'client_id'],
    ] as const) {
      expect(shapeOf(value)).to.deep.equal({ kind, faults: [] });
    }
  });

  it('the first fault of a malformed value is named, without any part that may be secret', () => {
    for (const [value, fault] of [
      ['', 'is empty'],
      [TOKEN.slice(0, -3), 'is 3 characters short of 103: it was cut off'],
      [TOKEN.slice(0, -6), 'is 6 characters short of 103: it was cut off'],
      [TOKEN.replace('xx', 'xy'), 'has a wrong checksum: it was mistyped or cut off, or is not a value of Gat'],
      [`gate_rt_${x(72)}`, 'has a wrong checksum'],
      [withChecksum(`gate_rt_${x(66)}`).replace('xx', 'xy'), 'has a wrong checksum'],
      [`${TOKEN}zz`, 'is 2 characters longer than the allowed 103'],
      [`gate_ci_${x(24)}`, 'is 2 characters longer than the allowed 30'],
      [`${TOKEN}\n`, 'has a line break after character 103'],
      [`${TOKEN}\0`, 'has a NUL character after character 103'],
      [`${TOKEN} `, 'has a space after character 103'],
      [`${TOKEN}\u200b`, 'has the character U+200B after character 103'],
      [`Bearer ${TOKEN}`, "has 'B' and 6 more in front of gate_at_"],
      [`"${TOKEN}"`, `has '"' in front of gate_at_`],
      [`gate_at_${x(40)}%2B${x(22)}`, "has '%' and 24 more after character 48"],
      ['eyJhbGciOiJub25lIn0.e30.', 'is a JWT, and does not begin'],
      ['swordfish', 'does not begin with a prefix'],
      [TOKEN.toUpperCase(), 'is in the wrong letter case: copy it again'],
    ] as const) {
      expect(shapeOf(value).faults[0], JSON.stringify(value)).to.contain(fault);
    }
  });
});
