import { expect } from 'chai';
import { createActivity } from '../../src/accounts/activity/activity.ts';
import { createConnections } from '../../src/authorizations/connections.ts';
import { createClientRemoval } from '../../src/authorizations/endings.ts';
import type { Client } from '../../src/clients/client.ts';
import { createClientRegistry } from '../../src/clients/client-registry.ts';
import { silentChangeFeed } from '../../src/storage/change-feed.ts';
import { createAccounts } from '../support/accounts.ts';
import { testDatabase } from '../support/databases.ts';
import { partner } from './drafts.ts';
import { refusalOf } from './refusals.ts';

const NO_CLIENT = 'gate_ci_0000000000000000000000';

describe('changes of a client', () => {
  const clock = () => Date.parse('2031-02-03T04:05:06.789Z');
  const database = testDatabase();
  const registry = createClientRegistry({ database, changes: silentChangeFeed, clock });
  const connections = createConnections({ database, changes: silentChangeFeed, clock });
  const activity = createActivity({ database, clock });
  const removal = createClientRemoval({ clients: registry, connections, activity });
  let people = 0;

  async function addPerson(): Promise<string> {
    people += 1;
    const accounts = createAccounts({ database, changes: silentChangeFeed, clock });
    const email = `person${people}@partner.example`;
    return (await accounts.add({ email, name: `Person ${people}` })).id;
  }

  const connect = (accountId: string, { id, name }: Client) =>
    connections.rememberConsent({ accountId, clientId: id, name, hosts: [] });

  it('an edit of a client must obey the rules for its kind', async () => {
    const { client } = await registry.add(partner);
    const scheme = { name: 'Phone', redirectUris: ['com.example.app:/cb'] };
    expect(await refusalOf(registry.edit(client.id, scheme))).to.equal('client_invalid');
    const none = { name: '', redirectUris: [] };
    expect(await refusalOf(registry.edit(client.id, none))).to.equal('client_invalid');
    expect(await registry.find(client.id)).to.deep.equal(client);
    const native = { ...partner, kind: 'public', isNative: true } as const;
    const { client: phone } = await registry.add(native);
    expect(await registry.edit(phone.id, scheme)).to.deep.include(scheme);
  });

  it('an unknown client cannot be changed', async () => {
    for (const id of ['', 'gate_ci_\0', NO_CLIENT]) {
      for (const change of [
        () => registry.edit(id, partner),
        () => registry.transfer(id, undefined),
        () => registry.suspend(id),
        () => registry.addSecret(id),
        () => registry.removeSecret(id, 'x'),
        () => registry.remove(id),
        () => removal(id),
      ]) {
        expect(await refusalOf(change())).to.equal('client_unknown');
      }
    }
  });

  it('a transfer gives a client to another owner, or to the operator', async () => {
    const [from, to] = [await addPerson(), await addPerson()];
    const { client } = await registry.add({ ...partner, ownerAccountId: from });
    expect(await registry.transfer(client.id, to)).to.include({ ownerAccountId: to });
    expect(await registry.listByOwner(from)).to.deep.equal([]);
    expect(await registry.listByOwner(to)).to.have.length(1);
    for (const unknown of ['acc_0000000000000000', 'acc_\0']) {
      expect(await refusalOf(registry.transfer(client.id, unknown))).to.equal('owner_unknown');
    }
    const provided = await registry.transfer(client.id, undefined);
    expect(provided).to.not.have.any.keys('ownerAccountId', 'ownerName');
  });

  it('owners see only their own clients, oldest first, with the number of connected users', async () => {
    const [owner, other] = [await addPerson(), await addPerson()];
    const { client } = await registry.add({ ...partner, ownerAccountId: owner });
    const { client: second } = await registry.add({ ...partner, ownerAccountId: owner });
    await connect(owner, client);
    await connect(other, client);
    const listed = await registry.listByOwner(owner);
    expect(listed).to.have.deep.members([
      { ...client, connectedPeople: 2 },
      { ...second, connectedPeople: 0 },
    ]);
    expect(await registry.findByOwner(owner, client.id)).to.include({ connectedPeople: 2 });
    for (const [account, id] of [
      [other, client.id],
      [owner, NO_CLIENT],
      [owner, 'gate_ci_\0'],
    ] as const) {
      expect(await registry.findByOwner(account, id)).to.equal(undefined);
    }
  });

  it('a deleted client is unknown at once, leaves no rows, and its users’ logs record the disconnection', async () => {
    const { client } = await registry.add({ ...partner, ownerAccountId: await addPerson() });
    const { client: other } = await registry.add(partner);
    const connected = await Promise.all([addPerson(), addPerson(), addPerson()]);
    for (const accountId of connected) await connect(accountId, client);
    const [ada = '', bob = '', former = ''] = connected;
    await connections.end({ accountId: former, clientId: client.id }, 'person_disconnected');
    await connect(bob, other);

    const people = await removal(client.id, async (tx, inTransaction) => {
      expect(inTransaction).to.equal(2);
      expect(await tx.query('SELECT FROM clients WHERE id = $1', [client.id])).to.have.length(0);
    });
    expect(people).to.equal(2);
    expect(await registry.find(client.id)).to.equal(undefined);
    for (const table of ['connections', 'client_secrets']) {
      const rows = await database.query(`SELECT FROM ${table} WHERE client_id = $1`, [client.id]);
      expect(rows, table).to.deep.equal([]);
    }
    const logged = await database.query<{ account_id: string }>(
      "SELECT account_id FROM activity WHERE details->>'client_id' = $1 AND action = 'disconnected'",
      [client.id],
    );
    expect(logged.map(({ account_id }) => account_id)).to.have.members([ada, bob]);
    expect(await connections.find(bob, other.id)).not.to.equal(undefined);
  });

  it('the last statement of a deletion has no connection left to delete, also none that its user ended', async () => {
    const { client } = await registry.add(partner);
    const [ada, former] = [await addPerson(), await addPerson()];
    for (const accountId of [ada, former]) await connect(accountId, client);
    await connections.end({ accountId: former, clientId: client.id }, 'person_disconnected');
    const left: number[] = [];
    const remove: typeof registry.remove = async (id, inTransaction) => {
      const query = 'SELECT FROM connections WHERE client_id = $1';
      left.push((await database.query(query, [id])).length);
      await registry.remove(id, inTransaction);
    };
    const clients = { suspend: registry.suspend, remove };
    const people = await createClientRemoval({ clients, connections, activity })(client.id);
    expect({ people, left }).to.deep.equal({ people: 1, left: [0] });
  });

  it('a deletion that fails leaves the client suspended and can be repeated', async () => {
    const ada = await addPerson();
    const { client } = await registry.add({ ...partner, ownerAccountId: ada });
    await connect(ada, client);
    const breakOff = async () => {
      throw new Error('the store is unavailable');
    };
    expect(await refusalOf(removal(client.id, breakOff))).to.match(/unavailable/);
    expect(await registry.findByOwner(ada, client.id)).to.include({ isSuspended: true });
    await removal(client.id);
    expect(await registry.find(client.id)).to.equal(undefined);
  });

  it('a change of a client and a record written in its transaction are stored together or not at all', async () => {
    const owner = await addPerson();
    const { client } = await registry.add({ ...partner, ownerAccountId: owner });
    const fail = async () => {
      throw new Error('the log is full');
    };
    for (const change of [
      () => registry.add({ ...partner, ownerAccountId: owner }, fail),
      () => registry.edit(client.id, { ...partner, name: 'New' }, fail),
      () => registry.transfer(client.id, undefined, fail),
      () => registry.suspend(client.id, fail),
      () => registry.addSecret(client.id, fail),
    ]) {
      expect(await refusalOf(change())).to.match(/the log is full/);
    }
    expect(await registry.find(client.id)).to.deep.equal(client);
    expect(await refusalOf(removal(client.id, fail))).to.match(/the log is full/);
    expect(await registry.listByOwner(owner)).to.have.length(1);
  });

  it('removing a secret of another client, or one with an impossible ID, is refused, and a public client has none', async () => {
    const { client } = await registry.add(partner);
    await registry.addSecret(client.id);
    const { client: other } = await registry.add({ ...partner, name: 'Other' });
    for (const id of [...other.secrets.map((secret) => secret.id), '', 'sec_\0', 'sec_0000000000000000']) {
      expect(await refusalOf(registry.removeSecret(client.id, id))).to.equal('secret_unknown');
    }
    expect(await registry.find(other.id)).to.deep.equal(other);
    const { client: phone } = await registry.add({ ...partner, kind: 'public' });
    expect(await refusalOf(registry.addSecret(phone.id))).to.equal('secret_unused');
  });
});
