/** The page of a large organization: it reads what it shows, and leaves connections for others. */
import { expect } from 'chai';
import pg from 'pg';
import { createClientBlocks } from '../../src/accounts/access/client-blocks.ts';
import { organizationsFrom, selectReach } from '../../src/accounts/access/reach.ts';
import { HAS_POWER } from '../../src/accounts/strong-sign-ins.ts';
import { createOrganizationReach } from '../../src/authorizations/organization-reach.ts';
import type { Change } from '../../src/changes/change.ts';
import { createChanges } from '../../src/changes/engine.ts';
import { createOrganizations } from '../../src/changes/organizations.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { refuseChanges, rowsIn, untilOneWaits } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { introspect } from '../support/oauth.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { addPerson } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { SHORT_TIMEOUT_FACTOR } from '../support/timeout-factor.ts';
import { textOf } from './client-owner.ts';
import * as members from './organization-members.ts';
import { signedIn } from './signed-in-person.ts';

/** More than two steps of the list. */
const MEMBERS = 2_100;
const WAREHOUSES = 3_000;

describeOn([postgresServer], 'the page of a large organization', () => {
  const on = startSeeded();
  let owner: members.Member;

  before(async () => {
    owner = await join('Olga Owner', 'owner');
    const { confidential, public: open } = on.clients;
    const member = `'acc_' || lpad(i::text, 16, '0')`;
    const { id } = on.seeded.organization;
    for (const statement of [
      `INSERT INTO accounts (id, email, email_key, name, created_at)
        SELECT ${member}, 'm' || i || '@example.test', 'm' || i || '@example.test', 'Member ' || i, now()
        FROM generate_series(1, ${MEMBERS}) i`,
      `INSERT INTO connections (account_id, client_id, connected_at, approved_at, consented_name,
          consented_hosts)
        SELECT ${member}, client, now(), now(), '', '{}' FROM generate_series(1, ${MEMBERS}) i,
          unnest(ARRAY['${confidential.id}', '${open.id}']) client`,
      `INSERT INTO organization_memberships (account_id, organization_id, role, created_at)
        SELECT ${member}, '${id}', 'member', now() FROM generate_series(1, ${MEMBERS}) i`,
      `INSERT INTO api_keys (id, account_id, name, key_hash, last_four, created_at)
        SELECT 'key_' || i, ${member}, 'Key ' || i, i::text, 'x7Qa', now()
        FROM generate_series(100, ${MEMBERS}, 100) i`,
      'ANALYZE',
    ]) {
      await on.service.database.query(statement);
    }
  });

  const url = (more = ''): string => `/profile/organizations/${on.seeded.organization.id}${more}`;
  const join = (name: string, role: 'owner' | 'member') => members.join(on, name, role);
  const count = async (table: string): Promise<number> => {
    const [row] = await on.service.database.query<{ count: number }>(`SELECT count(*)::integer FROM ${table}`);
    return row?.count ?? 0;
  };

  let session: pg.Client | undefined;
  afterEach(async () => {
    await session?.end();
    session = undefined;
  });
  async function anotherSession(): Promise<pg.Client> {
    session = new pg.Client({ connectionString: on.service.settings.storage.databaseUrl });
    await session.connect();
    return session;
  }
  /** Counts the sessions of this database that wait for a lock. */
  const waiting = () => count("pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'");

  it('no statement reads all members, their connections or their API keys', async () => {
    const { database } = on.service;
    const asked: [string, readonly unknown[]][] = [];
    const recording = {
      ...database,
      query: (text: string, values: readonly unknown[] = []) => {
        asked.push([text, values]);
        return database.query(text, values);
      },
    } as unknown as typeof database;
    const reaches = createOrganizationReach({ database: recording, clock: Date.now });
    const { organization, warehouse } = on.seeded;
    await reaches.policyOf(organization.id);
    for (const chosen of [undefined, warehouse.id]) {
      const reach = reaches.of(organization.id, chosen);
      const { rows } = await reach.people();
      await reach.people(rows.at(-1)?.at);
      for (const read of [reach.machines, reach.apiKeys, reach.clients]) await read();
      await reach.clientsNamed([on.clients.confidential.id]);
      await reach.through(on.clients.confidential.id, []);
      await reach.person(owner.accountId);
      await reach.owners();
    }
    const changes = { onChange: () => {} } as never;
    const blocks = createClientBlocks({ database: recording, changes, clock: Date.now });
    await database.query('UPDATE organizations SET asks_first = true');
    await blocks.exclusions([organization.id], [on.clients.confidential.id]);
    for (const [text, values] of asked) {
      const plan = await database.transaction(async (tx) => {
        // A table of 25 rows is read as a whole, at any size of the others.
        await tx.query('SET LOCAL enable_seqscan = off');
        return tx.query(`EXPLAIN (ANALYZE, FORMAT JSON) ${text}`, values);
      });
      for (const rows of rowsIn(plan)) expect(rows, text).to.be.below(MEMBERS);
    }
    await database.query('UPDATE organizations SET asks_first = false');
    expect(asked).to.have.length.above(15);
  });

  it('the page of a client reads warehouses once for all admins, and for others only those that they may use', async () => {
    const { database } = on.service;
    const { id } = on.seeded.organization;
    const undone = new Error('undone');
    const work = database.transaction(async (tx) => {
      const warehouse = (number: string): string => `'wh_hall' || lpad(${number}, 12, '0')`;
      for (const statement of [
        `INSERT INTO warehouses (id, organization_id, name, created_at)
          SELECT ${warehouse('i::text')}, '${id}', 'Hall ' || i, now() FROM generate_series(1, ${WAREHOUSES}) i`,
        `UPDATE organization_memberships SET role = CASE id % 3 WHEN 0 THEN 'admin' ELSE 'viewer' END
          WHERE role = 'member'`,
        `INSERT INTO warehouse_rights (account_id, organization_id, warehouse_id, rights)
          SELECT account_id, '${id}', ${warehouse("'1'")}, '{read,write}' FROM organization_memberships
          WHERE organization_id = '${id}' AND account_id IS NOT NULL`,
        'ANALYZE warehouses, warehouse_rights, organization_memberships',
      ]) {
        await tx.query(statement);
      }
      const sizes: number[] = [];
      const read: number[] = [];
      const recording = {
        ...database,
        async query(text: string, values: readonly unknown[]) {
          const rows = await tx.query(text, values);
          sizes.push(JSON.stringify(rows).length);
          read.push(...rowsIn(await tx.query(`EXPLAIN (ANALYZE, FORMAT JSON) ${text}`, values)));
          return rows;
        },
      } as unknown as typeof database;
      const [own] = organizationsFrom(await tx.query(selectReach('account_id', '$1'), [owner.accountId]));
      const { warehouses = [] } = own ?? {};
      expect(warehouses).to.have.length.above(WAREHOUSES);
      const reach = createOrganizationReach({ database: recording, clock: Date.now }).of(id);
      const connected = await reach.through(on.clients.confidential.id, warehouses);
      const reached = new Set(connected.map(({ reaches }) => `${reaches.length} ${reaches[0]?.rights}`));
      expect([...reached]).to.have.members(['1 read', `${warehouses.length} read,write,manage`]);
      for (const size of sizes) expect(size, 'characters').to.be.below(10 * WAREHOUSES);
      for (const rows of read) expect(rows, 'rows').to.be.below(2 * WAREHOUSES);
      throw undone;
    });
    expect(await work.catch((cause: unknown) => cause)).to.equal(undone);
  });

  it('the removal of 500 members does not read the records of all other members', async () => {
    const undone = new Error('undone');
    const engine = createChanges({ database: on.service.database });
    const work = engine.transaction(async (tx, now) => {
      const read = async (): Promise<number> => {
        const [row] = await tx.query<{ read: number }>(
          `SELECT sum(pg_stat_get_xact_tuples_returned(oid))::int AS read FROM pg_class WHERE oid = 'known_times'::regclass
            OR oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = 'known_times'::regclass)`,
        );
        return row?.read ?? 0;
      };
      const { id } = on.seeded.organization;
      // Of so many new rows, PostgreSQL has no statistics.
      await tx.query(
        `INSERT INTO known_times (thing, account_id, organization_id, warehouse_id, as_of, by_import)
          SELECT 'known ' || i, 'acc_' || lpad((i % ${MEMBERS} + 1)::text, 16, '0'), $1, $2, now(), false
          FROM generate_series(1, 20000) i`,
        [id, on.seeded.warehouse.id],
      );
      const removed = Array.from({ length: 500 }, (_, at): Change => {
        const account_id = `acc_${String(at + 1).padStart(16, '0')}`;
        return { type: 'membership', account_id, organization_id: id, end: 'removed' };
      });
      const before = await read();
      const { differences } = await engine.make(tx, now, removed);
      expect(differences).to.have.length(500);
      // PostgreSQL may read a table of this size once, but not for each of them.
      expect((await read()) - before).to.be.below(50_000);
      throw undone;
    });
    expect(await work.catch((cause: unknown) => cause)).to.equal(undone);
  });

  it('the pages of the list show each member once, and a search finds each member', async () => {
    const html = textOf((await owner.get(url())).html);
    expect(html)
      .to.match(/People 1000\+/)
      .and.match(/API keys \d+\+/);
    expect(html).to.match(/Route Planner .*? and more than 997 others/);
    const seen: string[] = [];
    let next: string | undefined = url('?show=people');
    while (next) {
      const page: { html: string } = await owner.get(next);
      seen.push(...[...page.html.matchAll(/<strong><bdi>(Member \d+)/g)].map(([, name = '']) => name));
      next = page.html.match(/rel="next" href="([^"]*)"/)?.[1]?.replaceAll('&amp;', '&');
    }
    expect(new Set(seen).size).to.equal(MEMBERS);
    expect(seen).to.have.length(MEMBERS);
    const found = await owner.get(url(`?show=people&q=m${MEMBERS}@example`));
    expect(textOf(found.html)).to.include(`Member ${MEMBERS} member`);
    expect(found.html).to.not.include('rel="next"');
    const keys = await owner.get(url(`?show=api-keys&q=key+${MEMBERS}`));
    expect(textOf(keys.html)).to.include(`Acts as Member ${MEMBERS}`);
    const owners = await owner.get(url('?show=people&only=charge'));
    expect(owners.html.match(/<li class="entry/g)).to.have.length(1);
  });

  it('a decision about a client is stored as one log entry, however many members connected the client', async () => {
    const before = await count('activity');
    const { confidential } = on.clients;
    expect((await owner.send(url(`/clients/${confidential.id}/end`))).status).to.equal(303);
    expect(await count('activity')).to.equal(before + 1);
    await owner.send(url(`/clients/${confidential.id}/let-in`));
  });

  it('a member who signed in three times is listed once', async () => {
    const often = await join('Oda Often', 'member');
    for (let again = 0; again < 2; again += 1) await signedIn(on.service, often);
    const { html } = await owner.get(url('?show=people&q=oda'));
    expect(html.match(/<li class="entry/g)).to.have.length(1);
    expect(textOf(html)).to.match(/Oda Often .*Last signed in \d/);
  });

  it('a connection is listed even if it is made while the membership of its user is being stored', async () => {
    const { accountId } = await addPerson(on.service, 'Rae Racer', 'racer@example.test');
    const clientId = on.clients.otherConfidential.id;
    const other = await anotherSession();
    await other.query('BEGIN');
    await other.query(
      `INSERT INTO organization_memberships (account_id, organization_id, role, created_at)
        VALUES ($1, $2, 'member', now())`,
      [accountId, on.seeded.organization.id],
    );
    const consent = { accountId, clientId, name: '', hosts: [] };
    const connecting = on.service.connections.rememberConsent(consent);
    await Promise.race([connecting, untilOneWaits(on.service.database)]);
    await other.query('COMMIT');
    await connecting;
    expect(await count(`member_connections WHERE account_id = '${accountId}'`)).to.equal(1);
  });

  it('owners who keep reloading the page use two database connections at most, and other requests are answered', async () => {
    const owners = [owner, await join('Ole Owner', 'owner'), await join('Ona Owner', 'owner')];
    const stranger = await signedIn(on.service, on.seeded.other);
    const { accessToken } = await on.partner.tokens(on.clients.confidential);
    const lock = await anotherSession();
    await lock.query('BEGIN; LOCK TABLE activity IN ACCESS EXCLUSIVE MODE');
    const pages = owners.flatMap((one) => [1, 2, 3, 4].map(() => one.get(url())));
    await eventually(async () => expect(await waiting()).to.be.above(1));
    const [introspected, page] = await Promise.all([
      introspect(on.issuer, on.clients.resourceServer, accessToken),
      stranger.get('/profile/connections'),
    ]);
    expect(await waiting()).to.be.below(3);
    expect(introspected.body.active).to.equal(true);
    expect(page.status).to.equal(200);
    await lock.query('ROLLBACK');
    await Promise.all(pages);
  });

  it('the deletion of a warehouse continues after its first or a later step waited too long for a lock', async () => {
    const { database, settings, organizations } = on.service;
    const { id: organizationId } = on.seeded.organization;
    const lock = await anotherSession();
    const { databaseUrl } = settings.storage;
    const quick = await openDatabase({ databaseUrl, dataDirectory: '', timeoutFactor: SHORT_TIMEOUT_FACTOR });
    for (const [table, column] of [
      ['warehouses', 'id'],
      ['warehouse_rights', 'warehouse_id'],
    ]) {
      const { id } = await organizations.addWarehouse({ organizationId, name: 'Hall' });
      await on.service.memberships.setRights(owner, id, ['read']);
      await lock.query('BEGIN');
      await lock.query(`SELECT FROM ${table} WHERE ${column} = $1 FOR UPDATE`, [id]);
      const failures: unknown[] = [];
      const transaction: typeof quick.transaction = (work) =>
        quick.transaction<never>(work as never).catch(async (error: unknown) => {
          failures.push(error);
          await lock.query('ROLLBACK');
          throw error;
        });
      await createOrganizations({ database: { ...quick, transaction } }).remove('warehouse', id);
      expect(failures[0], table).to.include({ code: 'statement_too_long' });
      expect(await database.query('SELECT FROM warehouses WHERE id = $1', [id])).to.deep.equal([]);
    }
    await quick.close();
  });

  it('an organization or warehouse whose deletion was interrupted is invisible, and a job completes the deletion', async () => {
    const { database, organizations, memberships, access, clean } = on.service;
    const { accountId } = await addPerson(on.service, 'Ottilie Owner', 'ottilie@example.test');
    for (const kind of ['organization', 'warehouse'] as const) {
      const { id: organizationId } = await organizations.add({ name: `Ended ${kind}` });
      const warehouse = await organizations.addWarehouse({ organizationId, name: 'Hall' });
      await memberships.setRole({ accountId }, organizationId, 'owner');
      const reached = async () =>
        (await access.accessOf({ accountId })).flatMap(({ id, warehouses }) => [id, ...warehouses.map(({ id }) => id)]);
      const id = kind === 'organization' ? organizationId : warehouse.id;
      expect(await reached()).to.include(id);
      const isPowerful = () => count(`accounts a WHERE a.id = '${accountId}' AND ${HAS_POWER}`);
      expect(await isPowerful()).to.equal(1);
      const accept = await refuseChanges(database, 'DELETE ON warehouse_rights');
      const failed = await organizations.remove(kind, id).catch((cause: Error) => cause.message);
      await accept();
      expect(failed).to.equal('refused');
      await eventually(async () => expect(await reached()).to.not.include(id));
      expect(await isPowerful()).to.equal(kind === 'warehouse' ? 1 : 0);
      const [listed] = (await organizations.list({ match: `Ended ${kind}` })).items;
      expect(listed?.warehouses).to.equal(kind === 'warehouse' ? 0 : undefined);
      expect((await organizations.dependents('organization', organizationId)).warehouses).to.equal(0);
      await clean();
      expect(await count(`${kind}s WHERE id = '${id}'`)).to.equal(1);
      await database.query(`UPDATE ${kind}s SET ended_at = ended_at - interval '6 minutes' WHERE id = '${id}'`);
      await clean();
      expect(await count(`${kind}s WHERE id = '${id}'`)).to.equal(0);
    }
  });

  it('a deletion step that takes too long is repeated with fewer rows, and a failing deletion blocks no others', async () => {
    const { database, organizations, memberships, clean } = on.service;
    const [living, ended] = await Promise.all(['Living', 'Ended'].map((name) => organizations.add({ name })));
    const warehouse = await organizations.addWarehouse({ organizationId: `${living?.id}`, name: 'Hall' });
    for (let n = 0; n < 10; n += 1) {
      const { accountId } = await addPerson(on.service, 'Pia Person', `pia${n}@example.test`);
      await memberships.setRole({ accountId }, `${ended?.id}`, 'member');
    }
    // More places that cannot be deleted than the job deletes in a round.
    await database.query(`
      CREATE FUNCTION too_many() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF (SELECT count(*) FROM gone) > 8 THEN RAISE EXCEPTION 'too long' USING ERRCODE = '57014'; END IF;
        RETURN NULL; END $$;
      CREATE TRIGGER too_many AFTER DELETE ON organization_memberships
        REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION too_many();
      INSERT INTO organizations (id, name, created_at, ended_at)
        SELECT 'org_' || i, 'Kept', now(), now() - interval '1 hour' FROM generate_series(1, 11) i;
      INSERT INTO warehouses (id, organization_id, name, created_at, ended_at)
        SELECT 'wh_' || i, 'org_' || i, 'Kept', now(), now() - interval '1 hour' FROM generate_series(1, 11) i;
      UPDATE organizations SET ended_at = now() - interval '6 minutes' WHERE id = '${ended?.id}';
      UPDATE warehouses SET ended_at = now() - interval '6 minutes' WHERE id = '${warehouse.id}';`);
    const accept = await refuseChanges(database, "DELETE ON warehouses FOR EACH ROW WHEN (old.name = 'Kept')");
    const left = () =>
      count(`(SELECT id FROM organizations WHERE ended_at IS NOT NULL
      UNION SELECT id FROM warehouses WHERE ended_at IS NOT NULL) ended`);
    for (let rounds = 0; rounds < 2; rounds += 1) await clean();
    expect(await left(), 'only what is kept').to.equal(22);
    expect(await count("organizations WHERE name = 'Kept' AND ended_at < now() - interval '1 hour'")).to.equal(11);
    await database.query('DROP FUNCTION too_many CASCADE');
    await accept();
    for (let rounds = 0; rounds < 3; rounds += 1) await clean();
    expect(await left()).to.equal(0);
  });

  it('an organization is deleted in steps, with its access and warehouses; an interrupted deletion can be continued', async () => {
    const { database, organizations } = on.service;
    const { id } = on.seeded.organization;
    let logged = 0;
    const remove = (): Promise<unknown> =>
      organizations.remove('organization', id, async () => {
        logged += 1;
      });
    await database.query(`
      CREATE FUNCTION refuse_many() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF (SELECT count(*) FROM gone) > 500 THEN RAISE EXCEPTION 'too many at once'; END IF;
        RETURN NULL; END $$;
      CREATE TRIGGER refuse_many AFTER DELETE ON organization_memberships
        REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION refuse_many();
      CREATE TRIGGER refuse_many AFTER DELETE ON warehouses
        REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION refuse_many();
      CREATE TRIGGER refuse_many_ends AFTER UPDATE ON warehouses
        REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION refuse_many();
      INSERT INTO warehouses (id, organization_id, name, created_at)
        SELECT 'wh_' || lpad(i::text, 16, '0'), '${id}', i, now() FROM generate_series(1, 501) i;
      CREATE TRIGGER refuse_many AFTER DELETE ON known_times
        REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION refuse_many();
      INSERT INTO known_times (thing, organization_id, warehouse_id, as_of, by_import)
        SELECT i, '${id}', 'wh_' || lpad('1', 16, '0'), now(), false FROM generate_series(1, 600) i;`);
    const accept = await refuseChanges(database, 'DELETE ON organizations FOR EACH ROW');
    // Another transaction deletes some rows of the first step, which then deletes fewer than it may.
    const other = await anotherSession();
    await other.query('BEGIN');
    await other.query('DELETE FROM organization_memberships WHERE organization_id = $1 AND id % 100 = 0', [id]);
    const removing = remove().catch((cause: Error) => cause.message);
    await untilOneWaits(database);
    await other.query('COMMIT');
    const error = await removing;
    expect(error).to.equal('refused');
    expect(await count(`organization_memberships WHERE organization_id = '${id}'`)).to.equal(0);
    await accept();
    await remove();
    expect(await count(`organizations WHERE id = '${id}'`)).to.equal(0);
    expect(logged, 'entries in the log').to.equal(1);
  });
});
