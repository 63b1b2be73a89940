/** Lists of operator commands with many entries: each page reads only what it shows. */
import { spawnSync } from 'node:child_process';
import { Readable, Writable } from 'node:stream';
import { expect } from 'chai';
import { createAccess } from '../../src/accounts/access/access.ts';
import { createApiKeys } from '../../src/accounts/api-keys/api-keys.ts';
import { listConnections } from '../../src/authorizations/connected-clients.ts';
import { systemClock } from '../../src/base/clock.ts';
import { newValue } from '../../src/base/random-id.ts';
import { createOrganizations, type ListedOrganization } from '../../src/changes/organizations.ts';
import { createClientRegistry } from '../../src/clients/client-registry.ts';
import { type ListForm, listReport } from '../../src/operator/command/report.ts';
import { runOperator } from '../../src/operator/program/run-operator.ts';
import { silentChangeFeed } from '../../src/storage/change-feed.ts';
import type { Page, PageRequest } from '../../src/storage/pages.ts';
import type { Database } from '../../src/storage/queries.ts';
import { createAccounts } from '../support/accounts.ts';
import { testDatabase } from '../support/databases.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { createPage, OPERATOR_PROGRAM, operatorOn, refusalFrom, valueFrom, variablesOf } from './run-operator.ts';

const ENTRIES = 12_000;
const idOf = (prefix: string, number: string): string => `'${prefix}' || lpad((${number})::text, 16, '0')`;

/** Adds people, organizations with a warehouse each, and members and connections of the first. */
const FILL = [
  `INSERT INTO accounts (id, email, email_key, name, created_at)
    SELECT ${idOf('acc_', 'n')}, n || '@demo.test', n || '@demo.test', 'P ' || n,
        timestamptz '2031-01-01' + n * interval '1 s' FROM generate_series(1, ${ENTRIES}) n`,
  `INSERT INTO organizations (id, name, created_at)
    SELECT ${idOf('org_', 'n')}, 'Quay ' || n, now() FROM generate_series(1, ${ENTRIES}) n`,
  `INSERT INTO warehouses (id, organization_id, name, created_at)
    SELECT ${idOf('wh_', 'n')}, ${idOf('org_', 'n')}, 'Hall ' || n, now()
      FROM generate_series(1, ${ENTRIES}) n`,
  `INSERT INTO organization_memberships (account_id, organization_id, role, created_at)
    SELECT ${idOf('acc_', 'n')}, ${idOf('org_', '1')}, 'member', now()
      FROM generate_series(1, ${ENTRIES}) n`,
  `INSERT INTO clients (id, kind, name, redirect_uris, native, created_at, updated_at)
    SELECT ${idOf('gate_ci_', 'n')}, 'public', 'C', '{https://app.example/cb}', false,
        timestamptz '2031-01-01' + n * interval '1 s', now() FROM generate_series(1, ${ENTRIES}) n`,
  `INSERT INTO connections (account_id, client_id, connected_at, approved_at, consented_name, consented_hosts)
    SELECT ${idOf('acc_', 'n')}, ${idOf('gate_ci_', '1')}, now() - n * interval '1 s', now(), 'C', '{}'
      FROM generate_series(1, ${ENTRIES}) n`,
  `INSERT INTO api_keys (id, account_id, name, key_hash, last_four, created_at)
    SELECT ${idOf('key_', 'n')}, ${idOf('acc_', 'n')}, 'K', 'h' || n, 'abcd', now() - n * interval '1 s'
      FROM generate_series(1, ${ENTRIES}) n`,
  'ANALYZE',
];

describeOn([postgresServer], 'lists with many entries', () => {
  const database = testDatabase();
  const CLIENT = `gate_ci_${'1'.padStart(16, '0')}`;
  const ORGANIZATION = `org_${'1'.padStart(16, '0')}`;

  before('fill the database', async function () {
    this.timeout(120_000);
    for (const statement of FILL) await database.query(statement);
  });

  it('`organizations show` and `warehouses show` show what is in it and who reaches it, at most 20 of each', async () => {
    const run = operatorOn(database);
    const hall = `wh_${'1'.padStart(16, '0')}`;
    const first = 'acc_0000000000000001';
    await valueFrom(run, `memberships set --account ${first} --warehouse ${hall} --rights read`);
    const shown = await valueFrom(run, `organizations show ${ORGANIZATION}`);
    expect(shown).to.include({ id: ORGANIZATION, name: 'Quay 1', more_warehouses: 0, has_more_clients: false });
    expect(shown.policy).to.deep.equal({ clients: 'open', api_keys: 'allow' });
    expect(shown.warehouses.map((one: { id: string }) => one.id)).to.deep.equal([hall]);
    expect(shown.members).to.have.length(20);
    expect(shown.clients).to.have.length(1);
    expect(shown.clients[0]).to.include({ id: CLIENT, state: 'admitted', people: 1_001 });
    const { output } = await run(`organizations show ${ORGANIZATION}`);
    expect(output).to.contain('Quay 1').and.contain('Hall 1').and.contain('1@demo.test').and.contain('more than 1,000');
    expect(output).to.contain(`memberships list --organization ${ORGANIZATION}`);

    const warehouse = await valueFrom(run, `warehouses show ${hall}`);
    expect(warehouse).to.deep.include({ name: 'Hall 1', organization: { id: ORGANIZATION, name: 'Quay 1' } });
    expect(warehouse.members.map((one: { id: string }) => one.id)).to.deep.equal([first]);
    expect((await run(`warehouses show ${hall}`)).output).to.contain(`Organization: ${ORGANIZATION}, Quay 1`);
    expect((await refusalFrom(run, 'warehouses show wh_nowhere')).code).to.equal('warehouse_unknown');
  });

  type List = (database: Database, page: PageRequest) => Promise<Page<{ readonly id: string }>>;
  const parts = (over: Database) => ({
    database: over,
    changes: silentChangeFeed,
    clock: systemClock,
  });
  const LISTS: Readonly<Record<string, readonly [table: string, list: List]>> = {
    accounts: ['accounts', (over, page) => createAccounts(parts(over)).list(page)],
    organizations: ['organizations', (over, page) => createOrganizations(parts(over)).list(page)],
    warehouses: ['warehouses', (over, page) => createOrganizations(parts(over)).listWarehouses(page)],
    clients: ['clients', (over, page) => createClientRegistry(parts(over)).list(page)],
    'api-keys': ['api_keys', (over, page) => createApiKeys(parts(over) as never).list(page)],
    'connections of a client': ['connections', (over, page) => listConnections(over, { clientId: CLIENT }, page)],
    'members of an organization': [
      'organization_memberships',
      (over, page) => createAccess(parts(over)).reachedBy('organization', ORGANIZATION, page),
    ],
  };

  for (const [name, [table, list]] of Object.entries(LISTS)) {
    it(`a page of ${name} reads about the entries that it shows and counts`, async () => {
      const first = await list(database, { limit: ENTRIES - 2_000 });
      const after = first.items.at(-1)?.id;
      expect(first.items).to.have.length(ENTRIES - 2_000);
      await database.transaction(async (tx) => {
        const rowsRead = async (): Promise<number> => {
          const [row] = await tx.query<{ read: number }>(
            `SELECT sum(pg_stat_get_xact_tuples_returned(c.oid))::int AS read FROM pg_class c
              WHERE c.oid = $1::regclass
                OR c.oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = $1::regclass)`,
            [table],
          );
          return row?.read ?? 0;
        };
        const over = { ...database, query: tx.query, transaction: (run: never) => run } as never;
        const before = await rowsRead();
        const page = await list(over, { limit: 3 });
        expect(page.items).to.have.length(3);
        expect(page.more, 'more than 1,000').to.equal(1_001);
        const last = await list(over, { limit: 3, after: first.items.at(-10)?.id });
        expect(last.items.map(({ id }) => id)).to.deep.equal(first.items.slice(-9, -6).map(({ id }) => id));
        expect((await rowsRead()) - before).to.be.below(3_000);
      });
      const rest = await list(database, { limit: 1_500, after });
      expect(rest.more).to.equal(500);
    });
  }

  it('--json without --limit prints one array with all entries', async () => {
    const value = await valueFrom(operatorOn(database), 'organizations list');
    expect(value).to.have.length(ENTRIES);
    expect(new Set(value.map(({ id }: { id: string }) => id)).size).to.equal(ENTRIES);
    expect(value.at(-1).name).to.equal(`Quay ${ENTRIES}`);
    expect(await valueFrom(operatorOn(database), 'organizations list --match no-such')).to.deep.equal([]);
    const unknown = await refusalFrom(operatorOn(database), 'organizations list --after org_x');
    expect(unknown.code).to.equal('after_unknown');
  });

  it('--json continues if the last entry of a page is removed before the next page is read', async () => {
    const organizations = createOrganizations(parts(database));
    const names: string[] = [];
    const form: ListForm<ListedOrganization> = {
      heading: [],
      row: ({ id }) => [id],
      nothing: '',
      value: ({ name }) => ({ name }),
    };
    let pages = 0;
    const find = async (page: PageRequest) => {
      const found = await organizations.list(page);
      pages += 1;
      const last = found.items.at(-1);
      if (pages === 1) await database.query('DELETE FROM organizations WHERE id = $1', [last?.id]);
      return found;
    };
    const printArray = async (printed: AsyncIterable<readonly object[]>) => {
      for await (const page of printed) {
        expect(page.length).to.be.at.most(5_000);
        names.push(...page.map((one) => (one as { name: string }).name));
      }
    };
    await listReport({ json: true, printArray }, form, {}, find);
    expect(pages).to.equal(3);
    expect(names).to.have.length(ENTRIES);
    expect(new Set(names).size).to.equal(ENTRIES);
  });

  it('--json ends without an error if its reader has gone', () => {
    const command = `"${process.execPath}" "${OPERATOR_PROGRAM}" organizations list --json | head -c 100`;
    const { stdout, stderr, status } = spawnSync('sh', ['-c', command], {
      env: { ...process.env, ...variablesOf(database) },
      timeout: 60_000,
    });
    expect(`${stdout}`)
      .to.have.length(100)
      .and.match(/^\[\{"id":"org_/);
    expect([`${stderr}`, status]).to.deep.equal(['', 0]);
  });

  it('a failure after the first page leaves the array open, and is reported on standard error', async () => {
    let text = '';
    const stdout = new Writable({
      decodeStrings: false,
      write(chunk: string, _encoding, done) {
        text += chunk;
        database.query('ALTER TABLE organizations RENAME TO gone').then(() => done(), done);
      },
    });
    const stderr = createPage();
    const environment = variablesOf(database);
    const surroundings = { environment, stdin: Readable.from([]), stderr, onInterrupt: () => {} };
    const exitCode = await runOperator(['organizations', 'list', '--json'], {
      ...surroundings,
      stdout,
    });
    await database.query('ALTER TABLE gone RENAME TO organizations');
    expect(exitCode).to.equal(1);
    expect(text).to.match(/^\[\{"id":"org_/);
    expect(() => JSON.parse(text)).to.throw();
    expect(stderr.text()).to.contain('relation "organizations" does not exist');
  });

  it('the text says that there are more than 1,000 more', async () => {
    const { output } = await operatorOn(database)('organizations list --limit 3');
    expect(output).to.match(/There are more than 1,000 more: add --after org_\d+\n$/);
  });

  it('`warehouses show` finds the clients of a warehouse behind a hundred clients without access to it', async () => {
    const [place, hall] = ['org_', 'wh_'].map((prefix) => `${prefix}${'2'.padStart(16, '0')}`);
    await database.query(
      `INSERT INTO organization_memberships (account_id, organization_id, role, created_at)
        SELECT ${idOf('acc_', 'n')}, $1, 'member', now() FROM generate_series(20, 21) n`,
      [place],
    );
    // The first person has no right here. The second one's client has the last ID.
    const ids = Array.from({ length: 101 }, () => newValue('client_id')).sort();
    await database.query(
      `INSERT INTO clients (id, kind, name, redirect_uris, native, created_at, updated_at)
        SELECT id, 'public', 'C', '{https://app.example/cb}', false, now(), now() FROM unnest($1::text[]) id`,
      [ids],
    );
    await database.query(
      `INSERT INTO connections (account_id, client_id, connected_at, approved_at, consented_name, consented_hosts)
        SELECT ${idOf('acc_', 'CASE id WHEN $2 THEN 21 ELSE 20 END')}, id, now(), now(), 'C', '{}'
          FROM unnest($1::text[]) id`,
      [ids, ids.at(-1)],
    );
    const run = operatorOn(database);
    const person = 'acc_0000000000000021';
    await valueFrom(run, `memberships set --account ${person} --warehouse ${hall} --rights read`);
    const shown = await valueFrom(run, `warehouses show ${hall}`);
    expect(shown.clients.map((one: { id: string }) => one.id)).to.deep.equal([CLIENT, ids.at(-1)]);
    expect(shown.has_more_clients).to.equal(false);
  });
});
