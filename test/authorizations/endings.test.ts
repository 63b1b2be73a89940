/** Ending all authorizations of a connection in one statement, or a single authorization. */
import { mock } from 'node:test';
import { expect } from 'chai';
import { createAccountRegistry } from '../../src/accounts/account-registry.ts';
import { type Activity, createActivity } from '../../src/accounts/activity/activity.ts';
import type { Authorization } from '../../src/authorizations/authorization.ts';
import { type Connections, createConnections } from '../../src/authorizations/connections.ts';
import { createDisconnect, createEndings, type Endings } from '../../src/authorizations/endings.ts';
import { createRevocations, type Revocations } from '../../src/authorizations/revocations.ts';
import { createClientRegistry } from '../../src/clients/client-registry.ts';
import { silentChangeFeed } from '../../src/storage/change-feed.ts';
import type { OpenDatabase } from '../../src/storage/database.ts';
import { createPostgresStore } from '../../src/storage/postgres-store.ts';
import type { TokenStore } from '../../src/storage/token-store.ts';
import { FACTS } from '../storage/token-store-contract.ts';
import { createTestClock, type TestClock } from '../support/clock.ts';
import { openTestDatabase } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { postgresServer } from '../support/requirements.ts';

const FROM = { address: '192.0.2.1', browser: 'test' };
const WHY = { cause: 'client_revoked', actor: 'client', origin: FROM } as const;

describe('revocation of connections and authorizations', () => {
  let database: OpenDatabase;
  /** The sent statements, in order. A statement that matches `failing` fails. */
  let statements: string[] = [];
  let failing: RegExp | undefined;
  let time: TestClock;
  let connections: Connections;
  let activity: Activity;
  let revocations: Revocations;
  let store: TokenStore;
  let endings: Endings;
  let connection: { accountId: string; clientId: string };
  const warnings: unknown[] = [];
  let onWarning = () => {};

  before(async () => {
    time = createTestClock();
    database = await openTestDatabase(postgresServer.program ? 'postgres' : 'embedded');
    const watched: OpenDatabase['query'] = (text, values) => watch(database, text, values);
    const parts = {
      changes: silentChangeFeed,
      clock: time.clock,
      database: {
        ...database,
        query: watched,
        transaction: ((work) =>
          database.transaction((tx) =>
            work({ ...tx, query: (text, values) => watch(tx, text, values) }),
          )) as OpenDatabase['transaction'],
      },
    };
    connections = createConnections(parts);
    activity = createActivity(parts);
    const warn = (about: unknown) => {
      warnings.push(about);
      onWarning();
    };
    revocations = createRevocations({ ...parts, activity, log: { warn } });
    store = createPostgresStore({ database, clock: time.clock });
    endings = createEndings({ store, revocations, clock: time.clock });
    const account = await createAccountRegistry(parts).add({ email: 'a@demo.test', name: 'Ada' });
    const { client } = await createClientRegistry(parts).add({
      kind: 'confidential',
      name: 'Partner',
      isNative: false,
      redirectUris: ['https://app.example/cb'],
    });
    connection = { accountId: account.id, clientId: client.id };
  });
  beforeEach(() => {
    statements = [];
    failing = undefined;
  });
  after(async () => {
    await database?.close();
    time?.restore();
  });

  function watch<Row extends object>(on: Pick<OpenDatabase, 'query'>, text: string, values?: readonly unknown[]) {
    statements.push(text.trim());
    return failing?.test(text) ? Promise.reject(new Error('down')) : on.query<Row>(text, values);
  }

  const connect = () => connections.rememberConsent({ ...connection, name: 'Partner', hosts: [], access: [] });
  const begin = async (more = {}): Promise<Authorization> => {
    const id = `authorization_${Math.random().toString(36).slice(2).padEnd(12, '0')}`;
    const facts = { ...FACTS, ...connection, ...more };
    await store.beginAuthorization(id, facts, { codeSeconds: 600, absoluteSeconds: undefined });
    const record = await store.readAuthorization(id);
    if (!record) throw new Error('the authorization was not stored');
    return { id, ...record };
  };
  /** Returns and removes the entries of the user's activity, oldest first. */
  const recorded = async () => {
    const rows = await database.query<{ action: string; actor: string; details: object }>(
      'WITH taken AS (DELETE FROM activity RETURNING *) SELECT * FROM taken ORDER BY id',
    );
    return rows.map(({ action, actor, details }) => ({ action, actor, ...details }));
  };

  it('a connection with 500 authorizations ends by one UPDATE and one log entry, without the token store', async () => {
    await connect();
    for (let count = 0; count < 500; count += 1) await begin();
    const disconnect = createDisconnect(connections, activity);
    statements = [];
    await disconnect(connection, FROM);
    expect(statements.filter((text) => text.startsWith('UPDATE connections'))).to.have.length(1);
    expect(statements.filter((text) => text.startsWith('INSERT INTO activity'))).to.have.length(1);
    expect(statements).to.have.length(2);
    expect(await connections.generationOf(connection.accountId, connection.clientId)).to.equal(2);
    const { clientId: client_id } = connection;
    const entry = { action: 'disconnected', client_id, client_name: 'Partner' };
    expect(await recorded()).to.deep.equal([{ ...entry, actor: 'person' }]);
  });

  it('a revocation by an operator is recorded in the activity and in the connection, with this cause', async () => {
    const { accountId, clientId } = connection;
    const disconnect = createDisconnect(connections, activity);
    for (const [by, actor, cause] of [
      [FROM, 'person', 'person_disconnected'],
      [undefined, 'operator', 'operator_revoked'],
    ] as const) {
      await connect();
      await disconnect(connection, by);
      expect(await recorded()).to.have.nested.property('[0].actor', actor);
      expect(await connections.endOf(accountId, clientId)).to.include({ cause });
    }
  });

  it('a connection does not end if the entry in the activity log cannot be written', async () => {
    await connect();
    failing = /INSERT INTO activity/;
    const disconnect = createDisconnect(connections, activity);
    expect(await disconnect(connection, FROM).catch(String)).to.equal('Error: down');
    failing = undefined;
    expect(await connections.find(connection.accountId, connection.clientId)).to.be.ok;
    expect(await recorded()).to.deep.equal([]);
  });

  it('a single authorization ends at once, and only the first cause is recorded', async () => {
    const [one, other] = [await begin(), await begin()];
    await Promise.all([endings.end(one, WHY), endings.end(one, WHY)]);
    await endings.end(one, { cause: 'operator_revoked', actor: 'operator' });
    await revocations.close();
    expect(await store.readAuthorization(one.id)).to.equal(undefined);
    expect(await store.readAuthorization(other.id)).not.to.equal(undefined);
    const { accountId, clientId } = connection;
    const at = new Date(time.clock());
    const expected = { id: one.id, accountId, clientId, at, cause: 'client_revoked' };
    expect(await revocations.find(one.id)).to.deep.equal(expected);
    expect(await revocations.find(other.id)).to.equal(undefined);
    expect(await recorded()).to.have.length(1);
  });

  it('the first recorded cause of a revocation stays, even if two processes record a cause', async () => {
    const one = await begin();
    const operator = { cause: 'operator_revoked', actor: 'operator' } as const;
    await endings.endRecorded({ authorization: one, ...operator });
    await endings.endRecorded({ authorization: one, ...WHY });
    await endings.end(one, { cause: 'code_replayed', actor: 'service', origin: FROM });
    expect(await revocations.find(one.id)).to.include({ cause: 'operator_revoked' });
    expect(await recorded()).to.have.length(1);
  });

  it('an operator command that cannot record a revocation ends no authorization, and can be repeated', async () => {
    const one = await begin();
    failing = /ended_authorizations/;
    expect(await endings.endRecorded({ authorization: one, ...WHY }).catch(String)).to.equal('Error: down');
    failing = undefined;
    expect(await store.readAuthorization(one.id)).not.to.equal(undefined);
    await endings.endRecorded({ authorization: one, ...WHY });
    expect(await store.readAuthorization(one.id)).to.equal(undefined);
    expect(await revocations.find(one.id)).to.include({ cause: 'client_revoked' });
    expect(await recorded()).to.have.length(1);
  });

  it('the end of a client test is recorded, but not in the activity of the user', async () => {
    const { generation: _, ...test } = await begin();
    await endings.end(test, WHY);
    expect(await store.readAuthorization(test.id)).to.equal(undefined);
    expect(await revocations.find(test.id)).to.include({ cause: 'client_revoked' });
    expect(await recorded()).to.deep.equal([]);
  });

  it('an authorization ends even if the end cannot be recorded; it is recorded later', async () => {
    const one = await begin();
    failing = /INSERT INTO ended_authorizations/;
    await endings.end(one, WHY);
    await revocations.close();
    expect(await store.readAuthorization(one.id)).to.equal(undefined);
    expect(JSON.stringify(warnings)).to.contain('client_revoked').and.not.contain(one.secret);
    expect(await revocations.find(one.id)).to.equal(undefined);
    expect(await recorded()).to.deep.equal([]);
    failing = undefined;
    await revocations.close();
    expect(await revocations.find(one.id)).to.include({ cause: 'client_revoked' });
    expect(await recorded()).to.have.length(1);
  });

  it('a failed record of an ended authorization is written again in the background, after a pause', async () => {
    const one = await begin();
    const failed = new Promise<void>((resolve) => {
      onWarning = resolve;
    });
    mock.timers.enable({ apis: ['setTimeout'] });
    try {
      failing = /INSERT INTO ended_authorizations/;
      await endings.end(one, WHY);
      await failed;
      failing = undefined;
      mock.timers.tick(6_000);
    } finally {
      mock.timers.reset();
    }
    await eventually(async () => {
      expect(await revocations.find(one.id)).to.include({ cause: 'client_revoked' });
    });
    expect(await recorded()).to.have.length(1);
  });

  it('a restored token store is detected because it lacks the latest revocations, and all are repeated', async () => {
    await database.query('DELETE FROM ended_authorizations');
    const all: Authorization[] = [];
    for (let count = 0; count < 230; count += 1) {
      const one = await begin();
      all.push(one);
      time.advance(1);
      await revocations.record({ authorization: one, ...WHY }, false);
    }
    const active = await begin();
    time.advance(180);
    expect(await endings.findRevived()).to.have.length(100);
    const middle = new Date(time.clock() - 294_500);
    const progress: number[] = [];
    const since = await endings.repeatRecorded(middle, (looked) => progress.push(looked));
    expect(since).to.deep.equal({ looked: 115, ended: 115 });
    expect(progress).to.deep.equal([100, 115]);
    expect(await endings.findRevived()).to.deep.equal([]);
    expect(await endings.repeatRecorded()).to.deep.equal({ looked: 230, ended: 115 });
    for (const { id } of all) expect(await store.readAuthorization(id)).to.equal(undefined);
    expect(await store.readAuthorization(active.id)).not.to.equal(undefined);
  });

  it('after a restore every revocation is repeated, even if more than one batch has the same time', async () => {
    await database.query('DELETE FROM ended_authorizations');
    for (let count = 0; count < 130; count += 1) {
      await revocations.record({ authorization: await begin(), ...WHY }, false);
    }
    expect(await endings.repeatRecorded()).to.deep.equal({ looked: 130, ended: 130 });
    expect(await endings.findRevived()).to.deep.equal([]);
  });

  it('recorded revocations are deleted in batches, after the retention time of the activity log', async () => {
    await database.query('DELETE FROM ended_authorizations');
    for (let count = 0; count < 3; count += 1) {
      await revocations.record({ authorization: await begin(), ...WHY }, false);
      time.advance(60);
    }
    const before = new Date(time.clock() - 60);
    expect(await revocations.removeOlderThan(new Date(time.clock() - 3_600_000), 2)).to.equal(0);
    expect(await revocations.removeOlderThan(before, 2)).to.equal(2);
    expect(await revocations.removeOlderThan(before, 2)).to.equal(1);
  });
});
