import { expect } from 'chai';
import { createAccess } from '../../src/accounts/access/access.ts';
import { DEMO, seedDemo } from '../../src/accounts/demo.ts';
import { createSignIn } from '../../src/accounts/password-sign-in.ts';
import { systemClock } from '../../src/base/clock.ts';
import { silentChangeFeed } from '../../src/storage/change-feed.ts';
import { createAccounts } from '../support/accounts.ts';
import { testDatabase } from '../support/databases.ts';

describe('demo data', () => {
  const database = testDatabase();
  const parts = { database, changes: silentChangeFeed, clock: systemClock };
  const seed = () => seedDemo(parts);

  beforeEach(() => database.query('TRUNCATE accounts, organizations CASCADE'));

  it('the demo data contains a user who can sign in and owns an organization with two warehouses', async () => {
    expect(await seed()).to.equal(true);
    const ada = await createSignIn({ database })({ email: DEMO.email, password: DEMO.password });
    if (ada === 'refused') throw new Error('the demo sign-in was refused');
    const [organization, ...others] = await createAccess(parts).accessOf({ accountId: ada.id });
    expect(others).to.deep.equal([]);
    expect(organization).to.include({ name: 'Demo Logistics', role: 'owner' });
    expect(organization?.warehouses.map(({ name }) => name)).to.deep.equal(['Hamburg', 'Riga']);
    expect(await seed()).to.equal(false);
  });

  it('the demo data is not added if any account exists', async () => {
    await createAccounts(parts).add({ email: 'someone@else.example', name: 'Someone' });
    expect(await seed()).to.equal(false);
    expect(await database.query('SELECT id FROM organizations')).to.deep.equal([]);
  });
});
