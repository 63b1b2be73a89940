/** Existing data that an import adopts: by name, by a former id, and in another organization. */
import { expect } from 'chai';
import { createAccess } from '../../src/accounts/access/access.ts';
import { setUpOperator } from '../operator/operator-suite.ts';
import { refusalFrom } from '../operator/run-operator.ts';
import { createAccounts } from '../support/accounts.ts';
import { databaseSnapshot, emptyDatabase, fileOf, type Line, line } from './import-file.ts';

const { account, membership, organization, rights, warehouse } = line;

describe('existing data in an import', () => {
  const { run, value, parts } = setUpOperator();
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

  it('with --adopt-by-name an import adopts manually created records of the same name, with all access', async () => {
    const { id: acme } = await value(['organizations', 'add', '--name', 'Acme']);
    const { id: riga } = await value(['warehouses', 'add', '--organization', acme, '--name', 'Riga']);
    await value('accounts add --email hand@example.test --name Hand --invite');
    await value(`memberships set --account hand@example.test --organization ${acme} --role owner`);
    const lines = [
      organization('O1', 'Acme'),
      warehouse('W1', 'O1', { name: 'Riga' }),
      account('A1'),
      membership('A1', 'O1'),
      rights('A1', 'W1', 'read'),
    ];
    const { output } = await run(`import ${fileOf(...lines)} --dry-run --adopt-by-name`);
    expect(output)
      .to.include('organization O1 (Acme): external_id none → "O1"\n')
      .and.include('warehouse W1 (Riga): external_id none → "W1"\n');
    const changes = await imported(lines, '--adopt-by-name --prune');
    expect(changes).to.have.length(5);
    const places = [...(await value('organizations list')), ...(await value('warehouses list'))];
    expect(places.map(({ id, external_id }) => [id, external_id])).to.deep.equal([
      [acme, 'O1'],
      [riga, 'W1'],
    ]);
    expect(await reached('hand@example.test')).to.deep.equal(['O1 W1 read,write,manage']);
    expect(await reached('a1@example.test')).to.deep.equal(['O1 W1 read']);
  });

  it('an import adopts nothing by name without --adopt-by-name, or if the name is ambiguous', async () => {
    for (let count = 0; count < 2; count += 1) await value(['organizations', 'add', '--name', 'Acme']);
    await value(['organizations', 'add', '--name', 'Bolt']);
    const lines = [organization('O1', 'Acme'), organization('O2', 'Bolt'), organization('O3', 'Bolt')];
    expect(await problemsOf(lines, '--adopt-by-name')).to.deep.equal([
      '1 name: 2 organizations that were not imported have the name "Acme"; set the external_id on the right one first (organizations update)',
      '3 name: the line of "O2" has the same name, and it matches one that was not imported; set the external_id on the right one first (organizations update)',
    ]);
    const [{ change }] = await imported([organization('O1', 'Bolt')]);
    expect(change).to.equal('added');
  });

  it('an import adopts records whose external id has changed, if the line names the previous id', async () => {
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
    expect(changes.find(({ type }: Line) => type === 'warehouse')).to.deep.include({
      organization: { before: 'O1', after: 'O2' },
      name: { before: 'Warehouse W1', after: 'Riga' },
    });
    const all = ['a1', 'a2', 'stays', 'goes'].map((name) => reached(`${name}@example.test`));
    expect(await Promise.all(all)).to.deep.equal([['O2 W1 read,write'], [], ['O2 W1 read'], []]);
  });
});
