import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import pg from 'pg';
import { type ChangeFeed, listenForChanges } from '../../src/storage/change-feed.ts';
import { type OpenDatabase, openDatabase } from '../../src/storage/database.ts';
import { createMemory } from '../../src/storage/memory.ts';
import { freshDataDirectory } from '../support/embedded-postgres.ts';
import { eventually } from '../support/eventually.ts';
import { PATIENCE } from '../support/patience.ts';
import { freshMigratedDatabaseUrl } from '../support/postgres-server.ts';
import { freePort } from '../support/programs.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { startOtherProcess } from './other-process.ts';
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts';

const ADD_CLIENT = `INSERT INTO clients (id, kind, name, redirect_uris, native, created_at, updated_at)
  VALUES ($1, 'machine', '', '{}', false, '2030-01-01', '2030-01-01')`;
const ADD_SECRET = `INSERT INTO client_secrets (id, client_id, secret_hash, last_four, created_at)
  VALUES ($1, $1, '', '', '2030-01-01')`;
const ADD_WAREHOUSE = `INSERT INTO warehouses (id, organization_id, name, created_at)
  VALUES ($1, 'place', '', '2030-01-01')`;

const LISTENERS = "application_name = 'gatehouse changes' AND datname = current_database()";

/** Milliseconds by which a change may be heard late: four round trips a second, of 700 ms at most. */
const MAX_DELAY = 950;

let feed: ChangeFeed;
/** By `feed`, in this test. */
let told: string[] = [];

/** The suite that calls this listens on the database that `open` answers. */
function listensOn(open: () => Promise<OpenDatabase>): void {
  before(async () => {
    feed = await listenForChanges(await open(), PATIENCE);
    feed.onChange((...change) => told.push(change.join(' ').trim()));
  });
  beforeEach(() => {
    told = [];
  });
}

describeOn([postgresServer], 'change feed', () => {
  let databaseUrl: string;
  let changing: OpenDatabase;
  let hearing: OpenDatabase;

  listensOn(async () => {
    databaseUrl = await freshMigratedDatabaseUrl();
    changing = await openDatabase({ databaseUrl, dataDirectory: '', patience: PATIENCE });
    hearing = await openDatabase({ databaseUrl, dataDirectory: '', patience: PATIENCE });
    return hearing;
  });
  after(async () => {
    await feed.close();
    await changing.close();
    await hearing.close();
  });

  it('is live from the start, and tells another node of each committed change', async () => {
    expect(feed.isLive).to.equal(true);
    await changing.query(ADD_CLIENT, ['told']);
    await eventually(() => expect(told).to.deep.equal(['clients told']));
  });

  it('tells nothing before the commit, and never of what was undone', async () => {
    const ids = ['undone', 'committed', 'meanwhile'];
    for (const id of ids) await changing.query(ADD_CLIENT, [id]);
    await eventually(() => expect(told.splice(0)).to.include('clients meanwhile'));
    const undone = changing.transaction(async (tx) => {
      await tx.query(ADD_SECRET, ['undone']);
      throw new Error('undone');
    });
    await undone.catch(() => {});
    await changing.transaction(async (tx) => {
      await tx.query(ADD_SECRET, ['committed']);
      // Arrives on the same connection, and would come after anything told already.
      await changing.query(ADD_SECRET, ['meanwhile']);
      await eventually(() => expect(told).to.deep.equal(['clients meanwhile']));
    });
    await eventually(() => expect(told).to.deep.equal(['clients meanwhile', 'clients committed']));
  });

  it('that lost its connection is not live, forgets everything, and comes back', async () => {
    const memory = createMemory<string>({ changes: feed, clock: Date.now, topics: ['clients'] });
    await memory.find('key', async () => 'remembered');
    expect(await memory.find('key', async () => 'asked again')).to.equal('remembered');

    await changing.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${LISTENERS}`,
    );
    await eventually(() => expect(feed.isLive).to.equal(false));
    expect(told).to.deep.equal(['everything']);
    expect(await memory.find('key', async () => 'asked while deaf')).to.equal('asked while deaf');
    expect(await memory.find('key', async () => 'asked each time')).to.equal('asked each time');

    await changing.query(ADD_CLIENT, ['missed']);
    await changing.query(ADD_SECRET, ['missed']);
    await eventually(() => expect(feed.isLive).to.equal(true));
    // What was missed is unknown, so it is said once more before anything is remembered again.
    expect(told).to.deep.equal(['everything', 'everything']);
    await changing.query("DELETE FROM client_secrets WHERE id = 'missed'");
    await eventually(() =>
      expect(told).to.deep.equal(['everything', 'everything', 'clients missed']),
    );
  });

  describe('on a connection of its own', () => {
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
    const open = async (): Promise<void> => {
      own = await listenForChanges(behind);
    };
    const becomesLive = () => eventually(() => expect(own.isLive).to.equal(true));

    it('that carries nothing any more is not live 950 ms later, and comes back', async () => {
      await open();
      await becomesLive();
      proxy.silence();
      const silentSince = performance.now();
      await delay(MAX_DELAY - (performance.now() - silentSince));
      expect(own.isLive).to.equal(false);
      await becomesLive();
    });

    it('that passes on no notification is not live from the start', async () => {
      proxy.swallowNotifications();
      await open();
      expect(own.isLive).to.equal(false);
    });

    it('that passes on no notification any more is not live after the next one to itself', async () => {
      await open();
      await becomesLive();
      proxy.swallowNotifications();
      await eventually(() => expect(own.isLive).to.equal(false));
    });

    it('is not live right after a stall of its process, and then forgets everything', async () => {
      await open();
      await becomesLive();
      let forgot = 0;
      own.onChange((topic) => {
        if (topic === 'everything') forgot += 1;
      });
      // Nothing else runs in this process meanwhile, as if it was stopped.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, MAX_DELAY);
      expect(own.isLive).to.equal(false);
      await becomesLive();
      expect(forgot).to.be.at.least(1);
    });
  });

  it('leaves no connection behind when it is closed', async () => {
    const own = await listenForChanges(hearing);
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

  it('of a server that is away is not live, and the start goes on', async () => {
    const databaseUrl = `postgres://postgres@127.0.0.1:${await freePort()}/postgres`;
    const away = await openDatabase({ databaseUrl, dataDirectory: '' });
    const deaf = await listenForChanges(away);
    expect(deaf.isLive).to.equal(false);
    await deaf.close();
    await away.close();
  });
});

describe('change feed of the embedded database', () => {
  let directory: string;
  let database: OpenDatabase;

  listensOn(async () => {
    directory = await freshDataDirectory();
    database = await openDatabase({ dataDirectory: directory, sharing: 'own', patience: PATIENCE });
    return database;
  });
  after(async () => {
    await feed.close();
    expect(feed.isLive, 'after it was closed').to.equal(false);
    await database.close();
  });

  it('is live, and tells of a change before whoever made it is answered', async () => {
    expect(feed.isLive).to.equal(true);
    await database.query(ADD_CLIENT, ['client']);
    expect(told).to.deep.equal(['clients client']);
    // Another protocol: a statement without values.
    await database.query("UPDATE clients SET name = 'changed' WHERE id = 'client'");
    expect(told).to.deep.equal(['clients client', 'clients client']);
  });

  it('tells of a transaction with its commit, and nothing of one that was undone', async () => {
    await database.transaction(async (tx) => {
      await tx.query(
        "INSERT INTO organizations (id, name, created_at) VALUES ('place', '', now())",
      );
      await tx.query(ADD_CLIENT, ['other']);
      await tx.query(ADD_SECRET, ['other']);
      await tx.query(ADD_WAREHOUSE, ['hall']);
      expect(told).to.deep.equal([]);
    });
    expect(told).to.deep.equal(['clients other', 'organizations place']);
    const undone = database.transaction(async (tx) => {
      await tx.query(ADD_WAREHOUSE, ['undone']);
      throw new Error('undone');
    });
    await undone.catch(() => {});
    expect(told).to.have.length(2);
  });

  it('hears what another process changes, which hears nothing of it itself', async () => {
    const other = await startOtherProcess(directory, 'share');
    await other.query("UPDATE clients SET name = 'elsewhere' WHERE id = 'client'");
    expect(told).to.deep.equal(['clients client']);
    await other.close();
    const guest = await openDatabase({
      dataDirectory: directory,
      sharing: 'share',
      patience: PATIENCE,
    });
    const deaf = await listenForChanges(guest);
    expect(deaf.isLive).to.equal(guest.listen !== undefined);
    expect(deaf.isLive).to.equal(false);
    await guest.close();
  });

  it('keeps what it hears from the clients, whatever else their statement answers', async () => {
    const client = new pg.Client(database.connection);
    const received: string[] = [];
    client.on('notification', ({ payload }) => received.push(`${payload}`));
    await client.connect();
    try {
      const results = (await client.query(
        `SELECT pg_notify('gatehouse_named_changes', 'access acc_1'); SELECT 1 AS one;
          SELECT pg_notify('somebody_else', ''); SELECT 2 AS two`,
      )) as unknown as { rows: unknown[] }[];
      expect(results.map(({ rows }) => rows.at(0))).to.deep.include.members([
        { one: 1 },
        { two: 2 },
      ]);
      expect(told).to.deep.equal(['access acc_1']);
      expect(received).to.deep.equal([]);
    } finally {
      await client.end();
    }
  });
});
