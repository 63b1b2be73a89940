import { expect } from 'chai';
import { createAccess } from '../../../src/accounts/access/access.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { createOrganizations } from '../../../src/changes/organizations.ts';
import { createClientRegistry } from '../../../src/clients/client-registry.ts';
import { listenForChanges, silentChangeFeed } from '../../../src/storage/change-feed.ts';
import type { Database } from '../../../src/storage/queries.ts';
import { machine } from '../../clients/drafts.ts';
import { createAccounts } from '../../support/accounts.ts';
import { testDatabase } from '../../support/databases.ts';
import { eventually } from '../../support/eventually.ts';
import { createMemberships } from '../../support/memberships.ts';
import { createOpened } from '../../support/opened.ts';
import { describeOn, postgresServer } from '../../support/requirements.ts';

/** Adds organization "Nord" with two warehouses, "Empty" with none, an account and a client. */
async function setUp(database: Database) {
  const parts = { database, changes: silentChangeFeed, clock: systemClock };
  const organizations = createOrganizations(parts);
  const nord = await organizations.add({ name: 'Nord' });
  const empty = await organizations.add({ name: 'Empty' });
  const organizationId = nord.id;
  const hall10 = await organizations.addWarehouse({ organizationId, name: 'Hall 10' });
  const hall2 = await organizations.addWarehouse({ organizationId, name: 'Hall 2' });
  const ada = await createAccounts(parts).add({ email: 'ada@demo.test', name: 'Ada' });
  const { client } = await createClientRegistry(parts).add(machine);
  return {
    organizations,
    nord: { id: nord.id, name: 'Nord' },
    empty: { id: empty.id, name: 'Empty' },
    hall2: { id: hall2.id, name: 'Hall 2' },
    hall10: { id: hall10.id, name: 'Hall 10' },
    ada: { accountId: ada.id },
    machine: { clientId: client.id },
  };
}

describe('access', () => {
  const database = testDatabase();
  const access = createAccess({ database, changes: silentChangeFeed, clock: systemClock });
  const memberships = createMemberships({ database });
  let place: Awaited<ReturnType<typeof setUp>>;

  beforeEach(async () => {
    await database.query('TRUNCATE accounts, clients, organizations CASCADE');
    place = await setUp(database);
  });

  it('an owner and an admin have all rights in every warehouse, listed by name', async () => {
    const { organizations, ada, nord, empty, hall2, hall10 } = place;
    const rights = ['read', 'write', 'manage'];
    await memberships.setRole(ada, nord.id, 'admin');
    await memberships.setRights(ada, hall10.id, ['read']);
    await memberships.setRole(ada, empty.id, 'owner');
    expect(await access.accessOf(ada)).to.deep.equal([
      { ...empty, role: 'owner', warehouses: [] },
      {
        ...nord,
        role: 'admin',
        warehouses: [
          { ...hall2, rights },
          { ...hall10, rights },
        ],
      },
    ]);
    const { items } = await organizations.listWarehouses({}, nord.id);
    expect(
      items.map(({ name }) => name),
      'listed by the database',
    ).to.deep.equal(['Hall 2', 'Hall 10']);
  });

  it('a machine client has access only by its own memberships', async () => {
    const { machine, ada, nord, hall2 } = place;
    await memberships.setRole(machine, nord.id, 'member');
    await memberships.setRights(machine, hall2.id, ['read']);
    expect(await access.accessOf(machine)).to.deep.equal([
      { ...nord, role: 'member', warehouses: [{ ...hall2, rights: ['read'] }] },
    ]);
    expect(await access.accessOf(ada)).to.deep.equal([]);
  });
});

describeOn([postgresServer], 'access on several nodes', () => {
  const opened = createOpened();
  after(opened.closeAll);
  const database = testDatabase();

  it('a node that caches access is notified of every change', async () => {
    const { ada, nord, hall2 } = await setUp(database);
    const memberships = createMemberships({ database });
    const changes = await opened.add(listenForChanges(database), (feed) => feed.close());
    const access = createAccess({ database, changes, clock: systemClock });
    const becomes = (shape: string) =>
      eventually(async () => {
        const [first] = await access.accessOf(ada);
        const warehouses = first?.warehouses.map(({ name, rights }) => name + rights);
        expect(`${first?.role} ${warehouses}`).to.equal(shape);
      });
    await becomes('undefined undefined');
    await memberships.setRole(ada, nord.id, 'member');
    await becomes('member ');
    await memberships.setRights(ada, hall2.id, ['read']);
    await becomes('member Hall 2read');
    await database.query('UPDATE warehouses SET name = $1 WHERE id = $2', ['Hall 3', hall2.id]);
    await becomes('member Hall 3read');
    await memberships.remove(ada, nord.id);
    await becomes('undefined undefined');
  });
});
