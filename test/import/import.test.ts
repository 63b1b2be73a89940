import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { createAccess } from '../../src/accounts/access/access.ts';
import { createChanges } from '../../src/changes/engine.ts';
import { lastImport } from '../../src/changes/report.ts';
import { listenForChanges } from '../../src/storage/change-feed.ts';
import { setUpOperator } from '../operator/operator-suite.ts';
import { operatorWith, valueFrom, variablesOf } from '../operator/run-operator.ts';
import { createAccounts } from '../support/accounts.ts';
import { onPostgres } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { databaseSnapshot, emptyDatabase, fileOf, importWith, type Line, line } from './import-file.ts';

const { account, membership, organization, rights, warehouse } = line;

const ACME = [organization('O1', 'Acme'), warehouse('W1', 'O1', { name: 'Riga' })];

onPostgres('operator import', (open) => {
  const { run, value, parts } = setUpOperator(open);
  beforeEach(() => emptyDatabase(parts().database));

  const accounts = () => createAccounts(parts());
  const everything = () => databaseSnapshot(parts().database);
  const importFile = (file: string, options = '') => value(`import ${file} ${options}`);
  const nothing = { added: 0, changed: 0, removed: 0, kept: 0, unchanged: 0 };

  it('an import makes the database match the file, whatever the order of its lines', async () => {
    const file = fileOf(
      '\uFEFF',
      rights('A1', 'W1', 'write', 'read'),
      membership('A1', 'O1'),
      `${JSON.stringify(account('A1', { email: 'Jo@example.test', name: 'Jo' }))}\r`,
      '',
      ...[...ACME].reverse(),
      account('A2', { suspended: true }),
      membership('A2', 'O1', 'owner'),
    );
    const { changes } = await importFile(file);
    expect(await lastImport(parts().database)).to.be.instanceOf(Date);
    const one = (type: string, more: Line) => ({ change: 'added', type, ...more });
    expect(changes).to.deep.equal([
      one('organization', { external_id: 'O1', name: 'Acme' }),
      one('warehouse', { external_id: 'W1', name: 'Riga' }),
      one('account', { external_id: 'A1', name: 'Jo@example.test' }),
      one('account', { external_id: 'A2', name: 'a2@example.test', suspended: { before: false, after: true } }),
      one('membership', { account: 'A1', organization: 'O1', role: { before: null, after: 'member' } }),
      one('membership', { account: 'A2', organization: 'O1', role: { before: null, after: 'owner' } }),
      one('warehouse_rights', { account: 'A1', warehouse: 'W1', rights: { before: null, after: ['read', 'write'] } }),
    ]);
    const jo = await accounts().findByEmail('jo@example.test');
    expect(jo).to.include({ externalId: 'A1', name: 'Jo', hasPassword: false, isSuspended: false });
    const [acme] = await createAccess(parts()).accessOf({ accountId: jo?.id ?? '' });
    expect(acme).to.deep.include({ external_id: 'O1', name: 'Acme', role: 'member' });
    expect(acme?.warehouses[0]).to.deep.include({ external_id: 'W1', name: 'Riga', rights: ['read', 'write'] });
    expect(await accounts().findByEmail('a2@example.test')).to.include({ isSuspended: true });
    for (const [kind, id] of Object.entries({ accounts: 'A1', organizations: 'O1', warehouses: 'W1' })) {
      expect(JSON.stringify(await value(`${kind} list`)), kind).to.include(`"external_id":"${id}"`);
    }
  });

  it('`clients` in a line sets the policy of its organization; without it, only a new organization gets the default', async () => {
    const GATEHOUSE_CONFIG = path.join(temporaryDirectory('policy'), 'gatehouse.yaml');
    writeFileSync(GATEHOUSE_CONFIG, 'organizations: { clients: ask }\n');
    const asking = operatorWith({ ...variablesOf(parts().database), GATEHOUSE_CONFIG });
    const policies = async () =>
      (await value('organizations list')).map(({ name, clients }: Record<string, string>) => `${name} ${clients}`);
    const [acme, bolt] = [organization('O1', 'Acme'), organization('O2', 'Bolt')];
    await valueFrom(asking, `import ${fileOf(acme, { ...bolt, clients: 'open' })}`);
    await valueFrom(asking, 'organizations add --name Corto');
    await value('organizations add --name Delta');
    expect(await policies()).to.deep.equal(['Acme ask', 'Bolt open', 'Corto ask', 'Delta open']);
    expect((await value('organizations list'))[0]).to.include({ api_keys: 'allow' });
    const file = fileOf(acme, { ...bolt, clients: 'ask' });
    expect((await run(`import ${file} --dry-run`)).output).to.include('O2 (Bolt): clients "open" → "ask"');
    await importFile(file);
    expect((await policies()).slice(0, 2)).to.deep.equal(['Acme ask', 'Bolt ask']);
    await importFile(fileOf({ ...acme, clients: 'open' }, bolt));
    expect((await policies()).slice(0, 2)).to.deep.equal(['Acme open', 'Bolt ask']);
  });

  it('a second import of the same file writes nothing, not even times, and notifies no node', async () => {
    const lines = [...ACME, account('A1'), membership('A1', 'O1'), rights('A1', 'W1', 'read')];
    await importFile(fileOf(...lines), '--as-of 2h');
    const before = await everything();
    const heard: string[] = [];
    const changes = await listenForChanges(parts().database);
    changes.onChange((topic) => heard.push(topic));
    const { counts } = await importFile(fileOf(...lines), '--as-of 1h --prune --yes');
    for (const count of Object.values(counts)) expect(count).to.deep.equal({ ...nothing, unchanged: 1 });
    expect(await everything()).to.deep.equal(before);
    // Notifications arrive in order: one of the import would arrive before the one of this change.
    await value('accounts suspend a1@example.test');
    await eventually(() => expect(heard).to.deep.equal(['accounts']));
    await changes.close();
  });

  it('an imported file counts as a new version of the earlier file with which it shares the most records', async () => {
    const set = async () =>
      (await parts().database.query<{ id: string }>('SELECT id FROM known_files')).map(({ id }) => id);
    await importFile(fileOf(organization('O2'), organization('O3')));
    const large = await set();
    await importFile(fileOf(organization('O1')));
    expect(await set()).to.have.length(2);
    await importFile(fileOf(...['O1', 'O2', 'O3'].map((id) => organization(id))));
    expect(await set()).to.deep.equal(large);
  });

  it('the changes of an import are in the activity log, and `audit --import` lists those of one import', async () => {
    const acme = [...ACME, membership('A1', 'O1'), rights('A1', 'W1', 'read')];
    const first = await importFile(fileOf(...acme, account('A1')));
    const { output } = await run(`import ${fileOf(...acme, account('A1', { name: 'Jo', suspended: true }))}`);
    await importFile(fileOf(...acme, account('A1', { name: 'Jo' })));
    const rows = await parts().database.query<{ action: string; details: object; of: string | null }>(
      `SELECT action, details - '{organization_id,warehouse_id,import_id}'::text[] AS details, a.external_id AS of
        FROM activity LEFT JOIN accounts a ON a.id = account_id
        WHERE actor = 'operator' ORDER BY activity.id`,
    );
    const by = 'import';
    const place = { by, organization_name: 'Acme' };
    const person = { by, external_id: 'A1' };
    expect(rows.map(({ action, of, details }) => [action, of, details])).to.deep.equal([
      ['organization_added', null, { ...place, external_id: 'O1' }],
      ['warehouse_added', null, { by, warehouse_name: 'Riga', external_id: 'W1' }],
      ['account_added', 'A1', person],
      ['membership_set', 'A1', { ...place, role: 'member' }],
      ['membership_set', 'A1', { ...place, warehouse_name: 'Riga', rights: ['read'] }],
      ['account_changed', 'A1', { ...person, changed: ['name'] }],
      ['account_suspended', 'A1', person],
      ['account_resumed', 'A1', person],
    ]);
    const [, id = ''] = /^Done: import (imp_\S+)\. /m.exec(output) ?? [];
    const numberOf = async (one: string) => (await value(`audit --import ${one}`)).length;
    const ids = [first.import_id, id, 'imp_0123456789abcdef'];
    expect(await Promise.all(ids.map(numberOf))).to.deep.equal([5, 2, 0]);
  });

  it('an import adopts a manually created account with its data; if the email changes, mailed links are revoked', async () => {
    const made = await accounts().add({ email: 'jo@example.test', name: 'Jo', password: 'a password of jo’s' });
    await value(`accounts invite ${made.id}`);
    await importFile(fileOf(...ACME));
    const [acme] = await value('organizations list');
    await value(`memberships set --account ${made.id} --organization ${acme.id} --role viewer`);
    const jo = account('A1', { email: 'JO@example.test', name: 'Jo' });
    const { counts, changes } = await importFile(fileOf(...ACME, jo, membership('A1', 'O1', 'viewer')));
    expect(counts.memberships).to.deep.equal({ ...nothing, unchanged: 1 });
    const email = { before: 'jo@example.test', after: 'JO@example.test' };
    const change = { change: 'changed', type: 'account', name: 'JO@example.test', email };
    expect(changes).to.deep.equal([{ ...change, external_id: { before: null, after: 'A1' } }]);
    expect(await accounts().find(made.id)).to.deep.equal({ ...made, email: 'JO@example.test', externalId: 'A1' });
    expect(await parts().database.query('SELECT FROM password_links')).to.deep.equal([]);
  });

  it('accounts that swap email addresses, even in a cycle, are changed in one transaction, wherever their lines are', async () => {
    const { database } = parts();
    const others = Array.from({ length: 501 }, (_, at) => account(`A${at + 2}`));
    const people = (...emails: string[]) => {
      const named = ['A0', 'A1', 'A999'].map((id, at) => account(id, { email: `${emails[at]}@example.test` }));
      return fileOf(...named.slice(0, 2), ...others, ...named.slice(2));
    };
    await importFile(people('first', 'second', 'last'));
    const engine = createChanges({ database });
    const transaction: typeof engine.transaction = async (work, turn) => {
      const result = await engine.transaction(work, turn);
      expect(await database.query("SELECT FROM accounts WHERE email LIKE 'moving-%'")).to.deep.equal([]);
      return result;
    };
    const file = people('last', 'first', 'second');
    const report = await importWith(database, file, { engine: { ...engine, transaction } });
    expect(report.counts.account).to.include({ changed: 3, unchanged: 501 });
    expect((await accounts().findByEmail('first@example.test'))?.externalId).to.equal('A1');
  });

  it('an import writes larger batches after fast ones and smaller ones after slow ones, but never single lines', async () => {
    const { database } = parts();
    const engine = createChanges({ database });
    const real = performance.now;
    let [now, calls, first, later] = [0, 0, 0, 0];
    const make: typeof engine.make = async (...given) => {
      calls += 1;
      // The first call compares all lines, the second one writes the first batch.
      now += calls > 2 ? later : first;
      return engine.make(...given);
    };
    const file = fileOf(...Array.from({ length: 1_190 }, (_, at) => account(`S${at}`)));
    performance.now = () => now;
    try {
      const rows = { '49 49': 5, '50 50': 24, '150 150': 24, '151 151': 47, '151 100': 47 };
      for (const [times, batches] of Object.entries(rows)) {
        [first = 0, later = 0] = times.split(' ').map(Number);
        calls = 0;
        const { changes, changeCount } = await importWith(database, file, { engine: { ...engine, make } });
        expect([changes.length, changeCount], 'listed, and all').to.deep.equal(
          times === '49 49' ? [100, 1_190] : [0, 0],
        );
        expect(calls - 1, `batches of ${times} ms`).to.equal(batches);
      }
    } finally {
      performance.now = real;
    }
  });

  it('a line without `suspended` ends only a suspension by an import; suspended: false also ends one by an operator', async () => {
    const states: unknown[] = [];
    for (const suspended of [true, undefined, true, 'operator', undefined, false] as const) {
      if (suspended === 'operator') await value('accounts suspend a1@example.test');
      else await importFile(fileOf(account('A1', { suspended })));
      states.push((await accounts().findByEmail('a1@example.test'))?.isSuspended);
    }
    expect(states).to.deep.equal([true, false, true, true, true, false]);
  });
});
