/** The test organizations that the operator names, which owners of clients join and leave. */
import { expect } from 'chai';
import { authorizationUrl, exchangeCode } from '../../support/oauth.ts';
import { addPerson, addTestClient, type SeededPerson } from '../../support/seed.ts';
import { startSeeded } from '../../support/seeded.ts';
import { onPostgresAndRedis } from '../../support/service.ts';
import { nameWarehouseApi } from '../../support/warehouse-api.ts';
import { LIST, signInOwner, textOf } from '../client-owner.ts';

const STOCK = '{ organizations { name warehouses { name rights stock { article count } } } }';

onPostgresAndRedis('the test organizations', (start) => {
  const on = startSeeded({ on: start, clock: true });
  let api: { graphqlUrl: string; exampleQuery: string; testOrganizations: readonly string[] };

  before('open the organization with the warehouse Rotterdam to tests', async () => {
    const graphqlUrl = await nameWarehouseApi(on);
    api = { graphqlUrl, exampleQuery: STOCK, testOrganizations: [on.seeded.organization.id] };
    await apply(api);
  });

  const apply = (one: typeof api) =>
    on.service.apply({
      ...on.service.settings,
      api: { ...one, testOrganizations: [...one.testOrganizations] },
    });

  /** Returns a new person with a client of their own, and the paths of its forms. */
  async function newOwner() {
    const person = await addPerson(on.service, 'Nora New');
    const owner = await signInOwner(on.service, person);
    const client = await owner.createClient('Stock App');
    const connect = `${LIST}/${client.id}/connect`;
    const change = (to: 'join' | 'leave', id = on.seeded.organization.id) => `${LIST}/${client.id}/${to}/${id}`;
    return { person, owner, client, connect, change };
  }
  const accessOf = async ({ accountId }: SeededPerson) => {
    on.service.access.forget(accountId);
    const all = await on.service.access.accessOf({ accountId });
    return all.map(({ id, role, warehouses }) => [id, role, warehouses]);
  };
  const logOf = async ({ accountId }: SeededPerson) =>
    (await on.service.activity.of(accountId, { limit: 5 })).map(({ action, actor, details }) => ({
      action,
      actor,
      details,
    }));
  const asViewer = () => [[on.seeded.organization.id, 'viewer', [{ ...named(on.seeded.warehouse), rights: ['read'] }]]];
  const named = ({ id, name }: { id: string; name: string }) => ({ id, name });

  it('the owner of a new client can join a test organization, whose stock the API then returns', async () => {
    const { person, owner, client, connect, change } = await newOwner();
    const page = await owner.get(connect);
    expect(textOf(page.html)).to.include('Northern Logistics').and.not.include('viewer Leave');
    const form = page.forms.find(({ action }) => action.includes('/join/'));
    expect(form?.action).to.equal(change('join'));
    // A user who has confirmed the action at a provider returns to its path.
    expect((await owner.get(change('join'))).location?.pathname).to.equal(connect);
    const joined = await owner.follow(await owner.send(form?.action ?? ''));
    expect(textOf(joined.html)).to.include('You are now a viewer in Northern Logistics .');
    expect(joined.forms.some(({ action }) => action.includes('/leave/'))).to.equal(true);
    const callback = await owner.authorize(authorizationUrl(on.issuer, client), person);
    const { body } = await exchangeCode(on.issuer, client, callback.searchParams.get('code') ?? '');
    const answer = await fetch(api.graphqlUrl, {
      method: 'POST',
      headers: { authorization: `Bearer ${body.access_token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ query: api.exampleQuery }),
    });
    expect(await answer.text()).to.match(/Rotterdam.*Euro pallets.*"count":120/);
  });

  it('joining a test organization makes a user a viewer of each warehouse until leaving; each step is logged', async () => {
    const { person, owner, client, change } = await newOwner();
    const { id, name } = on.seeded.organization;
    const about = {
      organization_id: id,
      organization_name: name,
      client_id: client.id,
      client_name: 'Stock App',
    };
    const { database } = on.service;
    await database.query(
      `INSERT INTO warehouses (id, organization_id, name, created_at, ended_at)
        VALUES ('wh_ended00000000000', $1, 'Ended', now(), now())`,
      [id],
    );
    await owner.send(change('join'));
    expect(await accessOf(person)).to.deep.equal(asViewer());
    const given = 'SELECT FROM warehouse_rights WHERE account_id = $1';
    expect(
      await database.query(given, [person.accountId]),
      'none in the warehouse that is being deleted',
    ).to.have.length(1);
    await database.query("DELETE FROM warehouses WHERE name = 'Ended'");
    const [joined] = await logOf(person);
    const set = { action: 'membership_set', actor: 'person' };
    expect(joined).to.deep.equal({ ...set, details: { ...about, role: 'viewer' } });

    await owner.send(change('leave'));
    expect(await accessOf(person)).to.deep.equal([]);
    const [left] = await logOf(person);
    expect(left).to.deep.equal({ ...set, action: 'membership_removed', details: about });
    expect(textOf((await owner.get('/profile/activity')).html)).to.match(/Access removed .*Access given/);
  });

  it('a viewer who joined and is later made a member can still only read', async () => {
    const { person, owner, change } = await newOwner();
    const { accountId } = person;
    await owner.send(change('join'));
    await on.service.memberships.setRole({ accountId }, on.seeded.organization.id, 'member');
    const [[, , warehouses] = []] = await accessOf(person);
    expect(warehouses).to.deep.equal([{ ...named(on.seeded.warehouse), rights: ['read'] }]);
    expect((await owner.send(change('leave'))).status).to.equal(404);
  });

  it('joining or leaving twice, even in parallel, has one effect and one log entry', async () => {
    const { person, owner, change } = await newOwner();
    for (const to of ['join', 'leave'] as const) {
      const before = (await logOf(person)).length;
      const answers = await Promise.all([1, 2, 3].map(() => owner.send(change(to))));
      expect(answers.map(({ status }) => status))
        .to.include(303)
        .and.not.include(500);
      expect(await accessOf(person)).to.deep.equal(to === 'join' ? asViewer() : []);
      expect((await logOf(person)).length, to).to.equal(before + 1);
    }
  });

  it('only organizations that the operator names can be joined; all others answer 404', async () => {
    const { person, owner, connect, change } = await newOwner();
    const others = [on.seeded.elsewhere.id, `org_${'x'.repeat(16)}`, 'org_%00', '__proto__'];
    for (const other of others) {
      expect((await owner.send(change('join', other))).status, other).to.equal(404);
    }
    await apply({ ...api, testOrganizations: [] });
    expect((await owner.send(change('join'))).status).to.equal(404);
    expect((await owner.get(connect)).html).to.not.include('Northern Logistics');
    await apply(api);
    expect(await accessOf(person)).to.deep.equal([]);
  });

  it('a configured organization that does not exist is not offered, and the others are', async () => {
    const { owner, connect } = await newOwner();
    await apply({ ...api, testOrganizations: [`org_${'x'.repeat(16)}`, ...api.testOrganizations] });
    const { forms } = await owner.get(connect);
    expect(forms.filter(({ action }) => action.includes('/join/'))).to.have.length(1);
    await apply(api);
  });

  it('the page of a suspended client offers no test organization, and its owner cannot join one', async () => {
    const { person, owner, client, connect, change } = await newOwner();
    await on.service.clients.suspend(client.id);
    expect(textOf((await owner.get(connect)).html)).to.not.include('Northern Logistics');
    expect((await owner.send(change('join'))).status).to.equal(404);
    expect(await accessOf(person)).to.deep.equal([]);
  });

  it('because a machine client acts for no user, its page offers no test organization, and joining is refused', async () => {
    const { person, owner } = await newOwner();
    const { id } = await addTestClient(on.service, 'Nightly', { kind: 'machine', ownerAccountId: person.accountId });
    expect(textOf((await owner.get(`${LIST}/${id}/connect`)).html)).to.not.include('Northern Logistics');
    expect((await owner.send(`${LIST}/${id}/join/${on.seeded.organization.id}`)).status).to.equal(404);
    expect(await accessOf(person)).to.deep.equal([]);
  });

  it('a test organization is not offered to a user with the role member, who can neither join nor leave it', async () => {
    const { person, owner, connect, change } = await newOwner();
    const { accountId } = person;
    await on.service.memberships.setRole({ accountId }, on.seeded.organization.id, 'member');
    on.service.access.forget(accountId);
    expect(textOf((await owner.get(connect)).html)).to.not.include('Northern Logistics');
    for (const to of ['join', 'leave'] as const) {
      expect((await owner.send(change(to))).status).to.equal(404);
    }
    expect((await accessOf(person))[0]?.[1]).to.equal('member');
  });
});
