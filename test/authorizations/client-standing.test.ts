/** What a consent page says about its client: limited counts and words, never names of users. */
import { expect } from 'chai';
import { type ClientStanding, createClientStandings } from '../../src/authorizations/client-standing.ts';
import { createConnections } from '../../src/authorizations/connections.ts';
import { systemClock } from '../../src/base/clock.ts';
import { createOrganizations } from '../../src/changes/organizations.ts';
import { createClientRegistry } from '../../src/clients/client-registry.ts';
import { describeStanding } from '../../src/pages/words/client-standing.ts';
import { silentChangeFeed } from '../../src/storage/change-feed.ts';
import { inEnglish } from '../../src/texts/texts.ts';
import { createAccounts, createMemberships } from '../support/accounts.ts';
import { testDatabase } from '../support/databases.ts';
import { addPerson, addTestClient, connectMany } from '../support/seed.ts';

const DAY = 86_400_000;

describe('the consent page shows the age and users of a client', () => {
  const open = testDatabase();
  const parts = () => ({ database: open, changes: silentChangeFeed, clock: systemClock });
  const addAccount = async (): Promise<string> =>
    (await addPerson({ database: open, accounts: createAccounts(parts()) }, 'Ada')).accountId;
  const addClient = async (ownerAccountId?: string): Promise<string> => {
    const owner = ownerAccountId === undefined ? {} : { ownerAccountId };
    return (await addTestClient({ clients: createClientRegistry(parts()) }, 'Partner', owner)).id;
  };
  const connect = (accountId: string, clientId: string) =>
    createConnections(parts()).rememberConsent({ accountId, clientId, name: 'Partner', hosts: [] });
  const standing = (clientId: string, accountId: string) =>
    createClientStandings({ database: open }).find(clientId, accountId);

  it('the consent page shows when a client got its present owner, and treats the client as new from that date on', async () => {
    const [former, owner, self] = [await addAccount(), await addAccount(), await addAccount()];
    const clientId = await addClient(former);
    expect(await standing(clientId, self)).to.deep.include({ ownedSince: null });
    const time = systemClock();
    const later = createClientRegistry({ ...parts(), clock: () => time + 90 * DAY });
    await later.transfer(clientId, owner);
    const given = await standing(clientId, self);
    expect(given?.ownedSince).to.deep.equal(new Date(time + 90 * DAY));
    const people = { people: 20, hasColleagues: false, isConnected: false };
    const shown = (days: number) => given && describeStanding({ ...given, ...people }, time + days * DAY);
    expect(inEnglish(shown(93)?.facts ?? '')).to.match(
      /^Registered 3 months ago · given to its present owner 3 days ago · /,
    );
    expect([shown(96)?.isWarning, shown(97)?.isWarning]).to.deep.equal([true, false]);
    await later.transfer(clientId, undefined);
    const provided = await standing(clientId, self);
    const facts = provided && describeStanding(provided, time + 97 * DAY).facts;
    expect(inEnglish(facts ?? '')).to.not.include('owner');
  });

  it('a user learns how many others use a client, and whether one of them shares an organization with the user', async () => {
    const [self, colleague, stranger] = [await addAccount(), await addAccount(), await addAccount()];
    const clientId = await addClient(await addAccount());
    expect(await standing(clientId, self)).to.deep.include({
      isOfOperator: false,
      isVerified: false,
      people: 0,
      hasColleagues: false,
      isConnected: false,
    });
    const organizations = createOrganizations(parts());
    const { id } = await organizations.add({ name: 'Storm' });
    const elsewhere = await organizations.add({ name: 'Calm' });
    const memberships = createMemberships(parts());
    await memberships.setRole({ accountId: self }, id, 'member');
    await memberships.setRole({ accountId: colleague }, id, 'viewer');
    await memberships.setRole({ accountId: stranger }, elsewhere.id, 'owner');
    await connect(stranger, clientId);
    await connect(self, clientId);
    expect(await standing(clientId, self)).to.include({
      people: 1,
      hasColleagues: false,
      isConnected: true,
    });
    await connect(colleague, clientId);
    expect(await standing(clientId, self)).to.include({ people: 2, hasColleagues: true });
    const ended = { accountId: colleague, clientId };
    await createConnections(parts()).end(ended, 'person_disconnected');
    expect(await standing(clientId, self)).to.include({ people: 1, hasColleagues: false });
    expect(await standing('gate_ci_none', self)).to.equal(undefined);
    expect(await standing(await addClient(), self)).to.include({ isOfOperator: true });
  });

  it('counting connected users stops at 1,001, which means more than 1,000', async () => {
    const clientId = await addClient(await addAccount());
    await connectMany(open, clientId, 1_200);
    expect(await standing(clientId, await addAccount())).to.include({ people: 1_001 });
  });

  describe('the consent page warns about a client that is new or has few users', () => {
    const NOW = Date.parse('2026-11-23T12:00:00Z');
    const usual: ClientStanding = {
      registeredAt: new Date(NOW - 30 * DAY),
      ownedSince: null,
      isOfOperator: false,
      isVerified: false,
      people: 5,
      hasColleagues: false,
      isConnected: false,
    };
    const isWarning = (changes: Partial<ClientStanding> = {}) =>
      describeStanding({ ...usual, ...changes }, NOW).isWarning;
    const ago = (days: number) => ({ registeredAt: new Date(NOW - days * DAY) });

    it('a client younger than 7 days or with under 5 users causes a warning, unless the operator provides it', () => {
      expect(isWarning()).to.equal(false);
      expect(isWarning(ago(7))).to.equal(false);
      expect(isWarning(ago(6.99))).to.equal(true);
      expect(isWarning({ people: 4 })).to.equal(true);
      expect(isWarning({ people: 4, isConnected: true })).to.equal(false);
      expect(isWarning({ people: 3, isConnected: true, isVerified: true })).to.equal(true);
      expect(isWarning({ ...ago(1), people: 0, isOfOperator: true })).to.equal(false);
    });
  });
});
