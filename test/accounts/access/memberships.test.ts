import { expect } from 'chai';
import { systemClock } from '../../../src/base/clock.ts';
import { createOrganizations } from '../../../src/changes/organizations.ts';
import { createClientRegistry } from '../../../src/clients/client-registry.ts';
import { silentChangeFeed } from '../../../src/storage/change-feed.ts';
import { partner } from '../../clients/drafts.ts';
import { refusalOf } from '../../clients/refusals.ts';
import { createAccounts } from '../../support/accounts.ts';
import { testDatabase } from '../../support/databases.ts';
import { createMemberships } from '../../support/memberships.ts';

describe('memberships', () => {
  const database = testDatabase();
  const parts = { database, changes: silentChangeFeed, clock: systemClock };
  const memberships = createMemberships(parts);
  let ada: { accountId: string };
  let organizationId: string;

  before(async () => {
    const organizations = createOrganizations(parts);
    const account = await createAccounts(parts).add({ email: 'a@demo.test', name: 'Ada' });
    ada = { accountId: account.id };
    organizationId = (await organizations.add({ name: 'Nord' })).id;
  });

  it('the error for a refused membership names the unknown account, client, organization or warehouse', async () => {
    const noAccount = { accountId: 'acc_0000000000000000' };
    const noClient = { clientId: 'gate_ci_0000000000000000000000' };
    for (const subject of [noAccount, noClient, { accountId: 'ada\0' }, { clientId: 'x' }]) {
      const set = memberships.setRole(subject, organizationId, 'owner');
      expect(await refusalOf(set)).to.equal('subject_unknown');
    }
    for (const id of ['org_0000000000000000', 'nowhere\0']) {
      const set = memberships.setRole(ada, id, 'owner');
      expect(await refusalOf(set)).to.equal('organization_unknown');
    }
    for (const id of ['wh_0000000000000000', 'nowhere\0']) {
      const set = memberships.setRights(ada, id, ['read']);
      expect(await refusalOf(set)).to.equal('warehouse_unknown');
    }
  });

  it('only machine clients can be members, not other clients', async () => {
    const { client } = await createClientRegistry(parts).add(partner);
    const set = memberships.setRole({ clientId: client.id }, organizationId, 'member');
    expect(await refusalOf(set)).to.equal('not_a_machine');
  });
});
