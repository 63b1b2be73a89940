/** The values that are handed out: long, random, each with the prefix of its kind. */
import { generateKeyPairSync } from 'node:crypto';
import { expect } from 'chai';
import { Provider } from 'oidc-provider';
import { installTokenValues } from '../../src/provider/provider.ts';
import { createRefreshTokenValues } from '../../src/provider/refresh-token-values.ts';
import { randomId } from '../../src/random-id.ts';

const MANY = 10_000;
const LENGTH = 43;
const GRANT_ID = 'a'.repeat(22);

/** One of its kind, as the engine makes it when it is about to be kept. */
interface Model {
  new (properties: object): { generateTokenId(): string };
}

describe('values that are handed out', () => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const provider = new Provider('http://localhost:3000', {
    // Otherwise it warns of what is only for development.
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'ES256' }] },
    features: { devInteractions: { enabled: false } },
    adapter: () => {
      throw new Error('nothing is kept here');
    },
  });
  installTokenValues(provider, createRefreshTokenValues(['key-of-this-test-0123456789abcdefghij']));
  const of = (model: unknown) => () =>
    new (model as Model)({ grantId: GRANT_ID }).generateTokenId();

  for (const [kind, prefix, draw] of [
    ['authorization codes', 'gate_ac_', of(provider.AuthorizationCode)],
    ['access tokens', `gate_at_${GRANT_ID}`, of(provider.AccessToken)],
    ['machine access tokens', 'gate_mt_', of(provider.ClientCredentials)],
    ['client secrets', 'gate_cs_', () => randomId('gate_cs_', LENGTH)],
  ] as const) {
    it(`${MANY} ${kind} have 258 random bits each, and none comes twice`, () => {
      const values = Array.from({ length: MANY }, draw);
      expect(new Set(values).size).to.equal(MANY);
      for (const value of values) {
        expect(value.slice(0, prefix.length)).to.equal(prefix);
        expect(value.slice(prefix.length)).to.match(/^[A-Za-z0-9_-]{43}$/);
      }
      // Each place takes each of the 64 characters: nothing in it is fixed or counts up.
      for (let place = prefix.length; place < prefix.length + LENGTH; place += 1) {
        expect(new Set(values.map((value) => value[place])).size, `place ${place}`).to.equal(64);
      }
    });
  }
});
