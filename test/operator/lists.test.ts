/** Lists of operator commands with many entries: each page reads only what it shows. */
import { Writable } from 'node:stream';
import { expect } from 'chai';
import { newValue } from '../../src/base/random-id.ts';
import { createOrganizations, type ListedOrganization } from '../../src/changes/organizations.ts';
import { type ListForm, listReport } from '../../src/operator/command/report.ts';
import { runOperator } from '../../src/operator/program/run-operator.ts';
import type { PageRequest } from '../../src/storage/pages.ts';
import { testDatabase } from '../support/databases.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { operatorOn, operatorWith, refusalFrom, valueFrom, variablesOf } from './run-operator.ts';

const ENTRIES = 12_000;
const PEOPLE = 1_200;
const idOf = (prefix: string, number: string): string => `'${prefix}' || lpad((${number})::text, 16, '0')`;

/** Adds organizations, the first two with a warehouse, and members and connections of the first. */
const FILL = [
  `INSERT INTO accounts (id, email, email_key, name, created_at)
    SELECT ${idOf('acc_', 'n')}, n || '@demo.test', n || '@demo.test', 'P ' || n, now()
      FROM generate_series(1, ${PEOPLE}) n`,
  `INSERT INTO organizations (id, name, created_at)
    SELECT ${idOf('org_', 'n')}, 'Quay ' || n, now() FROM generate_series(1, ${ENTRIES}) n`,
  `INSERT INTO warehouses (id, organization_id, name, created_at)
    SELECT ${idOf('wh_', 'n')}, ${idOf('org_', 'n')}, 'Hall ' || n, now() FROM generate_series(1, 2) n`,
  `INSERT INTO organization_memberships (account_id, organization_id, role, created_at)
    SELECT ${idOf('acc_', 'n')}, ${idOf('org_', '1')}, 'member', now() FROM generate_series(1, ${PEOPLE}) n`,
  `INSERT INTO clients (id, kind, name, redirect_uris, native, created_at, updated_at)
    VALUES (${idOf('gate_ci_', '1')}, 'public', 'C', '{https://app.example/cb}', false, now(), now())`,
  `INSERT INTO connections (account_id, client_id, connected_at, approved_at, consented_name, consented_hosts)
    SELECT ${idOf('acc_', 'n')}, ${idOf('gate_ci_', '1')}, now(), now(), 'C', '{}' FROM generate_series(1, ${PEOPLE}) n`,
  'ANALYZE',
];

describeOn([postgresServer], 'lists with many entries', () => {
  const database = testDatabase();
  const CLIENT = `gate_ci_${'1'.padStart(16, '0')}`;
  const ORGANIZATION = `org_${'1'.padStart(16, '0')}`;

  before('fill the database', async () => {
    for (const statement of FILL) await database.query(statement);
  });

  it('`show` lists what an organization or warehouse contains and who can access it, at most 20 of each', async () => {
    const run = operatorOn(database);
    const hall = `wh_${'1'.padStart(16, '0')}`;
    const first = 'acc_0000000000000001';
    await valueFrom(run, `memberships set --account ${first} --warehouse ${hall} --rights read`);
    const [{ content: shown }] = await valueFrom(run, `show ${ORGANIZATION}`);
    expect(shown).to.include({ id: ORGANIZATION, name: 'Quay 1', more_warehouses: 0, has_more_clients: false });
    expect(shown.policy).to.deep.equal({ clients: 'open', api_keys: 'allow' });
    expect(shown.warehouses.map((one: { id: string }) => one.id)).to.deep.equal([hall]);
    expect(shown.members).to.have.length(20);
    expect(shown.clients).to.have.length(1);
    expect(shown.clients[0]).to.include({ id: CLIENT, state: 'admitted', people: 1_001 });
    const { output } = await run(`show ${ORGANIZATION}`);
    expect(output).to.contain('Quay 1').and.contain('Hall 1').and.contain('1@demo.test').and.contain('more than 1,000');
    expect(output).to.contain(`memberships list --organization ${ORGANIZATION}`);

    const [{ content: warehouse }] = await valueFrom(run, `show ${hall}`);
    expect(warehouse).to.deep.include({ name: 'Hall 1', organization: { id: ORGANIZATION, name: 'Quay 1' } });
    expect(warehouse.members.map((one: { id: string }) => one.id)).to.deep.equal([first]);
    expect((await run(`show ${hall}`)).output).to.contain(`Organization: ${ORGANIZATION}, Quay 1`);
  });

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
    const organizations = createOrganizations({ database });
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

  it('a failure after the first page is reported on standard error, and leaves the JSON array incomplete', async () => {
    let text = '';
    const stdout = new Writable({
      decodeStrings: false,
      write(chunk: string, _encoding, done) {
        text += chunk;
        database.query('ALTER TABLE organizations RENAME TO gone').then(() => done(), done);
      },
    });
    const run = operatorWith(variablesOf(database), (words, more) => runOperator(words, { ...more, stdout }));
    const { exitCode, errors } = await run('organizations list --json');
    await database.query('ALTER TABLE gone RENAME TO organizations');
    expect(exitCode).to.equal(1);
    expect(text).to.match(/^\[\{"id":"org_/);
    expect(() => JSON.parse(text)).to.throw();
    expect(errors).to.contain('relation "organizations" does not exist');
  });

  it('`show` finds the clients that reach a warehouse, even if a hundred clients without access come first', async () => {
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
    const [{ content: shown }] = await valueFrom(run, `show ${hall}`);
    expect(shown.clients.map((one: { id: string }) => one.id)).to.deep.equal([CLIENT, ids.at(-1)]);
    expect(shown.has_more_clients).to.equal(false);
    // A pasted log may name a thousand warehouses, so that only the first clients of each are read.
    const [{ content: brief }] = await valueFrom(run, ['show', `${hall} ${person}`]);
    expect(brief.clients.map((one: { id: string }) => one.id)).to.deep.equal([CLIENT]);
    expect(brief.has_more_clients).to.equal(true);
  });
});
