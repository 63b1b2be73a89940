import { expect } from 'chai';
import { systemClock } from '../../src/base/clock.ts';
import { redirectHosts } from '../../src/clients/client.ts';
import { createClientRegistry } from '../../src/clients/client-registry.ts';
import { writeClientUses, writeSecretUses } from '../../src/clients/client-row.ts';
import { listenForChanges, silentChangeFeed } from '../../src/storage/change-feed.ts';
import { createAccounts } from '../support/accounts.ts';
import { testDatabase } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { createOpened } from '../support/opened.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { wordsOf } from '../support/words.ts';
import { matchesSecret, partner } from './drafts.ts';
import { refusalOf } from './refusals.ts';

const ADDED_ELSEWHERE = `INSERT INTO clients
  (id, kind, name, redirect_uris, native, created_at, updated_at)
  VALUES ($1, 'machine', 'Elsewhere', '{}', false, now(), now())`;

describe('client registry', () => {
  const clock = () => Date.parse('2031-02-03T04:05:06.789Z');
  const database = testDatabase();
  const parts = { database, changes: silentChangeFeed, clock };
  const registry = createClientRegistry(parts);

  it('an added client is found with all its values, but its secret is returned only once', async () => {
    const redirectUris = ['https://app.example/cb', 'https://app.example/other'];
    const draft = { ...partner, name: '  Partner ', redirectUris };
    const { client, secret } = await registry.add(draft);
    expect(client).to.include({ kind: 'confidential', name: 'Partner', isSuspended: false });
    expect(client.id).to.match(/^gate_ci_[A-Za-z0-9_-]{22}$/);
    expect(client.redirectUris).to.deep.equal(redirectUris);
    expect(client.createdAt.getTime()).to.equal(clock());
    expect(client.secrets).to.have.length(1);
    expect(client.secrets[0]?.createdAt.getTime()).to.equal(clock());
    expect(matchesSecret(client, secret ?? '')).to.equal(true);
    expect(await registry.find(client.id)).to.deep.equal(client);
    expect((await registry.list()).items).to.deep.include(client);
  });

  it('a client that breaks the rules is not stored', async () => {
    const before = await registry.list();
    const redirectUris = ['https://*.app.example/'];
    const added = registry.add({ ...partner, redirectUris });
    expect(await refusalOf(added)).to.equal('client_invalid');
    expect(await registry.list()).to.deep.equal(before);
  });

  it('a client is found together with the name of its owner; an unknown owner is refused', async () => {
    const olga = { email: 'owner@partner.example', name: 'Olga Owner' };
    const owner = await createAccounts(parts).add(olga);
    const { client } = await registry.add({ ...partner, ownerAccountId: owner.id });
    expect(client).to.include({ ownerAccountId: owner.id, ownerName: 'Olga Owner' });
    for (const ownerAccountId of ['acc_0000000000000000', 'nobody\0']) {
      const added = registry.add({ ...partner, ownerAccountId });
      expect(await refusalOf(added)).to.equal('owner_unknown');
    }
  });

  it('a malformed or unknown ID finds no client and causes no error', async () => {
    for (const id of ['', 'nope', 'gate_ci_\0', 'gate_ci_0000000000000000000000\0', '\uD800']) {
      expect(await registry.find(id)).to.equal(undefined);
    }
    expect(await registry.find('gate_ci_0000000000000000000000')).to.equal(undefined);
  });

  it('changing a secret changes the version of its client; using a secret only stores the latest time', async () => {
    const { client } = await registry.add(partner);
    const { id, secrets } = client;
    const [earlier, later] = [new Date(clock() - 1), new Date(clock())];
    for (const at of [later, earlier]) {
      await writeClientUses(database)([{ id, at }]);
      await writeSecretUses(database)([{ id: secrets[0]?.id ?? '', at }]);
    }
    const used = await registry.find(id);
    expect(used).to.deep.include({ lastUsedAt: later, version: client.version });
    expect(used?.secrets[0]?.lastUsedAt).to.deep.equal(later);
    await database.query('DELETE FROM client_secrets WHERE client_id = $1', [client.id]);
    expect((await registry.find(client.id))?.version).to.not.equal(client.version);
  });

  it('a changed client is read with its change at once, before the change feed announces it', async () => {
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
    const id = 'gate_ci_0000000000000000000000';
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

describe('redirect hosts', () => {
  it('the redirect hosts of a client are its distinct hosts with ports, and private-use schemes', () => {
    const redirectUris = wordsOf(
      'https://b.example/1 https://a.example:8443/1 https://b.example/2 com.example.app:/cb',
    );
    const hosts = ['a.example:8443', 'b.example', 'com.example.app:'];
    expect(redirectHosts({ redirectUris })).to.deep.equal(hosts);
  });
});
