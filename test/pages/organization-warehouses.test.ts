/** `/profile/organizations/:id` by warehouse: the filter. */
import { expect } from 'chai';
import { type AccessLimit, NO_LIMIT } from '../../src/accounts/access/access-limit.ts';
import type { Right, Role } from '../../src/accounts/access/reach.ts';
import { partnerTokens } from '../provider/partner-tokens.ts';
import { expectSameQueries } from '../support/metrics.ts';
import { introspect, type TestClient } from '../support/oauth.ts';
import { addPerson, addTestClient, type SeededPerson } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { onPostgresAndRedis } from '../support/service.ts';
import { textOf } from './client-owner.ts';
import { type SignedInPerson, signedIn } from './signed-in-person.ts';

const ORIGIN = { address: '203.0.113.7', browser: '' };
const RIGHTS = { read: 'see stock', write: 'change stock', manage: 'manage' };

onPostgresAndRedis('the page of an organization, by warehouse', (start) => {
  const on = startSeeded({ on: start, settings: { rights: RIGHTS } });
  let owner: SignedInPerson & SeededPerson;
  let rigaId: string;
  let people = 0;

  before(async () => {
    const added = { organizationId: on.seeded.organization.id, name: 'Riga' };
    rigaId = (await on.service.organizations.addWarehouse(added)).id;
    const person = await join('Olga Owner', 'owner');
    owner = Object.assign(await signedIn(on.service, person), person);
  });

  const url = (query: Record<string, string> = {}, id = on.seeded.organization.id): string =>
    `/profile/organizations/${id}?${new URLSearchParams(query)}`;
  const pageOf = async (query: Record<string, string>, who = owner): Promise<string> =>
    (await who.get(url(query))).html;
  async function join(name: string, role: Role, riga: readonly Right[] = []) {
    people += 1;
    const person = await addPerson(on.service, name, `member${people}@example.test`);
    const subject = { accountId: person.accountId };
    await on.service.memberships.setRole(subject, on.seeded.organization.id, role);
    if (riga.length > 0) await on.service.memberships.setRights(subject, rigaId, riga);
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
  const connect = async (who: SeededPerson, client: TestClient): Promise<string> => {
    const partner = partnerTokens(on.issuer, { ...on.seeded, person: who });
    return (await partner.tokens(client)).accessToken;
  };
  /** Returns the rights of a token or API key in a warehouse, as introspection states them. */
  async function introspected(token: string, warehouseId: string): Promise<string | undefined> {
    const { body } = await introspect(on.issuer, on.clients.resourceServer, token);
    const organizations = (body.organizations ?? []) as readonly {
      warehouses: readonly { id: string; rights: readonly Right[] }[];
    }[];
    const all = organizations.flatMap(({ warehouses }) => warehouses);
    const rights = all.find(({ id }) => id === warehouseId)?.rights;
    return rights?.map((right) => RIGHTS[right]).join(', ');
  }

  it('lists only the people and machine clients with a right in the chosen warehouse, in the operator’s words', async () => {
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

  it('states for each client and API key the rights that introspection answers, after its limit', async () => {
    const { organization, warehouse, elsewhere } = on.seeded;
    const limits: AccessLimit[] = [
      { places: null, isReadOnly: false },
      { places: null, isReadOnly: true },
      { places: [organization.id], isReadOnly: false },
      { places: [warehouse.id], isReadOnly: false },
      { places: [rigaId], isReadOnly: true },
      { places: [elsewhere.id], isReadOnly: false },
    ];
    const members = [
      await join('Ada Admin', 'admin'),
      await join('Rosa Reader', 'member', ['read', 'manage']),
      await join('Willem Writer', 'member', ['write']),
      await join('Viola Viewer', 'viewer', ['read']),
      await join('Noor None', 'member'),
    ];
    const credentials = await Promise.all(
      members.map(async ({ accountId, name, ...member }) => {
        const client = await addTestClient(on.service, `App of ${name}`);
        const token = await connect({ accountId, name, ...member }, client);
        const draft = { accountId, name: `Key of ${name}`, expiresInDays: 30 };
        const { value, key } = await on.service.apiKeys.add(draft, ORIGIN);
        return { accountId, name, clientId: client.id, keyId: key.id, token, value };
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

  it('a client has the rights of all who connected it, and names only those with access to the warehouse', async () => {
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

  it('the page of an app names its warehouses and rights, through whom, and the last use of each person', async () => {
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
      /What it can access.*Riga Rights see stock, change stock Through Rika Reader, Wout Writer Block here/,
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
      .to.include('What it could access')
      .and.include('Riga (see stock, change stock)')
      .and.match(/Riga .*by Olga Owner Rights none now Through/);
    await owner.fillIn(`${path}/let-in`);
    await owner.fillIn(`${block(rigaId)}/let-in`);
  });

  it('the page of an app that more people connected than it examines says so, and offers to block it in each warehouse', async () => {
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
    expect(text.match(/The 50 who connected it last\./g)).to.have.length(2);
    expect(text)
      .to.match(/Riga Rights Unknown Through Unknown Block here/)
      .and.not.include('Nothing now');
  });

  it('leaves out clients and API keys of a suspended person, and keeps a blocked client in view, without rights', async () => {
    const blocked = await addTestClient(on.service, 'Blocked App');
    const gone = await addTestClient(on.service, 'App of a suspended person');
    const person = await join('Sam Suspended', 'member', ['read']);
    await connect(person, gone);
    await connect(await join('Bo Connected', 'member', ['read']), blocked);
    const draft = { accountId: person.accountId, name: 'Lost key', expiresInDays: 30 };
    await on.service.apiKeys.add(draft, ORIGIN);
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

  it('leaves out a client after the end date that the person set, before a job ends the connection', async () => {
    const client = await addTestClient(on.service, 'App until yesterday');
    const { accountId, ...person } = await join('Una Until', 'member', ['read']);
    const token = await connect({ accountId, ...person }, client);
    const shows = async () => rowsOf(await pageOf({ warehouse: rigaId })).has('App until yesterday');
    expect(await shows()).to.equal(true);
    const until = new Date(Date.now() - 1_000);
    const whose = { accountId, clientId: client.id, limit: NO_LIMIT };
    await on.service.connections.limit(whose, { ...NO_LIMIT, until });
    expect(await introspected(token, rigaId)).to.equal(undefined);
    expect(await shows()).to.equal(false);
  });

  it('an organization that asks first shows no requests under a warehouse, and only approved clients', async () => {
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
    await owner.fillIn(`${path}/clients/${client.id}`, {
      decision: 'approve',
      sentence: '',
    });
    expect(rowsOf(await pageOf({ warehouse: rigaId })).get('Waiting App')).to.equal('see stock');
    await owner.fillIn(`${path}/policy`, { clients: 'open', api_keys: 'allow', approve: [] });
  });

  it('ignores a warehouse that is unknown or of another organization', async () => {
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

  it('the page needs as many queries for one person as for 60, with a warehouse as without', async () => {
    const { elsewhere, organization } = on.seeded;
    const subject = { accountId: owner.accountId };
    await on.service.memberships.setRole(subject, elsewhere.id, 'owner');
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
});
