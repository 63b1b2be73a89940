/** The policy of an organization: which clients and API keys reach the organization. */
import { expect } from 'chai';
import { bearer, cachedCaller, introspectorOf } from '../../modules/node/test/stand-in.ts';
import { operatorFor, valueFrom } from '../operator/run-operator.ts';
import { eventually } from '../support/eventually.ts';
import { authorizationUrl, clientCredentials } from '../support/oauth.ts';
import type { Fields, Page } from '../support/person.ts';
import { addTestClient, apiKeyOf } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { onPostgresAndRedis } from '../support/service.ts';
import { said, textOf } from './client-owner.ts';
import { connect as connectAs, join, type Member, namesReached } from './organization-members.ts';
import { fieldOf, signedIn } from './signed-in-person.ts';

const ASK = { clients: 'ask', api_keys: 'allow' };
const OPEN = { clients: 'open', api_keys: 'allow' };
const NORTHERN = ['Northern Logistics'];

onPostgresAndRedis('the policy of an organization', (start) => {
  const on = startSeeded({ on: start, clock: true });
  let owner: Member;
  let person: Member;

  before(async () => {
    owner = await join(on, 'Olga', 'owner');
    person = await signedIn(on.service, on.seeded.person);
    // The database's time cannot stand still exactly: decisions must be clearly later than the memberships.
    on.clock.advance(1);
  });
  beforeEach(async () => {
    const { database } = on.service;
    await database.query('DELETE FROM client_decisions');
    await database.query('DELETE FROM barred_clients');
    for (const one of [person, owner]) await one.send('/profile/connections/disconnect-all');
    await setPolicy(OPEN);
  });

  const client = () => on.clients.confidential;
  const url = (more = '') => `/profile/organizations/${on.seeded.organization.id}${more}`;
  const setPolicy = (fields: Fields) => owner.send(url('/policy'), fields);
  const decide = async (fields: Fields, id = client().id) => {
    const path = url(`/clients/${id}`);
    return owner.send(path, { shown: fieldOf(await owner.get(path), 'shown'), ...fields });
  };
  const connect = (one = client()) => connectAs(on, person, one);
  const reachedWith = (token: string) => namesReached(on, token);
  const addKey = async (): Promise<string> => (await apiKeyOf(on.service, person, 'Export')).value;
  const policyIn = async (): Promise<string> => {
    const { clients, api_keys } = await valueFrom(
      operatorFor(on.service),
      `organizations policy ${on.seeded.organization.id}`,
    );
    return `${clients} ${api_keys}`;
  };

  it('when an organization begins to require approval, clients without approval lose access at once', async () => {
    const token = await connect();
    const answer = await owner.follow(await setPolicy(ASK));
    expect(await reachedWith(token)).to.deep.equal([]);
    const text = textOf(answer.html);
    expect(text).to.match(/Requests 1 .*Route Planner .*Connected by Grace Person Requested \d/);
    const theirs = textOf((await person.get(`/profile/connections/${client().id}`)).html);
    expect(theirs).to.match(/Northern Logistics has not approved the app yet : the approval was requested on \d/);
    expect(theirs).to.not.include('member Rotterdam');
  });

  it('when an organization begins to require approval, its owner chooses which connected clients keep access', async () => {
    const kept = await connect();
    const waiting = await connect(on.clients.otherConfidential);
    const page = await owner.get(url('/policy'));
    expect(page.forms.flatMap(({ values }) => values).filter(([name]) => name === 'approve')).to.have.deep.members([
      ['approve', client().id],
      ['approve', on.clients.otherConfidential.id],
    ]);
    await owner.submit(page, { ...ASK, approve: client().id });
    expect(await reachedWith(kept)).to.deep.equal(NORTHERN);
    expect(await reachedWith(waiting)).to.deep.equal([]);
  });

  it('in the navigation, only owners and admins see how many apps wait for a decision', async () => {
    const link = said('navigation.organizations');
    const shownTo = async (one: Member) => textOf((await one.get('/profile/activity')).html);
    const waiting = (count: number) => `${link} ${count} ${said('navigation.waiting')}`;
    await connect();
    await connect(on.clients.otherConfidential);
    expect(await shownTo(owner))
      .to.include(link)
      .and.not.include(said('navigation.waiting'));
    await setPolicy(ASK);
    expect(await shownTo(owner)).to.include(waiting(2));
    await decide({ decision: 'approve' });
    expect(await shownTo(owner)).to.include(waiting(1));
    expect(await shownTo(person))
      .to.include(link)
      .and.not.include(said('navigation.waiting'));
    await decide({ decision: 'decline' }, on.clients.otherConfidential.id);
    expect(await shownTo(owner))
      .to.include(link)
      .and.not.include(said('navigation.waiting'));
  });

  it('the policy page sorts apps by number of users, then by name, with numbers in names in numeric order', async () => {
    for (const [name, ...people] of [
      ['App 10', person],
      ['zebra', person, owner],
      ['app 2', person],
      ['Äpp 1', person],
    ] as const) {
      const { id: clientId } = await addTestClient(on.service, name);
      for (const { accountId } of people) {
        await on.service.connections.rememberConsent({ accountId, clientId, name, hosts: [] });
      }
    }
    const { html } = await owner.get(url('/policy'));
    const listed = [...html.matchAll(/<strong><bdi>([^<]*)</g)].map(([, name]) => name);
    expect(listed).to.deep.equal(['zebra', 'Äpp 1', 'app 2', 'App 10']);
  });

  describe('with more than 20 connected clients, the page keeps the selected clients during a search', () => {
    const added: { id: string; name: string }[] = [];
    before(async () => {
      for (let number = 1; number <= 23; number += 1) {
        const name = `Many ${String(number).padStart(2, '0')}`;
        const { id } = await addTestClient(on.service, name);
        added.push({ id, name });
      }
    });
    beforeEach(async () => {
      const { accountId } = on.seeded.person;
      for (const { id: clientId, name } of added) {
        await on.service.connections.rememberConsent({ accountId, clientId, name, hosts: [] });
      }
    });
    after(() => person.send('/profile/connections/disconnect-all'));

    const tickedOn = ({ forms }: Page): string[] =>
      forms.flatMap(({ values }) => values.filter(([field]) => field === 'approve').map(([, id]) => id));
    const isListed = ({ html }: Page, id: string) => html.includes(`type="checkbox" name="approve" value="${id}"`);
    const approved = async () => {
      const rows = await on.service.database.query<{ id: string }>('SELECT client_id AS id FROM client_decisions');
      return rows.map(({ id }) => id);
    };
    const open = async () => {
      const page = await owner.get(url('/policy'));
      const listed = added.filter(({ id }) => isListed(page, id));
      const [hidden = { id: '', name: '' }] = added.filter(({ id }) => !isListed(page, id));
      return { page, listed: listed.map(({ id }) => id), hidden };
    };
    const rename = (id: string, name = 'Changed Meanwhile') => on.service.clients.edit(id, { name });
    const restoreName = (id: string) => rename(id, added.find((one) => one.id === id)?.name);
    const gone = said('organization-policy.changed', { count: 1, apps: 'Changed Meanwhile' });

    it('only listed clients are preselected; a search finds the others, and keeps the selection', async () => {
      const { page, listed, hidden } = await open();
      expect(page.html.match(/type="checkbox"/g)).to.have.length(20);
      expect(tickedOn(page)).to.have.members(listed);
      expect(textOf(page.html)).to.include('20 of 23 shown.').and.include('No other app is ticked.');
      const [, ...kept] = listed;
      const found = await owner.submit(page, { ...ASK, approve: kept, search: 'yes', find: hidden.name.toLowerCase() });
      expect(found.status).to.equal(200);
      expect(await policyIn()).to.equal('open allow');
      expect(found.html.match(/type="checkbox"/g)).to.have.length(1);
      expect(isListed(found, hidden.id)).to.equal(true);
      expect(tickedOn(found)).to.have.members(kept);
      const saved = await owner.submit(found, { ...ASK, approve: [...kept, hidden.id] });
      expect(saved.status).to.equal(303);
      expect(await approved()).to.have.members([...kept, hidden.id]);
    });

    it('a selected client that changes before or after a search is not approved, and the page names it', async () => {
      const { page, listed, hidden } = await open();
      const [first = '', second = '', third = ''] = listed;
      const searching = { ...ASK, approve: [first, second, third], search: 'yes', find: hidden.name };
      await rename(first);
      const found = await owner.submit(page, searching);
      expect(tickedOn(found)).to.have.members([second, third]);
      expect(textOf(found.html)).to.include(gone);
      await restoreName(first);
      await rename(second);
      const refused = await owner.submit(found, {});
      expect(refused.status).to.equal(409);
      expect(textOf(refused.html)).to.include(said('organization-policy.not-changed')).and.include(gone);
      expect(await policyIn()).to.equal('open allow');
      expect(tickedOn(refused)).to.deep.equal([third]);
      expect(await approved()).to.deep.equal([]);
      expect((await owner.submit(refused, {})).status).to.equal(303);
      expect(await approved()).to.deep.equal([third]);
      await restoreName(second);
    });

    it('signing in again keeps the search and the selected clients, except for a client that changed meanwhile', async () => {
      const { page, listed, hidden } = await open();
      const [first = '', second = '', third = ''] = listed;
      const searching = { ...ASK, approve: [first, second, third], search: 'yes', find: hidden.name };
      const found = await owner.submit(page, searching);
      await owner.submit(await owner.get('/logout'), {});
      await rename(first);
      const login = await owner.follow(await owner.submit(found, { approve: [first, second, hidden.id] }));
      const { email, password } = owner;
      const back = await owner.follow(await owner.submit(login, { email, password }));
      expect(textOf(back.html)).to.include(said('form.draft-kept')).and.include(gone);
      expect(fieldOf(back, 'find')).to.equal(hidden.name);
      expect(tickedOn(back)).to.have.members([second, hidden.id]);
      expect((await owner.submit(back, {})).status).to.equal(303);
      expect(await approved()).to.have.members([second, hidden.id]);
      await restoreName(first);
    });
  });

  it('a policy form with a client that was not listed, or with an invalid choice, changes nothing', async () => {
    await connect();
    for (const fields of [
      { ...ASK, approve: [client().id, on.clients.machine.id] },
      { ...ASK, approve: 'gate_ci_unknown' },
      { clients: 'closed', api_keys: 'allow' },
      { clients: 'ask', api_keys: 'maybe' },
      {},
    ]) {
      const answer = await setPolicy(fields as Fields);
      expect(answer.status).to.equal(422);
      expect(textOf(answer.html)).to.include(said('organization-policy.not-changed'));
      expect(await policyIn()).to.equal('open allow');
    }
    expect(await on.service.database.query('SELECT FROM client_decisions')).to.deep.equal([]);
  });

  it('an approved client can access the organization from the next call, for every user who connected it', async () => {
    await setPolicy(ASK);
    const token = await connect();
    expect(await reachedWith(token)).to.deep.equal([]);
    const page = await owner.get(url(`/clients/${client().id}`));
    expect(textOf(page.html)).to.match(/Approve Route Planner for Northern Logistics \?/);
    expect(textOf(page.html)).to.match(/Registered .* connected by 1 person/);
    const answer = await owner.follow(await decide({ decision: 'approve' }));
    expect(textOf(answer.html)).to.include(said('organization-decision.done-approve', { app: 'Route Planner' }));
    expect(await reachedWith(token)).to.deep.equal(NORTHERN);
    const logged = await on.service.database.query(
      "SELECT actor, details->>'decision' AS decision FROM activity WHERE action = 'client_admitted' ORDER BY id DESC LIMIT 1",
    );
    expect(logged).to.deep.equal([{ actor: 'person', decision: 'approved' }]);
    // A second click changes nothing.
    expect((await decide({ decision: 'approve' })).status).to.equal(409);
  });

  it('users who connected a declined client see the reason of the owner, escaped, and the log contains it', async () => {
    await setPolicy(ASK);
    const token = await connect();
    const sentence = 'Use <b>Stock Reports</b> instead.';
    await decide({ decision: 'decline', sentence });
    const logged = await on.service.database.query(
      "SELECT actor, details->>'sentence' AS sentence FROM activity WHERE action = 'client_barred' ORDER BY id DESC LIMIT 1",
    );
    expect(logged).to.deep.equal([{ actor: 'person', sentence }]);
    expect(await reachedWith(token)).to.deep.equal([]);
    for (const page of [
      await person.get('/profile/connections'),
      await person.open(authorizationUrl(on.issuer, client(), { prompt: 'consent' })),
    ]) {
      expect(page.html).to.include('Use &lt;b&gt;Stock Reports&lt;/b&gt; instead.');
      expect(textOf(page.html)).to.include('Northern Logistics declined the app');
    }
    expect(textOf((await owner.get(url())).html)).to.include('Route Planner declined');
    expect(textOf((await owner.get(url(`/clients/${client().id}`))).html)).to.match(/Declined on .* by Olga .*Use/);
    expect((await decide({ decision: 'approve' })).status).to.equal(303);
    expect(await reachedWith(token)).to.deep.equal(NORTHERN);
  });

  it('a decision about a client changes nothing if its button or text is invalid or the client is not connected', async () => {
    await setPolicy(ASK);
    const token = await connect();
    expect((await decide({ decision: 'toString' })).status).to.equal(409);
    expect((await decide({})).status).to.equal(409);
    for (const sentence of ['x'.repeat(201), 'a\u202eb', 'a\0b']) {
      expect((await decide({ decision: 'decline', sentence })).status, JSON.stringify(sentence)).to.equal(422);
    }
    expect((await decide({ decision: 'approve' }, on.clients.machine.id)).status).to.equal(404);
    expect(await reachedWith(token)).to.deep.equal([]);
    expect(await on.service.database.query('SELECT FROM client_decisions')).to.deep.equal([]);
  });

  it('a block overrides an approval, which applies again after the client is unblocked', async () => {
    await setPolicy(ASK);
    const token = await connect();
    await decide({ decision: 'approve' });
    await decide({ decision: 'block' });
    expect(await reachedWith(token)).to.deep.equal([]);
    expect((await decide({ decision: 'approve' })).status).to.equal(409);
    await operatorFor(on.service)(`organizations unblock ${on.seeded.organization.id} ${client().id}`);
    await eventually(async () => expect(await reachedWith(token)).to.deep.equal(NORTHERN));
  });

  it('a user can limit a client to an organization that has not approved the client yet', async () => {
    await setPolicy(ASK);
    const page = await person.open(authorizationUrl(on.issuer, client(), { prompt: 'consent' }));
    const text = textOf(page.html);
    expect(text).to.include('Northern Logistics has not approved the app yet .');
    const { id: place } = on.seeded.organization;
    await person.submit(page, { decision: 'approve', limit_places: 'chosen', place });
    const token = await connect();
    await decide({ decision: 'approve' });
    expect(await reachedWith(token)).to.deep.equal(NORTHERN);
  });

  it('personal API keys can access an organization only while it allows API keys; clients are not affected', async () => {
    const key = await addKey();
    const token = await connect();
    expect(await reachedWith(key)).to.deep.equal(NORTHERN);
    const answer = await owner.follow(await setPolicy({ clients: 'open', api_keys: 'refuse' }));
    expect(await reachedWith(key)).to.deep.equal([]);
    expect(await reachedWith(token)).to.deep.equal(NORTHERN);
    expect(textOf(answer.html)).to.include(said('organization.keys-policy'));
    expect(textOf(answer.html)).to.not.include('Export');
    const [{ id } = { id: '' }] = await on.service.apiKeys.listOf(on.seeded.person.accountId);
    const theirs = await person.get(`/profile/api-keys/${id}/limit`);
    expect(textOf(theirs.html)).to.include('Northern Logistics allows no API keys');
    await setPolicy(ASK);
    expect(await reachedWith(key)).to.deep.equal(NORTHERN);
  });

  it('machine clients need no approval, even in an organization that requires approval of clients', async () => {
    const { body } = await clientCredentials(on.issuer, on.clients.machine);
    await setPolicy({ clients: 'ask', api_keys: 'refuse' });
    expect(await reachedWith(String(body.access_token))).to.deep.equal(NORTHERN);
  });

  it('operators can show and change the policy of an organization, and block and unblock clients', async () => {
    const run = operatorFor(on.service);
    const { id } = on.seeded.organization;
    const token = await connect();
    const key = await addKey();
    const shown = await valueFrom(run, `organizations policy ${id}`);
    expect(shown).to.include({ clients: 'open', api_keys: 'allow' });
    const set = await valueFrom(run, `organizations policy ${id} ask --api-keys refuse`);
    expect(set).to.deep.include({ clients: 'ask', api_keys: 'refuse' });
    const listed = await valueFrom(run, 'organizations list');
    expect(listed).to.containSubset([{ id, clients: 'ask', api_keys: 'refuse' }]);
    await eventually(async () => expect(await reachedWith(token)).to.deep.equal([]));
    const [waiting] = (await valueFrom(run, `show ${id}`))[0].content.clients;
    expect(waiting).to.include({ id: client().id, name: 'Route Planner', state: 'waiting', people: 1 });
    expect((await run(`show ${token}`)).output).to.match(
      /have not approved the client: it reaches nothing in Northern Logistics/,
    );
    expect((await run(`show ${key}`)).output).to.include(
      'Organizations allow no API keys: it reaches nothing in Northern Logistics.',
    );
    const ids = `${id} ${client().id}`;
    expect((await run(`organizations policy ${id} closed`)).exitCode).to.equal(2);
    await run(`organizations policy ${id} open --api-keys allow`);
    await eventually(async () => expect(await reachedWith(token)).to.deep.equal(NORTHERN));
    expect(await valueFrom(run, `organizations block ${ids}`)).to.include({ block: true });
    await eventually(async () => expect(await reachedWith(token)).to.deep.equal([]));
    expect((await run(`organizations block ${ids}`)).exitCode).to.equal(1);
    await run(`organizations unblock ${ids}`);
    await eventually(async () => expect(await reachedWith(token)).to.deep.equal(NORTHERN));
    const [entry] = await valueFrom(run, 'audit --action client_admitted --limit 1');
    expect(entry).to.include({ action: 'client_admitted', actor: 'operator' });
  });

  it('an API that caches introspection answers learns of a policy, an approval and a block on another node', async () => {
    const { issuer } = on;
    const other = await start({ sharing: on.service, settings: { issuer }, clock: on.clock.clock });
    let ahead = 0;
    const api = introspectorOf(on.clients.resourceServer, {
      issuer,
      introspectionEndpoint: `http://127.0.0.1:${other.settings.server.port}/oauth/introspect`,
      clock: () => Date.now() + ahead,
      live: true,
      onFailure: () => {},
    });
    try {
      const accessToken = await connect();
      const expectCaller = async (organizations: number) => {
        await eventually(async () => {
          const { caller } = await api.identify(bearer(accessToken));
          expect(caller?.organizations).to.have.length(organizations);
        });
        // Wait for a cached answer, because only a cached answer can be outdated after the next change.
        const cached = await cachedCaller(api, accessToken, () => {
          ahead += 6_000;
        });
        expect(cached.organizations).to.have.length(organizations);
      };
      await expectCaller(1);
      await setPolicy(ASK);
      await expectCaller(0);
      // The cached answer does not contain the organization.
      await setPolicy(OPEN);
      await expectCaller(1);
      await setPolicy(ASK);
      await expectCaller(0);
      await decide({ decision: 'approve' });
      await expectCaller(1);
      await owner.fillIn(url(`/clients/${client().id}/end`));
      await expectCaller(0);
    } finally {
      api.close();
      await other.close();
    }
  });
});
