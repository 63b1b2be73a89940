import { expect } from 'chai';
import { createAccountRegistry } from '../../src/accounts/account-registry.ts';
import {
  type Connections,
  connectionId,
  createConnections,
} from '../../src/accounts/connections.ts';
import { createClientRegistry } from '../../src/clients/client-registry.ts';
import { silentChangeFeed } from '../../src/storage/change-feed.ts';
import type { OpenDatabase } from '../../src/storage/database.ts';
import { refusalOf } from '../clients/refusals.ts';
import { createTestClock, type TestClock } from '../support/clock.ts';
import { forEachDatabase } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';

forEachDatabase('connections', (open) => {
  const consent = { name: 'Partner', hosts: ['app.example'] };
  let database: OpenDatabase;
  let connections: Connections;
  let time: TestClock;
  let connection: { accountId: string; clientId: string };

  before(async () => {
    database = await open();
  });

  beforeEach(async () => {
    time = createTestClock();
    await database.query('TRUNCATE accounts, clients CASCADE');
    const parts = { database, changes: silentChangeFeed, clock: time.clock };
    connections = createConnections(parts);
    const account = await createAccountRegistry(parts).add({ email: 'a@demo.test', name: 'Ada' });
    const { client } = await createClientRegistry(parts).add({
      kind: 'confidential',
      name: 'Partner',
      redirectUris: ['https://app.example/cb'],
      isNative: false,
    });
    connection = { accountId: account.id, clientId: client.id };
  });

  afterEach(() => time.restore());

  const find = () => connections.find(connection.accountId, connection.clientId);
  const grants = () => connections.grantsOf(connection.accountId, connection.clientId);
  const end = () => connections.end(connection.accountId, connection.clientId);
  const expectSomebodyWaiting = async () => {
    const waiting = await database.query(
      'SELECT pid FROM pg_locks WHERE NOT granted AND pid <> pg_backend_pid()',
    );
    expect(waiting).not.to.deep.equal([]);
  };
  const record = (grantId: string, seconds = 60) =>
    connections.recordGrant({
      ...connection,
      grantId,
      expiresAt: new Date(time.clock() + seconds * 1000),
    });

  it('what the person approved is remembered, and renewed by the next approval', async () => {
    expect(await find()).to.equal(undefined);
    await connections.rememberConsent({ ...connection, ...consent });
    expect(await find()).to.deep.equal(consent);
    const renewed = { name: 'Partner 2', hosts: ['app.example', 'b.example'] };
    await connections.rememberConsent({ ...connection, ...renewed });
    expect(await find()).to.deep.equal(renewed);
  });

  it('a connection has one or more grants over time', async () => {
    await connections.rememberConsent({ ...connection, ...consent });
    await record('grant-1');
    time.advance(1);
    await record('grant-2');
    await connections.rememberConsent({ ...connection, ...consent });
    expect(await grants()).to.deep.equal(['grant-1', 'grant-2']);
  });

  it('a person sees what they connected, since when, and what they approved last', async () => {
    const access = [{ id: 'org_1', name: 'Acme', role: 'owner' as const, warehouses: [] }];
    await connections.rememberConsent({ ...connection, ...consent, access: [] });
    const connectedAt = new Date(time.clock());
    time.advance(60);
    await connections.rememberConsent({ ...connection, ...consent, access });
    const [listed, ...others] = await connections.listOf(connection.accountId);
    expect(listed).to.deep.equal({
      ...{ clientId: connection.clientId, name: 'Partner', isSuspended: false },
      ...{ connectedAt, approvedAt: new Date(time.clock()), approvedAccess: access },
    });
    expect(others).to.deep.equal([]);
    expect(await connections.listOf('acc_of_somebody_els')).to.deep.equal([]);
  });

  it('its last use is kept, and never set back', async () => {
    await connections.rememberConsent({ ...connection, ...consent });
    const id = connectionId(connection);
    const at = new Date(time.clock());
    const nobody = { id: connectionId({ ...connection, accountId: 'acc_nobody' }), at };
    await connections.writeUses([{ id, at }, nobody]);
    await connections.writeUses([{ id, at: new Date(time.clock() - 1000) }]);
    const [listed] = await connections.listOf(connection.accountId);
    expect(listed).to.deep.include({ lastUsedAt: at });
  });

  it('what goes with the end of a connection is written once, or not at all', async () => {
    await connections.rememberConsent({ ...connection, ...consent });
    const { accountId, clientId } = connection;
    let times = 0;
    const endWith = (alongside: () => Promise<void>) =>
      connections.end(accountId, clientId, alongside);
    const failure = endWith(async () => {
      throw new Error('not written');
    });
    await failure.catch(() => {});
    expect(await find()).to.deep.equal(consent);
    const count = async () => {
      times += 1;
    };
    await Promise.all([endWith(count), endWith(count)]);
    await endWith(count);
    expect(times).to.equal(1);
  });

  it('a grant without a connection is refused', async () => {
    expect(await refusalOf(record('grant-1'))).to.equal('connection_missing');
  });

  it('ending a connection forgets the approval and answers its grants', async () => {
    await connections.rememberConsent({ ...connection, ...consent });
    await record('grant-1');
    await record('grant-2');
    expect((await end()).sort()).to.deep.equal(['grant-1', 'grant-2']);
    expect(await find()).to.equal(undefined);
    expect(await grants()).to.deep.equal([]);
    expect(await end()).to.deep.equal([]);
  });

  it('a connection that ends while a grant is recorded answers that grant too', async () => {
    await connections.rememberConsent({ ...connection, ...consent });
    const ending = await database.transaction(async (tx) => {
      const recording = createConnections({
        database: { ...database, query: tx.query },
        clock: time.clock,
      });
      const expiresAt = new Date(time.clock() + 60_000);
      await recording.recordGrant({ ...connection, grantId: 'grant-1', expiresAt });
      const ended = end();
      // The embedded server does not begin a transaction before this one is over.
      if (!database.embedded) await eventually(expectSomebodyWaiting);
      return { ended };
    });
    expect(await ending.ended).to.deep.equal(['grant-1']);
    expect(await refusalOf(record('grant-2'))).to.equal('connection_missing');
  });

  it('grants that are over are forgotten in batches, the connection is not', async () => {
    await connections.rememberConsent({ ...connection, ...consent });
    await record('short-1', 10);
    await record('short-2', 20);
    await record('short-3', 30);
    await record('long', 1000);
    time.advance(30);
    expect(await connections.removeExpiredGrants(2)).to.equal(2);
    expect(await connections.removeExpiredGrants(2)).to.equal(1);
    expect(await connections.removeExpiredGrants(2)).to.equal(0);
    expect(await grants()).to.deep.equal(['long']);
    expect(await find()).to.deep.equal(consent);
  });
});
