import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import pg from 'pg';
import { createCache } from '../../src/storage/cache.ts';
import { type ChangeFeed, listenForChanges } from '../../src/storage/change-feed.ts';
import { type OpenDatabase, openDatabase } from '../../src/storage/database.ts';
import { openPatiently } from '../support/databases.ts';
import { freshDataDirectory } from '../support/embedded-postgres.ts';
import { eventually } from '../support/eventually.ts';
import { freshMigratedDatabaseUrl } from '../support/postgres-server.ts';
import { freePort } from '../support/programs.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { TIMEOUT_FACTOR } from '../support/timeout-factor.ts';
import { startOtherProcess } from './other-process.ts';
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts';

const ADD_CLIENT = `INSERT INTO clients (id, kind, name, redirect_uris, native, created_at, updated_at)
  VALUES ($1, 'machine', '', '{}', false, '2030-01-01', '2030-01-01')`;
const ADD_SECRET = `INSERT INTO client_secrets (id, client_id, secret_hash, last_four, created_at)
  VALUES ($1, $1, '', '', '2030-01-01')`;
const ADD_WAREHOUSE = `INSERT INTO warehouses (id, organization_id, name, created_at)
  VALUES ($1, 'place', '', '2030-01-01')`;

const LISTENERS = "application_name = 'gatehouse changes' AND datname = current_database()";

/** Maximum milliseconds until a change is received: an interval of 250 and a round trip of 700. */
const MAX_DELAY = 950;

let feed: ChangeFeed;
/** The changes that `feed` announced in this test. */
let changes: string[] = [];

/** Lets the calling suite listen on the database that `open` returns. */
function listensOn(open: () => Promise<OpenDatabase>): void {
  before(async () => {
    feed = await listenForChanges(await open(), TIMEOUT_FACTOR);
    feed.onChange((...change) => changes.push(change.join(' ').trim()));
  });
  beforeEach(() => {
    changes = [];
  });
}

describeOn([postgresServer], 'change feed', () => {
  let databaseUrl: string;
  let changing: OpenDatabase;
  let listener: OpenDatabase;

  listensOn(async () => {
    databaseUrl = await freshMigratedDatabaseUrl();
    changing = await openPatiently({ databaseUrl });
    listener = await openPatiently({ databaseUrl });
    return listener;
  });
  after(async () => {
    await feed.close();
    await changing.close();
    await listener.close();
  });

  it('the change feed is live from the start, and announces each committed change to another node', async () => {
    expect(feed.isLive).to.equal(true);
    await changing.query(ADD_CLIENT, ['announced']);
    await eventually(() => expect(changes).to.deep.equal(['clients announced']));
  });

  it('the change feed announces nothing before the commit, and nothing that was rolled back', async () => {
    const ids = ['undone', 'committed', 'meanwhile'];
    for (const id of ids) await changing.query(ADD_CLIENT, [id]);
    await eventually(() => expect(changes.splice(0)).to.include('clients meanwhile'));
    const undone = changing.transaction(async (tx) => {
      await tx.query(ADD_SECRET, ['undone']);
      throw new Error('undone');
    });
    await undone.catch(() => {});
    await changing.transaction(async (tx) => {
      await tx.query(ADD_SECRET, ['committed']);
      // Send this on the same connection, so that an earlier announcement would arrive before it.
      await changing.query(ADD_SECRET, ['meanwhile']);
      await eventually(() => expect(changes).to.deep.equal(['clients meanwhile']));
    });
    const inOrder = ['clients meanwhile', 'clients committed'];
    await eventually(() => expect(changes).to.deep.equal(inOrder));
  });

  describe('change feed on a connection through a proxy', () => {
    let proxy: TcpProxy;
    let behind: OpenDatabase;
    let own: ChangeFeed;

    beforeEach(async () => {
      const url = new URL(databaseUrl);
      proxy = await startTcpProxy(Number(url.port));
      url.port = String(proxy.port);
      behind = await openDatabase({ databaseUrl: url.href, dataDirectory: '' });
    });
    afterEach(async () => {
      await own.close();
      await behind.close();
      await proxy.close();
    });
    const open = async (timeoutFactor = 1): Promise<void> => {
      own = await listenForChanges(behind, timeoutFactor);
    };
    const becomesLive = () => eventually(() => expect(own.isLive).to.equal(true));

    it('a change feed that lost its connection is not live, invalidates all caches, and reconnects', async () => {
      await open(TIMEOUT_FACTOR);
      const heard: string[] = [];
      own.onChange((...change) => heard.push(change.join(' ').trim()));
      const cache = createCache<string>({ changes: own, clock: Date.now, topics: ['clients'] });
      await cache.get('key', async () => 'remembered');
      expect(await cache.get('key', async () => 'asked again')).to.equal('remembered');

      // The feed cannot reconnect before this test is done with its absence.
      proxy.leadTo(await freePort());
      await changing.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${LISTENERS}`);
      await eventually(() => expect(own.isLive).to.equal(false));
      expect(heard[0]).to.equal('everything');
      expect(await cache.get('key', async () => 'asked again')).to.equal('asked again');
      expect(await cache.get('key', async () => 'asked each time')).to.equal('asked each time');

      await changing.query(ADD_CLIENT, ['missed']);
      await changing.query(ADD_SECRET, ['missed']);
      const missed = heard.length;
      proxy.leadTo(Number(new URL(databaseUrl).port));
      await becomesLive();
      await changing.query("DELETE FROM client_secrets WHERE id = 'missed'");
      await eventually(() => expect(heard.at(-1)).to.equal('clients missed'));
      // Which changes were missed is unknown, so everything is invalidated before caching resumes.
      expect(heard.slice(0, -1)).to.deep.equal(heard.slice(0, -1).map(() => 'everything'));
      expect(heard.length - 1).to.be.above(missed);
    });

    it('the change feed is not live 950 ms after its connection fell silent, and recovers later', async () => {
      await open();
      await becomesLive();
      // It can connect again only after this test looked, however late that is.
      proxy.leadTo(await freePort());
      proxy.silence();
      const silentSince = performance.now();
      // A timer may fire up to a millisecond early, and the last round trip may have begun just before.
      while (performance.now() <= silentSince + MAX_DELAY) await delay(1);
      expect(own.isLive).to.equal(false);
      proxy.leadTo(Number(new URL(databaseUrl).port));
      await becomesLive();
    });

    it('the change feed is never live if a connection pooler drops notifications', async () => {
      proxy.swallowNotifications();
      await open();
      expect(own.isLive).to.equal(false);
    });

    it('the change feed stops being live when a connection pooler starts to drop notifications', async () => {
      await open();
      await becomesLive();
      proxy.swallowNotifications();
      await eventually(() => expect(own.isLive).to.equal(false));
    });

    it('the change feed is not live right after a stall of its process, and invalidates all caches', async () => {
      await open();
      await becomesLive();
      let invalidations = 0;
      own.onChange((topic) => {
        if (topic === 'everything') invalidations += 1;
      });
      // Block the whole process, as if it were stopped.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, MAX_DELAY);
      expect(own.isLive).to.equal(false);
      await becomesLive();
      expect(invalidations).to.be.at.least(1);
    });
  });

  it('a closed change feed leaves no connection behind', async () => {
    const own = await listenForChanges(listener);
    const count = async () => {
      const rows = await changing.query(`SELECT 1 FROM pg_stat_activity WHERE ${LISTENERS}`);
      return rows.length;
    };
    const listening = await count();
    await own.close();
    expect(listening).to.equal(2);
    expect(own.isLive).to.equal(false);
    await eventually(async () => expect(await count()).to.equal(1));
  });

  it('a change feed whose database is unavailable is not live, and does not prevent the start', async () => {
    const databaseUrl = `postgres://postgres@127.0.0.1:${await freePort()}/postgres`;
    const unavailable = await openDatabase({ databaseUrl, dataDirectory: '' });
    const other = await listenForChanges(unavailable);
    expect(other.isLive).to.equal(false);
    await other.close();
    await unavailable.close();
  });
});

describe('change feed of the embedded database', () => {
  let directory: string;
  let database: OpenDatabase;

  listensOn(async () => {
    directory = await freshDataDirectory();
    database = await openPatiently({ dataDirectory: directory, sharing: 'own' });
    return database;
  });
  after(async () => {
    await feed.close();
    expect(feed.isLive, 'after it was closed').to.equal(false);
    await database.close();
  });

  it('the embedded change feed is live, and announces a change before the caller gets the result', async () => {
    expect(feed.isLive).to.equal(true);
    await database.query(ADD_CLIENT, ['client']);
    expect(changes).to.deep.equal(['clients client']);
    // Also test a statement without values, which `pg` sends with another protocol.
    await database.query("UPDATE clients SET name = 'changed' WHERE id = 'client'");
    expect(changes).to.deep.equal(['clients client', 'clients client']);
  });

  it('the embedded change feed announces a transaction when it commits, and none that was rolled back', async () => {
    await database.transaction(async (tx) => {
      await tx.query("INSERT INTO organizations (id, name, created_at) VALUES ('place', '', now())");
      await tx.query(ADD_CLIENT, ['other']);
      await tx.query(ADD_SECRET, ['other']);
      await tx.query(ADD_WAREHOUSE, ['hall']);
      expect(changes).to.deep.equal([]);
    });
    expect(changes).to.deep.equal(['clients other', 'organizations place']);
    const undone = database.transaction(async (tx) => {
      await tx.query(ADD_WAREHOUSE, ['undone']);
      throw new Error('undone');
    });
    await undone.catch(() => {});
    expect(changes).to.have.length(2);
  });

  it('the owner process of an embedded database is notified of changes by guest processes, but not vice versa', async () => {
    const other = await startOtherProcess(directory, 'share');
    await other.query("UPDATE clients SET name = 'elsewhere' WHERE id = 'client'");
    expect(changes).to.deep.equal(['clients client']);
    await other.close();
    const guest = await openPatiently({ dataDirectory: directory, sharing: 'share' });
    const guestFeed = await listenForChanges(guest);
    expect(guestFeed.isLive).to.equal(guest.listen !== undefined);
    expect(guestFeed.isLive).to.equal(false);
    await guest.close();
  });

  it('the embedded change feed removes notifications from the answers to its clients, and nothing else', async () => {
    const client = new pg.Client(database.connection);
    const received: string[] = [];
    client.on('notification', ({ payload }) => received.push(`${payload}`));
    await client.connect();
    try {
      const results = (await client.query(
        `SELECT pg_notify('gatehouse_named_changes', 'access acc_1'); SELECT 1 AS one;
          SELECT pg_notify('somebody_else', ''); SELECT 2 AS two`,
      )) as unknown as { rows: unknown[] }[];
      expect(results.map(({ rows }) => rows.at(0))).to.deep.include.members([{ one: 1 }, { two: 2 }]);
      expect(changes).to.deep.equal(['access acc_1']);
      expect(received).to.deep.equal([]);
    } finally {
      await client.end();
    }
  });
});
