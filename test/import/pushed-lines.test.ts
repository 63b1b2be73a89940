/** How pushed lines name records, and which lines are refused. */
import { expect } from 'chai';
import { operatorOn, refusalFrom } from '../operator/run-operator.ts';
import { startsOn } from '../support/service.ts';
import { fileOf, line } from './import-file.ts';
import { pushesTo } from './pushing.ts';

const { account, membership, organization, rights, warehouse } = line;

describe('lines of pushed changes', () => {
  const { service, send, results, query, run } = pushesTo(startsOn(), { import: { removalsPerHour: '3' } });
  const PLACES = [organization('O1'), warehouse('W1', 'O1')];

  /** Creates a person, an organization and a warehouse by commands, so without external ids. */
  async function byHand() {
    const person = await service().accounts.add({ email: 'jo@example.com', name: 'Jo' });
    const place = await service().organizations.add({ name: 'Storm' });
    const site = { organizationId: place.id, name: 'Bergen' };
    const site1 = await service().organizations.addWarehouse(site);
    return { person: person.id, place: place.id, site: site1.id };
  }

  it('a line can name records without external id by their id, and a person by the email address', async () => {
    const { person, place, site } = await byHand();
    const member = { type: 'membership', organization_id: place, role: 'member' };
    const right = { type: 'warehouse_rights', warehouse_id: site, rights: ['read'] };
    const named = { type: 'account', email: 'jo@example.com', name: 'Jo Storm' };
    const got = await results(
      { ...member, account_id: person },
      { ...right, account_email: 'JO@example.com' },
      named,
      { ...named, id: person, email: 'jo.storm@example.com' },
      { type: 'organization', id: place, name: 'Storm Logistics' },
      { type: 'warehouse', id: site, organization_id: place, name: 'Bergen 2' },
      warehouse('W9', '', { organization: undefined, organization_id: place }),
      { ...member, account_id: person, removed: true },
      { type: 'account', email: 'jo.storm@example.com', removed: true },
    );
    expect(got).to.deep.equal(Array(9).fill('ok'));
    const [row] = await query('SELECT external_id, email, name, suspended_by_import FROM accounts');
    expect(row).to.deep.equal({
      external_id: null,
      email: 'jo.storm@example.com',
      name: 'Jo Storm',
      suspended_by_import: true,
    });
    const names = await query<{ name: string }>(
      'SELECT name FROM organizations UNION ALL SELECT name FROM warehouses ORDER BY 1',
    );
    expect(names.map(({ name }) => name)).to.deep.equal(['Bergen 2', 'Storm Logistics', 'Warehouse W9']);
  });

  it('a line with id and external_id gives the person this external id; names of different people are refused', async () => {
    const { person, place } = await byHand();
    await send(...PLACES, account('A1'));
    expect(await results(account('A2', { id: person }))).to.deep.equal(['ok']);
    const member = membership('A1', 'O1');
    const got = await results(
      account('A1', { id: person }),
      account('A3', { id: person }),
      { ...member, account_id: person },
      { ...member, account_email: 'a2@example.test' },
      { ...member, organization_id: place },
      { type: 'account', external_id: 'A1', email: 'a2@example.test', removed: true },
    );
    expect(got).to.deep.equal(Array(6).fill('names_disagree'));
    expect(await query('SELECT FROM organization_memberships')).to.have.length(0);
    // The person is suspended even if no account has the address in the line.
    const gone = { type: 'account', external_id: 'A1', email: 'old@example.com', removed: true };
    expect(await results(gone)).to.deep.equal(['ok']);
  });

  it('the answer to an unknown name contains its key and value, and the other lines are applied', async () => {
    await send(...PLACES, account('A1'));
    const { answers, results: got } = await send(
      membership('A9', 'O1'),
      membership('A1', 'O1'),
      membership('A1', 'O9'),
      rights('A1', 'W9', 'read'),
      { ...membership('A9', 'O1'), removed: true },
      { type: 'account', id: `acc_${'x'.repeat(16)}`, removed: true },
      { type: 'account', email: 'unknown@example.com', name: 'Nobody' },
      { type: 'membership', role: 'member', organization: 'O1' },
    );
    const unknown = Array(3).fill('account_unknown');
    const places = ['organization_unknown', 'warehouse_unknown'];
    expect(got).to.deep.equal(['account_unknown', 'ok', ...places, ...unknown, 'name_missing']);
    expect(answers[0]?.message).to.equal('account: there is no account "A9".');
    expect(answers[7]?.remedy).to.contain('account, account_id, account_email');
  });

  it('if the database refuses a line, the other lines of its batch are applied', async () => {
    await send(...PLACES, account('A1'), account('A2'), membership('A2', 'O1'));
    expect(await results(rights('A1', 'W1', 'read'), rights('A2', 'W1', 'read'))).to.deep.equal([
      'membership_missing',
      'ok',
    ]);
    const taken = { email: 'a2@example.test' };
    const { answers } = await send(account('A3', taken), account('A4'));
    expect(answers[1]?.result).to.equal('ok');
    expect(answers[0]).to.include({ result: 'refused', code: 'line_refused' });
    expect(answers[0]?.message).to.contain('email:');
    // The lines are applied in their order: the first line frees the address for the second line.
    const moved = await results(account('A2', { email: 'new@example.test' }), account('A3', taken));
    expect(moved).to.deep.equal(['ok', 'ok']);
    await send(account('A5'));
    const swap = [{ ...account('A5'), removed: true, deleted: true }, account('A6', { email: 'a5@example.test' })];
    expect(await results(...swap)).to.deep.equal(['ok', 'ok']);
  });

  it('two lines about the same record are both applied, even if they name the record differently', async () => {
    const { person, place } = await byHand();
    const one = { type: 'membership', organization_id: place };
    const got = await results(
      { ...one, account_id: person, role: 'admin' },
      { ...one, account_email: 'jo@example.com', role: 'viewer' },
      { ...one, account_id: person, role: 'viewer' },
    );
    expect(got).to.deep.equal(['ok', 'ok', 'unchanged']);
  });

  it('a line with former_organization moves a warehouse, and ends the rights of people who are not members there', async () => {
    await send(...PLACES, organization('O2'), account('A1'), membership('A1', 'O1'));
    await send(rights('A1', 'W1', 'read'));
    const { answers } = await send(warehouse('W1', 'O2'));
    expect(answers[0]?.message).to.contain('organization: the warehouse belongs to "O1"');
    expect(await results(warehouse('W1', 'O2', { former_organization: 'O1' }))).to.deep.equal(['ok']);
    expect(await query('SELECT FROM warehouse_rights')).to.have.length(0);
    const access = [membership('A1', 'O1'), rights('A1', 'W1', 'read')];
    const file = fileOf(...PLACES, organization('O2'), account('A1'), ...access);
    const report = await run(`import ${file} --as-of 2026-01-01T00:00Z`);
    expect(report.newer).to.be.above(2);
    expect(await query('SELECT FROM warehouse_rights')).to.have.length(0);
  });

  it('removals over the hourly limit are not applied until an operator allows more', async () => {
    const people = ['A1', 'A2', 'A3', 'A4', 'A5'];
    await send(...PLACES, ...people.map((id) => account(id)), membership('A1', 'O1'));
    const removed = people.map((id) => ({ ...account(id), removed: true }));
    expect(await results({ ...membership('A1', 'O1'), removed: true })).to.deep.equal(['ok']);
    const { answers, results: got } = await send(...removed);
    expect(got).to.deep.equal(['ok', 'ok', 'held_back', 'held_back', 'held_back']);
    expect(answers[2]?.remedy).to.contain('gatehouse changes allow 3.');
    expect(await results(account('A3', { suspended: true }))).to.deep.equal(['held_back']);
    expect(await results(removed[0] ?? '')).to.deep.equal(['unchanged']);
    expect(await run('changes allow 2')).to.deep.equal({ allowed: 2 });
    expect(await results(...removed.slice(2))).to.deep.equal(['ok', 'ok', 'held_back']);
    await query("UPDATE pushed_removals SET at = at - interval '1 hour'");
    expect(await results(...removed.slice(4))).to.deep.equal(['ok']);
    await service().clean();
    expect(await query('SELECT FROM pushed_removals')).to.have.length(1);
  });

  it('the time of a removal is deleted after 30 days', async () => {
    const deletion = { ...account('A1'), removed: true, deleted: true };
    await send(account('A1'), account('A2'), deletion);
    await service().clean();
    expect(await results(deletion)).to.deep.equal(['unchanged']);
    await query("UPDATE known_times SET expires_at = expires_at - interval '31 days'");
    await service().clean();
    expect(await results(deletion)).to.deep.equal(['account_unknown']);
    expect(await query('SELECT FROM known_times'), 'of the account that exists').to.have.length(1);
  });

  it('a line can suspend a person who owns clients, but cannot delete the account', async () => {
    await send(account('A1'));
    const [owner] = await query<{ id: string }>('SELECT id FROM accounts');
    const client = { kind: 'confidential', name: 'App', redirectUris: ['https://a.example/'] } as const;
    const { id: ownerAccountId = '' } = owner ?? {};
    const added = await service().clients.add({ ...client, isNative: false, ownerAccountId });
    const end = { type: 'account', external_id: 'A1', removed: true };
    expect(await results({ ...end, deleted: true }, end)).to.deep.equal(['account_owns_clients', 'ok']);
    await service().clients.remove(added.client.id);
  });

  it('the audit shows the name of the sender, and the request', async () => {
    const { headers } = await send(account('A1'), { ...account('A1'), removed: true });
    const entries = await run('audit --actor operator');
    const all = JSON.stringify(entries);
    expect(all).to.contain('account_added').and.contain('account_suspended').and.contain('"hr"');
    expect(all).to.contain(headers.get('x-request-id'));
  });

  it('an import does not take back an email address that a newer pushed line gave to another person', async () => {
    const file = fileOf(account('A1'), account('A2'));
    await run(`import ${file} --as-of 2026-01-01T00:00Z`);
    await send(account('A2', { email: 'new@example.test' }), account('A1', { email: 'a2@example.test' }));
    const report = await run(`import ${file} --as-of 2026-01-01T00:00Z`);
    expect(report).to.deep.include({ newer: 2, changes: [] });
    expect(await query("SELECT FROM accounts WHERE email LIKE 'moving-%'")).to.have.length(0);
    const taking = fileOf(account('A1'), account('A2'), account('A3', { email: 'new@example.test' }));
    const refused = await refusalFrom(operatorOn(service().database), `import ${taking} --as-of 2026-01-01T00:00Z`);
    expect(JSON.stringify(refused.problems)).to.contain('was changed after the file was written');
  });
});
