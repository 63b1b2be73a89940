import { expect } from 'chai';
import { createChanges } from '../../src/changes/engine.ts';
import { createOrganizations } from '../../src/changes/organizations.ts';
import { refusalOf } from '../clients/refusals.ts';
import { testDatabase } from '../support/databases.ts';

describe('organizations', () => {
  const database = testDatabase();
  const organizations = createOrganizations({ database });

  it('organizations are listed with their number of warehouses, sorted by name, with 9 before 10', async () => {
    const sued = await organizations.add({ name: 'Süd' });
    const nord = await organizations.add({ name: ' Nord ' });
    expect(nord).to.include({ name: 'Nord' });
    expect(nord.id).to.match(/^org_[A-Za-z0-9_-]{16}$/);
    for (const name of ['Hall 10', 'Hall 9', 'Annex']) {
      const added = await organizations.addWarehouse({ organizationId: nord.id, name });
      expect(added.id).to.match(/^wh_[A-Za-z0-9_-]{16}$/);
    }
    const { items: listed } = await organizations.list();
    expect(listed.map(({ id, warehouses }) => [id, warehouses])).to.deep.equal([
      [nord.id, 3],
      [sued.id, 0],
    ]);
    const names = (await organizations.listWarehouses()).items.map(({ name }) => name);
    expect(names).to.deep.equal(['Annex', 'Hall 9', 'Hall 10']);
  });

  it('a change of a place that was deleted meanwhile does not add the place again', async () => {
    const engine = createChanges({ database });
    const gone = { type: 'organization', id: 'org_0000000000000000', set: { name: 'Gone' } } as const;
    const { differences } = await engine.transaction((tx, now) => engine.make(tx, now, [gone]));
    expect(differences).to.deep.equal([]);
    expect(await database.query('SELECT FROM organizations WHERE id = $1', [gone.id])).to.deep.equal([]);
  });

  it('a warehouse cannot be added to an unknown organization', async () => {
    for (const organizationId of ['org_0000000000000000', 'nowhere\0']) {
      const added = organizations.addWarehouse({ organizationId, name: 'Hall' });
      expect(await refusalOf(added)).to.equal('organization_unknown');
    }
  });

  it('an organization with an empty, invisible, unprintable or too long name is refused', async () => {
    const blank = ['\u3164', 'a\uffa0b', '\u2800', 'Z\u0338\u0321\u0322'];
    for (const name of ['', ' ', 'a\0', 'a\u202Eb', 'a'.repeat(201), '\uD800'].concat(blank)) {
      expect(await refusalOf(organizations.add({ name }))).to.equal('name_invalid');
    }
    const secret = `gate_key_${'k'.repeat(43)}`;
    for (const draft of [{ name: secret }, { name: 'Nord', externalId: secret }]) {
      expect(await refusalOf(organizations.add(draft))).to.equal('name_secret');
    }
  });
});
