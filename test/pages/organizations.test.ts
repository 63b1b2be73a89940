/** `/profile/organizations`: owners and admins see and end all access to an organization. */
import { expect } from 'chai';
import type { Role } from '../../src/accounts/access/reach.ts';
import { changeUnheard } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { authorizationUrl } from '../support/oauth.ts';
import { addPerson, addTestClient, apiKeyOf, type SeededPerson } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { startsOn } from '../support/service.ts';
import { said, textOf } from './client-owner.ts';
import * as members from './organization-members.ts';
import { type SignedInPerson, signedIn } from './signed-in-person.ts';

const PATH = '/profile/organizations';

describe('the page of an organization lets owners and admins remove members and block clients', () => {
  const start = startsOn();
  const on = startSeeded({ on: start, clock: true });
  let owner: members.Member;
  let admin: members.Member;
  let member: members.Member;

  before(async () => {
    owner = await join('Olga Owner', 'owner');
    admin = await join('Adam Admin', 'admin');
    member = await signedIn(on.service, on.seeded.person);
  });

  const orgId = (): string => on.seeded.organization.id;
  const url = (more = '', id = orgId()): string => `${PATH}/${id}${more}`;
  const endOf = ({ accountId }: SeededPerson): string => url(`/people/${accountId}/end`);
  const clientPath = (act: 'end' | 'let-in'): string => url(`/clients/${on.clients.confidential.id}/${act}`);

  async function join(name: string, role: Role): Promise<members.Member> {
    const person = await members.addMember(on, name, role);
    // People are shown what happened after they joined, and the stopped clock is exact only to some milliseconds.
    on.clock.advance(1);
    return signedIn(on.service, person);
  }
  const roleOf = async ({ accountId }: SeededPerson): Promise<Role | undefined> => {
    const { items } = await on.service.access.reachedBy('organization', orgId());
    return items.find(({ id }) => id === accountId)?.role;
  };
  const connect = (who: members.Member) => members.connect(on, who, on.clients.confidential, { prompt: 'consent' });
  const reachedWith = (token: string, issuer?: string) => members.namesReached(on, token, issuer);
  /** Sends the form of a path, and returns what the next page says. */
  const told = async (who: SignedInPerson, path: string): Promise<string> =>
    textOf((await who.follow(await who.send(path))).html);
  const logOf = ({ accountId }: SeededPerson) => on.service.activity.of(accountId, { limit: 5 });

  it('only owners and admins see the page of an organization; others get 404, as for an unknown one', async () => {
    const bystander = await signedIn(on.service, on.seeded.other);
    const paths = [
      '',
      `/people/${owner.accountId}/end`,
      `/clients/${on.clients.public.id}/end`,
      `/clients/${on.clients.public.id}`,
      '/policy',
    ];
    for (const who of [member, bystander]) {
      for (const more of paths) {
        const unknown = await who.get(url(more, `org_${'x'.repeat(16)}`));
        const known = await who.get(url(more));
        expect(known.status, more).to.equal(404).and.to.equal(unknown.status);
        expect(known.html.replace(/<code data-copy.*/, '')).to.equal(unknown.html.replace(/<code data-copy.*/, ''));
        if (more) expect((await who.send(url(more))).status).to.equal(404);
      }
    }
    expect(textOf((await member.get(PATH)).html)).to.include('Northern Logistics member');
    expect((await member.get(PATH)).html).to.not.include(`href="${url()}"`);
    expect((await admin.get(PATH)).html).to.include(`href="${url()}"`);
  });

  it('the page of an organization lists each user, client, machine client and API key, with the last use', async () => {
    const token = await connect(member);
    await apiKeyOf(on.service, member, 'Nightly export');
    await reachedWith(token);
    await on.service.lastUsed.flush();
    const text = textOf((await owner.get(url())).html);
    expect(text).to.match(/Grace Person member grace@example\.test Warehouses All 1/);
    expect(text).to.match(/Olga Owner owner you .* Last signed in \d/);
    expect(text).to.match(/Route Planner Made by Oscar Other Connected by Grace Person Last used \d/);
    expect(text).to.match(/Night Sync member Made by the operator .* None of 1 Last used Never/);
    expect(text).to.match(/Nightly export gate_key_…\S{4} Acts as Grace Person .* Last used Never/);
    expect(text).to.not.include('Stock Reports').and.not.include('Warehouse API');
  });

  it('the removal of a member ends access at once, and appears in the activity of the admin and the member', async () => {
    const guest = await join('Gina Guest', 'member');
    const token = await connect(guest);
    expect(await reachedWith(token)).to.deep.equal(['Northern Logistics']);
    const stream = await members.listen(on, on);
    const asked = await admin.get(endOf(guest));
    expect(textOf(asked.html)).to.include(
      said('organizations.end-heading', { person: 'Gina Guest', organization: 'Northern Logistics' }),
    );
    expect(await roleOf(guest)).to.equal('member');
    const done = await admin.follow(await admin.submit(asked, {}));
    expect(textOf(done.html)).to.include(said('organizations.ended', { person: 'Gina Guest' }));
    expect(await reachedWith(token)).to.deep.equal([]);
    await eventually(() => expect(stream.text).to.include(`data: ${guest.accountId}\n`));
    const [entry] = await logOf(guest);
    expect(entry).to.include({ action: 'membership_removed', actor: 'organization' });
    expect(entry?.details).to.include({ by_name: 'Adam Admin', by_account_id: admin.accountId });
    expect(entry).to.not.have.property('origin');
    const [adminEntry] = await logOf(admin);
    expect(adminEntry).to.include({ action: 'member_removed', actor: 'person' });
    expect(adminEntry?.details).to.include({ person_name: 'Gina Guest' });
    expect(adminEntry?.origin?.address).to.be.a('string');
    expect(await told(admin, endOf(guest))).to.include(said('organizations.already-ended'));
    await on.service.accounts.remove(guest.accountId);
    expect((await logOf(admin))[0]?.details).to.not.have.property('person_name');
  });

  it('an admin cannot remove an owner, and no user can remove the last owner who can sign in', async () => {
    const text = textOf((await admin.get(url())).html);
    expect(text).to.include('End membership Grace').and.not.include('End membership Olga');
    const gone = await join('Suspended Owner', 'owner');
    expect((await admin.send(endOf(gone))).status).to.equal(409);
    expect(await roleOf(gone)).to.equal('owner');
    await on.service.accounts.suspend(gone.accountId);
    const refused = await owner.send(endOf(owner));
    expect(refused.status).to.equal(409);
    expect(textOf(refused.html)).to.include(said('organizations.refused-last_owner'));
    expect([await roleOf(owner), await roleOf(gone)]).to.deep.equal(['owner', 'owner']);
    expect((await owner.send(endOf(gone))).status).to.equal(303);
  });

  it('if two admins or two owners remove each other in parallel, only one of them is removed', async () => {
    for (const role of ['admin', 'owner'] as const) {
      const pair = [await join('First', role), await join('Second', role)] as const;
      const pages = await Promise.all([pair[0].get(endOf(pair[1])), pair[1].get(endOf(pair[0]))]);
      const answers = await Promise.all(pages.map((page, one) => pair[one]?.submit(page, {})));
      expect(answers.map((answer) => answer?.status).sort()).to.deep.equal([303, 404]);
      const left = (await Promise.all(pair.map(roleOf))).filter(Boolean);
      expect(left).to.deep.equal([role]);
    }
  });

  it('an open form of a former admin is refused, even before the node is notified of the lost role', async () => {
    const { database, access } = on.service;
    const [former, guest] = [await join('Fritz Former', 'owner'), await join('Hugo Guest', 'member')];
    await connect(guest);
    const app = url(`/clients/${on.clients.confidential.id}`);
    const forms = [
      [endOf(guest), {}],
      [url('/policy'), { clients: 'ask', api_keys: 'refuse' }],
      [app, { decision: 'decline' }],
      [`${app}/end`, {}],
    ] as const;
    const become = 'UPDATE organization_memberships SET role = $1 WHERE account_id = $2';
    const as = (role: string) => changeUnheard(database, become, [role, former.accountId]);
    for (const [path, fields] of forms) {
      await as('owner');
      access.forget(former.accountId);
      expect((await former.get(path)).status, path).to.equal(200);
      await as('member');
      expect((await former.send(path, fields)).status, path).to.equal(404);
    }
    expect(await roleOf(guest)).to.equal('member');
    const policies = await database.query('SELECT asks_first FROM organizations WHERE id = $1', [orgId()]);
    expect(policies).to.deep.equal([{ asks_first: false }]);
  });

  it('connections that were unused for 90 days are marked, counted and listed for owners and admins', async () => {
    const guest = await join('Ursa Unused', 'member');
    await connect(guest);
    const age = (days: number) =>
      on.service.database.query(
        `UPDATE connections SET last_used_at = $2::timestamptz - $3 * interval '1 day' WHERE client_id = $1`,
        [on.clients.confidential.id, new Date(on.clock.clock()), days],
      );
    await age(89);
    const proposal = '1 has not been used for 90 days.';
    expect(textOf((await owner.get(url())).html)).to.not.include(proposal);
    await age(91);
    expect(textOf((await owner.get(url())).html))
      .to.include(proposal)
      .and.include(said('organization.unused'));
    const listed = textOf((await owner.get(url('?show=clients&only=unused'))).html);
    expect(listed).to.include('Route Planner').and.include(said('organizations.block'));
    await age(1);
    expect(textOf((await owner.get(url('?show=clients&only=unused'))).html)).to.not.include('Route Planner');
    await owner.fillIn(endOf(guest));
  });

  it('a blocked client has no access to the organization on any node until it is unblocked', async () => {
    const both = await join('Bea Both', 'member');
    const { elsewhere } = on.seeded;
    await on.service.memberships.setRole({ accountId: both.accountId }, elsewhere.id, 'member');
    await eventually(async () => {
      expect(await on.service.access.accessOf({ accountId: both.accountId })).to.have.length(2);
    });
    const token = await connect(both);
    /** Returns the text of the consent page for this user. */
    const consentPage = async (): Promise<string> => {
      const request = authorizationUrl(on.issuer, on.clients.confidential, { prompt: 'consent' });
      return textOf((await both.follow(await both.get(request))).html);
    };
    const reached = /Northern Logistics member/;
    expect(await consentPage()).to.match(reached);
    const { clock } = on.clock;
    const isAlone = on.service.database.embedded;
    const node = isAlone ? on.service : await start({ sharing: on.service, clock });
    const stream = await members.listen(on, node);
    const all = ['Elsewhere Storage', 'Northern Logistics'];
    const reachedThere = () => reachedWith(token, node.issuer);
    expect([await reachedWith(token), await reachedThere()]).to.deep.equal([all, all]);

    const asked = await owner.get(clientPath('end'));
    expect(textOf(asked.html)).to.include(
      said('organizations.block-heading', { app: 'Route Planner', organization: 'Northern Logistics' }),
    );
    await owner.submit(asked, {});
    expect(await reachedWith(token)).to.deep.equal(['Elsewhere Storage']);
    await eventually(async () => {
      expect(await reachedThere()).to.deep.equal(['Elsewhere Storage']);
      expect(stream.text).to.include(`data: ${on.clients.confidential.id}\n`);
    });
    // A new approval does not reach the organization either, and the consent page says so.
    expect(await consentPage())
      .to.include('Blocked in Northern Logistics by an owner or admin')
      .and.not.match(reached);
    expect(await reachedWith(await connect(both))).to.deep.equal(['Elsewhere Storage']);
    const connections = textOf((await both.get('/profile/connections')).html);
    expect(connections).to.include('Blocked in Northern Logistics by an owner or admin');
    const [entry] = (await logOf(owner)).filter(({ action }) => action === 'client_barred');
    expect(entry).to.include({ actor: 'person' });
    expect(await told(owner, clientPath('end'))).to.include(said('organizations.already-blocked'));
    // A page that asks for what is done already would say that it is not.
    expect(textOf((await owner.open(clientPath('end'))).html)).to.include(said('organizations.already-blocked'));

    await admin.fillIn(clientPath('let-in'));
    expect(await reachedWith(token)).to.deep.equal(all);
    await eventually(async () => expect(await reachedThere()).to.deep.equal(all));
    expect(await told(admin, clientPath('let-in'))).to.include(said('organizations.already-unblocked'));
    expect(textOf((await admin.open(clientPath('let-in'))).html)).to.include(said('organizations.already-unblocked'));
  });

  it('unblocking a client in one organization does not unblock it in another', async () => {
    const { id: elsewhere } = on.seeded.elsewhere;
    const both = await join('Ben Both', 'member');
    await on.service.memberships.setRole({ accountId: both.accountId }, elsewhere, 'member');
    await on.service.memberships.setRole({ accountId: owner.accountId }, elsewhere, 'owner');
    for (const { accountId } of [both, owner]) on.service.access.forget(accountId);
    const token = await connect(both);
    const there = (act: string) => url(`/clients/${on.clients.confidential.id}/${act}`, elsewhere);
    for (const path of [clientPath('end'), there('end')]) await owner.fillIn(path);
    expect(await reachedWith(token)).to.deep.equal([]);
    await owner.fillIn(clientPath('let-in'));
    expect(await reachedWith(token)).to.deep.equal(['Northern Logistics']);
    await owner.fillIn(there('let-in'));
    expect(await reachedWith(token)).to.deep.equal(['Elsewhere Storage', 'Northern Logistics']);
  });

  describe('a block of a client extends to clients with the same owner and redirect host', () => {
    const host = 'https://evader.example';
    const register = (uris: readonly string[], ownerAccountId: string) =>
      addTestClient(on.service, 'Evading Client', { ownerAccountId, redirectUris: uris });
    const isBlocked = async ({ id }: { id: string }): Promise<boolean> =>
      (await on.service.access.clientBlocks.of(id)).blocked.has(orgId());
    const act = (what: 'end' | 'let-in', { id }: { id: string }): Promise<unknown> =>
      owner.send(url(`/clients/${id}/${what}`));

    /**
     * Creates and blocks a client of a new owner. The page lists the client because a member
     * connected it.
     */
    async function blockNewClient(uris: readonly string[] = [`${host}/cb`]) {
      const evader = await addPerson(on.service, 'Evan');
      const client = await register(uris, evader.accountId);
      const { accountId } = member;
      await on.service.connections.rememberConsent({ accountId, clientId: client.id, name: '', hosts: [] });
      await act('end', client);
      expect(await isBlocked(client)).to.equal(true);
      return { evader, client };
    }

    it("a new client of a blocked client's owner is blocked and listed if it has the same redirect host", async () => {
      const { evader } = await blockNewClient();
      const next = await register([`${host}/next`, 'https://new.example/cb'], evader.accountId);
      expect(await isBlocked(next)).to.equal(true);
      const [row = ''] = (await owner.get(url('?show=clients&sort=name'))).html
        .split('<li')
        .filter((entry) => entry.includes(next.id));
      expect(textOf(row)).to.include('blocked');
      const page = await owner.get(url(`/clients/${next.id}`));
      expect(textOf(page.html)).to.match(/Blocked on .* by Olga Owner/);
      expect(textOf(row), 'it may have been used before').to.not.include(said('organization.never'));
      const token = await on.service.access.accessThrough(member.accountId, {
        clientId: next.id,
      });
      expect(token.map(({ id }) => id)).to.not.include(orgId());
    });

    it('a client is blocked when it adds the redirect host of a blocked client with the same owner', async () => {
      const { evader } = await blockNewClient();
      const edited = await register(['https://harmless.example/cb'], evader.accountId);
      expect(await isBlocked(edited)).to.equal(false);
      await on.service.clients.edit(edited.id, { redirectUris: [`${host}:8443/cb`] });
      expect(await isBlocked(edited)).to.equal(true);
    });

    it('a redirect host stays blocked after the blocked client was deleted or changed its redirect host', async () => {
      const first = await blockNewClient();
      await on.service.removeClient(first.client.id);
      expect(await isBlocked(await register([`${host}/cb`], first.evader.accountId))).to.equal(true);
      const second = await blockNewClient();
      await on.service.clients.edit(second.client.id, { redirectUris: ['https://moved.example/'] });
      expect(await isBlocked(await register([`${host}/cb`], second.evader.accountId))).to.equal(true);
    });

    it('an unblocked client stays unblocked when it adds redirect hosts of a blocked or deleted client', async () => {
      for (const isDeleted of [true, false]) {
        const { evader, client } = await blockNewClient();
        if (isDeleted) await on.service.removeClient(client.id);
        const next = await register([`${host}/cb`], evader.accountId);
        await act('let-in', next);
        await on.service.clients.edit(next.id, { redirectUris: [`${host}/other`] });
        await on.service.clients.edit(next.id, { redirectUris: [`${host}/other`, `${host}/third`] });
        const later = await register([`${host}/cb`], evader.accountId);
        const blocked = isDeleted ? [next, later] : [next];
        expect(await Promise.all(blocked.map(isBlocked)), `${isDeleted}`).to.not.include(true);
        expect(await isBlocked(client)).to.equal(!isDeleted);
      }
    });

    it('a block does not affect clients with other redirect hosts, of other owners, or on localhost', async () => {
      const local = 'http://localhost:8080/callback';
      const { evader } = await blockNewClient([`${host}/cb`, local]);
      const stranger = await addPerson(on.service, 'Sue');
      for (const [uris, who] of [
        [['https://other.example/cb'], evader],
        [[local], evader],
        [[`${host}/cb`], stranger],
      ] as const) {
        const client = await register(uris, who.accountId);
        expect(await isBlocked(client), uris.join()).to.equal(false);
      }
    });

    it('a blocked client stays blocked when it gets another owner', async () => {
      const { client } = await blockNewClient();
      const heir = await addPerson(on.service, 'Heidi');
      await on.service.clients.transfer(client.id, heir.accountId);
      expect(await isBlocked(client)).to.equal(true);
      expect(await isBlocked(await register([`${host}/cb`], heir.accountId))).to.equal(true);
    });
  });

  it('the page of an organization does not list expired API keys', async () => {
    await apiKeyOf(on.service, member, 'Soon over');
    const listed = async () => textOf((await owner.get(url('?show=api-keys'))).html);
    expect(await listed()).to.include('Soon over');
    await on.service.database.query("UPDATE api_keys SET expires_at = $1 WHERE name = 'Soon over'", [
      new Date(on.clock.clock() - 1),
    ]);
    expect(await listed()).to.not.include('Soon over');
  });
});
