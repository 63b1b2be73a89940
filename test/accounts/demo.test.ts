import { expect } from 'chai';
import { createAccess } from '../../src/accounts/access.ts';
import { createAccountRegistry } from '../../src/accounts/account-registry.ts';
import { DEMO, seedDemo } from '../../src/accounts/demo.ts';
import { createSignIn } from '../../src/accounts/sign-in.ts';
import { systemClock } from '../../src/clock.ts';
import { silentChangeFeed } from '../../src/storage/change-feed.ts';
import type { OpenDatabase } from '../../src/storage/database.ts';
import { forEachDatabase } from '../support/databases.ts';

forEachDatabase('demo', (open) => {
  let database: OpenDatabase;
  const seed = () => seedDemo({ database, clock: systemClock });

  before(async () => {
    database = await open();
  });

  beforeEach(async () => {
    await database.query('TRUNCATE accounts, organizations CASCADE');
  });

  it('its person signs in and owns the organization with its two warehouses', async () => {
    expect(await seed()).to.equal(true);
    const ada = await createSignIn({ database })({ email: DEMO.email, password: DEMO.password });
    if (ada === 'refused') throw new Error('the demo sign-in was refused');
    const access = createAccess({ database, changes: silentChangeFeed });
    const [organization, ...others] = await access.accessOf({ accountId: ada.id });
    expect(others).to.deep.equal([]);
    expect(organization).to.include({ name: 'Demo Logistics', role: 'owner' });
    expect(organization?.warehouses.map(({ name }) => name)).to.deep.equal(['Hamburg', 'Riga']);
  });

  it('is added once, also when two processes start at once', async () => {
    expect((await Promise.all([seed(), seed()])).sort()).to.deep.equal([false, true]);
    expect(await seed()).to.equal(false);
    expect(await database.query('SELECT id FROM warehouses')).to.have.length(2);
  });

  it('is not added where there is an account', async () => {
    const accounts = createAccountRegistry({
      database,
      changes: silentChangeFeed,
      clock: systemClock,
    });
    await accounts.add({ email: 'someone@else.example', name: 'Someone' });
    expect(await seed()).to.equal(false);
    expect(await database.query('SELECT id FROM organizations')).to.deep.equal([]);
  });
});
