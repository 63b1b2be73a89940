import { createServer, type Socket } from 'node:net';
import { expect } from 'chai';
import pg from 'pg';
import { Refusal } from '../../src/base/refusal.ts';
import { failureOf as operatorFailure } from '../../src/operator/program/failure.ts';
import { type OpenDatabase, openDatabase } from '../../src/storage/database.ts';
import { StorageUnavailable } from '../../src/storage/storage-unavailable.ts';
import { forEachDatabase, openPatiently } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
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

  it('a transaction commits all statements and returns the result of its work', async () => {
    const answer = await database.transaction(async (tx) => {
      await tx.query(...add('kept_1'));
      await tx.query(...add('kept_2'));
      return 'the answer';
    });
    expect(answer).to.equal('the answer');
    expect([...(await namesOf('kept_1')), ...(await namesOf('kept_2'))]).to.have.length(2);
  });

  it('a transaction whose function throws is rolled back and throws the same error', async () => {
    const refusal = new Refusal('refused', 'not like this', 'do it otherwise');
    const work = database.transaction(async (tx) => {
      await tx.query(...add('refused'));
      throw refusal;
    });
    expect(await failureOf(work)).to.equal(refusal);
    expect(await namesOf('refused')).to.deep.equal([]);
  });

  it('the error for a violated constraint names it, and does not report an unavailable store', async () => {
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

  it('a transaction that ignored a failed statement is not reported as committed', async () => {
    const work = database.transaction(async (tx) => {
      await tx.query(...add('passed_over'));
      await failureOf(tx.query(...add('passed_over')));
      return 'kept';
    });
    expect(await failureOf(work)).to.be.instanceOf(Error);
    expect(await namesOf('passed_over')).to.deep.equal([]);
  });

  it('parallel SQL statements each get their own result', async () => {
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
    for (let round = 0; round < 3; round += 1) {
      const numbers = Array.from({ length: 24 }, (_, index) => round * 24 + index);
      await Promise.all(numbers.map((i) => kinds[i % kinds.length]?.(i)));
    }
    expect(wrong).to.deep.equal([]);
    const rows = await database.query("SELECT 1 FROM organizations WHERE id LIKE 'many%'");
    expect(rows).to.have.length(36);
  });

  it('a database client that disconnects during a transaction leaves no rows or locks behind', async () => {
    const vanish: ((socket: pg.Client) => Promise<unknown>)[] = [
      (client) => client.query('BEGIN'),
      (client) => client.query('BEGIN').then(() => client.query(...copyOf(add('vanished')))),
      // The last two clients disconnect before their answer arrives.
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

describeOn([postgresServer], 'a statement that reaches its time limit', () => {
  it('a statement that reaches its time limit is reported as such, not as an unavailable database', async () => {
    const databaseUrl = await freshMigratedDatabaseUrl();
    // The error of the server must arrive within a tenth of the limit, on a loaded machine, too.
    const [impatient, other] = [
      await openPatiently({ databaseUrl, timeoutFactor: 4 }),
      await openPatiently({ databaseUrl }),
    ];
    const lock = 'LOCK TABLE organizations IN ACCESS EXCLUSIVE MODE';
    const endings: readonly (readonly [string, () => Promise<unknown>])[] = [
      ['work', () => impatient.query('SELECT pg_sleep(60)')],
      ['work in a transaction', () => impatient.transaction((tx) => tx.query('SELECT pg_sleep(60)'))],
      [
        'a lock',
        () =>
          other.transaction(async (tx) => {
            await tx.query(lock);
            return impatient.query('SELECT FROM organizations');
          }),
      ],
    ];
    const errors = await Promise.all(endings.map(async ([what, work]) => [what, await failureOf(work())] as const));
    for (const [what, error] of errors) {
      expect(error, what).to.be.instanceOf(StorageUnavailable);
      expect(error, what).to.include({ code: 'statement_too_long', status: 503 });
      expect(error, what).to.include({ error: 'temporarily_unavailable' });
      const { exitCode, text, value } = operatorFailure(error);
      expect(exitCode).to.equal(1);
      expect(value).to.have.nested.property('error.code', 'statement_too_long');
      expect(text)
        .to.include('the database works')
        .and.not.match(/running|does not answer/);
    }
    await Promise.all([impatient.close(), other.close()]);
  });
});

describeOn([postgresServer], 'every connection to a PostgreSQL server', () => {
  it('every connection disables JIT compilation with a statement, because poolers refuse a start-up parameter', async () => {
    const databaseUrl = await freshMigratedDatabaseUrl();
    const database = await openPatiently({ databaseUrl, databaseConnections: 3 });
    const asked = `SELECT setting, source, (SELECT reset_val FROM pg_settings WHERE name = 'jit') AS given, pg_sleep(0.2)
      FROM pg_settings WHERE name = 'jit'`;
    const answers = await Promise.all([
      database.query(asked),
      database.query(asked),
      database.transaction((tx) => tx.query(asked)),
    ]);
    expect(database.connections()).to.include({ idle: 3 });
    for (const [answer] of answers) expect(answer).to.include({ setting: 'off', source: 'session', given: 'on' });
    await database.close();
  });
});

describeOn([postgresServer], 'database on a failing server', () => {
  let database: OpenDatabase;
  /** The same database, opened with the time limits of production. */
  let limited: OpenDatabase;
  let operator: OpenDatabase;

  before(async () => {
    const databaseUrl = await freshMigratedDatabaseUrl();
    limited = await openDatabase({ databaseUrl, dataDirectory: '' });
    database = await openPatiently({ databaseUrl });
    operator = await openPatiently({ databaseUrl, databaseConnections: 2 });
  });
  after(() => Promise.all([limited, database, operator].map((one) => one.close())));

  /** Terminates every other connection to the database, as a failover or an administrator does. */
  async function terminateAll(): Promise<void> {
    const others = 'pid <> pg_backend_pid() AND datname = current_database()';
    await operator.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${others}`);
    await eventually(async () => {
      const left = await operator.query(`SELECT pid FROM pg_stat_activity WHERE ${others}`);
      expect(left).to.deep.equal([]);
      // Wait until this process has noticed that the server ended the connections: before, it may reuse one.
      expect(database.connections().idle).to.equal(0);
    });
  }

  it('a process that is stopped inside a transaction loses its locks, and blocks no other node for long', async () => {
    const id = 'frozen';
    await database.query(ADD, [id, 'name', new Date(0)]);
    const lock = 'SELECT 1 FROM organizations WHERE id = $1 FOR UPDATE';
    const [locked, thawed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const frozen = failureOf(
      limited.transaction(async (tx) => {
        await tx.query(lock, [id]);
        locked.resolve();
        await thawed.promise;
        await tx.query('SELECT 1');
      }),
    );
    try {
      await locked.promise;
      await eventually(async () => expect(await database.query(`${lock} SKIP LOCKED`, [id])).to.have.length(1));
    } finally {
      thawed.resolve();
    }
    expect(await frozen).to.be.instanceOf(StorageUnavailable);
  });

  it('an SQL statement whose connection is terminated fails as unavailable, and the next one works', async () => {
    // Shorter than the time limit of a statement; it is terminated at once.
    const cut = failureOf(database.query('SELECT pg_sleep(15)'));
    await eventually(async () => {
      const sleeping = "state = 'active' AND query LIKE 'SELECT pg_sleep%'";
      const rows = await operator.query(`SELECT 1 FROM pg_stat_activity WHERE ${sleeping}`);
      expect(rows).to.have.length(1);
    });
    await terminateAll();
    expect(await cut).to.be.instanceOf(StorageUnavailable);
    await database.ping();
  });

  it('a transaction whose connection is terminated between two statements is rolled back', async () => {
    const work = database.transaction(async (tx) => {
      await tx.query(ADD, ['terminated', '', new Date(0)]);
      await terminateAll();
      return tx.query(NAME, ['terminated']);
    });
    expect(await failureOf(work)).to.be.instanceOf(StorageUnavailable);
    expect(await database.query(NAME, ['terminated'])).to.deep.equal([]);
  });

  it('a refusal thrown in a transaction whose connection was terminated reaches the caller', async () => {
    const refusal = new Refusal('refused', 'not like this', 'do it otherwise');
    const work = database.transaction(async (tx) => {
      await tx.query('SELECT 1');
      await terminateAll();
      throw refusal;
    });
    expect(await failureOf(work)).to.equal(refusal);
    await database.ping();
  });

  it('SQL statements fail within the time limit if slow statements use every connection', async () => {
    const slow = Array.from({ length: 30 }, () => withinLimit(limited.query('SELECT pg_sleep(5)')));
    const transaction = withinLimit(limited.transaction((tx) => tx.query('SELECT 1')));
    const errors = await Promise.all([...slow, transaction]);
    for (const error of errors) expect(error).to.be.instanceOf(StorageUnavailable);
    // Those that got no connection waited for other requests, not for the server.
    expect(errors.at(-1)).to.include({ code: 'too_many_waiting' });
    await eventually(() => limited.ping());
  });

  it('a statement that waits too long for a lock fails, ends on the server too, and blocks no other statement', async () => {
    await operator.transaction(async (tx) => {
      await tx.query('LOCK TABLE clients IN ACCESS EXCLUSIVE MODE');
      const waiting = Array.from({ length: 20 }, () => withinLimit(limited.query('SELECT * FROM clients')));
      for (const error of await Promise.all(waiting)) {
        expect(error).to.be.instanceOf(StorageUnavailable);
      }
      await eventually(async () => {
        expect(await limited.query(NAME, ['nobody'])).to.deep.equal([]);
      });
      await eventually(async () => {
        const stuck = "wait_event_type = 'Lock' AND datname = current_database()";
        const rows = await operator.query(`SELECT query FROM pg_stat_activity WHERE ${stuck}`);
        expect(rows).to.deep.equal([]);
      });
    });
    await eventually(async () => {
      expect(await limited.query('SELECT * FROM clients')).to.deep.equal([]);
    });
  });

  it('a database server that is unreachable or silent is reported as unavailable within the time limit', async () => {
    const sockets = new Set<Socket>();
    const silent = createServer((socket) => sockets.add(socket.on('error', () => {})));
    const port = await freePort();
    await new Promise<void>((resolve) => silent.listen(port, '127.0.0.1', resolve));
    for (const other of [port, await freePort()]) {
      const databaseUrl = `postgres://postgres@127.0.0.1:${other}/postgres`;
      const unavailable = await openDatabase({ databaseUrl, dataDirectory: '' });
      for (const ask of [
        () => unavailable.ping(),
        () => unavailable.query('SELECT 1'),
        () => unavailable.transaction((tx) => tx.query('SELECT 1')),
      ]) {
        const error = await withinLimit(ask());
        expect(error).to.be.instanceOf(StorageUnavailable);
        expect(error).to.include({ status: 503, message: 'temporarily_unavailable' });
      }
      await unavailable.close();
    }
    for (const socket of sockets) socket.destroy();
    silent.close();
  });
});

const copyOf = ([text, values]: readonly [string, readonly unknown[]]): [string, unknown[]] => [text, [...values]];

/** The socket of a connection, which `pg` does not offer in its types. */
const streamOf = (client: pg.Client): Socket =>
  (client as unknown as { connection: { stream: Socket } }).connection.stream;
