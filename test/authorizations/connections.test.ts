import { expect } from 'chai';
import { NO_LIMIT } from '../../src/accounts/access/access-limit.ts';
import { createPeople } from '../../src/accounts/access/people.ts';
import { createSessionList } from '../../src/accounts/session-list.ts';
import { createClientStandings } from '../../src/authorizations/client-standing.ts';
import { type Connections, createConnections } from '../../src/authorizations/connections.ts';
import { connectionId } from '../../src/authorizations/consents.ts';
import { createClientRegistry } from '../../src/clients/client-registry.ts';
import { createOwnedClients } from '../../src/clients/client-row.ts';
import { lockAccount } from '../../src/storage/account-turns.ts';
import { silentChangeFeed } from '../../src/storage/change-feed.ts';
import type { OpenDatabase } from '../../src/storage/database.ts';
import { createAccounts } from '../support/accounts.ts';
import { createTestClock, type TestClock } from '../support/clock.ts';
import { onPostgres, rowsIn, untilOneWaits } from '../support/databases.ts';
import { addPerson, addTestClient, connectMany } from '../support/seed.ts';

onPostgres('connections', (open) => {
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
    connections = createConnections({ database, changes: silentChangeFeed, clock: time.clock });
    connection = { accountId: await addAccount(), clientId: await addClient() };
  });
  afterEach(() => time.restore());

  const parts = () => ({ database, changes: silentChangeFeed, clock: time.clock });
  const addAccount = async () => (await addPerson({ database, accounts: createAccounts(parts()) }, 'Ada')).accountId;
  const addClient = async () => (await addTestClient({ clients: createClientRegistry(parts()) }, 'Partner')).id;
  const find = () => connections.find(connection.accountId, connection.clientId);
  const connect = (one = connection) => connections.rememberConsent({ ...one, ...consent });
  const generation = (one = connection) => connections.generationOf(one.accountId, one.clientId);

  it('an approval stores the client name and redirect hosts that the user saw; the next approval replaces them', async () => {
    expect(await find()).to.equal(undefined);
    expect(await generation()).to.equal(undefined);
    await connect();
    expect(await find()).to.deep.include({ ...consent, generation: 1 });
    const renewed = { name: 'Partner 2', hosts: ['app.example', 'b.example'] };
    await connections.rememberConsent({ ...connection, ...renewed });
    expect(await find()).to.deep.include({ ...renewed, generation: 1 });
  });

  it('exactly one of several simultaneous approvals creates the connection, also after the connection was ended', async () => {
    for (const _ of ['never connected', 'disconnected']) {
      const stored = await Promise.all([connect(), connect(), connect()]);
      expect(stored.filter((connected) => connected?.isNew)).to.have.length(1);
      await connections.end(connection, 'person_disconnected');
    }
    await connect();
    const renewed = await connect();
    expect(renewed).to.deep.equal({ generation: 3, clientGeneration: 0, isNew: false });
  });

  it('an approval is stored only if session and connection have not changed since the consent page was shown', async () => {
    const accounts = createAccounts(parts());
    const sessions = createSessionList(parts());
    const begun = { begunAt: new Date(), origin: { address: '203.0.113.7', browser: 'curl/8.5.0' } };
    for (const uid of ['a', 'b']) {
      await sessions.record({ accountId: connection.accountId, uid, cookieHash: uid, generation: 0 }, begun);
    }
    const approve = async (sessionGeneration: number, seen?: number, sessionUid = 'a') => {
      const page = { sessionGeneration, sessionUid, generation: seen, endedThrough: 0, limit: NO_LIMIT };
      const stored = await connections.rememberConsent({ ...connection, ...consent, page });
      return stored?.generation;
    };
    await accounts.endSessions(connection.accountId);
    expect(await approve(0)).to.equal(undefined);
    expect(await find()).to.equal(undefined);
    expect(await approve(1)).to.equal(1);
    expect(await approve(1)).to.equal(1);
    await connections.end(connection, 'person_disconnected');
    expect(await approve(1)).to.equal(undefined);
    expect(await approve(1, 1)).to.equal(undefined);
    expect(await find()).to.equal(undefined);
    expect(await approve(1, 2)).to.equal(2);
    expect(await sessions.end(connection.accountId, 'c', async () => {})).to.equal(false);
    expect(await approve(1, 2)).to.equal(2);
    expect(await approve(1, 2, 'c')).to.equal(undefined);
    await sessions.signOut('a');
    expect(await approve(1, 2)).to.equal(undefined);
    expect(await approve(1, 2, 'b')).to.equal(2);
    await accounts.suspend(connection.accountId);
    expect(await approve(1, 2, 'b')).to.equal(undefined);
    await accounts.resume(connection.accountId);
    expect(await approve(1, 2, 'b'), 'the suspension has ended the session').to.equal(undefined);
  });

  it('an approval that waits while its session ends is not stored', async () => {
    const sessions = createSessionList(parts());
    const key = { accountId: connection.accountId, uid: 'ends', cookieHash: 'hash', generation: 0 };
    await sessions.record(key, { begunAt: new Date(), origin: { address: '203.0.113.7', browser: 'curl/8.5.0' } });
    const page = { sessionGeneration: 0, sessionUid: 'ends', generation: undefined, endedThrough: 0, limit: NO_LIMIT };
    const { approving } = await database.transaction(async (tx) => {
      await lockAccount(tx, connection.accountId);
      const approving = connections.rememberConsent({ ...connection, ...consent, page });
      await untilOneWaits(database);
      await tx.query('UPDATE browser_sessions SET ended_at = now() WHERE uid = $1', ['ends']);
      return { approving };
    });
    expect(await approving).to.equal(undefined);
    expect(await find()).to.equal(undefined);
  });

  it('a node reads a cached connection again if an authorization has a newer generation than the cached connection', async () => {
    await connect();
    const live = { ...silentChangeFeed, isLive: true };
    const outdated = createConnections({ ...parts(), changes: live });
    const { accountId, clientId } = connection;
    expect(await outdated.generationOf(accountId, clientId, 1)).to.equal(1);
    await connections.end(connection, 'person_disconnected');
    await connect();
    expect(await outdated.generationOf(accountId, clientId, 1)).to.equal(1);
    expect(await outdated.generationOf(accountId, clientId, 2)).to.equal(2);
    expect(await outdated.generationOf(accountId, clientId, 1)).to.equal(2);
  });

  it('a connection is removed from the cache only after its end is committed', async () => {
    await connect();
    let isCommitted = true;
    const dropped: boolean[] = [];
    const people = { ...createPeople(parts()), forget: () => void dropped.push(isCommitted) };
    const cached = createConnections({ ...parts(), people });
    await database.transaction(async (tx) => {
      isCommitted = false;
      // A reader would cache it again as it was: the caller drops it after the commit.
      await cached.end(connection, 'person_disconnected', undefined, tx);
    });
    isCommitted = true;
    await connect();
    await cached.end(connection, 'person_disconnected');
    expect(dropped).to.deep.equal([true]);
  });

  it('a user sees when each connection began and when it was last approved', async () => {
    await connections.rememberConsent({ ...connection, ...consent });
    const connectedAt = new Date(time.clock());
    time.advance(60);
    await connections.rememberConsent({ ...connection, ...consent });
    const [listed, ...others] = await connections.listOf(connection.accountId);
    expect(listed).to.deep.equal({
      clientId: connection.clientId,
      name: 'Partner',
      isSuspended: false,
      ownerName: null,
      ownedSince: null,
      lastUsedAt: null,
      limit: NO_LIMIT,
      connectedAt,
      approvedAt: new Date(time.clock()),
    });
    expect(others).to.deep.equal([]);
    expect(await connections.listOf('acc_0000000000000000')).to.deep.equal([]);
  });

  it('the last use of a connection is stored, and never set to an earlier time', async () => {
    await connect();
    const id = connectionId(connection);
    const at = new Date(time.clock());
    const unknown = { id: connectionId({ ...connection, accountId: 'acc_unknown' }), at };
    await connections.writeUses([{ id, at }, unknown]);
    await connections.writeUses([{ id, at: new Date(time.clock() - 1000) }]);
    const [listed] = await connections.listOf(connection.accountId);
    expect(listed).to.deep.include({ lastUsedAt: at });
  });

  it('ending a connection raises its generation and records when and why; after reconnecting, no end is shown', async () => {
    await connect();
    await connections.writeUses([{ id: connectionId(connection), at: new Date(time.clock()) }]);
    expect(await generation()).to.equal(1);
    expect(await connections.end(connection, 'person_disconnected')).to.deep.equal([
      { ...connection, name: 'Partner' },
    ]);
    const at = new Date(time.clock());
    time.advance(60);
    expect(await connections.end(connection, 'operator_revoked')).to.deep.equal([]);
    expect(await generation()).to.equal(2);
    const { accountId, clientId } = connection;
    const end = await connections.endOf(accountId, clientId);
    expect(end).to.deep.equal({ at, cause: 'person_disconnected' });
    expect(await find()).to.equal(undefined);
    expect(await connections.listOf(accountId)).to.deep.equal([]);
    expect(await connections.countOf(clientId)).to.equal(0);

    expect(await connect()).to.include({ generation: 2, isNew: true });
    const now = new Date(time.clock());
    const [listed] = await connections.listOf(accountId);
    expect(listed).to.deep.include({ connectedAt: now, approvedAt: now, lastUsedAt: null });
    expect(await connections.endOf(accountId, clientId)).to.equal(undefined);
  });

  it('revoking a client removes its connections from lists and counts, even before their rows are marked as ended', async () => {
    const { accountId, clientId } = connection;
    await connect();
    const clients = createClientRegistry(parts());
    const standings = createClientStandings({ database });
    const seen = async () => ({
      own: (await connections.listOf(accountId)).length,
      both: (await connections.listBoth({ clientId })).items.length,
      people: await connections.countOf(clientId),
      others: (await standings.find(clientId, await addAccount()))?.people,
      isConnected: (await standings.find(clientId, accountId))?.isConnected,
      isEnding: (await clients.find(clientId))?.endingSince !== undefined,
    });
    expect(await seen()).to.deep.equal({
      own: 1,
      both: 1,
      people: 1,
      others: 1,
      isConnected: true,
      isEnding: false,
    });
    await clients.revoke(clientId);
    const none = { own: 0, both: 0, people: 0, others: 0, isConnected: false, isEnding: true };
    expect(await seen()).to.deep.equal(none);
    await connect();
    expect(await seen()).to.include({ own: 1, both: 1, people: 1, others: 1, isConnected: true });
  });

  it('counting the users of a revoked client reads no connection, even before the connections are marked as ended', async () => {
    const { accountId, clientId } = connection;
    const MANY = 3_000;
    await connectMany(database, clientId, MANY);
    await createClientRegistry(parts()).revoke(clientId);
    await connect();
    await database.query('ANALYZE connections');
    const asked: { text: string; values: readonly unknown[] }[] = [];
    const watched: OpenDatabase = {
      ...database,
      query: (text, values = []) => {
        asked.push({ text, values });
        return database.query(text, values);
      },
    };
    expect(await createConnections({ ...parts(), database: watched }).countOf(clientId)).to.equal(1);
    expect((await createClientStandings({ database: watched }).find(clientId, await addAccount()))?.people).to.equal(1);
    await createOwnedClients(watched).listByOwner(accountId);
    expect(asked).to.have.length(3);
    for (const { text, values } of asked) {
      const plan = await database.transaction(async (tx) => {
        // A table of this size may be read as a whole.
        await tx.query('SET LOCAL enable_seqscan = off');
        return tx.query(`EXPLAIN (ANALYZE, FORMAT JSON) ${text}`, values);
      });
      for (const rows of rowsIn(plan)) expect(rows, JSON.stringify(plan)).to.be.below(MANY / 10);
    }
  });

  it('no connection ends if the filter names neither an account nor a client', async () => {
    await connect();
    const noFilter = {} as unknown as { accountId: string };
    expect(await connections.end(noFilter, 'operator_revoked')).to.deep.equal([]);
    expect(await generation()).to.equal(1);
  });

  it('if several calls end one connection, only one call records the end', async () => {
    await connect();
    const endedCounts: number[] = [];
    const ending = () =>
      connections.end(connection, 'person_disconnected', async (_tx, ended) => {
        endedCounts.push(ended.length);
      });
    await Promise.all([ending(), ending()]);
    await ending();
    expect(endedCounts.sort()).to.deep.equal([0, 0, 1]);
    expect(await generation()).to.equal(2);
  });
});
