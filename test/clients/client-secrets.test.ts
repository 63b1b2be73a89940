import { expect } from 'chai';
import type { Client } from '../../src/clients/client.ts';
import { createClientRegistry } from '../../src/clients/client-registry.ts';
import { silentChangeFeed } from '../../src/storage/change-feed.ts';
import { testDatabase } from '../support/databases.ts';
import { partner } from './drafts.ts';
import { refusalOf } from './refusals.ts';

describe('secrets of a client', () => {
  const now = Date.parse('2031-02-03T04:05:06.789Z');
  const parts = { database: testDatabase(), changes: silentChangeFeed, clock: () => now };
  const registry = createClientRegistry(parts);
  let client: Client;

  beforeEach(async () => {
    client = (await registry.add(partner)).client;
  });

  const idsOf = (found: Client | undefined) => found?.secrets.map(({ id }) => id) ?? [];

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
