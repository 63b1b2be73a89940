import { expect } from 'chai';
import { createClientRegistry } from '../../src/clients/client-registry.ts';
import { writeClientUses, writeSecretUses } from '../../src/clients/client-uses.ts';
import { listenForChanges, silentChangeFeed } from '../../src/storage/change-feed.ts';
import { testDatabase } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { createOpened } from '../support/opened.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { machine } from './drafts.ts';

const EARLIER = new Date('2031-02-03T04:00:00Z');
const LATER = new Date('2031-02-03T05:00:00Z');

// On the embedded database nothing is remembered that could be forgotten.
describeOn([postgresServer], 'uses of clients and secrets', () => {
  const opened = createOpened();
  after(opened.closeAll);
  const database = testDatabase();

  it('the latest use stays, and nobody forgets a client for it', async () => {
    const parts = { database, changes: silentChangeFeed, clock: () => EARLIER.getTime() };
    const registry = createClientRegistry(parts);
    const { client } = await registry.add(machine);
    const [secret] = client.secrets;
    const changes = await opened.add(listenForChanges(database), (feed) => feed.close());
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
    await database.query(`SELECT pg_notify('gatehouse_named_changes', 'access')`);
    await eventually(() => expect(told).to.include('access'));
    expect(told).to.not.include('clients');
  });
});
