import { expect } from 'chai';
import { createAccess } from '../../src/accounts/access/access.ts';
import { setUpOperator } from './operator-suite.ts';

describe('operator memberships', () => {
  const { run, value, refusal, parts, records } = setUpOperator();

  it('commands give and remove access of users and machine clients to warehouses, and record each change', async () => {
    const access = createAccess(parts());
    const organization = await value('organizations add --name Acme');
    const inAcme = `--organization ${organization.id}`;
    const warehouse = await value(`warehouses add --name Hamburg ${inAcme}`);
    const dot = await value('accounts add --email dot@example.test --name Dot --generate-password');
    const robot = await value('clients add --kind machine --name Robot');
    const person = '--account dot@example.test';
    const machine = `--client ${robot.client_id}`;
    const rights = `--warehouse ${warehouse.id} --rights write,read`;

    const early = await refusal(`memberships set ${person} ${rights}`);
    expect(early.code).to.equal('membership_missing');
    // If a command contains two changes and one of them is impossible, neither is made.
    const elsewhere = await value('organizations add --name Elsewhere');
    for (const [where, warehouse_id, code] of [
      [inAcme, 'wh_nope', 'warehouse_unknown'],
      [`--organization ${elsewhere.id}`, warehouse.id, 'membership_missing'],
    ]) {
      const both = `${where} --role member --warehouse ${warehouse_id} --rights read`;
      expect((await refusal(`memberships set ${person} ${both}`)).code).to.equal(code);
      expect(await access.accessOf({ accountId: dot.id })).to.deep.equal([]);
    }
    const nowhere = await refusal(`memberships remove ${person} --organization org_nope`);
    expect(nowhere.code).to.equal('organization_unknown');
    await value(`memberships set ${person} ${inAcme} --role member`);
    // Repeating the command changes nothing.
    await value(`memberships set ${person} ${inAcme} --role member`);
    const reached = await value(`memberships set ${person} ${rights}`);
    const organizations = await access.accessOf({ accountId: dot.id });
    expect(reached).to.deep.equal({ account_id: dot.id, organizations });
    expect(reached.organizations[0].warehouses).to.deep.equal([
      { id: warehouse.id, name: 'Hamburg', rights: ['read', 'write'] },
    ]);
    const [ofMachine] = (await value(`memberships set ${machine} ${inAcme} --role viewer ${rights}`)).organizations;
    expect(ofMachine.warehouses[0].rights, 'of a viewer').to.deep.equal(['read']);
    expect((await run(`memberships list ${person}`)).output).to.match(/Acme +member/);
    expect((await run('organizations list')).output).to.match(/Acme +1/);
    expect((await run(`warehouses list ${inAcme}`)).output).to.contain('Hamburg');
    const nope = await refusal('warehouses list --organization nope');
    expect(nope.code).to.equal('organization_unknown');

    const bare = await value(`memberships remove ${person} --warehouse ${warehouse.id}`);
    expect(bare.organizations[0].warehouses).to.deep.equal([]);
    expect(await value(`memberships remove ${machine} ${inAcme}`)).to.deep.include({
      organizations: [],
    });
    await value(`memberships remove ${machine} ${inAcme}`);

    const acme = { organization_id: organization.id, organization_name: 'Acme' };
    const hamburg = { warehouse_id: warehouse.id, warehouse_name: 'Hamburg' };
    const client = { client_id: robot.client_id };
    const recorded = (await records()).map(({ action, account_id, details }) => {
      const of = account_id === dot.id ? 'dot' : account_id;
      return [action, of, details];
    });
    expect(recorded).to.deep.equal([
      ['organization_added', null, acme],
      ['warehouse_added', null, { ...hamburg, organization_id: organization.id }],
      ['account_added', 'dot', {}],
      ['client_added', null, { ...client, client_name: 'Robot' }],
      ['organization_added', null, { organization_id: elsewhere.id, organization_name: 'Elsewhere' }],
      ['membership_set', 'dot', { ...acme, role: 'member' }],
      ['membership_set', 'dot', { ...acme, ...hamburg, rights: ['read', 'write'] }],
      ['membership_set', null, { ...client, ...acme, role: 'viewer' }],
      ['membership_set', null, { ...client, ...acme, ...hamburg, rights: ['read', 'write'] }],
      ['membership_removed', 'dot', { ...acme, ...hamburg }],
      ['membership_removed', null, { ...client, ...acme }],
    ]);
  });
});
