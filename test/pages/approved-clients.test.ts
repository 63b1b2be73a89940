/** An approval of an organization counts for the client that its page showed, and until that changes. */
import { expect } from 'chai';
import { eventually } from '../support/eventually.ts';
import type { TestClient } from '../support/oauth.ts';
import { addPerson, addTestClient, REDIRECT_URI } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { onPostgresAndRedis } from '../support/service.ts';
import { said, textOf } from './client-owner.ts';
import { connect, join, type Member, namesReached } from './organization-members.ts';
import { fieldOf, signedIn } from './signed-in-person.ts';

const ASK = { clients: 'ask', api_keys: 'allow' };
const EVIL = 'https://evil.example/cb';
const NORTHERN = ['Northern Logistics'];

onPostgresAndRedis('an approval of an organization', (start) => {
  const on = startSeeded({ on: start });
  let admin: Member;
  let person: Member;
  let client: TestClient;
  let token: string;

  const url = (more = '') => `/profile/organizations/${on.seeded.organization.id}${more}`;
  const decision = ({ id } = client) => url(`/clients/${id}`);
  const approve = async () => admin.submit(await admin.get(decision()), { decision: 'approve' });
  async function addUri(uri: string) {
    const { redirectUris = [] } = (await on.service.clients.find(client.id)) ?? {};
    return on.service.clients.edit(client.id, { redirectUris: [...redirectUris, uri] });
  }
  const reached = () => namesReached(on, token);
  const approvals = () => on.service.database.query('SELECT FROM client_decisions');

  before(async () => {
    admin = await join(on, 'Olga', 'owner');
    person = await signedIn(on.service, on.seeded.person);
  });
  beforeEach(async () => {
    await person.send('/profile/connections/disconnect-all');
    await on.service.database.query('DELETE FROM client_decisions');
    await admin.fillIn(url('/policy'), ASK);
    const owner = { ownerAccountId: on.seeded.other.accountId };
    client = await addTestClient(on.service, 'Dock Planner', owner);
    token = await connect(on, person, client);
  });

  it('an approval has no effect if the client got another name, host or owner after the page was opened', async () => {
    const namesake = await addPerson(on.service, 'Oscar Other');
    for (const [change, present] of [
      [() => on.service.clients.edit(client.id, { name: 'Dock Planner 2' }), 'Dock Planner 2'],
      [() => addUri(EVIL), 'evil.example, partner.example'],
      [() => on.service.clients.transfer(client.id, namesake.accountId), 'Oscar Other'],
      [() => on.service.clients.transfer(client.id, undefined), 'the operator of this service'],
    ] as const) {
      const page = await admin.get(decision());
      await change();
      const refused = await admin.submit(page, { decision: 'approve' });
      expect(refused.status).to.equal(409);
      expect(textOf(refused.html)).to.include(said('organization-decision.changed')).and.include(present);
      expect(await approvals()).to.deep.equal([]);
      expect(await reached()).to.deep.equal([]);
    }
    expect((await approve()).status).to.equal(303);
    expect(await reached()).to.deep.equal(NORTHERN);
  });

  it('an approval without the sealed field of this client has no effect', async () => {
    const other = await addTestClient(on.service, 'Stock Sync');
    await connect(on, person, other);
    const shown = fieldOf(await admin.get(decision(other)), 'shown');
    for (const field of ['', shown, `${shown}x`]) {
      const answer = await admin.send(decision(), { decision: 'approve', shown: field });
      expect(answer.status).to.equal(409);
    }
    expect((await admin.send(decision(), { decision: 'approve' })).status).to.equal(409);
    expect(await approvals()).to.deep.equal([]);
  });

  it('a page that was opened before a rotation of the keys can be submitted after it', async () => {
    const cookieKeys = ['c'.repeat(40), ...on.service.settings.secrets.cookieKeys] as const;
    const rotated = await start({ sharing: on.service, settings: { secrets: { cookieKeys } } });
    const there = await signedIn(rotated, admin);
    const shown = fieldOf(await admin.get(decision()), 'shown');
    expect((await there.send(decision(), { decision: 'approve', shown })).status).to.equal(303);
    await on.service.database.query('DELETE FROM client_decisions');
    const listed = fieldOf(await admin.get(url('/policy')), 'shown');
    const fields = { ...ASK, approve: client.id, shown: listed };
    expect((await there.send(url('/policy'), fields)).status).to.equal(303);
    expect(await approvals()).to.have.length(1);
    await rotated.close();
  });

  it('an approved client needs approval again after it got a new host or owner, but not after other changes', async () => {
    const { clients } = on.service;
    const another = await addPerson(on.service, 'Ann');
    for (const change of [
      () => addUri(EVIL),
      () => clients.edit(client.id, { redirectUris: [REDIRECT_URI, 'http://partner.example/'] }),
      () => clients.transfer(client.id, another.accountId),
      () => clients.transfer(client.id, undefined),
      () => clients.edit(client.id, { redirectUris: ['https://partner.example:444/', REDIRECT_URI] }),
    ]) {
      expect((await approve()).status).to.equal(303);
      await clients.edit(client.id, { name: 'Dock Planner Pro' });
      await clients.edit(client.id, { name: 'Dock Planner' });
      await addUri(`${REDIRECT_URI}/2`);
      await clients.edit(client.id, { redirectUris: [REDIRECT_URI] });
      await eventually(async () => expect(await reached()).to.deep.equal(NORTHERN));
      await change();
      await eventually(async () => expect(await reached()).to.deep.equal([]));
      expect(textOf((await admin.get(url())).html)).to.match(/Requests 1 .*Dock Planner/);
    }
    const theirs = textOf((await person.get(`/profile/connections/${client.id}`)).html);
    expect(theirs).to.include('Northern Logistics has not approved the app yet');
  });

  it('a declined client stays declined after it got a new host', async () => {
    await admin.fillIn(decision(), { decision: 'decline' });
    await addUri(EVIL);
    expect(textOf((await admin.get(url())).html)).to.include('Dock Planner declined');
  });

  it('if a client changes while it is being approved, it is not approved', async () => {
    for (let race = 0; race < 5; race += 1) {
      const page = await admin.get(decision());
      const uri = `https://evil-${race}.example/`;
      await Promise.all([admin.submit(page, { decision: 'approve' }), addUri(uri)]);
      expect(await approvals(), uri).to.deep.equal([]);
    }
  });
});
