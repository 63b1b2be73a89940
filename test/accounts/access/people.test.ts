/** Access as the database holds it, and a node’s cache of users and their access while another node changes the data. */
import { expect } from 'chai';
import { createAccess } from '../../../src/accounts/access/access.ts';
import { createPeople, type People } from '../../../src/accounts/access/people.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { createOrganizations } from '../../../src/changes/organizations.ts';
import { listenForChanges, silentChangeFeed } from '../../../src/storage/change-feed.ts';
import { openDatabase } from '../../../src/storage/database.ts';
import { startTcpProxy, type TcpProxy } from '../../storage/tcp-proxy.ts';
import { createAccounts, createMemberships } from '../../support/accounts.ts';
import { testDatabase } from '../../support/databases.ts';
import { eventually } from '../../support/eventually.ts';
import { createOpened } from '../../support/opened.ts';
import { freshMigratedDatabaseUrl } from '../../support/postgres-server.ts';
import { describeOn, postgresServer } from '../../support/requirements.ts';
import { TIMEOUT_FACTOR } from '../../support/timeout-factor.ts';

describeOn([postgresServer], 'users cached by a node', () => {
  const opened = createOpened();
  after(opened.closeAll);
  let proxy: TcpProxy;
  let people: People;
  let announced: string[];
  let elsewhere: Awaited<ReturnType<typeof open>>;

  async function open(databaseUrl: string) {
    const options = { databaseUrl, dataDirectory: '', timeoutFactor: TIMEOUT_FACTOR };
    const database = await opened.add(openDatabase(options), (one) => one.close());
    const parts = { database, clock: systemClock, changes: silentChangeFeed };
    return {
      database,
      accounts: createAccounts(parts),
      memberships: createMemberships(parts),
      organizations: createOrganizations(parts),
    };
  }

  before(async () => {
    const url = new URL(await freshMigratedDatabaseUrl());
    elsewhere = await open(url.href);
    proxy = await opened.add(startTcpProxy(Number(url.port)), (one) => one.close());
    url.port = String(proxy.port);
    const { database } = await open(url.href);
    const changes = await opened.add(listenForChanges(database), (feed) => feed.close());
    people = createPeople({ database, changes, clock: systemClock });
    changes.onChange((...change) => announced.push(change.join(' ')));
  });

  beforeEach(() => {
    announced = [];
  });

  /** Adds a user "Ada" and an organization "Nord" that no other test uses. */
  async function addPlace() {
    const { accounts, organizations, memberships } = elsewhere;
    const email = `${crypto.randomUUID()}@demo.test`;
    const { id } = await accounts.add({ email, name: 'Ada' });
    const nord = await organizations.add({ name: 'Nord' });
    const hall = await organizations.addWarehouse({ organizationId: nord.id, name: 'Hall' });
    await memberships.setRole({ accountId: id }, nord.id, 'member');
    await memberships.setRights({ accountId: id }, hall.id, ['read']);
    await eventually(() => expect(announced.filter((one) => one === `access ${id}`)).to.have.length(2));
    return { id, nord, hall };
  }
  type Place = Awaited<ReturnType<typeof addPlace>>;

  const shown = async (id: string): Promise<string> => {
    const { account, organizations } = (await people.find(id)) ?? {};
    const places = organizations?.map(({ role, warehouses }) => `${role} ${warehouses.map(({ name }) => name)}`);
    return `${account?.isSuspended ? 'suspended' : 'there'} ${places}`;
  };

  const CHANGES: Readonly<
    Record<string, { change(place: Place): Promise<unknown>; announced(place: Place): string; after: string }>
  > = {
    'an account': {
      change: ({ id }) => elsewhere.accounts.suspend(id),
      announced: ({ id }) => `accounts ${id}`,
      after: 'suspended member Hall',
    },
    'a membership': {
      change: ({ id, nord }) => elsewhere.memberships.remove({ accountId: id }, nord.id),
      announced: ({ id }) => `access ${id}`,
      after: 'there ',
    },
    'a role': {
      change: ({ id, nord }) => elsewhere.memberships.setRole({ accountId: id }, nord.id, 'owner'),
      announced: ({ id }) => `access ${id}`,
      after: 'there owner Hall',
    },
    'a right': {
      change: ({ id, hall }) => elsewhere.memberships.removeRights({ accountId: id }, hall.id),
      announced: ({ id }) => `access ${id}`,
      after: 'there member ',
    },
    'a warehouse': {
      change: ({ hall }) => elsewhere.database.query("UPDATE warehouses SET name = 'Yard' WHERE id = $1", [hall.id]),
      announced: ({ nord }) => `organizations ${nord.id}`,
      after: 'there member Yard',
    },
  };

  for (const [name, { change, announced: expected, after: changed }] of Object.entries(CHANGES)) {
    it(`${name} that another node changes while it is read is not cached in its old state`, async () => {
      const place = await addPlace();
      const other = await addPlace();
      await shown(other.id);
      const { held, release } = proxy.hold(new RegExp(place.id), 'answer');
      const early = shown(place.id);
      await held;
      announced = [];
      await change(place);
      await eventually(() => expect(announced).to.include(expected(place)));
      const late = shown(place.id);
      release();
      expect(await early).to.equal('there member Hall');
      expect(await late).to.equal(changed);
      expect(await shown(place.id)).to.equal(changed);
    });

    it(`a change of ${name} removes only the affected users from the cache`, async () => {
      const [place, other] = [await addPlace(), await addPlace()];
      const before = await Promise.all([place, other].map(({ id }) => people.find(id)));
      announced = [];
      await change(place);
      await eventually(() => expect(announced).to.include(expected(place)));
      expect(await shown(place.id)).to.equal(changed);
      expect(await people.find(other.id)).to.equal(before[1]);
    });
  }

  it('a cached user has the same values after the cache has packed the user into bytes', async () => {
    const { id, nord, hall } = await addPlace();
    const { database } = elsewhere;
    await database.query(
      `WITH suspended AS (UPDATE accounts SET suspended_at = now(), language = 'de', external_id = 'person äöü 7' WHERE id = $1),
        client AS (INSERT INTO clients (id, kind, name, redirect_uris, native, created_at, updated_at)
          VALUES ('gate_ci_packed0000000001', 'public', 'Packed', '{http://packed.test/}', false, now(), now()) RETURNING id),
        ended AS (INSERT INTO ended_authorizations (id, at, cause, account_id, client_id, forgotten_at)
          SELECT 'auth_packed', now(), 'revoked', $1, 'gate_ci_packed0000000001', now() + interval '1 day')
      INSERT INTO connections (account_id, client_id, connected_at, approved_at, consented_name, consented_hosts,
          limit_places, limit_read_only, limit_until)
        SELECT $1, id, now(), now(), 'Packed', '{}', ARRAY[$2], true, now() + interval '1 day' FROM client`,
      [id, hall.id],
    );
    await database.query('UPDATE organizations SET asks_first = true WHERE id = $1', [nord.id]);
    await eventually(() => expect(announced).to.include(`organizations ${nord.id}`));
    const others = await database.query<{ id: string }>(
      `INSERT INTO accounts (id, email, email_key, name, created_at)
        SELECT 'acc_packed' || lpad(n::text, 10, '0'), n || '@many.test', n || '@many.test', 'Many', now()
        FROM generate_series(1, 1000) n RETURNING id`,
    );
    const before = await people.find(id);
    expect(before).to.deep.include({ ended: ['auth_packed'] });
    expect(before?.policies.size).to.equal(1);
    while (others.length > 0) await Promise.all(others.splice(0, 10).map((other) => people.find(other.id)));
    const after = await people.find(id);
    expect(after).to.not.equal(before);
    expect(after).to.deep.equal(before);
  });
});

describe('the access of a user depends on the role in each organization', () => {
  const database = testDatabase();
  const parts = { database, changes: silentChangeFeed, clock: systemClock };

  it('an owner and an admin have all rights in every warehouse, and the warehouses are sorted by name', async () => {
    const [organizations, memberships] = [createOrganizations(parts), createMemberships(parts)];
    const ada = { accountId: (await createAccounts(parts).add({ email: 'ada@demo.test', name: 'Ada' })).id };
    const { id: organizationId } = await organizations.add({ name: 'Nord' });
    const { id: emptyId } = await organizations.add({ name: 'Empty' });
    const { id: hall10 } = await organizations.addWarehouse({ organizationId, name: 'Hall 10' });
    const { id: hall2 } = await organizations.addWarehouse({ organizationId, name: 'Hall 2' });
    const rights = ['read', 'write', 'manage'];
    await memberships.setRole(ada, organizationId, 'admin');
    await memberships.setRights(ada, hall10, ['read']);
    await memberships.setRole(ada, emptyId, 'owner');
    expect(await createAccess(parts).accessOf(ada)).to.deep.equal([
      { id: emptyId, name: 'Empty', role: 'owner', warehouses: [] },
      {
        id: organizationId,
        name: 'Nord',
        role: 'admin',
        warehouses: [
          { id: hall2, name: 'Hall 2', rights },
          { id: hall10, name: 'Hall 10', rights },
        ],
      },
    ]);
    const { items } = await organizations.listWarehouses({}, organizationId);
    expect(
      items.map(({ name }) => name),
      'listed by the database',
    ).to.deep.equal(['Hall 2', 'Hall 10']);
  });
});
