/** Where a client calls from: the networks that its owner sees, and those to which it is restricted. */
import { expect } from 'chai';
import { siteOf } from '../../src/base/network-address.ts';
import { readNetworks } from '../../src/clients/client-network-rules.ts';
import { operatorFor } from '../operator/run-operator.ts';
import { textOf } from '../pages/client-owner.ts';
import { signedIn } from '../pages/signed-in-person.ts';
import { eventually } from '../support/eventually.ts';
import { counted, scrape } from '../support/metrics.ts';
import { ask, type TestClient } from '../support/oauth.ts';
import { addTestClient } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { refusalOf } from './refusals.ts';

const DAY = 86_400;
/** More wrong secrets than an address may send. */
const GUESSES = 10;
const FOREIGN = 'the secret is correct, but the client may not be used from this network';

describe('the networks of a client', () => {
  const on = startSeeded({
    clock: true,
    settings: {
      server: { proxyHops: 1 },
      limits: { clientFailures: GUESSES - 1, clientFailuresPerAddress: GUESSES - 1 },
    },
  });
  let client: TestClient;
  let path: string;

  beforeEach(async () => {
    client = await addTestClient(on.service, 'Stock Sync', { ownerAccountId: on.seeded.other.accountId });
    path = `/profile/oauth-clients/${client.id}`;
  });

  const post = (
    { id, secret }: TestClient,
    address: string,
    parameters: Readonly<Record<string, string>>,
    endpoint = '/oauth/token',
  ) =>
    ask(new URL(endpoint, on.issuer), {
      method: 'POST',
      headers: { 'x-forwarded-for': address },
      body: new URLSearchParams({ client_id: id, ...(secret && { client_secret: secret }), ...parameters }),
    });
  /** Uses the secret. The token is none of this client: the answer says so, and nothing else happens. */
  const useFrom = (address: string, one = client) => post(one, address, { token: 'x' }, '/oauth/introspect');
  /** Records the networks of so many addresses, as requests from them do. */
  async function recordFrom(count: number, address: (number: number) => string): Promise<void> {
    const found = await on.service.clients.find(client.id);
    for (let number = 0; found && number < count; number += 1) {
      on.service.clientNetworks.record(found, address(number));
    }
  }
  async function seen(one = client) {
    await on.service.clientNetworks.flush();
    const found = await on.service.clients.find(one.id);
    return found ? on.service.clientNetworks.list(found) : [];
  }
  const networksSeen = async (one = client) => (await seen(one)).map(({ network }) => network);
  /** Signs in each time: sessions end while the tests let days pass. */
  const owner = () => signedIn(on.service, on.seeded.other);
  const save = async (networks: string) => (await owner()).send(`${path}/networks`, { networks });

  it('networks are those of a site: 24 bits of IPv4, however it is written, and 48 bits of IPv6', () => {
    for (const [address, network] of [
      ['203.0.113.77', '203.0.113.0/24'],
      ['::ffff:203.0.113.77', '203.0.113.0/24'],
      ['::FFFF:cb00:714d', '203.0.113.0/24'],
      ['2001:DB8:1:2:3:4:5:6', '2001:db8:1::/48'],
      ['2001:db8::1%eth0', '2001:db8::/48'],
      ['127.0.0.1', undefined],
      ['::ffff:127.0.0.1', undefined],
      ['::1', undefined],
      ['not an address', undefined],
    ] as const) {
      expect(siteOf(address), address).to.equal(network);
    }
  });

  it('a network is listed once a secret was used from it, with the first and the last time', async () => {
    const first = on.clock.clock();
    for (const address of ['203.0.113.7', '::ffff:203.0.113.8', '2001:db8:1::9', '127.0.0.1']) await useFrom(address);
    expect(await networksSeen()).to.have.members(['203.0.113.0/24', '2001:db8:1::/48']);
    on.clock.advance(DAY);
    await useFrom('203.0.113.200');
    expect((await seen()).find(({ network }) => network === '203.0.113.0/24')).to.deep.equal({
      network: '203.0.113.0/24',
      firstSeenAt: new Date(first),
      lastSeenAt: new Date(first + DAY * 1000),
      isNew: false,
      isRefused: false,
    });
    on.clock.advance(90 * DAY + 1);
    expect(await on.service.clientNetworks.removeExpired(1_000)).to.equal(2);
    expect(await seen()).to.deep.equal([]);
  });

  it('a request writes no network itself, also one that is the first of its network', async () => {
    await useFrom('203.0.113.7');
    await seen();
    const queries = async () => {
      const calls = counted(await scrape(on.service), 'gatehouse_store_operation_duration_seconds_count');
      const ofDatabase = Object.entries(calls).filter(([labels]) => labels.includes('store="database"'));
      expect(ofDatabase).not.to.deep.equal([]);
      return ofDatabase.reduce((sum, [, count]) => sum + count, 0);
    };
    // Repeated, because background work may query as well.
    await eventually(async () => {
      const before = await queries();
      for (let number = 0; number < 20; number += 1) await useFrom(`10.9.${number}.1`);
      expect((await queries()) - before).to.be.below(20);
    });
  });

  it('neither a wrong secret, nor a public client, nor a resource server leaves a network', async () => {
    await useFrom('203.0.113.7', { ...client, secret: on.clients.otherConfidential.secret ?? '' });
    await post(on.clients.public, '203.0.113.7', { grant_type: 'refresh_token', refresh_token: 'x' });
    await useFrom('203.0.113.7', on.clients.resourceServer);
    for (const one of [client, on.clients.public, on.clients.resourceServer]) {
      expect(await networksSeen(one)).to.deep.equal([]);
    }
  });

  it('a network is marked as new if it appears after the first week of the client, and for a month', async () => {
    await useFrom('203.0.113.7');
    on.clock.advance(8 * DAY);
    await useFrom('198.51.100.7');
    expect((await seen()).map(({ network, isNew }) => [network, isNew])).to.deep.equal([
      ['198.51.100.0/24', true],
      ['203.0.113.0/24', false],
    ]);
    on.clock.advance(31 * DAY);
    expect((await seen()).map(({ isNew }) => isNew)).to.deep.equal([false, false]);
  });

  it('a client has at most 50 networks, and a thief with any number of them displaces none that was seen before', async () => {
    const recordOwn = () => recordFrom(40, (number) => `10.0.${number}.1`);
    await recordOwn();
    const own = await networksSeen();
    // New networks of one write are few, as a thief could bring any number: the rest are written when they return.
    for (let round = 0; round < 4; round += 1) {
      on.clock.advance(301);
      await recordOwn();
      await on.service.clientNetworks.flush();
    }
    const all = await networksSeen();
    expect(own.length).to.be.at.most(10);
    expect(all).to.have.length(40);
    for (let round = 0; round < 3; round += 1) {
      on.clock.advance(301);
      await recordFrom(20, (number) => `2001:db8:${round}${number}::1`);
      const present = await networksSeen();
      expect(present).to.have.length(50).and.include.members(all);
    }
  });

  it('a client that is restricted is refused from elsewhere like a wrong secret, before anything is consumed', async () => {
    const code = await on.partner.code(client);
    expect((await save('203.0.113.0/24 2001:db8::/32')).status).to.equal(303);
    const exchange = { grant_type: 'authorization_code', code, redirect_uri: client.redirectUri };
    const [used] = (await on.service.clients.find(client.id))?.secrets ?? [];
    for (let times = 0; times < GUESSES; times += 1) {
      const refused = await post(client, '198.51.100.7', exchange);
      expect(refused.status, 'no guess, so never 429').to.equal(401);
      expect(refused.body).to.include({ error: 'invalid_client', error_description: 'client authentication failed' });
    }
    const [problem] = await on.service.clientRequests.groups(client.id);
    expect(problem).to.include({ error: 'invalid_client', cause: FOREIGN });
    expect((await seen()).map(({ network, isRefused }) => [network, isRefused])).to.deep.equal([
      ['198.51.100.0/24', true],
    ]);
    await on.service.lastUsed.flush();
    const [owned] = await on.service.clients.listByOwner(on.seeded.other.accountId);
    expect(owned?.secrets.find(({ id }) => id === used?.id)?.lastUsedAt, 'not used').to.equal(undefined);
    expect((await (await owner()).get(`${path}/problems`)).html).to.include('renew the client');

    const issued = await post(client, '::ffff:203.0.113.9', exchange);
    expect(issued.status, 'the code was not consumed').to.equal(200);
    const again = { grant_type: 'refresh_token', refresh_token: String(issued.body.refresh_token) };
    expect((await post(client, '198.51.100.7', again)).status).to.equal(401);
    expect((await post(client, '2001:db8:5::9', again)).status).to.equal(200);
    expect((await on.service.clientRequests.groups(client.id)).map(({ isMended }) => isMended)).to.deep.equal([false]);
  });

  it('refusals from a foreign network take no place of the problems that only the client itself can cause', async () => {
    await save('203.0.113.0/24');
    const grant = { grant_type: 'authorization_code', code: 'x', redirect_uri: client.redirectUri };
    expect((await post(client, '203.0.113.7', grant)).body).to.include({ error: 'invalid_grant' });
    expect((await post(client, '198.51.100.7', grant)).status).to.equal(401);
    const shares = 'SELECT error, share FROM client_requests WHERE client_id = $1 ORDER BY id';
    await on.service.clientRequests.groups(client.id);
    expect(await on.service.database.query(shares, [client.id])).to.deep.equal([
      { error: 'invalid_grant', share: 'client' },
      { error: 'invalid_client', share: 'stranger' },
    ]);
    const groups = await on.service.clientRequests.groups(client.id);
    expect(groups.map(({ cause }) => cause)).to.include(FOREIGN);
  });

  it('the operator lifts a restriction, and sets one; both are in the log of the owner', async () => {
    const operator = operatorFor(on.service);
    await save('203.0.113.0/24');
    const lifted = await operator(`clients update ${client.id} --any-network`);
    expect(lifted.output).to.include('Changed.').and.not.include('Only from');
    await eventually(async () => expect((await useFrom('198.51.100.7')).status).to.equal(200));
    const set = await operator(`clients update ${client.id} --network 192.0.2.7 --network 192.0.2.7/32 --json`);
    expect(JSON.parse(set.output)).to.deep.include({ allowed_networks: ['192.0.2.7/32'] });
    await eventually(async () => expect((await useFrom('192.0.2.8')).status).to.equal(401));
    expect((await useFrom('192.0.2.7')).status).to.equal(200);
    const refusals = (await seen()).map(({ network, isRefused }) => [network, isRefused]);
    expect(refusals, 'not if a part of it is allowed').to.have.deep.members([
      ['198.51.100.0/24', true],
      ['192.0.2.0/24', false],
    ]);
    const [latest, , first] = await on.service.activity.of(on.seeded.other.accountId, { limit: 3 });
    expect(latest).to.deep.include({ action: 'client_changed', actor: 'operator' });
    expect(latest?.details).to.deep.include({ allowed_networks: ['192.0.2.7/32'] });
    expect(first?.details).to.deep.include({ allowed_networks: ['203.0.113.0/24'] });
    for (const other of [on.clients.public, on.clients.resourceServer]) {
      const refused = await operator(`clients update ${other.id} --network 192.0.2.7`);
      expect(refused.errors).to.include('Only confidential and machine clients');
    }
  });

  it('what is no network is refused with what was typed, and nothing is saved', async () => {
    const page = await save('192.0.2.0/24 300.1.1.1');
    expect(page.status).to.equal(422);
    expect(page.html).to.include('value="192.0.2.0/24 300.1.1.1"').and.include('300.1.1.1 is not a network.');
    expect(await on.service.clients.find(client.id)).to.deep.include({ allowedNetworks: [] });
    const refused = (networks: readonly string[]) => refusalOf((async () => readNetworks(networks))());
    const malformed = ['', 'x', '192.0.2.1/24', '192.0.2.0/33', '192.0.2.0/', '192.0.2.0/24/1', '192.0.2.0/2e1'];
    // Several of these could contain all addresses.
    const large = ['0.0.0.0/0', '128.0.0.0/1', '10.0.0.0/7', '::/0', '8000::/1', '2000::/15'];
    // In the form of IPv6, an IPv4 address would match no caller, and some networks contain all of these.
    const mapped = ['::ffff:192.0.2.0/120', '::/64', '::/80'];
    for (const text of [...malformed, ...large, ...mapped]) {
      expect(await refused([text]), text).to.equal('networks_invalid');
    }
    const many = Array.from({ length: 21 }, (_, number) => `10.0.${number}.0/24`);
    expect(await refused(many)).to.equal('networks_invalid');
    expect(readNetworks(['2001:DB8::/32', '2001:0db8:0:0::/32', '192.0.2.7'])).to.deep.equal([
      '2001:db8::/32',
      '192.0.2.7/32',
    ]);
    expect(readNetworks(['10.0.0.0/8', '2001::/16'])).to.deep.equal(['10.0.0.0/8', '2001::/16']);
  });

  it('a restricted client is not tested by its page, which would call from this service', async () => {
    await save('203.0.113.0/24');
    const page = await (await owner()).send(`${path}/test`, { client_secret: client.secret ?? '' });
    expect(page.status).to.equal(422);
    expect(textOf(page.html)).to.include('Lift the restriction first.');
  });
});
