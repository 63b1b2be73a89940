/** Client names that users could mistake for those of an organization or of a verified client. */
import { expect } from 'chai';
import { Refusal } from '../../src/base/refusal.ts';
import { startSeeded } from '../support/seeded.ts';
import { partner } from './drafts.ts';
import { refusalOf } from './refusals.ts';

describe('a client name that resembles a taken name', () => {
  const on = startSeeded();
  const add = (name: string, more: object = {}) =>
    on.service.clients.add({
      ...partner,
      ownerAccountId: on.seeded.person.accountId,
      name,
      ...more,
    });
  const problemsOf = async (work: Promise<unknown>): Promise<unknown> => {
    const error = await work.catch((refusal: unknown) => refusal);
    return error instanceof Refusal ? error.problems : error;
  };

  it('a taken client name is refused with the same message, whether an organization, a client or Gatehouse has it', async () => {
    const { client: verified } = await on.service.clients.add({ ...partner, name: 'Dock Billing' });
    await on.service.clients.verify(verified.id, true);
    const first = await problemsOf(add('Northern Logistics'));
    expect(first).to.have.deep.nested.property('[0].code', 'name_taken');
    for (const name of ['Gatehouse Security', 'Elsewhere-St0rage', 'DOCK BlLLlNG']) {
      expect(await problemsOf(add(name)), name).to.deep.equal(first);
    }
    expect(await refusalOf(add('Southern Logistics'))).to.equal('accepted');
  });

  it("a verified client's name with generic words added is taken, too, unless that name is itself a generic word", async () => {
    for (const name of ['Xero', 'Accounting']) {
      const { client } = await on.service.clients.add({ ...partner, name });
      await on.service.clients.verify(client.id, true);
    }
    for (const name of ['Xero App', 'My Xero', 'Xero für Buchhaltung', 'XER0-Login', 'Accounting']) {
      expect(await problemsOf(add(name)), name).to.have.nested.property('[0].code', 'name_taken');
    }
    const operator = { naming: 'by the operator' };
    expect(await refusalOf(add('Xero Connect', operator))).to.equal('accepted');
    for (const name of ['Xerox App', 'Accounting App', 'My Accounting']) {
      expect(await refusalOf(add(name)), name).to.equal('accepted');
    }
  });

  it('the name of an organization is allowed for clients of its owners and admins, not of other members', async () => {
    const { person, organization } = on.seeded;
    const { memberships } = on.service;
    const subject = { accountId: person.accountId };
    for (const [role, outcome] of [
      ['member', 'client_invalid'],
      ['admin', 'accepted'],
      ['owner', 'accepted'],
    ] as const) {
      await memberships.setRole(subject, organization.id, role);
      expect(await refusalOf(add('Northern Logistics')), role).to.equal(outcome);
    }
    await memberships.setRole(subject, organization.id, 'member');
  });

  it('client names are compared with the current name of an organization', async () => {
    const { id } = await on.service.organizations.add({ name: 'Before Ltd' });
    expect(await refusalOf(add('Before Ltd'))).to.equal('client_invalid');
    await on.service.organizations.edit('organization', id, { name: 'After Ltd' });
    expect(await refusalOf(add('After Ltd'))).to.equal('client_invalid');
    expect(await refusalOf(add('Before Ltd'))).to.equal('accepted');
    // By hand, or by a version with another key for the same name.
    for (const key of [null, 'of another version']) {
      await on.service.database.query('UPDATE organizations SET name_key = $2 WHERE id = $1', [id, key]);
      expect(await refusalOf(add('After Ltd')), `${key}`).to.equal('accepted');
      await on.service.organizations.edit('organization', id, { name: 'After Ltd' });
      expect(await refusalOf(add('After Ltd')), `${key}`).to.equal('client_invalid');
    }
  });

  it('a client keeps a name that is taken: only a changed name is checked', async () => {
    const { client } = await add('Northern Logistics', { naming: 'by the operator' });
    const redirectUris = ['https://app.example/other'];
    const { clients } = on.service;
    expect(await refusalOf(clients.edit(client.id, { ...client, redirectUris }))).to.equal('accepted');
    await clients.edit(client.id, { name: 'Something Else' });
    const back = clients.edit(client.id, { name: 'Northern Logistics' });
    expect(await refusalOf(back)).to.equal('client_invalid');
    expect((await clients.find(client.id))?.name).to.equal('Something Else');
  });
});
