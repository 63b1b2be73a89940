/** Ending all authorizations of a connection in one statement, or a single one; users and clients with many single ends. */
import { expect } from 'chai';
import { createPeople, type People } from '../../src/accounts/access/people.ts';
import { type Activity, createActivity } from '../../src/accounts/activity/activity.ts';
import type { Authorization } from '../../src/authorizations/authorization.ts';
import { type Connections, createConnections } from '../../src/authorizations/connections.ts';
import { createDisconnect, createEndings, type Endings } from '../../src/authorizations/endings.ts';
import { createRevocations, type End, type Revocations } from '../../src/authorizations/revocations.ts';
import { readValue } from '../../src/authorizations/token-formats.ts';
import { systemClock } from '../../src/base/clock.ts';
import { newValue } from '../../src/base/random-id.ts';
import { type ClientRegistry, createClientRegistry } from '../../src/clients/client-registry.ts';
import { type ChangeFeed, listenForChanges, sendToAllNodes, silentChangeFeed } from '../../src/storage/change-feed.ts';
import type { OpenDatabase } from '../../src/storage/database.ts';
import { createPostgresStore } from '../../src/storage/postgres-store.ts';
import { keyOf, type TokenStore } from '../../src/storage/token-store.ts';
import { refusalOf, settingsOf } from '../config/configuration.ts';
import { FACTS, newId } from '../storage/token-store-contract.ts';
import { createAccounts } from '../support/accounts.ts';
import { createTestClock, type TestClock } from '../support/clock.ts';
import { openTestDatabase } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { revokeCurrent } from '../support/oauth.ts';
import { createOpened } from '../support/opened.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { addTestClient } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { TIMEOUT_FACTOR } from '../support/timeout-factor.ts';

const HOUR = 3_600;
const DAY = 24 * HOUR;
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
    revocations = createRevocations({ ...parts, activity });
    store = createPostgresStore({ database, clock: time.clock });
    endings = createEndings({ store, revocations });
    const account = await createAccounts(parts).add({ email: 'a@demo.test', name: 'Ada' });
    const client = await addTestClient({ clients: createClientRegistry(parts) }, 'Partner');
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

  const connect = () => connections.rememberConsent({ ...connection, name: 'Partner', hosts: [] });
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

  it('a connection with many authorizations ends by one UPDATE and one log entry, without the token store', async () => {
    await connect();
    for (let count = 0; count < 50; count += 1) await begin();
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
    const end = { authorization: one, ...WHY };
    await Promise.all([endings.end(end), endings.end(end)]);
    await endings.end({ authorization: one, cause: 'operator_revoked', actor: 'operator' });
    expect(await store.readAuthorization(one.id)).to.equal(undefined);
    expect(await store.readAuthorization(other.id)).not.to.equal(undefined);
    const { accountId, clientId } = connection;
    const expected = { id: one.id, accountId, clientId, cause: 'client_revoked' };
    expect(await revocations.find(one.id)).to.include(expected);
    expect(await revocations.find(other.id)).to.equal(undefined);
    expect(await recorded()).to.have.length(1);
  });

  it('if the end of an authorization cannot be recorded, the authorization stays active, and can be ended later', async () => {
    const one = await begin();
    failing = /ended_authorizations/;
    expect(await endings.end({ authorization: one, ...WHY }).catch(String)).to.equal('Error: down');
    failing = undefined;
    expect(await store.readAuthorization(one.id)).not.to.equal(undefined);
    expect(await recorded()).to.deep.equal([]);
    await endings.end({ authorization: one, ...WHY });
    expect(await store.readAuthorization(one.id)).to.equal(undefined);
    expect(await revocations.find(one.id)).to.include({ cause: 'client_revoked' });
    expect(await recorded()).to.have.length(1);
  });

  it('the longest refresh lifetime is stored again after a loss, and shorter ones need no database', async () => {
    const stored = async () =>
      (await database.query('SELECT refresh_lifetime_seconds AS seconds FROM lasting_numbers'))[0];
    await revocations.keepEndsFor(2);
    await database.query('UPDATE lasting_numbers SET refresh_lifetime_seconds = 0');
    await revocations.keepEndsFor(1);
    expect(await stored()).to.deep.equal({ seconds: 2 });
    failing = /refresh_lifetime_seconds/;
    await revocations.keepEndsFor(2);
    await revocations.keepEndsFor(1);
    expect(await revocations.keepEndsFor(3).catch(String)).to.equal('Error: down');
    failing = undefined;
  });

  it('the record of an ended machine token with unknown expiry is kept a day longer than the longest token lifetime', async () => {
    const settings = (seconds: number) => settingsOf(`tokens: { machine_access_token: ${seconds}s }`);
    expect(settings(DAY).tokens.machineAccessTokenSeconds).to.equal(DAY);
    expect(refusalOf(() => settings(DAY + 1)).problems).to.have.length(1);
    const end = { machineToken: 'gate_mt_lost', clientId: connection.clientId, expiresAt: undefined };
    await revocations.record(end, { isInDatabase: false });
    const kept = await database.query(
      'DELETE FROM ended_machine_tokens RETURNING extract(epoch FROM expires_at - at)::int AS seconds',
    );
    expect(kept).to.deep.equal([{ seconds: 2 * DAY }]);
  });

  it('the record of an ended authorization is deleted a day after its tokens have left every token store', async () => {
    await database.query('DELETE FROM ended_authorizations');
    const end = async (authorization: Authorization) => endings.end({ authorization, ...WHY });
    // A refresh that races with the end prolongs a record of 10 minutes by at most the longest lifetime. Token stores
    // keep records for a day after that.
    for (const lifetime of [HOUR / 2, HOUR, HOUR / 4]) {
      // Each is another node, or the same one after a restart.
      await createRevocations({ database, activity }).keepEndsFor(lifetime);
    }
    await end(await begin());
    const refreshed = await begin();
    await store.exchangeCode(refreshed.id, { attempt: 'one', refreshSeconds: 30 * DAY });
    await end({ ...refreshed, ...(await store.readAuthorization(refreshed.id)) });
    const expiresAt = Math.floor(time.clock() / 1_000) + 2 * HOUR;
    await revocations.record(
      { machineToken: 'gate_mt_1', clientId: connection.clientId, expiresAt },
      { isInDatabase: false },
    );
    const begunAt = time.clock();
    const removedBy = async (seconds: number) => {
      time.set(new Date(begunAt + seconds * 1_000));
      return revocations.removeExpired(10);
    };
    try {
      expect(await removedBy(DAY + 2 * HOUR - 60), 'the machine token').to.equal(0);
      expect(await removedBy(DAY + 2 * HOUR + 60)).to.equal(1);
      expect(await removedBy(2 * DAY + HOUR - 60), 'an hour and two days').to.equal(0);
      expect(await removedBy(2 * DAY + HOUR + 60)).to.equal(1);
      expect(await removedBy(32 * DAY - 60), '30 days and two days').to.equal(0);
      expect(await removedBy(32 * DAY + 60)).to.equal(1);
    } finally {
      time.set(new Date(begunAt));
    }
  });
});

const COUNT = 150;

/** Ids of one owner: `end` ends one, `hasEnded` asks whether it has ended. */
interface Kind {
  readonly byPrimaryKey: RegExp;
  makeId(): string;
  end(id: string): Promise<void>;
  hasEnded(id: string): Promise<boolean>;
}

describeOn([postgresServer], 'a user or client with many ended authorizations or tokens', () => {
  const opened = createOpened();
  after(opened.closeAll);
  let changes: ChangeFeed;
  let database: OpenDatabase;
  let people: People;
  let clients: ClientRegistry;
  let kinds: Readonly<Record<'authorization' | 'machine token', Kind>>;
  let statements: string[] = [];
  let answers = 0;
  /** Until this is resolved, the answer of each statement that was sent waits. */
  let isReleased: Promise<void> = Promise.resolve();
  const received = new Set<string>();

  before(async () => {
    database = await opened.add(openTestDatabase('postgres'), (one) => one.close());
    changes = await opened.add(listenForChanges(database, TIMEOUT_FACTOR), (feed) => feed.close());
    changes.onMessage((text) => received.add(text));
    const query: OpenDatabase['query'] = async (text, ...rest) => {
      statements.push(text);
      const found = await database.query(text, ...rest);
      answers += 1;
      await isReleased;
      return found as never;
    };
    const parts = { database: { ...database, query }, changes, clock: systemClock };
    people = createPeople(parts);
    clients = createClientRegistry(parts);
    const account = await createAccounts({ ...parts, database }).add({ email: 'a@demo.test', name: 'Ada' });
    const client = await addTestClient({ clients }, 'Robot', { kind: 'machine' });
    const [accountId, clientId] = [account.id, client.id];
    const revocations = createRevocations({ database, activity: createActivity({ ...parts }) });
    const store = { isInDatabase: false, remove: async () => true, endAuthorization: async () => true };
    const endings = createEndings({ store: store as never, revocations, changes });
    const [generation, usableUntil] = [1, Math.floor(Date.now() / 1_000) + DAY];
    const endOf = (id: string): End => {
      const authorization = { id, accountId, clientId, generation, usableUntil };
      return { authorization, cause: 'client_revoked', actor: 'client' };
    };
    kinds = {
      authorization: {
        byPrimaryKey: /^SELECT 1 FROM ended_authorizations WHERE id = \$1$/,
        makeId: newId,
        end: (id) => endings.end(endOf(id)),
        async hasEnded(id) {
          const person = await people.find(accountId);
          if (!person) throw new Error('the user was not found');
          return people.hasEnded(person, id);
        },
      },
      'machine token': {
        byPrimaryKey: /^SELECT 1 FROM ended_machine_tokens WHERE client_id = \$1 AND key = \$2$/,
        makeId: () => newValue('machine_token'),
        end: (machineToken) => endings.end({ machineToken, clientId, expiresAt: usableUntil }),
        async hasEnded(machineToken) {
          const found = await clients.find(clientId);
          if (!found) throw new Error('the client was not found');
          return clients.hasEndedToken(found, keyOf(machineToken));
        },
      },
    };
  });

  /** Waits until this node has received every notification of the earlier statements. */
  async function untilHeard(): Promise<void> {
    const marker = newId();
    await sendToAllNodes(database, marker);
    await eventually(() => expect(received.has(marker)).to.equal(true));
  }

  for (const name of ['authorization', 'machine token'] as const) {
    it(`${name}: each of ${COUNT} ended ids is refused; the first check takes one statement per id, a second check none`, async () => {
      const { byPrimaryKey, makeId, end, hasEnded } = kinds[name];
      const [ended, active] = [Array.from({ length: COUNT }, makeId), [makeId(), makeId()]];
      for (const id of ended) await end(id);
      await untilHeard();
      await hasEnded(makeId());
      for (const sent of [COUNT + 2, 0]) {
        statements = [];
        for (const id of ended) expect(await hasEnded(id)).to.equal(true);
        for (const id of active) expect(await hasEnded(id)).to.equal(false);
        expect(statements).to.have.length(sent);
        for (const statement of statements) expect(statement).to.match(byPrimaryKey);
      }
      const [first = '', second = ''] = active;
      await end(first);
      expect([await hasEnded(first), await hasEnded(second)]).to.deep.equal([true, false]);
    });

    it(`${name}: an answer that was read before an end is not cached`, async () => {
      const { makeId, end, hasEnded } = kinds[name];
      const id = makeId();
      await untilHeard();
      await hasEnded(makeId());
      const { promise, resolve } = Promise.withResolvers<void>();
      isReleased = promise;
      answers = 0;
      const early = hasEnded(id);
      try {
        await eventually(() => expect(answers).to.equal(1));
        await end(id);
      } finally {
        resolve();
      }
      expect(await early).to.equal(false);
      expect(await hasEnded(id)).to.equal(true);
    });
  }
});

describe('the record of an ended authorization is kept for the longest refresh token lifetime that was ever set', () => {
  const on = startSeeded({ clock: true, settings: { activity: { retentionSeconds: DAY } } });

  it('the fact that an authorization ended is kept for the longest refresh token lifetime ever set on any node', async () => {
    const { service, clock } = on;
    const { settings } = service;
    const withLifetime = (refreshTokenSeconds: number) => ({
      ...settings,
      tokens: { ...settings.tokens, refreshTokenSeconds },
    });
    const longer = settings.tokens.refreshTokenSeconds + 10 * DAY;
    await service.apply(withLifetime(longer));
    await service.apply(withLifetime(3_600));
    try {
      const { accessToken } = await on.partner.tokens(on.clients.confidential);
      const id = String(readValue(accessToken)?.authorizationId);
      expect((await revokeCurrent(on.issuer, accessToken)).status).to.equal(204);
      clock.advance(longer + 2 * DAY - 3_600);
      await service.clean();
      expect(await service.revocations.find(id), 'an older copy of Redis may have such a record').to.be.ok;
      clock.advance(2 * 3_600);
      await service.clean();
      expect(await service.revocations.find(id)).to.equal(undefined);
    } finally {
      await service.apply(settings);
    }
  });

  it('entries of the activity are kept as long as the operator has chosen', async () => {
    const { service, clock, seeded } = on;
    const { accountId } = seeded.person;
    const entries = async () => (await service.activity.of(accountId, { limit: 100 })).length;
    await on.partner.tokens(on.clients.confidential);
    const kept = await entries();
    expect(kept).to.be.above(0);
    clock.advance(DAY - 3_600);
    await service.clean();
    expect(await entries()).to.equal(kept);
    clock.advance(2 * 3_600);
    await service.clean();
    expect(await entries()).to.equal(0);
  });
});
