/** Codes and tokens: their format, and protection against forgery. */
import { expect } from 'chai';
import {
  createTokenFormats,
  isMachineToken,
  type PresentedValue,
  readValue,
} from '../../src/authorizations/token-formats.ts';
import { randomId, withChecksum, withoutChecksum } from '../../src/base/random-id.ts';

const KEY = 'key-of-this-test-0123456789abcdefghij';
const OTHER_KEY = 'another-key-of-this-test-0123456789ab';
const SOURCE = { id: 'i'.repeat(22), secret: 's'.repeat(22) };
const TIMES = { issuedAt: 1_900_000_000, expiresAt: 1_900_003_600, clientGeneration: 5 };
/** Length of a MAC or of a random value, in characters. */
const RANDOM = 43;

const formats = createTokenFormats([KEY]);
const values = (made = formats, source = SOURCE, rotation = 40) => ({
  code: made.code(source),
  refresh_token: made.refreshToken(source, rotation),
  access_token: made.accessToken(source, rotation, TIMES),
});

const read = (value: string): PresentedValue => {
  const found = readValue(value);
  if (!found) throw new Error(`${value} is not recognized`);
  return found;
};
const isGenuine = (value: string, made = formats, { secret } = SOURCE): boolean => made.isGenuine(read(value), secret);

const changedAt = (value: string, place: number): string =>
  value.slice(0, place) + (value[place] === 'A' ? 'B' : 'A') + value.slice(place + 1);

describe('codes and tokens', () => {
  it('codes and tokens contain the prefix of their kind, the public ID, the rotation and the times', () => {
    const { code, refresh_token, access_token } = values();
    const named = { authorizationId: SOURCE.id };
    expect(code).to.match(/^gate_ac_i{22}[\w-]{43}[A-D][\w-]{5}$/);
    expect(read(code)).to.include({ kind: 'code', ...named });
    expect(refresh_token).to.match(/^gate_rt_i{22}[\w-]{43}14[A-D][\w-]{5}$/);
    expect(read(refresh_token)).to.include({ kind: 'refresh_token', ...named, rotation: 40 });
    expect(access_token).to.match(/^gate_at_i{22}[\w-]{67}[A-D][\w-]{5}$/);
    const said = { ...named, rotation: 40, ...TIMES };
    expect(read(access_token)).to.include({ kind: 'access_token', ...said });
    for (const rotation of [0, 35, 36, 36 ** 8 - 1]) {
      const token = formats.refreshToken(SOURCE, rotation);
      expect(read(token)).to.include({ rotation });
      expect(isGenuine(token)).to.equal(true);
    }
  });

  it('a code or refresh token is identical each time it is generated for one record; access tokens always differ', () => {
    const [first, second] = [values(), values()];
    expect(second.code).to.equal(first.code);
    expect(second.refresh_token).to.equal(first.refresh_token);
    // A few only: within a second they differ in 24 random bits.
    const several = Array.from({ length: 5 }, () => values().access_token);
    expect(new Set(several).size).to.equal(5);
  });

  it('codes and tokens contain neither the secret of the record nor the signing key', () => {
    for (const value of Object.values(values())) {
      expect(value).not.to.include(SOURCE.secret).and.not.include(KEY);
    }
  });

  for (const kind of ['code', 'refresh_token', 'access_token'] as const) {
    it(`changing any character of the ${kind} makes it unreadable, and invalid even with a corrected checksum`, () => {
      const value = values()[kind];
      expect(isGenuine(value)).to.equal(true);
      for (let place = 0; place < value.length; place += 1) {
        expect(readValue(changedAt(value, place)), `place ${place}`).to.equal(undefined);
      }
      const bare = withoutChecksum(value);
      for (let place = 0; place < bare.length; place += 1) {
        const found = readValue(withChecksum(changedAt(bare, place)));
        const isAccepted = found !== undefined && formats.isGenuine(found, SOURCE.secret);
        expect(isAccepted, `place ${place}`).to.equal(false);
      }
    });

    it(`the ${kind} depends on both the signing key and the secret of its record`, () => {
      const value = values()[kind];
      expect(isGenuine(value, createTokenFormats([OTHER_KEY]))).to.equal(false);
      const other = { ...SOURCE, secret: 't'.repeat(22) };
      expect(isGenuine(value, formats, other)).to.equal(false);
      expect(isGenuine(values(formats, other)[kind])).to.equal(false);
    });
  }

  it('a token of one kind is not valid as another kind, even with the prefix of that kind', () => {
    const { code, refresh_token } = values(formats, SOURCE, 0);
    const mac = withoutChecksum(code).slice(-RANDOM);
    expect(refresh_token).not.to.include(mac);
    const swapped = withChecksum(`gate_rt_${SOURCE.id}${mac}0`);
    expect(isGenuine(swapped)).to.equal(false);
  });

  it('codes and tokens are signed with the first key of the list and verified with all keys', () => {
    const both = createTokenFormats([OTHER_KEY, KEY]);
    expect(isGenuine(formats.code(SOURCE), both)).to.equal(true);
    expect(isGenuine(both.code(SOURCE), createTokenFormats([OTHER_KEY]))).to.equal(true);
    expect(isGenuine(both.code(SOURCE))).to.equal(false);
  });

  it('a token in a format that Gatehouse does not issue is not recognized', () => {
    const made = values();
    const code = withoutChecksum(made.code);
    const refreshToken = withoutChecksum(made.refresh_token);
    const accessToken = withoutChecksum(made.access_token);
    const token = refreshToken.slice(0, -2);
    for (const value of [
      '',
      'x',
      'gate_at_',
      code.slice(0, -1),
      `${code}A`,
      ` ${code}`,
      `${code}\n`,
      token,
      `${token}01`,
      `${token}A`,
      `${token}-1`,
      `${token}${'z'.repeat(9)}`,
      `${token}_`,
      accessToken.slice(0, -1),
      `${accessToken}A`,
      accessToken.replace('_at_', '_mt_'),
      accessToken.replace('_at_', '_rt_'),
      code.replace('gate', 'GATE'),
      `${code}\0`,
      `gate_rt_${'é'.repeat(66)}`,
    ]) {
      expect(readValue(value), value).to.equal(undefined);
      expect(readValue(withChecksum(value)), `${value} with a checksum`).to.equal(undefined);
    }
    for (const value of Object.values(made)) expect(readValue(withoutChecksum(value))).to.equal(undefined);
  });

  it('a machine token is recognized by its format', () => {
    expect(isMachineToken(randomId('gate_mt_', RANDOM))).to.equal(false);
    expect(isMachineToken(withChecksum(randomId('gate_mt_', RANDOM)))).to.equal(true);
    for (const value of ['gate_mt_', `gate_mt_${'x'.repeat(44)}`, `gate_at_${'x'.repeat(43)}`]) {
      expect(isMachineToken(withChecksum(value))).to.equal(false);
    }
  });
});
