import { expect } from 'chai';
import { createActivity } from '../../src/accounts/activity/activity.ts';
import { createConnections } from '../../src/authorizations/connections.ts';
import { createClientRemoval } from '../../src/authorizations/endings.ts';
import { systemClock } from '../../src/base/clock.ts';
import { type Client, redirectHosts } from '../../src/clients/client.ts';
import { createClientRegistry } from '../../src/clients/client-registry.ts';
import { writeUses } from '../../src/clients/client-row.ts';
import { listenForChanges, silentChangeFeed } from '../../src/storage/change-feed.ts';
import { createAccounts } from '../support/accounts.ts';
import { testDatabase } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { createOpened } from '../support/opened.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { wordsOf } from '../support/words.ts';
import { partner } from './drafts.ts';
import { refusalOf } from './refusals.ts';

const NO_CLIENT = 'gate_ci_0000000000000000000000';
const ADDED_ELSEWHERE = `INSERT INTO clients
  (id, kind, name, redirect_uris, native, created_at, updated_at)
  VALUES ($1, 'machine', 'Elsewhere', '{}', false, now(), now())`;

describe('client registry', () => {
  const clock = () => Date.parse('2031-02-03T04:05:06.789Z');
  const database = testDatabase();
  const parts = { database, changes: silentChangeFeed, clock };
  const registry = createClientRegistry(parts);

  const connections = createConnections(parts);
  const activity = createActivity(parts);
  const removal = createClientRemoval({ clients: registry, connections, activity });
  let people = 0;

  async function addPerson(): Promise<string> {
    people += 1;
    const accounts = createAccounts(parts);
    const email = `person${people}@partner.example`;
    return (await accounts.add({ email, name: `Person ${people}` })).id;
  }

  const connect = (accountId: string, { id, name }: Client) =>
    connections.rememberConsent({ accountId, clientId: id, name, hosts: [] });

  it('a client is found together with the name of its owner; an unknown owner is refused', async () => {
    const olga = { email: 'owner@partner.example', name: 'Olga Owner' };
    const owner = await createAccounts(parts).add(olga);
    const { client } = await registry.add({ ...partner, ownerAccountId: owner.id });
    expect(client).to.include({ ownerAccountId: owner.id, ownerName: 'Olga Owner' });
    for (const ownerAccountId of ['acc_0000000000000000', 'nobody\0']) {
      const given = [registry.add({ ...partner, ownerAccountId }), registry.transfer(client.id, ownerAccountId)];
      expect(await Promise.all(given.map(refusalOf))).to.deep.equal(['owner_unknown', 'owner_unknown']);
    }
  });

  it('a malformed or unknown ID finds no client and causes no error', async () => {
    for (const id of ['', 'nope', 'gate_ci_\0', 'gate_ci_0000000000000000000000\0', '\uD800']) {
      expect(await registry.find(id)).to.equal(undefined);
    }
    expect(await registry.find(NO_CLIENT)).to.equal(undefined);
  });

  it('changing a secret changes the version of its client; using a secret only stores the latest time', async () => {
    const { client } = await registry.add(partner);
    const { id, secrets } = client;
    const [earlier, later] = [new Date(clock() - 1), new Date(clock())];
    for (const at of [later, earlier]) {
      await writeUses(database, 'clients')([{ id, at }]);
      await writeUses(database, 'client_secrets')([{ id: secrets[0]?.id ?? '', at }]);
    }
    const used = await registry.find(id);
    expect(used).to.deep.include({ lastUsedAt: later, version: client.version });
    expect(used?.secrets[0]?.lastUsedAt).to.deep.equal(later);
    await database.query('DELETE FROM client_secrets WHERE client_id = $1', [client.id]);
    expect((await registry.find(client.id))?.version).to.not.equal(client.version);
  });

  it('a change of a client is visible at once, before the change feed announces it', async () => {
    const live = createClientRegistry({ ...parts, changes: { ...silentChangeFeed, isLive: true } });
    const { id } = (await live.add(partner)).client;
    const found = () => live.find(id);
    expect(await found()).to.include({ isSuspended: false });
    await live.suspend(id);
    expect(await found()).to.include({ isSuspended: true });
    await live.resume(id);
    await live.edit(id, { ...partner, name: 'Renamed' });
    expect(await found()).to.include({ isSuspended: false, name: 'Renamed' });
    // This read during the removal caches the client as it was before the removal.
    await live.remove(id, async () => {
      expect(await found()).to.include({ name: 'Renamed' });
    });
    expect(await found()).to.equal(undefined);
  });

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

  it('the deletion of a client deletes its connections before its own row, even connections that users had ended', async () => {
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

  it('only existing secrets of the same client can be removed, and a public client gets no secret', async () => {
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

describeOn([postgresServer], 'client registry on several nodes', () => {
  const opened = createOpened();
  after(opened.closeAll);
  const database = testDatabase();

  it('a node that caches a client is notified of changes made on another node', async () => {
    const changes = await opened.add(listenForChanges(database), (feed) => feed.close());
    const parts = { database, changes: silentChangeFeed, clock: systemClock };
    const here = createClientRegistry({ ...parts, changes });
    const there = createClientRegistry(parts);
    const { client } = await here.add(partner);
    expect(await here.find(client.id)).to.deep.equal(client);

    // An unknown client is cached as a miss, until the node that adds the client announces it.
    const id = NO_CLIENT;
    expect(await here.find(id)).to.equal(undefined);
    await database.query('ALTER TABLE clients DISABLE TRIGGER clients_named');
    await database.query(ADDED_ELSEWHERE, [id]);
    expect(await here.find(id), 'the addition was not announced').to.equal(undefined);
    await database.query('DELETE FROM clients WHERE id = $1', [id]);
    await database.query('ALTER TABLE clients ENABLE TRIGGER clients_named');
    await database.query(ADDED_ELSEWHERE, [id]);
    await eventually(async () => expect(await here.find(id)).to.include({ name: 'Elsewhere' }));

    // The name of the owner is cached with the client.
    const accounts = createAccounts(parts);
    const { id: ownerAccountId } = await accounts.add({
      email: 'o@example.test',
      name: 'Old Name',
    });
    const owned = (await there.add({ ...partner, ownerAccountId })).client;
    expect(await here.find(owned.id)).to.include({ ownerName: 'Old Name' });
    await accounts.rename(ownerAccountId, 'New Name');
    await eventually(async () => {
      expect(await here.find(owned.id)).to.include({ ownerName: 'New Name' });
    });

    await there.suspend(client.id);
    await eventually(async () => {
      expect((await here.find(client.id))?.isSuspended).to.equal(true);
    });
    await database.query('DELETE FROM client_secrets WHERE client_id = $1', [client.id]);
    await eventually(async () => {
      expect((await here.find(client.id))?.secrets).to.deep.equal([]);
    });
  });
});

describe('the redirect hosts of a client are derived from its redirect URIs', () => {
  it('the redirect hosts of a client contain each host with its port once, and each private-use URI scheme', () => {
    const redirectUris = wordsOf(
      'https://b.example/1 https://a.example:8443/1 https://b.example/2 com.example.app:/cb',
    );
    const hosts = ['a.example:8443', 'b.example', 'com.example.app:'];
    expect(redirectHosts({ redirectUris })).to.deep.equal(hosts);
  });
});
