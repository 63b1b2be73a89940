/** Rules of the registries of accounts, organizations and memberships, and the data of the demo. */
import { expect } from 'chai';
import { seedDemo } from '../../src/accounts/demo.ts';
import { createChanges } from '../../src/changes/engine.ts';
import { createOrganizations } from '../../src/changes/organizations.ts';
import { createClientRegistry } from '../../src/clients/client-registry.ts';
import { type ChangeFeed, silentChangeFeed } from '../../src/storage/change-feed.ts';
import { partner } from '../clients/drafts.ts';
import { refusalOf } from '../clients/refusals.ts';
import { createAccounts, createMemberships } from '../support/accounts.ts';
import { testDatabase } from '../support/databases.ts';

/** A change feed that announces nothing: only the registry that changes a value removes it from the cache. */
const liveAndSilent: ChangeFeed = { ...silentChangeFeed, isLive: true };

describe('the registries of accounts and organizations refuse invalid data and show changes at once', () => {
  const clock = () => Date.parse('2031-02-03T04:05:06.789Z');
  const database = testDatabase();
  const parts = { database, changes: silentChangeFeed, clock };
  const accounts = createAccounts(parts);
  const organizations = createOrganizations(parts);
  const memberships = createMemberships(parts);

  beforeEach(() => database.query('TRUNCATE accounts, clients, organizations CASCADE'));

  it('text that is too long, or that PostgreSQL cannot store, is refused and finds no account', async () => {
    const texts = ['nul\0@demo.test', 'lone\uD800@demo.test', `${'a'.repeat(300)}@demo.test`];
    for (const text of texts) {
      expect(await refusalOf(accounts.add({ email: text, name: 'Ada' }))).to.equal('email_invalid');
      expect(await refusalOf(accounts.add({ email: 'new@demo.test', name: text }))).to.be.oneOf([
        'name_invalid',
        'accepted',
      ]);
      expect(await accounts.findByEmail(text)).to.equal(undefined);
      expect(await accounts.find(text)).to.equal(undefined);
      expect(await refusalOf(accounts.suspend(text))).to.equal('account_unknown');
    }
  });

  it('a change of an account is visible at once, before the change feed announces it', async () => {
    const registry = createAccounts({ database, changes: liveAndSilent, clock });
    const { id } = await registry.add({ email: 'live@demo.test', name: 'Livia' });
    const found = async () => {
      const { isSuspended, sessionGeneration } = (await registry.find(id)) ?? {};
      return { isSuspended, sessionGeneration };
    };
    expect(await found()).to.deep.equal({ isSuspended: false, sessionGeneration: 0 });
    await registry.suspend(id);
    expect(await found()).to.deep.equal({ isSuspended: true, sessionGeneration: 1 });
    await registry.endSessions(id);
    expect(await found()).to.deep.equal({ isSuspended: true, sessionGeneration: 2 });
  });

  it('a change of a deleted organization does not create the organization again', async () => {
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

  it('the error for a refused membership names the unknown account, client, organization or warehouse', async () => {
    const { id: accountId } = await accounts.add({ email: 'a@demo.test', name: 'Ada' });
    const ada = { accountId };
    const { id: organizationId } = await organizations.add({ name: 'Nord' });
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
    const { id: organizationId } = await organizations.add({ name: 'Nord' });
    const set = memberships.setRole({ clientId: client.id }, organizationId, 'member');
    expect(await refusalOf(set)).to.equal('not_a_machine');
  });

  it('the demo data is not added if any account exists', async () => {
    await accounts.add({ email: 'someone@else.example', name: 'Someone' });
    expect(await seedDemo(parts)).to.equal(false);
    expect(await database.query('SELECT id FROM organizations')).to.deep.equal([]);
  });
});
