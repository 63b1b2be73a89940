import { createServer, type Socket } from 'node:net';
import { expect } from 'chai';
import pg from 'pg';
import { Refusal } from '../../src/base/refusal.ts';
import { type OpenDatabase, openDatabase } from '../../src/storage/database.ts';
import { StorageUnavailable } from '../../src/storage/storage-unavailable.ts';
import { forEachDatabase } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { PATIENCE } from '../support/patience.ts';
import { freshMigratedDatabaseUrl } from '../support/postgres-server.ts';
import { freePort } from '../support/programs.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { failureOf, withinLimit } from './waiting.ts';

const ADD = 'INSERT INTO organizations (id, name, created_at) VALUES ($1, $2, $3)';
const NAME = 'SELECT name FROM organizations WHERE id = $1';

forEachDatabase('database', (open) => {
  let database: OpenDatabase;
  const add = (id: string, name = 'name') => [ADD, [id, name, new Date(0)]] as const;
  const namesOf = (id: string) => database.query<{ name: string }>(NAME, [id]);

  before(async () => {
    database = await open();
  });

  it('a transaction keeps everything and answers what its work answered', async () => {
    const answer = await database.transaction(async (tx) => {
      await tx.query(...add('kept_1'));
      await tx.query(...add('kept_2'));
      return 'the answer';
    });
    expect(answer).to.equal('the answer');
    expect([...(await namesOf('kept_1')), ...(await namesOf('kept_2'))]).to.have.length(2);
  });

  it('a transaction whose work throws keeps nothing and throws the same error', async () => {
    const refusal = new Refusal('refused', 'not like this', 'do it otherwise');
    const work = database.transaction(async (tx) => {
      await tx.query(...add('refused'));
      throw refusal;
    });
    expect(await failureOf(work)).to.equal(refusal);
    expect(await namesOf('refused')).to.deep.equal([]);
  });

  it('a violated constraint is named, and is not a store that is away', async () => {
    await database.query(...add('twice'));
    for (const ask of [
      () => database.query(...add('twice')),
      () => database.transaction((tx) => tx.query(...add('twice'))),
    ]) {
      const error = await failureOf(ask());
      expect(error).not.to.be.instanceOf(StorageUnavailable);
      expect(error).to.include({ code: '23505', constraint: 'organizations_pkey' });
    }
    expect(await namesOf('twice')).to.have.length(1);
  });

  it('a transaction in which a failed statement was passed over is not called kept', async () => {
    const work = database.transaction(async (tx) => {
      await tx.query(...add('passed_over'));
      await failureOf(tx.query(...add('passed_over')));
      return 'kept';
    });
    expect(await failureOf(work)).to.be.instanceOf(Error);
    expect(await namesOf('passed_over')).to.deep.equal([]);
  });

  it('of many statements at once each gets its own answer', async () => {
    const wrong: unknown[] = [];
    const kinds = [
      async (i: number) => {
        const rows = await database.query('SELECT $1::text AS a, $2::int AS b', [`text${i}`, i]);
        if (JSON.stringify(rows) !== `[{"a":"text${i}","b":${i}}]`) wrong.push(rows);
      },
      async (i: number) => {
        const rows = await database.query(`${ADD} RETURNING id`, [`many_${i}`, '', new Date(0)]);
        if (JSON.stringify(rows) !== `[{"id":"many_${i}"}]`) wrong.push(rows);
      },
      (i: number) =>
        database.transaction(async (tx) => {
          await tx.query(...add(`many_${i}`, 'first'));
          await tx.query('UPDATE organizations SET name = $2 WHERE id = $1', [`many_${i}`, 'last']);
          const rows = await tx.query(NAME, [`many_${i}`]);
          if (JSON.stringify(rows) !== '[{"name":"last"}]') wrong.push(rows);
        }),
      (i: number) => failureOf(database.query('SELECT 1 / $1::int', [i * 0])),
    ];
    for (let round = 0; round < 10; round += 1) {
      const numbers = Array.from({ length: 24 }, (_, index) => round * 24 + index);
      await Promise.all(numbers.map((i) => kinds[i % kinds.length]?.(i)));
    }
    expect(wrong).to.deep.equal([]);
    const rows = await database.query("SELECT 1 FROM organizations WHERE id LIKE 'many%'");
    expect(rows).to.have.length(120);
  });

  it('a client that vanishes in mid-transaction leaves nothing, and nobody waits for it', async () => {
    const vanish: ((socket: pg.Client) => Promise<unknown>)[] = [
      (client) => client.query('BEGIN'),
      (client) => client.query('BEGIN').then(() => client.query(...copyOf(add('vanished')))),
      // Gone before it is answered.
      async (client) => void failureOf(client.query('BEGIN')),
      async (client) => void failureOf(client.query(...copyOf(add('unanswered')))),
    ];
    for (const until of vanish) {
      const client = new pg.Client(database.connection);
      client.on('error', () => {});
      await client.connect();
      await until(client);
      streamOf(client).destroy();
      expect(await namesOf('vanished')).to.deep.equal([]);
    }
    await database.query(...add('afterwards'));
  });
});

describeOn([postgresServer], 'database, on a server in trouble', () => {
  let database: OpenDatabase;
  /** The same with the limits of production. */
  let hurried: OpenDatabase;
  let operator: OpenDatabase;

  before(async () => {
    const databaseUrl = await freshMigratedDatabaseUrl();
    const options = { databaseUrl, dataDirectory: '' };
    hurried = await openDatabase(options);
    database = await openDatabase({ ...options, patience: PATIENCE });
    operator = await openDatabase({ ...options, patience: PATIENCE, databaseConnections: 2 });
  });
  after(() => Promise.all([hurried, database, operator].map((one) => one.close())));

  /** Ends every connection but its own, as a failover or an administrator does. */
  async function terminateAll(): Promise<void> {
    const others = 'pid <> pg_backend_pid() AND datname = current_database()';
    await operator.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${others}`);
    await eventually(async () => {
      const left = await operator.query(`SELECT pid FROM pg_stat_activity WHERE ${others}`);
      expect(left).to.deep.equal([]);
      // They are gone there before this process has read it; till then one of them may be taken.
      expect(database.connections().idle).to.equal(0);
    });
  }

  it('terminated idle connections are replaced', async () => {
    await Promise.all(Array.from({ length: 5 }, () => database.query('SELECT pg_sleep(0.05)')));
    await terminateAll();
    expect(await database.query('SELECT 1 AS one')).to.deep.equal([{ one: 1 }]);
  });

  it('a statement whose connection is terminated says so, and the next one works', async () => {
    const cut = failureOf(database.query('SELECT pg_sleep(0.9)'));
    await eventually(async () => {
      const sleeping = "state = 'active' AND query LIKE 'SELECT pg_sleep%'";
      const rows = await operator.query(`SELECT 1 FROM pg_stat_activity WHERE ${sleeping}`);
      expect(rows).to.have.length(1);
    });
    await terminateAll();
    expect(await cut).to.be.instanceOf(StorageUnavailable);
    await database.ping();
  });

  it('a transaction whose connection is terminated between two statements is undone', async () => {
    const work = database.transaction(async (tx) => {
      await tx.query(ADD, ['terminated', '', new Date(0)]);
      await terminateAll();
      return tx.query(NAME, ['terminated']);
    });
    expect(await failureOf(work)).to.be.instanceOf(StorageUnavailable);
    expect(await database.query(NAME, ['terminated'])).to.deep.equal([]);
  });

  it('a transaction terminated before its work refuses still throws the refusal', async () => {
    const refusal = new Refusal('refused', 'not like this', 'do it otherwise');
    const work = database.transaction(async (tx) => {
      await tx.query('SELECT 1');
      await terminateAll();
      throw refusal;
    });
    expect(await failureOf(work)).to.equal(refusal);
    await database.ping();
  });

  it('when slow statements take every connection, all are answered within the limit', async () => {
    const slow = Array.from({ length: 30 }, () => withinLimit(hurried.query('SELECT pg_sleep(5)')));
    const transaction = withinLimit(hurried.transaction((tx) => tx.query('SELECT 1')));
    for (const error of await Promise.all([...slow, transaction])) {
      expect(error).to.be.instanceOf(StorageUnavailable);
    }
    await eventually(() => hurried.ping());
  });

  it('a locked table is given up by both sides, and does not take the others along', async () => {
    await operator.transaction(async (tx) => {
      await tx.query('LOCK TABLE clients IN ACCESS EXCLUSIVE MODE');
      const waiting = Array.from({ length: 20 }, () =>
        withinLimit(hurried.query('SELECT * FROM clients')),
      );
      for (const error of await Promise.all(waiting)) {
        expect(error).to.be.instanceOf(StorageUnavailable);
      }
      await eventually(async () => {
        expect(await hurried.query(NAME, ['nobody'])).to.deep.equal([]);
      });
      await eventually(async () => {
        const stuck = "wait_event_type = 'Lock' AND datname = current_database()";
        const rows = await operator.query(`SELECT query FROM pg_stat_activity WHERE ${stuck}`);
        expect(rows).to.deep.equal([]);
      });
    });
    await eventually(async () => {
      expect(await hurried.query('SELECT * FROM clients')).to.deep.equal([]);
    });
  });

  it('a server that is not there, or says nothing, is away within the limit', async () => {
    const held = new Set<Socket>();
    const mute = createServer((socket) => held.add(socket.on('error', () => {})));
    const port = await freePort();
    await new Promise<void>((resolve) => mute.listen(port, '127.0.0.1', resolve));
    for (const somewhere of [port, await freePort()]) {
      const databaseUrl = `postgres://postgres@127.0.0.1:${somewhere}/postgres`;
      const away = await openDatabase({ databaseUrl, dataDirectory: '' });
      for (const ask of [
        () => away.ping(),
        () => away.query('SELECT 1'),
        () => away.transaction((tx) => tx.query('SELECT 1')),
      ]) {
        const error = await withinLimit(ask());
        expect(error).to.be.instanceOf(StorageUnavailable);
        expect(error).to.include({ status: 503, message: 'temporarily_unavailable' });
      }
      await away.close();
    }
    for (const socket of held) socket.destroy();
    mute.close();
  });
});

const copyOf = ([text, values]: readonly [string, readonly unknown[]]): [string, unknown[]] => [
  text,
  [...values],
];

/** The socket of a connection, which `pg` does not offer in its types. */
const streamOf = (client: pg.Client): Socket =>
  (client as unknown as { connection: { stream: Socket } }).connection.stream;
