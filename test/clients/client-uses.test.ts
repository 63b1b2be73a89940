import { expect } from 'chai';
import { createClientRegistry } from '../../src/clients/client-registry.ts';
import { writeClientUses, writeSecretUses } from '../../src/clients/client-uses.ts';
import { listenForChanges, silentChangeFeed } from '../../src/storage/change-feed.ts';
import type { OpenDatabase } from '../../src/storage/database.ts';
import { forEachDatabase } from '../support/databases.ts';

const EARLIER = new Date('2031-02-03T04:00:00Z');
const LATER = new Date('2031-02-03T05:00:00Z');

forEachDatabase('uses of clients and secrets', (open) => {
  let database: OpenDatabase;

  before(async () => {
    database = await open();
  });

  it('the latest use stays, and nobody forgets a client for it', async () => {
    const parts = { database, changes: silentChangeFeed, clock: () => EARLIER.getTime() };
    const registry = createClientRegistry(parts);
    const { client } = await registry.add({
      kind: 'machine',
      name: 'Robot',
      redirectUris: [],
      isNative: false,
    });
    const [secret] = client.secrets;
    const changes = await listenForChanges(database);
    const told: string[] = [];
    changes.onChange((topic) => told.push(topic));
    for (const at of [LATER, EARLIER]) {
      await writeClientUses(database)([{ id: client.id, at }]);
      await writeSecretUses(database)([{ id: secret?.id ?? '', at }]);
    }
    const used = await registry.find(client.id);
    expect(used?.lastUsedAt).to.deep.equal(LATER);
    expect(used?.secrets[0]?.lastUsedAt).to.deep.equal(LATER);
    expect(used?.version).to.equal(client.version);
    // Notifications come in order, so that this one would come after any of the uses.
    await database.query(`SELECT pg_notify('gatehouse_changes', 'access')`);
    while (changes.isLive && !told.includes('access')) await new Promise(setImmediate);
    expect(told).to.not.include('clients');
    await changes.close();
  });
});
