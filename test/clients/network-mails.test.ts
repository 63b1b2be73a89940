/** Which new networks of clients a node takes for mails, while other nodes work on the same rows. */
import { expect } from 'chai';
import { createClientNetworks } from '../../src/clients/client-networks.ts';
import { createClientRegistry } from '../../src/clients/client-registry.ts';
import { listenForChanges, silentChangeFeed } from '../../src/storage/change-feed.ts';
import type { OpenDatabase } from '../../src/storage/database.ts';
import type { Queries } from '../../src/storage/queries.ts';
import { createAccounts } from '../support/accounts.ts';
import { onPostgres } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { TIMEOUT_FACTOR } from '../support/timeout-factor.ts';
import { partner } from './drafts.ts';

const now = Date.parse('2031-02-03T04:05:06.789Z');
const WAITING = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";

onPostgres('mails about new networks', (open) => {
  let database: OpenDatabase;
  let id: string;

  beforeEach(async () => {
    database = await open();
    const parts = { database, changes: silentChangeFeed, clock: () => now - 10 * 86_400_000 };
    const owner = await createAccounts(parts).add({ email: 'owner@partner.example', name: 'Owner' });
    id = (await createClientRegistry(parts).add({ ...partner, ownerAccountId: owner.id })).client.id;
    await database.query('UPDATE clients SET mails_networks = true');
  });

  const add = (network: string) =>
    database.query('INSERT INTO client_networks VALUES ($1, $2, $3, $3)', [id, network, new Date(now)]);
  const take = async (queries: Queries) => {
    const log = { warn: () => {} };
    const taken = await createClientNetworks({ database: queries, clock: () => now, log }).takeUnmailed(20, []);
    return taken.flatMap(({ networks }) => networks);
  };

  it('two nodes at the same time take the networks of a client once, also one that is seen in between', async () => {
    await add('10.0.0.0/24');
    let other: Promise<string[]> | undefined;
    const taken = await database.transaction(async (tx) => {
      const first = await take(tx);
      await add('10.0.1.0/24');
      other = take(database);
      const waits = eventually(async () => expect(await database.query(WAITING)).not.to.deep.equal([]));
      await Promise.race([other, waits]);
      return first;
    });
    expect(taken).to.deep.equal(['10.0.0.0/24']);
    expect(await other).to.deep.equal([]);
  });

  it('a node that takes networks and one that sees them again do not deadlock', async () => {
    const networks = ['10.0.0.0/24', '10.0.1.0/24'];
    for (const network of networks.toReversed()) await add(network);
    const lock = 'SELECT FROM client_networks WHERE network = $1 FOR UPDATE';
    let taken: Promise<string[]> | undefined;
    await database.transaction(async (tx) => {
      // As a node does that sees networks again: in their order.
      await tx.query(lock, networks.slice(0, 1));
      taken = take(database);
      await eventually(async () => expect(await database.query(WAITING)).to.have.length(1));
      await tx.query(lock, networks.slice(1));
    });
    expect(await taken).to.deep.equal(networks);
  });

  it('the time of a mail is not announced: no node reads the client again', async () => {
    const feed = await listenForChanges(database, TIMEOUT_FACTOR);
    const changes: string[] = [];
    feed.onChange((...change) => changes.push(change.join(' ').trim()));
    await add('10.0.0.0/24');
    expect(await take(database)).to.deep.equal(['10.0.0.0/24']);
    await database.query("UPDATE accounts SET name = 'Last'");
    await eventually(() => expect(changes.join()).to.include('accounts'));
    await feed.close();
    expect(changes.join()).not.to.include('clients');
  });
});
