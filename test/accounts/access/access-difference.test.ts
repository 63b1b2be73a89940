import { expect } from 'chai';
import { compareAccess, countChanges } from '../../../src/accounts/access/access-difference.ts';
import type { Organization } from '../../../src/accounts/access/reach.ts';

const warehouse = (name: string, ...rights: ('read' | 'write' | 'manage')[]) => ({
  id: `wh_${name}`,
  name,
  rights,
});

const acme = (overrides: Partial<Organization> = {}): Organization => ({
  id: 'org_acme',
  name: 'Acme',
  role: 'member',
  warehouses: [warehouse('Hamburg', 'read'), warehouse('Riga', 'read', 'write')],
  ...overrides,
});
const zulu: Organization = { id: 'org_zulu', name: 'Zulu', role: 'owner', warehouses: [] };

describe('the difference between former and current access', () => {
  it('equal access has no difference, even if an organization was renamed', () => {
    const renamed = acme({ name: 'Acme Ltd' });
    const compared = compareAccess([acme(), zulu], [renamed, zulu]);
    expect(compared).to.deep.equal([renamed, zulu]);
    expect(countChanges(compared)).to.deep.equal({ added: 0, removed: 0, changed: 0 });
  });

  it('an added or removed organization is one change, together with its warehouses', () => {
    expect(compareAccess([zulu], [acme(), zulu])).to.deep.equal([{ ...acme(), change: 'added' }, zulu]);
    const removed = compareAccess([acme(), zulu], [zulu]);
    expect(removed).to.deep.equal([{ ...acme(), change: 'removed' }, zulu]);
    expect(countChanges(removed)).to.deep.equal({ added: 0, removed: 1, changed: 0 });
  });

  it('changes of a role, of warehouses and of their rights are listed one by one', () => {
    const now = acme({
      role: 'viewer',
      warehouses: [warehouse('Bergen', 'read'), warehouse('Riga', 'read')],
    });
    const compared = compareAccess([acme()], [now]);
    expect(compared).to.deep.equal([
      {
        ...now,
        change: 'changed',
        formerRole: 'member',
        warehouses: [
          { ...warehouse('Bergen', 'read'), change: 'added' },
          { ...warehouse('Hamburg', 'read'), change: 'removed' },
          { ...warehouse('Riga', 'read'), change: 'changed', formerRights: ['read', 'write'] },
        ],
      },
    ]);
    expect(countChanges(compared)).to.deep.equal({ added: 1, removed: 1, changed: 2 });
  });

  it('no difference is marked if there is no earlier access to compare with', () => {
    expect(compareAccess(undefined, [acme()])).to.deep.equal([acme()]);
  });
});
