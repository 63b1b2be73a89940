/** Operators give and remove access, and read the audit. */
import { expect } from 'chai';
import { createAccess } from '../../src/accounts/access/access.ts';
import { createActivity } from '../../src/accounts/activity/activity.ts';
import { setUpOperator } from './operator-suite.ts';

describe('operator memberships', () => {
  const { run, value, refusal, parts, records } = setUpOperator();

  it('commands grant and remove access of users and machine clients to warehouses, and record each change', async () => {
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

describe('operator audit', () => {
  const { run, value, refusal, parts } = setUpOperator();
  let accountId: string;
  const audit = (options: string) => value(`audit ${options}`);
  const signedInFrom = (address: string) =>
    createActivity(parts()).record({
      action: 'signed_in',
      actor: 'person',
      accountId,
      origin: { address, browser: 'Firefox' },
    });

  before(async () => {
    ({ id: accountId } = await value('accounts add --email ada@example.test --name Ada --invite'));
    await signedInFrom('192.0.2.7');
    await createActivity(parts()).record({
      action: 'tokens_revoked',
      actor: 'service',
      accountId,
      details: { client_id: 'gate_ci_a', client_name: 'Acme', cause: 'code_replayed' },
    });
  });

  it('`audit --json` prints one array with all fields but no secrets', async () => {
    const [record] = await audit('--client gate_ci_a');
    expect(record).to.deep.include({
      account_id: accountId,
      email: 'ada@example.test',
      address: null,
      browser: null,
      actor: 'service',
      action: 'tokens_revoked',
      what: 'Authorization ended',
      details: { client_id: 'gate_ci_a', client_name: 'Acme', cause: 'code_replayed' },
    });
    const recent = await audit('--account ada@example.test --since 1h');
    expect(recent.map(({ action }: { action: string }) => action)).to.deep.equal([
      'tokens_revoked',
      'signed_in',
      'password_link_made',
      'account_added',
    ]);
    expect(await audit('--until 2020-01-01')).to.deep.equal([]);
    expect(await audit(`--actor operator --before ${record.id}`)).to.have.length(2);
    const { code } = await refusal('audit --account nobody@example.test');
    expect(code).to.equal('account_unknown');
  });

  it('`audit` replaces control characters in the recorded values that it prints', async () => {
    await signedInFrom('\u001b[2J\u202e::1\n');
    const { output } = await run('audit --limit 1');
    expect(output).to.match(/\uFFFD\[2J\uFFFD::1\uFFFD\n/);
    expect(output.replaceAll('\n', '')).not.to.match(/\p{C}/u);
    const [record] = await audit('--limit 1');
    expect(record.address).to.equal('\u001b[2J\u202e::1\n');
  });
});
