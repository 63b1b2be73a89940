import { expect } from 'chai';
import { createAccountRegistry } from '../../src/accounts/account-registry.ts';
import { createMemberships, type Memberships } from '../../src/accounts/memberships.ts';
import { createOrganizations } from '../../src/accounts/organizations.ts';
import { createClientRegistry } from '../../src/clients/client-registry.ts';
import { systemClock } from '../../src/clock.ts';
import { silentChangeFeed } from '../../src/storage/change-feed.ts';
import type { OpenDatabase } from '../../src/storage/database.ts';
import { refusalOf } from '../clients/refusals.ts';
import { forEachDatabase } from '../support/databases.ts';

forEachDatabase('memberships', (open) => {
  const nowhere = 'org_0000000000000000';
  let database: OpenDatabase;
  let memberships: Memberships;
  let ada: { accountId: string };
  let organizationId: string;
  let warehouseId: string;

  before(async () => {
    database = await open();
    const parts = { database, changes: silentChangeFeed, clock: systemClock };
    const organizations = createOrganizations(parts);
    memberships = createMemberships(parts);
    const account = await createAccountRegistry(parts).add({ email: 'a@demo.test', name: 'Ada' });
    ada = { accountId: account.id };
    organizationId = (await organizations.add({ name: 'Nord' })).id;
    warehouseId = (await organizations.addWarehouse({ organizationId, name: 'Hall' })).id;
  });

  it('rights need a membership in the organization first', async () => {
    expect(await refusalOf(memberships.setRights(ada, warehouseId, ['read']))).to.equal(
      'membership_missing',
    );
  });

  it('a role and rights can be set again, at once and one after another', async () => {
    await Promise.all(
      (['member', 'viewer', 'admin'] as const).map((role) =>
        memberships.setRole(ada, organizationId, role),
      ),
    );
    await memberships.setRole(ada, organizationId, 'member');
    await memberships.setRights(ada, warehouseId, ['read', 'write']);
    await memberships.setRights(ada, warehouseId, ['read']);
    await memberships.setRole(ada, organizationId, 'viewer');
    expect(await database.query('SELECT role FROM organization_memberships')).to.deep.equal([
      { role: 'viewer' },
    ]);
    expect(await database.query('SELECT rights FROM warehouse_rights')).to.deep.equal([
      { rights: ['read'] },
    ]);
  });

  it('rights and memberships can be removed twice', async () => {
    await memberships.removeRights(ada, warehouseId);
    await memberships.removeRights(ada, warehouseId);
    await memberships.remove(ada, organizationId);
    await memberships.remove(ada, organizationId);
    await memberships.remove({ accountId: '\0' }, organizationId);
    expect(await database.query('SELECT id FROM organization_memberships')).to.deep.equal([]);
  });

  it('what does not exist is named', async () => {
    const nobody = { accountId: 'acc_0000000000000000' };
    const noClient = { clientId: 'gate_ci_0000000000000000000000' };
    for (const subject of [nobody, noClient, { accountId: 'ada\0' }, { clientId: 'x' }]) {
      expect(await refusalOf(memberships.setRole(subject, organizationId, 'owner'))).to.equal(
        'subject_unknown',
      );
    }
    for (const id of [nowhere, 'nowhere\0']) {
      expect(await refusalOf(memberships.setRole(ada, id, 'owner'))).to.equal(
        'organization_unknown',
      );
      expect(await refusalOf(memberships.setRights(ada, id, ['read']))).to.equal(
        'warehouse_unknown',
      );
    }
    expect(await refusalOf(memberships.setRights(ada, 'wh_0000000000000000', ['read']))).to.equal(
      'warehouse_unknown',
    );
  });

  it('only roles and rights that exist are accepted', async () => {
    const role = 'root' as 'owner';
    expect(await refusalOf(memberships.setRole(ada, organizationId, role))).to.equal(
      'role_unknown',
    );
    for (const rights of [[], ['delete' as 'read'], ['read', '' as 'write'] as const]) {
      expect(await refusalOf(memberships.setRights(ada, warehouseId, rights))).to.equal(
        'rights_unknown',
      );
    }
  });

  it('of the clients only machine clients can be members', async () => {
    const clients = createClientRegistry({
      database,
      changes: silentChangeFeed,
      clock: systemClock,
    });
    const redirectUris = ['https://app.example/cb'];
    const { client } = await clients.add({
      kind: 'confidential',
      name: 'Partner',
      redirectUris,
      isNative: false,
    });
    expect(
      await refusalOf(memberships.setRole({ clientId: client.id }, organizationId, 'member')),
    ).to.equal('not_a_machine');
  });
});
