import { expect } from 'chai';
import { createChanges } from '../../src/changes/engine.ts';
import { createOrganizations } from '../../src/changes/organizations.ts';
import { refusalOf } from '../clients/refusals.ts';
import { testDatabase } from '../support/databases.ts';

describe('organizations', () => {
  const database = testDatabase();
  const organizations = createOrganizations({ database });

  it('a change of a place that was deleted meanwhile does not add the place again', async () => {
    const engine = createChanges({ database });
    const gone = { type: 'organization', id: 'org_0000000000000000', set: { name: 'Gone' } } as const;
    const { differences } = await engine.transaction((tx, now) => engine.make(tx, now, [gone]));
    expect(differences).to.deep.equal([]);
    expect(await database.query('SELECT FROM organizations WHERE id = $1', [gone.id])).to.deep.equal([]);
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
