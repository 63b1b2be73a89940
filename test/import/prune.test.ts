/** What an import removes with `--prune`, and which existing data it adopts: by a former id, and elsewhere. */
import { expect } from 'chai';
import { createAccess } from '../../src/accounts/access/access.ts';
import type { OpenDatabase } from '../../src/storage/database.ts';
import { setUpOperator } from '../operator/operator-suite.ts';
import { refusalFrom } from '../operator/run-operator.ts';
import { createAccounts } from '../support/accounts.ts';
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
  const { value, refusal, parts } = setUpOperator(open);
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

  it('`--prune` removes whatever is missing from the file, except accounts, which it suspends, and records this', async () => {
    await query('DELETE FROM activity');
    const file = without('O4', 'W3', 'A2');
    const done = await prune(file);
    expect(removedIn(done)).to.deep.equal([1, 1, 1, 2, 1]);
    expect(Object.values<Line>(done.counts).map(({ unchanged }) => unchanged)).to.deep.equal([3, 2, 3, 3, 2]);
    const one = (type: string, more: Line) => ({ change: 'removed', type, ...more });
    expect(done.changes).to.deep.equal([
      one('warehouse_rights', { account: 'A1', warehouse: 'W3', rights: { before: ['read'], after: null } }),
      one('membership', { account: 'A2', organization: 'O1', role: { before: 'member', after: null } }),
      one('membership', { account: 'A4', organization: 'O4', role: { before: 'member', after: null } }),
      one('warehouse', { external_id: 'W3', name: 'Warehouse W3' }),
      one('organization', { external_id: 'O4', name: 'Organization O4' }),
      one('account', { external_id: 'A2', name: 'a2@example.test', suspended: { before: false, after: true } }),
    ]);
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

  it('`--prune` keeps all records that were created manually, and all records on which manual records depend', async () => {
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

  it('`--prune` needs a confirmation if it removes something, and an option if it removes more than its limit', async () => {
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

  it('`--prune` removes at most 10 % of the records of each kind, unless `--prune-at-most` sets another limit', async () => {
    const asked = `import ${without('W2', 'W3')} --prune --yes`;
    for (const [option, limit] of [
      ['', '10%'],
      [' --prune-at-most 0', '0'],
    ] as const) {
      const { message, remedy } = await refusal(asked + option);
      expect(remedy).to.contain('Check that the file is complete').and.contain('add --prune-at-most 67%.');
      expect(message).to.equal(
        `--prune would remove 2 of 3 warehouses, 2 of 3 rights in warehouses; the limit is ${limit} of each kind.`,
      );
    }
  });
});

onPostgres('existing data in an import', (open) => {
  const { run, value, parts } = setUpOperator(open);
  beforeEach(() => emptyDatabase(parts().database));

  /**
   * Runs an import three times: as a dry run, which must print the same and write nothing, for
   * real, and again, which must change nothing.
   */
  async function imported(lines: readonly Line[], options = '') {
    const file = fileOf(...lines);
    const before = await databaseSnapshot(parts().database);
    const planned = await value(`import ${file} ${options} --dry-run`);
    expect(await databaseSnapshot(parts().database)).to.deep.equal(before);
    const done = await value(`import ${file} ${options} --yes`);
    expect(done).to.deep.equal({ ...planned, dry_run: false, import_id: done.import_id });
    expect((await value(`import ${file} ${options} --yes`)).changes).to.deep.equal([]);
    return done.changes;
  }
  async function problemsOf(lines: readonly Line[], options = ''): Promise<string[]> {
    const { problems } = await refusalFrom(run, `import ${fileOf(...lines)} ${options}`);
    return problems.map(({ line, message }: { line: number; message: string }) => `${line} ${message}`);
  }
  const reached = async (email: string) => {
    const { id = '' } = (await createAccounts(parts()).findByEmail(email)) ?? {};
    const places = await createAccess(parts()).accessOf({ accountId: id });
    return places.flatMap((place) =>
      place.warehouses.map(({ external_id, rights }) => `${place.external_id} ${external_id} ${rights}`),
    );
  };

  it('an import adopts an organization only by an external id that it was given before, never by its name', async () => {
    const { id: acme } = await value(['organizations', 'add', '--name', 'Acme']);
    const [{ change }] = await imported([organization('O2', 'Acme')]);
    expect(change).to.equal('added');
    await value(`organizations update ${acme} --external-id O1`);
    expect(await imported([organization('O1', 'Acme'), organization('O2', 'Acme')])).to.deep.equal([]);
  });

  it('an import takes over records whose external id has changed, if the line names the previous id', async () => {
    const access = [membership('A1', 'O1'), rights('A1', 'W1', 'read')];
    await imported([organization('O1'), warehouse('W1', 'O1'), account('A1'), ...access]);
    const former = (former_external_id: string) => ({ former_external_id });
    const lines = [
      { ...organization('O2', 'Organization O1'), ...former('O1') },
      warehouse('W2', 'O2', { name: 'Warehouse W1', ...former('W1') }),
      account('A2', { email: 'a1@example.test', name: 'Person A1', ...former('A1') }),
      membership('A2', 'O2'),
      rights('A2', 'W2', 'read'),
    ];
    const changes = await imported(lines, '--prune');
    expect(changes).to.have.length(3);
    for (const { change, external_id: id } of changes) {
      expect([change, id.before, id.after]).to.deep.equal(['changed', id.after.replace('2', '1'), id.after]);
    }
    expect(await reached('a1@example.test')).to.deep.equal(['O2 W2 read']);
    await imported([organization('O1', 'another'), organization('O2', 'Organization O1')]);
    expect(await problemsOf([{ ...organization('O1'), ...former('O2') }])).to.deep.equal([
      '1 former_external_id: the database has both "O2" and the external_id; delete one of the two first, or leave former_external_id out',
    ]);
  });

  it('an import moves a warehouse to another organization, if the line names the previous organization', async () => {
    const places = [organization('O1'), organization('O2')];
    const people = [account('A1'), account('A2')];
    const home = [membership('A1', 'O1'), membership('A2', 'O1'), rights('A1', 'W1', 'read', 'write')];
    const before = [...places, ...people, ...home, warehouse('W1', 'O1')];
    await imported([...before, rights('A2', 'W1', 'read')]);
    for (const [person, roles] of [
      ['stays', ['O1', 'O2']],
      ['goes', ['O1']],
    ] as const) {
      await value(`accounts add --email ${person}@example.test --name ${person} --invite`);
      for (const role of roles) {
        // Not `--match`, which also searches the random ids.
        const all: Line[] = await value('organizations list');
        const { id } = all.find(({ external_id }) => external_id === role) ?? {};
        await value(`memberships set --account ${person}@example.test --organization ${id} --role member`);
      }
      const [{ id }] = await value('warehouses list');
      await value(`memberships set --account ${person}@example.test --warehouse ${id} --rights read`);
    }
    const moved = (more: Line) => [
      ...places,
      ...people,
      ...home.slice(0, 2),
      membership('A1', 'O2'),
      warehouse('W1', 'O2', more),
      rights('A1', 'W1', 'read', 'write'),
    ];
    expect(await problemsOf(moved({}))).to.deep.equal([
      '8 organization: the warehouse belongs to "O1"; to move it, add "former_organization":"O1"',
    ]);
    const refused = await refusalFrom(run, `import ${fileOf(...moved({ former_organization: 'O1' }))}`);
    expect(refused).to.include({ code: 'confirmation_needed' });
    const changes = await imported(moved({ former_organization: 'O1', name: 'Riga' }));
    expect(changes.map(({ change, type, account = '' }: Line) => `${change} ${type} ${account}`)).to.have.members([
      'added membership A1',
      'changed warehouse ',
      'removed warehouse_rights A2',
      `removed warehouse_rights ${(await value('show goes@example.test'))[0].account.id}`,
    ]);
    expect(changes.find(({ account }: Line) => account === 'A2')).to.deep.include({
      rights: { before: ['read'], after: null },
    });
    expect(changes.find(({ type }: Line) => type === 'warehouse')).to.deep.include({
      organization: { before: 'O1', after: 'O2' },
      name: { before: 'Warehouse W1', after: 'Riga' },
    });
    const all = ['a1', 'a2', 'stays', 'goes'].map((name) => reached(`${name}@example.test`));
    expect(await Promise.all(all)).to.deep.equal([['O2 W1 read,write'], [], ['O2 W1 read'], []]);
  });
});
