/** `/profile/organizations/:id` by warehouse: the filter, and a client that is blocked in one warehouse. */
import { expect } from 'chai';
import { type AccessLimit, NO_LIMIT } from '../../src/accounts/access/access-limit.ts';
import type { Right, Role } from '../../src/accounts/access/reach.ts';
import { line } from '../import/import-file.ts';
import { push, SENDERS } from '../import/pushing.ts';
import { operatorFor, valueFrom } from '../operator/run-operator.ts';
import { tokensOf } from '../provider/partner-tokens.ts';
import { eventually } from '../support/eventually.ts';
import { expectSameQueries } from '../support/metrics.ts';
import { authorizationUrl, clientCredentials, type TestClient } from '../support/oauth.ts';
import { addTestClient, apiKeyOf, type SeededPerson } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { onPostgresAndRedis } from '../support/service.ts';
import { said, textOf } from './client-owner.ts';
import * as members from './organization-members.ts';
import { signedIn } from './signed-in-person.ts';

const ORIGIN = { address: '203.0.113.7', browser: '' };
const RIGHTS = { read: 'see stock', write: 'change stock', manage: 'manage' };

onPostgresAndRedis('the page of an organization, by warehouse', (start) => {
  const on = startSeeded({ on: start, settings: { rights: RIGHTS, senders: SENDERS } });
  let owner: members.Member;
  let rigaId: string;

  before(async () => {
    const added = { organizationId: on.seeded.organization.id, name: 'Riga' };
    rigaId = (await on.service.organizations.addWarehouse(added)).id;
    owner = await members.join(on, 'Olga Owner', 'owner');
  });

  const url = (query: Record<string, string> = {}, id = on.seeded.organization.id): string =>
    `/profile/organizations/${id}?${new URLSearchParams(query)}`;
  const pageOf = async (query: Record<string, string>, who = owner): Promise<string> =>
    (await who.get(url(query))).html;
  async function join(name: string, role: Role, riga: readonly Right[] = []) {
    const person = await members.addMember(on, name, role);
    if (riga.length > 0) await on.service.memberships.setRights(person, rigaId, riga);
    on.service.access.forget(person.accountId);
    return person;
  }
  /** Returns the rights that the page prints, by the name of the row. */
  function rowsOf(html: string): Map<string, string> {
    const rows = html.split('<li class="entry').slice(1);
    return new Map(
      rows.map((row) => {
        const [, name = ''] = /<strong>(?:<a [^>]*>)?<bdi>([^<]*)/.exec(row) ?? [];
        const [, rights = ''] = /<dt>Rights<.*?<dd>\s*(?:<bdi>)?([^<]*)/s.exec(row) ?? [];
        return [name, rights];
      }),
    );
  }
  const connect = async (who: SeededPerson, client: TestClient): Promise<string> =>
    members.connect(on, await signedIn(on.service, who), client);
  /** Returns the rights of a token or API key in a warehouse, as introspection states them. */
  async function introspected(token: string, warehouseId: string): Promise<string | undefined> {
    const all = (await members.reachOf(on, token)).flatMap(({ warehouses }) => warehouses);
    const rights = all.find(({ id }) => id === warehouseId)?.rights;
    return rights?.map((right) => RIGHTS[right]).join(', ');
  }

  it('a warehouse lists only users and machine clients with rights, and shows the configured texts of rights', async () => {
    await join('Vera Viewer', 'viewer', ['read']);
    await join('Mona Member', 'member', ['write']);
    const { id } = on.clients.machine;
    await on.service.memberships.setRights({ clientId: id }, rigaId, ['read', 'write']);
    const riga = rowsOf(await pageOf({ warehouse: rigaId }));
    expect([...riga]).to.have.deep.members([
      ['Olga Owner', 'see stock, change stock, manage'],
      ['Vera Viewer', 'see stock'],
      ['Mona Member', 'change stock'],
      ['Night Sync', 'see stock, change stock'],
    ]);
    const rotterdam = rowsOf(await pageOf({ warehouse: on.seeded.warehouse.id }));
    expect([...rotterdam.keys()]).to.have.members(['Olga Owner', 'Grace Person']);
    const all = textOf(await pageOf({}));
    expect(all).to.match(/Vera Viewer viewer \S+ Warehouses 1 of 2/);
    expect(all).to.match(/Olga Owner owner you \S+ Warehouses All 2/);
    expect(all).to.not.include('Rights');
  });

  it('the list shows the rights of each client and API key, reduced by its limit, as introspection returns them', async () => {
    const { organization, warehouse, elsewhere } = on.seeded;
    const limits: AccessLimit[] = [
      { places: null, isReadOnly: false },
      { places: null, isReadOnly: true },
      { places: [organization.id], isReadOnly: false },
      { places: [warehouse.id], isReadOnly: false },
      { places: [rigaId], isReadOnly: true },
      { places: [elsewhere.id], isReadOnly: false },
    ];
    const people = [
      await join('Ada Admin', 'admin'),
      await join('Rosa Reader', 'member', ['read', 'manage']),
      await join('Willem Writer', 'member', ['write']),
      await join('Viola Viewer', 'viewer', ['read']),
      await join('Noor None', 'member'),
    ];
    const credentials = await Promise.all(
      people.map(async (person) => {
        const { accountId, name } = person;
        const client = await addTestClient(on.service, `App of ${name}`);
        const token = await connect(person, client);
        const { id: keyId, value } = await apiKeyOf(on.service, person, `Key of ${name}`);
        return { accountId, name, clientId: client.id, keyId, token, value };
      }),
    );
    let before = NO_LIMIT;
    for (const limit of limits) {
      const next = { ...limit, until: null };
      for (const { accountId, clientId, keyId } of credentials) {
        await on.service.connections.limit({ accountId, clientId, limit: before }, next);
        await on.service.apiKeys.limit(accountId, keyId, limit, ORIGIN);
      }
      before = next;
      for (const id of [rigaId, warehouse.id]) {
        const rows = rowsOf(await pageOf({ warehouse: id }));
        for (const { name, token, value } of credentials) {
          const what = `${name} ${JSON.stringify(limit)}`;
          expect(rows.get(`App of ${name}`), what).to.equal(await introspected(token, id));
          expect(rows.get(`Key of ${name}`), what).to.equal(await introspected(value, id));
        }
      }
    }
  });

  it('a warehouse lists a client with the combined rights of its users, and names only users with access', async () => {
    const client = await addTestClient(on.service, 'Shared App');
    const [reader, writer, other] = [
      await join('Rita Reader', 'viewer', ['read']),
      await join('Walt Writer', 'member', ['read', 'write']),
      await join('Otto Other', 'member'),
    ];
    for (const person of [reader, writer, other]) await connect(person, client);
    const html = await pageOf({ warehouse: rigaId, show: 'clients', q: 'shared' });
    expect(rowsOf(html).get('Shared App')).to.equal('see stock, change stock');
    const [, row = ''] = html.split('Shared App</bdi>');
    expect(row).to.include('Rita Reader').and.include('Walt Writer').and.not.include('Otto Other');
  });

  it('the page of an app shows its warehouses and rights, the users who gave them, and the last use for each user', async () => {
    const { organization, warehouse } = on.seeded;
    const client = await addTestClient(on.service, 'Page App');
    const [reader, writer] = [
      await join('Rika Reader', 'viewer', ['read']),
      await join('Wout Writer', 'member', ['read', 'write']),
    ];
    await connect(writer, client);
    await introspected(await connect(reader, client), rigaId);
    await on.service.lastUsed.flush();
    const path = `/profile/organizations/${organization.id}/clients/${client.id}`;
    expect((await owner.get(url({ show: 'clients' }))).html).to.include(`href="${path}"`);
    const html = (await owner.get(path)).html;
    const text = textOf(html);
    expect(text).to.match(
      /What the app can access.*Riga Rights see stock, change stock Through Rika Reader, Wout Writer Block here/,
    );
    expect(text).to.match(/Rika Reader Access Riga \(see stock\) Last used \d/);
    expect(text).to.match(/Wout Writer Access Riga \(see stock, change stock\) Last used Never/);
    expect(text).to.not.include('Rotterdam');
    const block = (id: string) => `/profile/organizations/${organization.id}/warehouses/${id}/clients/${client.id}`;
    expect(html)
      .to.include(`href="${block(rigaId)}/end"`)
      .and.include(`href="${path}/end"`);

    for (const id of [rigaId, warehouse.id]) await owner.fillIn(`${block(id)}/end`).catch(() => {});
    expect((await owner.get(path)).html)
      .to.include(`href="${block(rigaId)}/let-in"`)
      .and.match(/Riga<.*Blocked on .* by <bdi>Olga Owner.*Wout Writer/s);
    await owner.fillIn(`${path}/end`);
    const blocked = await owner.get(path);
    expect(textOf(blocked.html)).to.match(/Page App Blocked on .* by Olga Owner/);
    expect(blocked.html).to.include(`href="${path}/let-in"`);
    // What it could access without the block is what an unblocked app gets back.
    expect(textOf(blocked.html))
      .to.include('What the app could access')
      .and.include('Riga (see stock, change stock)')
      .and.match(/Riga .*by Olga Owner Rights none now Through/);
    await owner.fillIn(`${path}/let-in`);
    await owner.fillIn(`${block(rigaId)}/let-in`);
  });

  it('the page of a popular app says that only 50 users were checked, and offers to block it in each warehouse', async () => {
    const { id } = on.seeded.organization;
    const client = await addTestClient(on.service, 'Popular App');
    await connect(await join('Fay First', 'member', ['read']), client);
    await on.service.database.query(
      `WITH added AS (INSERT INTO accounts (id, email, email_key, name, created_at)
          SELECT 'acc_c' || lpad(i::text, 15, '0'), 'c' || i || '@example.test', 'c' || i || '@example.test', 'Crowd ' || i, now()
          FROM generate_series(1, 50) i RETURNING id),
        joined AS (INSERT INTO organization_memberships (account_id, organization_id, role, created_at)
          SELECT id, '${id}', 'member', now() FROM added RETURNING account_id)
        INSERT INTO connections (account_id, client_id, connected_at, consented_name, consented_hosts, approved_at)
          SELECT account_id, '${client.id}', now() + interval '1 minute', '', '{}', now() FROM joined`,
    );
    const { html } = await owner.get(`/profile/organizations/${id}/clients/${client.id}`);
    const text = textOf(html);
    expect(text.match(/The list shows the 50 people who connected the app last\./g)).to.have.length(2);
    expect(text)
      .to.match(/Riga Rights Unknown Through Unknown Block here/)
      .and.not.include('The app cannot access anything');
  });

  it('a warehouse hides clients and API keys of suspended users, and shows that a blocked client has no rights', async () => {
    const blocked = await addTestClient(on.service, 'Blocked App');
    const gone = await addTestClient(on.service, 'App of a suspended person');
    const person = await join('Sam Suspended', 'member', ['read']);
    await connect(person, gone);
    await connect(await join('Bo Connected', 'member', ['read']), blocked);
    await apiKeyOf(on.service, person, 'Lost key');
    const names = ['Blocked App', 'App of a suspended person', 'Lost key'];
    const here = async () => names.filter((name) => shown.some((html) => rowsOf(html).has(name)));
    let shown = [await pageOf({ warehouse: rigaId })];
    expect(await here()).to.deep.equal(names);
    await owner.fillIn(`/profile/organizations/${on.seeded.organization.id}/clients/${blocked.id}/end`);
    await on.service.accounts.suspend(person.accountId);
    shown = [await pageOf({ warehouse: rigaId })];
    expect(await here()).to.deep.equal(['Blocked App']);
    expect(rowsOf(shown[0] ?? '').get('Blocked App')).to.equal('none now');
    expect(rowsOf(shown[0] ?? '').get('Sam Suspended')).to.equal('see stock');
    expect(textOf(shown[0] ?? '')).to.match(/Sam Suspended member suspended/);
  });

  it('a warehouse’s page omits a client after the end date that its user set, even before a job ends the connection', async () => {
    const client = await addTestClient(on.service, 'App until yesterday');
    const una = await join('Una Until', 'member', ['read']);
    const token = await connect(una, client);
    const shows = async () => rowsOf(await pageOf({ warehouse: rigaId })).has('App until yesterday');
    expect(await shows()).to.equal(true);
    const until = new Date(Date.now() - 1_000);
    const whose = { accountId: una.accountId, clientId: client.id, limit: NO_LIMIT };
    await on.service.connections.limit(whose, { ...NO_LIMIT, until });
    expect(await on.partner.isActive(token)).to.equal(false);
    expect(await shows()).to.equal(false);
  });

  it('if an organization requires approval, a warehouse’s page lists only approved clients, and no requests', async () => {
    const path = `/profile/organizations/${on.seeded.organization.id}`;
    const client = await addTestClient(on.service, 'Waiting App');
    await connect(await join('Wanda Waiting', 'member', ['read']), client);
    await owner.fillIn(`${path}/policy`, { clients: 'ask', api_keys: 'refuse', approve: [] });
    expect(await pageOf({}))
      .to.include('id="requests"')
      .and.include('Waiting App');
    const html = await pageOf({ warehouse: rigaId });
    expect(html).to.not.include('id="requests"').and.not.include('Waiting App');
    expect(textOf(html)).to.not.include('Key of Ada Admin');
    await owner.fillIn(`${path}/clients/${client.id}`, { decision: 'approve', sentence: '' });
    expect(rowsOf(await pageOf({ warehouse: rigaId })).get('Waiting App')).to.equal('see stock');
    await owner.fillIn(`${path}/policy`, { clients: 'open', api_keys: 'allow', approve: [] });
  });

  it('a warehouse that is unknown or of another organization is ignored', async () => {
    const draft = { organizationId: on.seeded.elsewhere.id, name: 'Foreign' };
    const foreign = await on.service.organizations.addWarehouse(draft);
    const all = [...rowsOf(await pageOf({})).keys()];
    for (const warehouse of [foreign.id, 'wh_x', '\0', "'", 'x'.repeat(5_000), '']) {
      const { status, html } = await owner.get(url({ warehouse }));
      expect(status, warehouse).to.equal(200);
      expect([...rowsOf(html).keys()], warehouse).to.deep.equal(all);
      expect(html).to.not.include('Foreign');
    }
    expect((await owner.get(`${url()}warehouse=${rigaId}&warehouse=x&show[]=people`)).status).to.equal(200);
  });

  it('the warehouses page needs as many queries for 60 users as for one user, with or without a chosen warehouse', async () => {
    const { elsewhere, organization } = on.seeded;
    await on.service.memberships.setRole(owner, elsewhere.id, 'owner');
    on.service.access.forget(owner.accountId);
    const small = url({}, elsewhere.id);
    for (const path of [url({}, organization.id), url({ warehouse: rigaId })]) {
      for (const each of [small, path]) expect((await owner.get(each)).status, each).to.equal(200);
      await expectSameQueries(
        on.service,
        () => owner.get(small),
        () => owner.get(path),
      );
    }
  });

  describe('a block of a client in one warehouse', () => {
    let member: members.Member;
    let hamburg: string;
    let token: string;

    before(async () => {
      hamburg = on.seeded.warehouse.id;
      member = await members.join(on, 'Mara Member', 'admin');
      token = await members.connect(on, member);
    });

    const page = (more = ''): string => `/profile/organizations/${on.seeded.organization.id}${more}`;
    const pathOf = (act: 'end' | 'let-in', warehouse?: string, client = on.clients.confidential.id): string =>
      page(`${warehouse ? `/warehouses/${warehouse}` : ''}/clients/${client}/${act}`);
    const warehousesOf = async (value: string, issuer?: string): Promise<string[]> =>
      (await members.reachOf(on, value, issuer)).flatMap(({ warehouses }) => warehouses.map(({ id }) => id)).sort();
    const told = async (path: string): Promise<string> => textOf((await owner.follow(await owner.send(path))).html);

    it('a block in a warehouse applies from the next call, and is announced on every node', async () => {
      const node = await start({ sharing: on.service });
      const stream = await members.listen(on, node);
      const both = [rigaId, hamburg].sort();
      for (const [act, expected] of [
        ['end', [hamburg]],
        ['let-in', both],
      ] as const) {
        await owner.fillIn(pathOf(act, rigaId));
        expect(await warehousesOf(token)).to.deep.equal(expected);
        await eventually(async () => expect(await warehousesOf(token, node.issuer)).to.deep.equal(expected));
      }
      await eventually(() => expect(stream.text).to.include(`data: ${on.clients.confidential.id}\n`));
      expect(stream.text, 'whom it concerns').not.to.include(member.accountId);
    });

    it('a block in a warehouse is independent of a block in the organization, and each is undone separately', async () => {
      const client = on.clients.confidential.id;
      await owner.fillIn(pathOf('end', rigaId));
      await owner.fillIn(pathOf('end'));
      expect(await members.reachOf(on, token)).to.deep.equal([]);
      expect(await told(pathOf('end', rigaId))).to.include(said('organizations.already-blocked'));
      const asked = textOf((await owner.get(pathOf('let-in', rigaId))).html);
      expect(asked).to.include(said('organizations.unblock-still-blocked', { organization: 'Northern Logistics' }));
      await owner.fillIn(pathOf('let-in'));
      expect(await warehousesOf(token)).to.deep.equal([hamburg]);
      await owner.fillIn(pathOf('end'));
      await owner.fillIn(pathOf('let-in', rigaId));
      expect(await members.reachOf(on, token)).to.deep.equal([]);
      const { blocked, warehouses } = await on.service.access.clientBlocks.of(client);
      expect([blocked.size, warehouses.size]).to.deep.equal([1, 0]);
      await owner.fillIn(pathOf('let-in'));
      expect(await warehousesOf(token)).to.deep.equal([rigaId, hamburg].sort());
      expect(await told(pathOf('let-in', rigaId))).to.include(said('organizations.already-unblocked'));
    });

    it('a block in a warehouse is shown on the page of the organization, at consent and on the connection', async () => {
      const here = page(`?warehouse=${rigaId}`);
      expect((await owner.get(here)).html).to.include(`href="${pathOf('end', rigaId)}"`);
      const asked = textOf((await owner.get(pathOf('end', rigaId))).html);
      expect(asked)
        .to.include(said('organizations.block-heading', { app: 'Route Planner', organization: 'Riga' }))
        .and.include(said('organizations.block-only-there'));
      const done = await owner.follow(await owner.submit(await owner.get(pathOf('end', rigaId)), {}));
      expect(done.url.search).to.equal(`?warehouse=${rigaId}`);
      expect(textOf(done.html)).to.include(said('organizations.blocked', { app: 'Route Planner', place: 'Riga' }));
      expect((await owner.get(here)).html)
        .to.include(`href="${pathOf('let-in', rigaId)}"`)
        .and.include('>blocked<');
      const app = await owner.get(page(`/clients/${on.clients.confidential.id}`));
      expect(textOf(app.html)).to.match(/Riga blocked Blocked on .* by Olga Owner/);
      const throughWhom = textOf(app.html.split('id="people"').at(-1) ?? '');
      expect(throughWhom, 'through a person it no longer accesses Riga').to.match(/Mara Member Access \w+/);
      expect(throughWhom).to.not.include('Riga');
      expect((await owner.get(page(`?warehouse=${hamburg}`))).html).to.include(`href="${pathOf('end', hamburg)}"`);
      expect(textOf((await owner.get(page())).html)).to.include('blocked in Riga');

      const sentence = /Blocked in Riga \(\s?Northern Logistics\s?\) by an owner or admin/;
      const consent = await member.open(authorizationUrl(on.issuer, on.clients.confidential, { prompt: 'consent' }));
      expect(textOf(consent.html)).to.match(sentence);
      expect(consent.html).to.not.include(`value="${rigaId}"`);
      expect(textOf((await member.get('/profile/connections')).html)).to.match(sentence);
      // A user without access to Riga does not learn that there is one.
      const other = await members.join(on, 'Otto Other', 'member');
      const unaware = await other.open(authorizationUrl(on.issuer, on.clients.confidential, { prompt: 'consent' }));
      expect(unaware.html).to.not.include('Riga');
      await owner.fillIn(pathOf('let-in', rigaId));
    });

    it('blocking a client in a warehouse blocks no other client of its developer with the same redirect host', async () => {
      await owner.fillIn(pathOf('end', rigaId));
      const later = await addTestClient(on.service, 'A later app', { ownerAccountId: on.seeded.other.accountId });
      expect(await warehousesOf(await members.connect(on, member, later))).to.deep.equal([rigaId, hamburg].sort());
      await owner.fillIn(pathOf('let-in', rigaId));
    });

    it('a block in a warehouse also ends the access of a machine client, and stays visible to the owner', async () => {
      const { machine } = on.clients;
      for (const id of [rigaId, hamburg])
        await on.service.memberships.setRights({ clientId: machine.id }, id, ['read']);
      const value = tokensOf(await clientCredentials(on.issuer, machine)).accessToken;
      await eventually(async () => expect(await warehousesOf(value)).to.deep.equal([rigaId, hamburg].sort()));
      await owner.fillIn(pathOf('end', rigaId, machine.id));
      expect(await warehousesOf(value)).to.deep.equal([hamburg]);
      expect((await owner.get(page(`?warehouse=${rigaId}`))).html).to.include(
        `href="${pathOf('let-in', rigaId, machine.id)}"`,
      );
      expect(textOf((await owner.get(page('?show=machines'))).html)).to.include('blocked in Riga');
      await owner.fillIn(pathOf('end', undefined, machine.id));
      expect(await members.reachOf(on, value)).to.deep.equal([]);
      await owner.fillIn(pathOf('let-in', undefined, machine.id));
      await owner.fillIn(pathOf('let-in', rigaId, machine.id));
      expect(await warehousesOf(value)).to.deep.equal([rigaId, hamburg].sort());
    });

    it('a warehouse that moves to another organization loses its client blocks, even one added during the move', async () => {
      const { organizations, access, database } = on.service;
      await organizations.edit('organization', on.seeded.organization.id, { externalId: 'HERE' });
      await organizations.edit('organization', on.seeded.elsewhere.id, { externalId: 'THERE' });
      const { id } = await organizations.addWarehouse({
        organizationId: on.seeded.organization.id,
        name: 'Moving',
        externalId: 'MOVING',
      });
      await owner.fillIn(pathOf('end', id));
      const blocks = async () => (await access.clientBlocks.of(on.clients.confidential.id)).warehouses.has(id);
      expect(await blocks()).to.equal(true);
      const move = async (from: string, to: string) => {
        const { results } = await push(on.service, [{ ...line.warehouse('MOVING', to), former_organization: from }]);
        expect(results).to.deep.equal(['ok']);
      };
      await move('HERE', 'THERE');
      await eventually(async () => expect(await blocks()).to.equal(false));
      await move('THERE', 'HERE');
      expect(await database.query('SELECT FROM barred_in_warehouses')).to.deep.equal([]);
      await Promise.all([owner.fillIn(pathOf('end', id)).catch(() => {}), move('HERE', 'THERE')]);
      expect(await database.query('SELECT FROM barred_in_warehouses')).to.deep.equal([]);
    });

    it('a client can be blocked only in a warehouse of the organization', async () => {
      const elsewhere = await on.service.organizations.addWarehouse({
        organizationId: on.seeded.elsewhere.id,
        name: 'Foreign',
      });
      expect(await told(pathOf('end', elsewhere.id))).to.include(said('organizations.already-blocked'));
      expect(await on.service.database.query('SELECT FROM barred_in_warehouses')).to.deep.equal([]);
    });

    it('the operator can set, show and undo a block in a warehouse', async () => {
      const run = operatorFor(on.service);
      const client = on.clients.confidential.id;
      const ids = `${on.seeded.organization.id} ${client} --warehouse ${rigaId}`;
      expect(await valueFrom(run, `organizations block ${ids}`)).to.deep.equal({
        id: `${rigaId}/${client}`,
        organization_id: on.seeded.organization.id,
        warehouse_id: rigaId,
        client_id: client,
        block: true,
      });
      await eventually(async () => expect(await warehousesOf(token)).to.deep.equal([hamburg]));
      expect((await run(`organizations block ${ids}`)).exitCode).to.equal(1);
      expect((await run(`show ${token}`)).output).to.match(
        /block the client in some warehouses: it reaches nothing in Riga/,
      );
      const log = (await run('audit --action client_barred')).output;
      expect(log).to.include('Riga');
      await run(`organizations unblock ${ids}`);
      await eventually(async () => expect(await warehousesOf(token)).to.deep.equal([rigaId, hamburg].sort()));
    });
  });
});
