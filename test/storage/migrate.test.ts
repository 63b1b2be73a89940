import { copyFileSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import pg from 'pg';
import { Refusal } from '../../src/base/refusal.ts';
import { type OpenDatabase, placeOf } from '../../src/storage/database.ts';
import { MigrationsPending, migrate, pendingMigrations, requireSchema } from '../../src/storage/migrate.ts';
import { operatorOn, refusalFrom, valueFrom } from '../operator/run-operator.ts';
import { forEachDatabase, openPatiently } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { freshDatabaseUrl, startPostgresServer } from '../support/postgres-server.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { failureOf } from './waiting.ts';

const MIGRATIONS = path.join(import.meta.dirname, '../../src/storage/migrations');
const NAMES = readdirSync(MIGRATIONS)
  .map((file) => path.basename(file, '.sql'))
  .sort();
const TOMORROW = '9999_of-tomorrow';

async function appliedMigrations(database: OpenDatabase): Promise<string[]> {
  const rows = await database.query<{ name: string }>('SELECT name FROM gatehouse_migrations ORDER BY id');
  return rows.map(({ name }) => name);
}

/** Lists the tables, views and functions that the migrations created in the schema `public`. */
async function schemaObjects(database: OpenDatabase): Promise<string[]> {
  const rows = await database.query<{ name: string }>(`
    SELECT relname AS name FROM pg_class
      WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v', 'm')
    UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    ORDER BY name`);
  return rows.map(({ name }) => name).filter((name) => name !== 'gatehouse_migrations');
}

/** Returns the folder of a later version, with one more migration, which waits for locks of `accounts`. */
function folderOfTomorrow(): string {
  const folder = temporaryDirectory('migrations');
  for (const name of NAMES) copyFileSync(path.join(MIGRATIONS, `${name}.sql`), path.join(folder, `${name}.sql`));
  writeFileSync(
    path.join(folder, `${TOMORROW}.sql`),
    '-- Up Migration\nalter table accounts add column tomorrow text;\n',
  );
  return folder;
}

forEachDatabase('migrations', (open) => {
  it('an empty database gets the whole schema, and a second run changes nothing', async () => {
    const database = await open();
    const complete = await schemaObjects(database);
    expect(complete).to.include.members(['accounts', 'clients', 'token_records']);
    expect(await migrate(database)).to.deep.equal([]);
    expect(await pendingMigrations(database)).to.deep.equal([]);
    expect(await schemaObjects(database)).to.deep.equal(complete);
  });

  it('a database of a development version before 1.0.0 is refused, and the error names the database, which is unchanged', async () => {
    const database = await open();
    const place = database.embedded
      ? `the embedded database in ${realpathSync(`${database.connection.host}`)} `
      : `the database ${placeOf(`${database.connection.connectionString}`)} `;
    const content = async () => ({
      objects: await schemaObjects(database),
      migrations: await database.query('SELECT * FROM gatehouse_migrations'),
    });
    const earlier = [
      "UPDATE gatehouse_migrations SET name = '0001_people-and-access'",
      `UPDATE gatehouse_migrations SET name = '${NAMES[0]}'; COMMENT ON TABLE gatehouse_migrations IS 'schema edited'`,
    ];
    for (const change of earlier) {
      await database.query(change);
      const before = await content();
      const starts = [
        () => requireSchema(database, { autoMigrate: true }),
        () => requireSchema(database, { autoMigrate: false }),
        () => migrate(database),
      ];
      for (const start of starts) {
        const error = await failureOf(start());
        expect(error).to.be.instanceOf(Refusal).and.include({ code: 'schema_unknown' });
        expect(String(error)).to.match(/the .* was created by a development version .*nothing in it/);
        expect(String(error)).to.contain(place);
      }
      const run = operatorOn(database);
      for (const command of ['accounts list', 'organizations add --name Quay', 'migrate']) {
        expect((await refusalFrom(run, command)).code, command).to.equal('schema_unknown');
      }
      expect(await content()).to.deep.equal(before);
    }
  });
});

describe('the SQL file of the database schema', () => {
  it('a comment before each table of the schema says what a row is', () => {
    const text = readFileSync(path.join(MIGRATIONS, `${NAMES[0]}.sql`), 'utf8');
    const tables = [...text.matchAll(/^create table (\w+)/gm)].map(([, name]) => name);
    const commented = [...text.matchAll(/^-- (?:A|The only) row [^\n]*\n(?:-- [^\n]*\n)*create table (\w+)/gm)];
    expect(commented.map(([, name]) => name)).to.deep.equal(tables);
  });
});

describeOn([postgresServer], 'migrations with several nodes', () => {
  const openEmpty = async () => openPatiently({ databaseUrl: await freshDatabaseUrl() });

  it('migrations run once if nodes start at the same time', async () => {
    const databaseUrl = await freshDatabaseUrl();
    const nodes = await Promise.all([1, 2, 3].map(() => openPatiently({ databaseUrl })));
    await Promise.all(nodes.map((node) => requireSchema(node, { autoMigrate: true })));
    for (const node of nodes) {
      expect(await appliedMigrations(node)).to.deep.equal(NAMES);
      expect(await node.query('SELECT id FROM clients')).to.deep.equal([]);
      await node.close();
    }
  });

  it('the fingerprint of the schema is stored with the schema, even if the start fails afterwards', async () => {
    const database = await openEmpty();
    const folder = folderOfTomorrow();
    writeFileSync(path.join(folder, `${TOMORROW}.sql`), '-- Up Migration\nselect no_such_function();\n');
    expect(((await failureOf(migrate(database, {}, folder))) as Error).message).to.contain('no_such_function');
    expect(await appliedMigrations(database)).to.deep.equal(NAMES);
    const [row] = await database.query<{ comment: string | null }>(
      "SELECT obj_description('gatehouse_migrations'::regclass, 'pg_class') AS comment",
    );
    expect(row?.comment).to.match(/^schema \S{20,}$/);
    await database.close();
  });

  it('a node that may not migrate names pending migrations and changes nothing; `migrate` applies and lists each once', async () => {
    const database = await openEmpty();
    const error = await failureOf(requireSchema(database, { autoMigrate: false }));
    expect(error).to.be.instanceOf(MigrationsPending);
    expect(error).to.include({ code: 'migrations_pending' });
    expect((error as MigrationsPending).message).to.contain(NAMES.join(', '));
    expect((error as MigrationsPending).remedy).to.contain('auto_migrate');
    expect(await schemaObjects(database)).to.deep.equal([]);

    const run = operatorOn(database);
    expect(await valueFrom(run, 'migrate')).to.deep.equal({ migrations: NAMES });
    expect(await valueFrom(run, 'migrate')).to.deep.equal({ migrations: [] });
    await requireSchema(database, { autoMigrate: false });
    await database.close();
  });

  it('pending migrations stop reading commands; writing commands apply them; both warn of a later schema', async () => {
    const database = await openEmpty();
    // As after a migration that was interrupted: the table exists, and no migration is applied.
    await database.query(
      'CREATE TABLE gatehouse_migrations (id serial PRIMARY KEY, name text NOT NULL, run_on timestamp NOT NULL)',
    );
    const run = operatorOn(database);
    for (const command of ['accounts list', 'audit', 'nodes', 'sessions list --account a@b.test']) {
      const refused = await refusalFrom(run, command);
      expect(refused.code, command).to.equal('migrations_pending');
      expect(refused.message, command).to.contain(NAMES.join(', '));
    }
    expect(await pendingMigrations(database)).to.deep.equal(NAMES);
    await valueFrom(run, ['organizations', 'add', '--name', 'Quay']);
    expect(await pendingMigrations(database)).to.deep.equal([]);
    await database.query("INSERT INTO gatehouse_migrations (name, run_on) VALUES ('9999_of-tomorrow', now())");
    expect(await valueFrom(run, 'organizations list')).to.have.length(1);
    for (const command of ['organizations list', 'nodes', 'organizations add --name Pier']) {
      const { exitCode, errors } = await run(command);
      expect({ exitCode, errors }, command)
        .to.include({ exitCode: 0 })
        .and.to.have.property('errors')
        .that.contains('schema of a later version (9999_of-tomorrow)');
    }
    await database.close();
  });

  it('a migration that waits for a backup names the backup, blocks no reader, and is applied afterwards', async () => {
    const database = await openEmpty();
    await migrate(database);
    const backup = new pg.Client({ ...database.connection, application_name: 'pg_dump' });
    await backup.connect();
    const waits: string[] = [];
    const started: number[] = [];
    let applied: Promise<string[]> | undefined;
    try {
      await backup.query('BEGIN; LOCK TABLE accounts IN ACCESS SHARE MODE');
      const [onMigration, onWait] = [() => void started.push(1), (reason: string) => void waits.push(reason)];
      applied = migrate(database, { onMigration, onWait }, folderOfTomorrow());
      applied.catch(() => {});
      await eventually(() => expect(waits).to.have.length(1));
      const attempts = new Set<unknown>();
      const attempt = `SELECT xact_start::text AS began FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'`;
      while (attempts.size < 2) {
        for (const { began } of await database.query<{ began: string }>(attempt)) attempts.add(began);
        expect(await database.query('SELECT id FROM accounts LIMIT 1')).to.deep.equal([]);
        await delay(50);
      }
      expect(await appliedMigrations(database)).to.deep.equal(NAMES);
    } finally {
      await backup.query('COMMIT');
      await backup.end();
    }
    expect(await applied).to.deep.equal([TOMORROW]);
    expect(waits).to.have.length(1);
    expect(waits[0]).to.match(/^pg_dump \(process \d+\), whose transaction began \d{4}-\d\d-\d\dT/);
    expect(started, 'a repeated migration is counted once').to.have.length(1);
    await database.close();
  });

  it('a database role that cannot see autovacuum processes migrates even while autovacuum runs', async () => {
    const { url, createDatabase } = await startPostgresServer();
    const [administrated, ownUrl] = [new URL(await createDatabase()), new URL(url)];
    const admin = new pg.Client({ connectionString: administrated.href });
    await admin.connect();
    await admin.query('ALTER SYSTEM SET autovacuum_naptime = 1');
    await admin.query('SELECT pg_reload_conf()');
    await admin.query(`CREATE ROLE gatehouse LOGIN;
      ALTER DATABASE ${administrated.pathname.slice(1)} OWNER TO gatehouse`);
    [ownUrl.username, ownUrl.pathname] = ['gatehouse', administrated.pathname];
    const database = await openPatiently({ databaseUrl: ownUrl.href });
    try {
      await migrate(database);
      // Slow: it takes minutes for so many rows.
      await admin.query(`ALTER TABLE accounts SET (autovacuum_vacuum_cost_delay = 100,
          autovacuum_vacuum_cost_limit = 1, autovacuum_vacuum_insert_threshold = 0,
          autovacuum_analyze_threshold = 2000000000);
        INSERT INTO accounts (id, email, email_key, name, created_at)
          SELECT 'acc_' || lpad(n::text, 16, '0'), n || '@demo.test', n || '@demo.test', 'A', now()
            FROM generate_series(1, 10000) n`);
      const vacuums = async () =>
        (
          await admin.query(`SELECT FROM pg_stat_progress_vacuum
            WHERE relid = 'accounts'::regclass AND datname = current_database()`)
        ).rowCount;
      await eventually(async () => expect(await vacuums()).to.equal(1));
      const waits: string[] = [];
      const onWait = (session: string) => void waits.push(session);
      expect(await migrate(database, { onWait }, folderOfTomorrow())).to.deep.equal([TOMORROW]);
      expect(waits[0]).to.match(/^a session that this role may not see \(process \d+\)$/);
    } finally {
      await database.close();
      await admin.end();
    }
  });

  it('a waiting migration never runs two queries for its blockers at the same time', async () => {
    const database = await openEmpty();
    await migrate(database);
    const blocker = new pg.Client(database.connection);
    await blocker.connect();
    const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
    let asked = 0;
    const slow: OpenDatabase = {
      ...database,
      query: async (...query) => {
        asked += 1;
        await answered;
        return database.query(...query);
      },
    };
    await blocker.query('BEGIN; LOCK TABLE gatehouse_migrations');
    const applied = migrate(slow, {}, folderOfTomorrow());
    applied.catch(() => {});
    try {
      await eventually(() => expect(asked).to.equal(1));
      await delay(500);
      expect(asked).to.equal(1);
    } finally {
      await blocker.query('COMMIT');
      await blocker.end();
      answer();
    }
    expect(await applied).to.deep.equal([TOMORROW]);
    await database.close();
  });
});
