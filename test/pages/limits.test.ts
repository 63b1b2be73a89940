/** Limits on what a client or an API key of a user reaches: set on pages, applied at each call. */
import { expect } from 'chai';
import { partnerTokens } from '../provider/partner-tokens.ts';
import { eventually } from '../support/eventually.ts';
import { authorizationUrl, introspect, refresh } from '../support/oauth.ts';
import type { Fields } from '../support/person.ts';
import { addPerson, apiKeyOf } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { onPostgresAndRedis } from '../support/service.ts';
import { said, textOf } from './client-owner.ts';
import { type Member, reachOf as reachOfToken } from './organization-members.ts';
import { signedIn } from './signed-in-person.ts';

const CONNECTIONS = '/profile/connections';
const API_KEYS = '/profile/api-keys';
const DAY_MS = 86_400_000;
const UNLIMITED = { limit_places: 'all', limit_rights: 'all', limit_last_day: '' };

onPostgresAndRedis('a limit on the access of a client or an API key', (start) => {
  const on = startSeeded({ on: start, clock: true });
  let person: Member;
  let rigaId: string;

  before(async () => {
    const { organizations, memberships } = on.service;
    const { person: subject, organization } = on.seeded;
    const organizationId = organization.id;
    rigaId = (await organizations.addWarehouse({ organizationId, name: 'Riga' })).id;
    await memberships.setRights(subject, rigaId, ['read']);
    await memberships.setRole(subject, on.seeded.elsewhere.id, 'admin');
    person = await signedIn(on.service, on.seeded.person);
  });
  afterEach(() => person.send(`${CONNECTIONS}/disconnect-all`));

  const client = () => on.clients.confidential;
  const connection = () => `${CONNECTIONS}/${client().id}`;
  const authorization = () => authorizationUrl(on.issuer, client(), { prompt: 'consent' });
  const dayAfter = (days: number) => new Date(on.clock.clock() + days * DAY_MS).toISOString().slice(0, 10);
  const connect = () => partnerTokens(on.issuer, on.seeded, person).tokens(client());

  async function keyNamed(name: string) {
    const key = (await on.service.apiKeys.listOf(person.accountId)).find((one) => one.name === name);
    if (!key) throw new Error(`no API key ${name}`);
    return key;
  }

  /** Signs in a new user, whose only organization is `elsewhere`. */
  async function joinElsewhere(name: string): Promise<Member> {
    const alone = await addPerson(on.service, name);
    await on.service.memberships.setRole(alone, on.seeded.elsewhere.id, 'admin');
    return signedIn(on.service, alone);
  }
  /** Opens the consent page and approves with this limit. */
  async function approveWith(limit: Fields) {
    const page = await person.open(authorization());
    return person.follow(await person.submit(page, { decision: 'approve', ...limit }));
  }
  /** Returns what a token reaches, in lines such as `Northern Logistics member: Riga read`. */
  async function reachOf(token: string): Promise<readonly string[]> {
    return (await reachOfToken(on, token)).map(({ name, role, warehouses }) =>
      [`${name} ${role}:`, ...warehouses.map((one) => `${one.name} ${one.rights.join('+')}`)].join(' '),
    );
  }
  const ALL = ['Elsewhere Storage admin:', 'Northern Logistics member: Riga read Rotterdam read+write'];

  it('the limit page of a revoked or unknown API key redirects to the list of keys, with an explanation', async () => {
    const page = await person.fillIn(API_KEYS, { name: 'Short lived', expires_in_days: '30' });
    expect(page.html).to.include('data-secret');
    const { id } = await keyNamed('Short lived');
    const second = await person.get(`${API_KEYS}/${id}/limit`);
    await person.fillIn(`${API_KEYS}/${id}/revoke`);
    const attempts = [
      () => person.submit(second, { limit_rights: 'read' }),
      () => person.get(`${API_KEYS}/${id}/limit`),
      () => person.get(`${API_KEYS}/unknown/limit`),
      () => person.send(`${API_KEYS}/unknown/limit`, { limit_rights: 'read' }),
    ];
    for (const attempt of attempts) {
      const answer = await attempt();
      expect(answer.location?.pathname).to.equal(API_KEYS);
      expect(textOf((await person.follow(answer)).html)).to.include(said('api-keys.no-such'));
    }
  });

  it('a client accesses only places chosen at the approval, even if the user gets further access', async () => {
    const places = [on.seeded.warehouse.id];
    expect((await approveWith({ limit_places: 'chosen', place: places })).location).to.be.an('URL');
    const { accessToken } = await connect();
    const northern = ['Northern Logistics member: Rotterdam read+write'];
    expect(await reachOf(accessToken)).to.deep.equal(northern);
    const { memberships, organizations } = on.service;
    const later = await organizations.add({ name: 'Later' });
    await memberships.setRole(person, later.id, 'owner');
    expect(await reachOf(accessToken)).to.deep.equal(northern);
    await memberships.remove(person, later.id);
    // The next consent page preselects this limit.
    const again = await person.open(authorization());
    const sent = again.forms.flatMap(({ values }) => values);
    expect(sent).to.deep.include(['limit_places', 'chosen']);
    expect(sent.filter(([name]) => name === 'place')).to.deep.equal([['place', on.seeded.warehouse.id]]);
  });

  it('saving a limit keeps an organization that the user has left, even if the limit has no other organization', async () => {
    const { elsewhere } = on.seeded;
    const browser = await joinElsewhere('Alba Alone');
    const { memberships, connections } = on.service;
    const approve = async (limit: Fields) =>
      browser.follow(await browser.submit(await browser.open(authorization()), { decision: 'approve', ...limit }));
    await approve({ limit_places: 'chosen', place: [elsewhere.id] });
    const key = await apiKeyOf(on.service, browser);
    await browser.fillIn(`${API_KEYS}/${key.id}/limit`, { limit_places: 'chosen', place: [elsewhere.id] });
    const expectKept = async () => {
      expect((await connections.find(browser.accountId, client().id))?.limit.places).to.deep.equal([elsewhere.id]);
      expect((await on.service.apiKeys.find(browser.accountId, key.id))?.places).to.deep.equal([elsewhere.id]);
    };
    await memberships.remove(browser, elsewhere.id);
    // First without any organization, then with another one.
    for (const role of [undefined, 'viewer'] as const) {
      if (role) await memberships.setRole(browser, on.seeded.organization.id, role);
      expect((await approve({})).location, role).to.be.an('URL');
      for (const path of [connection(), `${API_KEYS}/${key.id}/limit`]) {
        const page = await browser.open(path);
        expect((await browser.submit(page, { limit_rights: 'read' })).status, path).to.equal(303);
      }
      await expectKept();
    }
  });

  it('a user who loses their only organization during a consent can still approve, but grants no access', async () => {
    const { elsewhere } = on.seeded;
    const browser = await joinElsewhere('Lena Lost');
    const page = await browser.open(authorization());
    await on.service.memberships.remove(browser, elsewhere.id);
    const chosen = { decision: 'approve', limit_places: 'chosen', place: [elsewhere.id] };
    const again = await browser.follow(await browser.submit(page, chosen));
    expect(textOf(again.html)).to.include(said('limit.lost'));
    const approved = await browser.follow(await browser.submit(again, { decision: 'approve' }));
    expect(approved.location).to.be.an('URL');
    const connection = await on.service.connections.find(browser.accountId, client().id);
    expect(connection?.limit.places).to.deep.equal([]);
  });

  it('a connection with an end date ends after that day, with all its tokens, as if the user had disconnected it', async () => {
    await approveWith({ limit_last_day: dayAfter(1), limit_rights: 'read' });
    const tokens = await connect();
    const { body } = await introspect(on.issuer, on.clients.resourceServer, tokens.accessToken);
    const end = Date.parse(dayAfter(2)) / 1000;
    expect(body.exp).to.be.at.most(end);
    on.clock.advance(end - on.clock.clock() / 1000 - 100);
    const late = await refresh(on.issuer, client(), tokens.refreshToken);
    expect(Number(late.body.expires_in)).to.be.within(60, 100);
    on.clock.advance(100);
    expect(await on.partner.isActive(String(late.body.access_token))).to.equal(false);
    const refused = await refresh(on.issuer, client(), String(late.body.refresh_token));
    expect(refused.body.error).to.equal('invalid_grant');
    expect(textOf((await person.get(CONNECTIONS)).html)).to.not.include('Route Planner');
    // Connect again before the job has run: no old token works, and no limit is left.
    const { accessToken } = await connect();
    expect(await reachOf(accessToken)).to.deep.equal(ALL);
    const revived = await refresh(on.issuer, client(), String(late.body.refresh_token));
    expect(revived.body.error).to.equal('invalid_grant');
  });

  it('on the last day of a connection, its forms keep the end date, and browsers accept that date as valid', async () => {
    await approveWith({ limit_last_day: dayAfter(1) });
    await connect();
    const until = (await on.service.connections.find(person.accountId, client().id))?.limit.until;
    const today = dayAfter(1);
    on.clock.advance(86_400);
    person = await signedIn(on.service, on.seeded.person);
    for (const path of [authorization(), connection()]) {
      const page = await person.open(path);
      expect(page.html).to.include(`value="${today}" min="${today}"`);
      const more = path === connection() ? {} : { decision: 'approve' };
      expect((await person.submit(page, { limit_rights: 'read', ...more })).status, `${path}`).to.equal(303);
    }
    const kept = (await on.service.connections.find(person.accountId, client().id))?.limit;
    expect(kept).to.deep.include({ until });
    const late = await person.submit(await person.open(connection()), { limit_last_day: dayAfter(-1) });
    expect(late.status).to.equal(422);
  });

  it('the activity of a user records that a connection ended because its end date had passed', async () => {
    await approveWith({ limit_last_day: dayAfter(1) });
    on.clock.advance(2 * 86_400);
    await on.service.clean();
    const [entry] = await on.service.activity.of(on.seeded.person.accountId, { limit: 1 });
    expect(entry).to.include({ action: 'disconnected', actor: 'service' });
    expect(entry?.details).to.include({ cause: 'time_limit' });
    // Sign in again, because the sign-in is two days old by now.
    person = await signedIn(on.service, on.seeded.person);
  });

  it('a limit that is changed on the page of the connection applies from the next call', async () => {
    const { accessToken } = await connect();
    const changed = await person.fillIn(connection(), {
      ...UNLIMITED,
      limit_places: 'chosen',
      place: rigaId,
    });
    expect(textOf(changed.html)).to.include(said('limit.saved'));
    expect(await reachOf(accessToken)).to.deep.equal(['Northern Logistics member: Riga read']);
    const [entry] = await on.service.activity.of(on.seeded.person.accountId, { limit: 1 });
    expect(entry?.action).to.equal('account_changed');
    expect(entry?.details).to.include({ changed: 'limit of Route Planner', places: 1 });

    // The page names an organization outside the limit, with a button that adds it.
    expect(textOf(changed.html)).to.include('The app has no access to: Elsewhere Storage Add');
    await person.send(connection(), { add_place: on.seeded.elsewhere.id });
    expect(await reachOf(accessToken)).to.have.length(2);
    await person.fillIn(connection(), { ...UNLIMITED, place: [] });
    expect(await reachOf(accessToken)).to.deep.equal(ALL);
  });

  it('saving an outdated page does not overwrite a newer limit, and the user is informed', async () => {
    await connect();
    const { id } = await apiKeyOf(on.service, person);
    for (const path of [connection(), `${API_KEYS}/${id}/limit`]) {
      const [first, second] = [await person.get(path), await person.get(path)];
      await person.submit(first, { limit_places: 'chosen', place: rigaId, limit_rights: 'read' });
      const answer = await person.submit(second, { limit_places: 'all', limit_rights: 'all' });
      expect([answer.status, textOf(answer.html)], path).to.satisfy(
        ([status, text]: [number, string]) => status === 409 && text.includes(said('limit.not-saved')),
      );
      const now = textOf((await person.get(path)).html);
      expect(textOf(answer.html), path).to.include('Only Riga (Northern Logistics) , view only');
      expect(now, path).to.include('Only Riga (Northern Logistics) , view only');
      // What the page showed then is known.
      await person.submit(answer, { limit_places: 'all', place: [], limit_rights: 'all' });
      expect(textOf((await person.get(path)).html), path).to.not.include('Only Riga');
    }
  });

  it('a later approval changes the stored limit only if the user chooses a new limit', async () => {
    for (const chosen of [{}, { limit_rights: 'read' }, {}]) await approveWith(chosen);
    const { accessToken } = await connect();
    expect(await reachOf(accessToken)).to.include('Northern Logistics viewer: Riga read Rotterdam read');
  });

  it('an approval for an organization that the page did not offer does not connect the client', async () => {
    const foreign = await on.service.organizations.add({ name: 'Foreign' });
    const page = await approveWith({ limit_places: 'chosen', place: foreign.id });
    expect(textOf(page.html)).to.include(said('consent.heading', { app: 'Route Planner' }));
    expect(textOf((await person.get(CONNECTIONS)).html)).to.not.include('Route Planner');
  });

  for (const [what, fields, problem] of [
    ['no place', { limit_places: 'chosen', place: [] }, said('limit.nothing-chosen')],
    ['a day that has passed', { limit_last_day: '2020-01-01' }, 'Choose a day from tomorrow on'],
    ['an impossible date', { limit_last_day: '2099-02-31' }, 'Choose a day from tomorrow on'],
  ] as const) {
    it(`a limit with ${what} is refused, and the page keeps the user's other choices`, async () => {
      const page = await person.open(authorization());
      const answer = await person.submit(page, {
        decision: 'approve',
        limit_rights: 'read',
        ...fields,
      });
      const shown = await person.follow(answer);
      expect(shown.html).to.include(problem);
      expect(shown.forms.flatMap(({ values }) => values)).to.deep.include(['limit_rights', 'read']);
      expect(textOf((await person.get(CONNECTIONS)).html)).to.not.include('Route Planner');
    });
  }

  it('a consent page that is shown again keeps the limit just chosen, and lists the access under this limit', async () => {
    const listed = ({ html }: { html: string }) =>
      textOf(/<section class="asked".*?<\/section>/s.exec(html)?.[0] ?? '');
    await approveWith({ limit_places: 'chosen', place: on.seeded.warehouse.id });
    const page = await person.open(authorization());
    expect(listed(page)).to.not.include('Elsewhere Storage');
    const { id } = client();
    await on.service.clients.edit(id, { name: 'Route Planner 2' });
    const chosen = { ...UNLIMITED, place: [], limit_rights: 'read' };
    const again = await person.follow(await person.submit(page, { decision: 'approve', ...chosen }));
    expect(textOf(again.html)).to.include(said('consent.not-approved'));
    expect(listed(again)).to.include('Elsewhere Storage');
    await person.follow(await person.submit(again, { decision: 'approve' }));
    const reached = ['Elsewhere Storage viewer:', 'Northern Logistics viewer: Riga read Rotterdam read'];
    expect(await reachOf((await connect()).accessToken)).to.deep.equal(reached);
    await on.service.clients.edit(id, { name: 'Route Planner' });
  });

  it('a limit to a whole organization survives a second approval, even if the user is in no other organization', async () => {
    const { memberships, organizations } = on.service;
    const organizationId = on.seeded.organization.id;
    await approveWith({ limit_places: 'chosen', place: organizationId });
    await memberships.remove(person, on.seeded.elsewhere.id);
    expect(textOf((await approveWith({})).html)).to.not.include(said('limit.incomplete'));
    const { accessToken } = await connect();
    const tallinn = await organizations.addWarehouse({ organizationId, name: 'Tallinn' });
    await memberships.setRights(person, tallinn.id, ['read']);
    await eventually(async () => expect((await reachOf(accessToken))[0]).to.include('Tallinn'));
    await on.service.database.query('DELETE FROM warehouses WHERE id = $1', [tallinn.id]);
    await memberships.setRole(person, on.seeded.elsewhere.id, 'admin');
  });

  it('the limit of a connection can list 200 organizations and 400 warehouses', async () => {
    const { database, access } = on.service;
    const { accountId } = on.seeded.person;
    const added = await database.query<{ id: string }>(
      `WITH numbers AS (SELECT to_char(n, 'FM000') AS n FROM generate_series(1, 200) n),
        organizations AS (INSERT INTO organizations (id, name, created_at)
          SELECT 'org_depot' || n, 'Depot ' || n, now() FROM numbers RETURNING id),
        warehouses AS (INSERT INTO warehouses (id, organization_id, name, created_at)
          SELECT 'wh_' || side || n, 'org_depot' || n, side, now() FROM numbers, unnest('{north,south}'::text[]) side
          RETURNING id),
        members AS (INSERT INTO organization_memberships (organization_id, account_id, role, created_at)
          SELECT 'org_depot' || n, $1, 'admin', now() FROM numbers)
        SELECT id FROM organizations UNION ALL SELECT id FROM warehouses`,
      [accountId],
    );
    access.forget(accountId);
    const places = added.map(({ id }) => id);
    expect(places).to.have.length(600);
    await approveWith({ limit_places: 'chosen', place: places });
    const { accessToken } = await connect();
    expect(await reachOf(accessToken)).to.have.length(200);
    await database.query('DELETE FROM organizations WHERE id = ANY($1)', [places]);
  });

  it('a user who can access 5,000 warehouses can approve, with a form of the usual size', async () => {
    const { database } = on.service;
    await database.query(
      `INSERT INTO warehouses (id, organization_id, name, created_at)
        SELECT 'wh_many' || n, $1, 'Hall ' || n, now() FROM generate_series(1, 5000) n`,
      [on.seeded.elsewhere.id],
    );
    on.service.access.forgetOrganization(on.seeded.elsewhere.id);
    const page = await person.open(authorization());
    expect(page.html).to.include('Hall 5000');
    const answered = await person.follow(await person.submit(page, { decision: 'approve' }));
    expect(answered.location?.href).to.include('code=');
    await database.query("DELETE FROM warehouses WHERE id LIKE 'wh_many%'");
    on.service.access.forgetOrganization(on.seeded.elsewhere.id);
  });

  it('the user must approve again if the limit was changed while the consent page was open', async () => {
    await connect();
    const page = await person.open(authorization());
    await person.fillIn(connection(), { ...UNLIMITED, limit_rights: 'read' });
    const again = await person.follow(await person.submit(page, { decision: 'approve' }));
    expect(textOf(again.html)).to.include(said('consent.limit-changed'));
    const { accessToken } = await connect();
    expect(await reachOf(accessToken)).to.include('Elsewhere Storage viewer:');
  });

  it('the access limit of an API key is chosen when the key is created, and can be changed later', async () => {
    const made = await person.fillIn(API_KEYS, {
      name: 'Chosen',
      expires_in_days: '90',
      limit_places: 'chosen',
      place: rigaId,
    });
    const [value = ''] = /gate_key_[\w-]{49}/.exec(made.html) ?? [];
    expect(await reachOf(value)).to.deep.equal(['Northern Logistics member: Riga read']);
    const limit = `${API_KEYS}/${(await keyNamed('Chosen')).id}/limit`;
    expect((await person.get(API_KEYS)).html).to.include(`href="${limit}"`);
    const page = await person.get(limit);
    await person.submit(page, { limit_places: 'all', place: [], limit_rights: 'read' });
    await eventually(async () =>
      expect(await reachOf(value)).to.deep.equal([
        'Elsewhere Storage viewer:',
        'Northern Logistics viewer: Riga read Rotterdam read',
      ]),
    );
  });

  it('if a user loses a chosen organization, the form is shown again with the remaining choices', async () => {
    await connect();
    const key = await apiKeyOf(on.service, person);
    for (const [path, more] of [
      [`${API_KEYS}/${key.id}/limit`, {}],
      [authorization(), { decision: 'approve' }],
      [connection(), {}],
      [API_KEYS, { name: 'Y', expires_in_days: '90' }],
    ] as const) {
      const { id: lost } = await on.service.organizations.add({ name: 'Lost Storage' });
      await on.service.memberships.setRole(person, lost, 'viewer');
      const form = await person.open(path);
      await on.service.memberships.remove(person, lost);
      const fields = { ...more, limit_places: 'chosen', limit_rights: 'read', place: [rigaId, lost] };
      const again = await person.follow(await person.submit(form, fields));
      expect(textOf(again.html), `${path}`).to.include(said('limit.lost'));
      expect(again.html, `${path}`).to.match(/<details class="limit" open>/);
      const sent = again.forms.flatMap(({ values }) => values);
      expect(sent, `${path}`).to.deep.include.members([
        ['limit_places', 'chosen'],
        ['limit_rights', 'read'],
        ['place', rigaId],
      ]);
      expect((await person.submit(again, more)).status, `${path}`).to.equal(303);
    }
    expect(await keyNamed('Y')).to.deep.include({ places: [rigaId], isReadOnly: true });
  });

  it('a limit to one warehouse is saved even if the user loses access to that warehouse during the form check', async () => {
    const { accountId } = on.seeded.person;
    const { access, apiKeys, memberships } = on.service;
    const toRiga = { limit_places: 'chosen', place: rigaId };
    await person.fillIn(API_KEYS, { name: 'Narrow', expires_in_days: '90', ...toRiga });
    const { accessOf } = access;
    for (const [path, fields] of [
      [`${API_KEYS}/${(await keyNamed('Narrow')).id}/limit`, { ...toRiga, limit_rights: 'read' }],
      [API_KEYS, { name: 'Also narrow', expires_in_days: '90', ...toRiga }],
    ] as const) {
      const page = await person.get(path);
      access.accessOf = async (subject) => {
        access.accessOf = accessOf;
        const found = await accessOf(subject);
        await memberships.removeRights({ accountId }, rigaId);
        return found;
      };
      const answer = await person.submit(page, fields);
      expect(answer.location?.pathname).to.be.oneOf([API_KEYS, `${API_KEYS}/created`]);
      expect(access.accessOf).to.equal(accessOf);
      await memberships.setRights({ accountId }, rigaId, ['read']);
    }
    const narrowOnes = (await apiKeys.listOf(accountId)).filter(({ name }) => name.endsWith('arrow'));
    expect(narrowOnes.map(({ name, places, isReadOnly }) => ({ name, places, isReadOnly }))).to.have.deep.members([
      { name: 'Narrow', places: [rigaId], isReadOnly: true },
      { name: 'Also narrow', places: [rigaId], isReadOnly: false },
    ]);
  });
});
