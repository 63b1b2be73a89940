import { expect } from 'chai';
import type { Client } from '../../src/clients/client.ts';
import { createClientRegistry } from '../../src/clients/client-registry.ts';
import { silentChangeFeed } from '../../src/storage/change-feed.ts';
import { testDatabase } from '../support/databases.ts';
import { matchesSecret, partner } from './drafts.ts';
import { refusalOf } from './refusals.ts';

describe('secrets of a client', () => {
  let now = Date.parse('2031-02-03T04:05:06.789Z');
  const parts = { database: testDatabase(), changes: silentChangeFeed, clock: () => now };
  const registry = createClientRegistry(parts);
  let client: Client;
  let secret: string;

  beforeEach(async () => {
    const added = await registry.add(partner);
    client = added.client;
    secret = added.secret ?? '';
  });

  const idsOf = (found: Client | undefined) => found?.secrets.map(({ id }) => id) ?? [];

  it('two secrets of a client are valid at the same time, until one of them is removed', async () => {
    now += 1_000;
    const added = await registry.addSecret(client.id);
    expect(added.secret)
      .to.match(/^gate_cs_[A-Za-z0-9_-]{49}$/)
      .and.not.equal(secret);
    expect(added.client.secrets.map(({ createdAt }) => createdAt.getTime())).to.deep.equal([now - 1_000, now]);
    expect(added.client.version).to.not.equal(client.version);
    for (const value of [secret, added.secret]) {
      expect(matchesSecret(await registry.find(client.id), value)).to.equal(true);
    }
    const [first = ''] = idsOf(client);
    const left = await registry.removeSecret(client.id, first);
    expect(matchesSecret(left, secret)).to.equal(false);
    expect(matchesSecret(left, added.secret)).to.equal(true);
    expect(await registry.find(client.id)).to.deep.equal(left);
  });

  it('a client cannot get a third secret, and its last secret cannot be removed', async () => {
    const [first = ''] = idsOf(client);
    expect(await refusalOf(registry.removeSecret(client.id, first))).to.equal('secret_last');
    await registry.addSecret(client.id);
    expect(await refusalOf(registry.addSecret(client.id))).to.equal('secrets_full');
    expect(idsOf(await registry.find(client.id))).to.have.length(2);
  });

  it('removing a secret of another client, or one with an impossible ID, is refused', async () => {
    await registry.addSecret(client.id);
    const { client: other } = await registry.add({ ...client, name: 'Other' });
    for (const id of [...idsOf(other), '', 'sec_\0', 'sec_0000000000000000']) {
      expect(await refusalOf(registry.removeSecret(client.id, id))).to.equal('secret_unknown');
    }
    expect(await registry.find(other.id)).to.deep.equal(other);
  });

  it('a public client cannot have a secret', async () => {
    const { client: phone } = await registry.add({ ...client, kind: 'public' });
    expect(await refusalOf(registry.addSecret(phone.id))).to.equal('secret_unused');
  });
});
