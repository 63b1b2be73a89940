import { expect } from 'chai';
import type { Client } from '../../src/clients/client.ts';
import { type NewClientSecret, newClientSecret } from '../../src/clients/client-secrets.ts';
import { matchesSecret, partner } from './drafts.ts';

describe('client secret', () => {
  let first: NewClientSecret;
  let second: NewClientSecret;
  let client: Client;
  before(() => {
    [first, second] = [newClientSecret(), newClientSecret()];
    client = clientWith(first, second);
  });

  it('a client secret is recognizable, needs no escaping and has more than 256 random bits', () => {
    expect(first.value).to.match(/^gate_cs_[A-Za-z0-9_-]{49}$/);
    expect(first.value).to.not.equal(second.value);
    expect(first.lastFour).to.equal(first.value.slice(-4));
  });

  it('a client secret is stored only as a hash that is not a part of it', () => {
    expect(first.hash).to.have.length(43);
    expect(first.value).to.not.include(first.hash);
  });

  it('a client can authenticate with each of its active secrets', () => {
    expect(matchesSecret(client, first.value)).to.equal(true);
    expect(matchesSecret(client, second.value)).to.equal(true);
    expect(matchesSecret(clientWith(second), first.value)).to.equal(false);
  });

  it('no secret is accepted for a client without secrets or for an unknown client', () => {
    for (const presented of [first.value, '', '\0'.repeat(43)]) {
      expect(matchesSecret(clientWith(), presented)).to.equal(false);
      expect(matchesSecret(undefined, presented)).to.equal(false);
    }
  });

  it('a client secret with added, missing or changed characters is refused', () => {
    const { value } = first;
    for (const presented of [
      `${value}\0`,
      `${value}\n`,
      `${value} `,
      ` ${value}`,
      `${value}A`,
      value.slice(0, -1),
      value.toUpperCase(),
      first.hash,
      '',
    ]) {
      expect(matchesSecret(client, presented), JSON.stringify(presented)).to.equal(false);
    }
  });
});

function clientWith(...secrets: NewClientSecret[]): Client {
  return {
    id: 'gate_ci_0000000000000000000000',
    ...partner,
    isSuspended: false,
    generation: 0,
    endedThrough: 0,
    leakedSecrets: [],
    endedTokens: [],
    links: {},
    isVerified: false,
    createdAt: new Date(0),
    secrets: secrets.map((secret) => ({ ...secret, createdAt: new Date(0) })),
    version: '1',
  };
}
