import { expect } from 'chai';
import type { OpenDatabase } from '../../src/storage/database.ts';
import { setUpOperator } from '../operator/operator-suite.ts';
import { onPostgres } from '../support/databases.ts';
import { databaseSnapshot, emptyDatabase, fileOf, type Line, line } from './import-file.ts';

const { account, membership, organization, rights, warehouse } = line;

const PLACES = [
  ...['O1', 'O2', 'O3', 'O4'].map((id) => organization(id)),
  ...['W1', 'W2', 'W3'].map((id) => warehouse(id, 'O1')),
];
const PEOPLE = ['A1', 'A2', 'A3', 'A4'].map((id) => account(id));
const ACCESS = [
  ...['A1', 'A2', 'A3', 'A4'].map((id) => membership(id, 'O1')),
  membership('A4', 'O4'),
  ...['W1', 'W2', 'W3'].map((id) => rights('A1', id, 'read')),
];
const ALL = [...PLACES, ...PEOPLE, ...ACCESS];

/** Returns the file without the lines that contain one of these ids. */
const without = (...ids: string[]): string => {
  const mentions = (line: Line) => Object.values(line).some((value) => ids.includes(`${value}`));
  return fileOf(...ALL.filter((line) => !mentions(line)));
};

onPostgres('operator import --prune', (open) => {
  const { run, value, refusal, parts } = setUpOperator(open);
  const query: OpenDatabase['query'] = (...asked) => parts().database.query(...asked);

  beforeEach(async () => {
    await emptyDatabase(parts().database);
    await value(`import ${fileOf(...ALL)}`);
  });

  const prune = (file: string, limit = '--prune-at-most 50%') => value(`import ${file} --prune --yes ${limit}`);
  const removedIn = ({ counts }: { counts: Record<string, { removed: number }> }) =>
    Object.values(counts).map(({ removed }) => removed);
  const idsIn = async (table: string): Promise<(string | null)[]> => {
    const rows = await query<{ external_id: string | null }>(`SELECT external_id FROM ${table} ORDER BY external_id`);
    return rows.map(({ external_id }) => external_id);
  };

  it('`--prune` removes organizations, warehouses, memberships and rights that are missing from the file, suspends accounts, and records it', async () => {
    await query('DELETE FROM activity');
    const file = without('O4', 'W3', 'A2');
    expect(removedIn(await prune(file))).to.deep.equal([1, 1, 1, 2, 1]);
    expect(await idsIn('organizations')).to.deep.equal(['O1', 'O2', 'O3']);
    expect(await idsIn('warehouses')).to.deep.equal(['W1', 'W2']);
    expect(await idsIn('accounts')).to.have.length(4);
    const left = await query('SELECT FROM organization_memberships');
    expect(left).to.have.length(3);
    expect(removedIn(await prune(file))).to.deep.equal([0, 0, 0, 0, 0]);
    const rows = await query<{ action: string; what: string }>(
      `SELECT action, concat(a.external_id, ' ', details->>'organization_name', ' ',
          details->>'warehouse_name') AS what
        FROM activity LEFT JOIN accounts a ON a.id = account_id
        WHERE details->>'by' = 'import' ORDER BY activity.id`,
    );
    expect(rows.map(({ action, what }) => `${action} ${what}`.trim())).to.have.members([
      'membership_removed A1 Organization O1 Warehouse W3',
      'membership_removed A2 Organization O1',
      'membership_removed A4 Organization O4',
      'warehouse_removed   Warehouse W3',
      'organization_removed  Organization O4',
      'account_suspended A2',
    ]);
  });

  it('an import that suspends owners of clients says how many clients that concerns, and `clients list` names them', async () => {
    for (const id of ['A1', 'A2']) {
      const owner = `--owner=${id}@example.test`;
      await value(['clients', 'add', '--kind=machine', owner, `--name=Client of ${id}`]);
    }
    const concerned = async () => {
      const listed = await value('clients list --owner-suspended');
      return listed.map(({ name }: { name: string }) => name);
    };
    const pruned = await prune(without('A2'));
    expect(pruned.clients_of_suspended_owners).to.equal(1);
    expect(await concerned()).to.deep.equal(['Client of A2']);
    const file = fileOf(account('A1', { suspended: true }));
    const { output } = await run(`import ${file}`);
    expect(output).to.include('own 2 clients').and.include('clients list --owner-suspended');
    expect(await concerned()).to.deep.equal(['Client of A1', 'Client of A2']);
    expect((await value(`import ${fileOf(...ALL)}`)).clients_of_suspended_owners).to.equal(0);
    await query('DELETE FROM clients');
  });

  it('`--prune` keeps everything created manually, and whatever that depends on', async () => {
    const idOf = async (table: string, external: string) =>
      (await query<{ id: string }>(`SELECT id FROM ${table} WHERE external_id = '${external}'`))[0]?.id;
    const { id: hand } = await value('accounts add --email hand@example.test --name H --invite');
    const own = await value('organizations add --name Own');
    const robot = await value('clients add --kind machine --name Robot');
    await value(`warehouses add --organization ${await idOf('organizations', 'O3')} --name Own`);
    await value(`memberships set --account a1@example.test --organization ${own.id} --role member`);
    const [person, machine] = [`--account ${hand}`, `--client ${robot.client_id}`];
    for (const [who, where] of [
      [person, 'O4'],
      [machine, 'O2'],
      [person, 'O1'],
      [machine, 'O1'],
    ] as const) {
      await value(`memberships set ${who} --organization ${await idOf('organizations', where)} --role member`);
    }
    for (const [who, where] of [
      [person, 'W1'],
      [person, 'W2'],
      [machine, 'W3'],
    ] as const) {
      await value(`memberships set ${who} --warehouse ${await idOf('warehouses', where)} --rights read`);
    }

    const done = await prune(without('O2', 'O3', 'O4', 'W2', 'W3', 'A1'), '--prune-at-most 100%');
    expect(done.counts.organizations).to.include({ removed: 0, kept: 3 });
    expect(done.counts.warehouses).to.include({ removed: 0, kept: 2 });
    expect(await idsIn('organizations')).to.deep.equal(['O1', 'O2', 'O3', 'O4', null]);
    const kept = await query(
      `SELECT FROM organization_memberships m LEFT JOIN accounts a ON a.id = account_id
        JOIN organizations o ON o.id = organization_id
        WHERE a.external_id IS NULL OR o.external_id IS NULL`,
    );
    expect(kept).to.have.length(5);
    const rightsLeft = await query(
      `SELECT w.external_id AS warehouse, r.account_id AS account, r.client_id AS client
        FROM warehouse_rights r JOIN warehouses w ON w.id = r.warehouse_id ORDER BY w.external_id`,
    );
    expect(rightsLeft).to.deep.equal([
      { warehouse: 'W1', account: hand, client: null },
      { warehouse: 'W2', account: hand, client: null },
      { warehouse: 'W3', account: null, client: robot.client_id },
    ]);
    const active = await query('SELECT FROM accounts WHERE suspended_at IS NULL');
    expect(active).to.have.length(4);
  });

  it('`import --prune` is refused without a confirmation if it removes something, and above its limit unless an option raises it', async () => {
    const before = await databaseSnapshot(parts().database);
    for (const [options, code] of [
      [`${fileOf('')} --yes --prune-at-most 99%`, 'prune_over_limit'],
      [`${fileOf('')} --yes --prune-at-most 999`, 'prune_over_limit'],
      [`${without('W2', 'W3')} --yes --prune-at-most 1`, 'prune_over_limit'],
      [`${without('O4')} --yes --prune-at-most 0%`, 'prune_over_limit'],
      [`${without('O4')} --yes --prune-at-most 0`, 'prune_over_limit'],
      [without('A2'), 'confirmation_needed'],
    ]) {
      expect((await refusal(`import --prune ${options}`)).code, options).to.equal(code);
    }
    const looked = await value(`import --prune ${fileOf('')} --dry-run`);
    expect(looked).to.include({ needs_prune_at_most: '100%' });
    expect(removedIn(looked)).to.deep.equal([4, 3, 4, 5, 0]);
    expect(removedIn(await value(`import --prune ${fileOf(...ALL)}`))).to.deep.equal([0, 0, 0, 0, 0]);
    expect(await databaseSnapshot(parts().database)).to.deep.equal(before);
    expect(removedIn(await prune(without('W2', 'W3'), '--prune-at-most 2'))[1]).to.equal(2);
    expect(removedIn(await prune(fileOf(''), '--prune-at-most 100%'))).to.deep.equal([4, 1, 4, 5, 0]);
  });

  it('`--prune` removes at most 10 % of a kind, unless its option says otherwise', async () => {
    const asked = `import ${without('W2', 'W3')} --prune --yes`;
    for (const [option, limit] of [
      ['', '10%'],
      [' --prune-at-most 0', '0'],
    ] as const) {
      expect((await refusal(asked + option)).message).to.contain(`limit is ${limit} of each`);
    }
  });
});
