/** A client that an organization blocks in one warehouse: what it then reaches, and who learns of it. */
import { expect } from 'chai';
import { line } from '../import/import-file.ts';
import { push, SENDERS } from '../import/pushing.ts';
import { operatorFor, valueFrom } from '../operator/run-operator.ts';
import { partnerTokens, tokensOf } from '../provider/partner-tokens.ts';
import { eventually } from '../support/eventually.ts';
import { authorizationUrl, basic, clientCredentials, introspect } from '../support/oauth.ts';
import { addPerson, addTestClient, type SeededPerson } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { onPostgresAndRedis, startTestService } from '../support/service.ts';
import { said, textOf } from './client-owner.ts';
import { type SignedInPerson, signedIn } from './signed-in-person.ts';

type Member = SignedInPerson & SeededPerson;

onPostgresAndRedis('a block of a client in one warehouse', (start) => {
  const on = startSeeded({ on: start, settings: { senders: SENDERS } });
  let owner: Member;
  let member: Member;
  let riga: string;
  let hamburg: string;
  let token: string;
  let people = 0;

  before(async () => {
    const { organization, warehouse } = on.seeded;
    hamburg = warehouse.id;
    riga = (await on.service.organizations.addWarehouse({ organizationId: organization.id, name: 'Riga' })).id;
    owner = await join('Olga Owner', 'owner');
    member = await join('Mona Member', 'admin');
    token = await connect(member);
  });

  const orgId = (): string => on.seeded.organization.id;
  const page = (more = ''): string => `/profile/organizations/${orgId()}${more}`;
  const pathOf = (act: 'end' | 'let-in', warehouse?: string, client = on.clients.confidential.id): string =>
    page(`${warehouse ? `/warehouses/${warehouse}` : ''}/clients/${client}/${act}`);

  async function join(name: string, role: 'owner' | 'admin' | 'member'): Promise<Member> {
    people += 1;
    const person = await addPerson(on.service, name, `warehouse${people}@example.test`);
    await on.service.memberships.setRole({ accountId: person.accountId }, orgId(), role);
    on.service.access.forget(person.accountId);
    return Object.assign(await signedIn(on.service, person), person);
  }
  const connect = async (who: Member, client = on.clients.confidential): Promise<string> => {
    const partner = partnerTokens(on.issuer, { ...on.seeded, person: who }, who);
    return (await partner.tokens(client, { prompt: 'consent' })).accessToken;
  };
  async function answerTo(value: string, issuer = on.issuer) {
    const { body } = await introspect(issuer, on.clients.resourceServer, value);
    return body.organizations as readonly { id: string; warehouses: readonly { id: string }[] }[];
  }
  const warehousesOf = async (value: string, issuer = on.issuer): Promise<string[]> =>
    (await answerTo(value, issuer)).flatMap(({ warehouses }) => warehouses.map(({ id }) => id)).sort();
  const told = async (path: string, who: SignedInPerson = owner): Promise<string> =>
    textOf((await who.follow(await who.send(path))).html);

  it('is answered on the next call, and announced on every node', async () => {
    const isAlone = on.service.database.embedded;
    const node = isAlone ? on.service : await startTestService({ sharing: on.service });
    const headers = { authorization: basic(on.clients.resourceServer) };
    const { body } = await fetch(new URL('/oauth/introspect/changes', node.issuer), { headers });
    let stream = '';
    const read = async (): Promise<void> => {
      for await (const chunk of body ?? []) stream += Buffer.from(chunk).toString();
    };
    read().catch(() => {});
    const both = [riga, hamburg].sort();
    for (const [act, expected] of [
      ['end', [hamburg]],
      ['let-in', both],
    ] as const) {
      await owner.fillIn(pathOf(act, riga));
      expect(await warehousesOf(token)).to.deep.equal(expected);
      await eventually(async () => expect(await warehousesOf(token, node.issuer)).to.deep.equal(expected));
    }
    await eventually(() => expect(stream).to.include(`data: ${on.clients.confidential.id}\n`));
    expect(stream, 'whom it concerns').not.to.include(member.accountId);
    if (node !== on.service) await node.close();
  });

  it('is another one than the block of the organization, and each is undone separately', async () => {
    const client = on.clients.confidential.id;
    await owner.fillIn(pathOf('end', riga));
    await owner.fillIn(pathOf('end'));
    expect(await answerTo(token)).to.deep.equal([]);
    expect(await told(pathOf('end', riga))).to.include(said('organizations.already-blocked'));
    const asked = textOf((await owner.get(pathOf('let-in', riga))).html);
    expect(asked).to.include(said('organizations.unblock-still-blocked', { organization: 'Northern Logistics' }));
    await owner.fillIn(pathOf('let-in'));
    expect(await warehousesOf(token)).to.deep.equal([hamburg]);
    await owner.fillIn(pathOf('end'));
    await owner.fillIn(pathOf('let-in', riga));
    expect(await answerTo(token)).to.deep.equal([]);
    const { blocked, warehouses } = await on.service.access.clientBlocks.of(client);
    expect([blocked.size, warehouses.size]).to.deep.equal([1, 0]);
    await owner.fillIn(pathOf('let-in'));
    expect(await warehousesOf(token)).to.deep.equal([riga, hamburg].sort());
    expect(await told(pathOf('let-in', riga))).to.include(said('organizations.already-unblocked'));
  });

  it('is said on the page of the organization, at consent and on the connection, and stays in view', async () => {
    const here = page(`?warehouse=${riga}`);
    expect((await owner.get(here)).html).to.include(`href="${pathOf('end', riga)}"`);
    const asked = textOf((await owner.get(pathOf('end', riga))).html);
    expect(asked)
      .to.include(said('organizations.block-heading', { app: 'Route Planner', organization: 'Riga' }))
      .and.include(said('organizations.block-only-there'));
    const done = await owner.follow(await owner.submit(await owner.get(pathOf('end', riga)), {}));
    expect(done.url.search).to.equal(`?warehouse=${riga}`);
    expect(textOf(done.html)).to.include(said('organizations.blocked', { app: 'Route Planner', place: 'Riga' }));
    expect((await owner.get(here)).html)
      .to.include(`href="${pathOf('let-in', riga)}"`)
      .and.include('>blocked<');
    const app = await owner.get(page(`/clients/${on.clients.confidential.id}`));
    expect(textOf(app.html)).to.match(/Riga blocked Blocked on .* by Olga Owner/);
    const throughWhom = textOf(app.html.split('id="people"').at(-1) ?? '');
    expect(throughWhom, 'through a person it no longer accesses Riga').to.match(/Mona Member Access \w+/);
    expect(throughWhom).to.not.include('Riga');
    expect((await owner.get(page(`?warehouse=${hamburg}`))).html).to.include(`href="${pathOf('end', hamburg)}"`);
    expect(textOf((await owner.get(page())).html)).to.include('blocked in Riga');

    const sentence = /Blocked in Riga \(\s?Northern Logistics\s?\) by an owner or admin/;
    const consent = await member.open(authorizationUrl(on.issuer, on.clients.confidential, { prompt: 'consent' }));
    expect(textOf(consent.html)).to.match(sentence);
    expect(consent.html).to.not.include(`value="${riga}"`);
    expect(textOf((await member.get('/profile/connections')).html)).to.match(sentence);
    // A user without access to Riga does not learn that there is one.
    const other = await join('Otto Other', 'member');
    const unaware = await other.open(authorizationUrl(on.issuer, on.clients.confidential, { prompt: 'consent' }));
    expect(unaware.html).to.not.include('Riga');
    await owner.fillIn(pathOf('let-in', riga));
  });

  it('does not follow to other clients of the developer with the same redirect host', async () => {
    await owner.fillIn(pathOf('end', riga));
    const later = await addTestClient(on.service, 'A later app', { ownerAccountId: on.seeded.other.accountId });
    expect(await warehousesOf(await connect(member, later))).to.deep.equal([riga, hamburg].sort());
    await owner.fillIn(pathOf('let-in', riga));
  });

  it('also ends what a machine client reaches there, and stays in view', async () => {
    const { machine } = on.clients;
    for (const id of [riga, hamburg]) await on.service.memberships.setRights({ clientId: machine.id }, id, ['read']);
    const value = tokensOf(await clientCredentials(on.issuer, machine)).accessToken;
    await eventually(async () => expect(await warehousesOf(value)).to.deep.equal([riga, hamburg].sort()));
    await owner.fillIn(pathOf('end', riga, machine.id));
    expect(await warehousesOf(value)).to.deep.equal([hamburg]);
    expect((await owner.get(page(`?warehouse=${riga}`))).html).to.include(
      `href="${pathOf('let-in', riga, machine.id)}"`,
    );
    expect(textOf((await owner.get(page('?show=machines'))).html)).to.include('blocked in Riga');
    await owner.fillIn(pathOf('end', undefined, machine.id));
    expect(await answerTo(value)).to.deep.equal([]);
    await owner.fillIn(pathOf('let-in', undefined, machine.id));
    await owner.fillIn(pathOf('let-in', riga, machine.id));
    expect(await warehousesOf(value)).to.deep.equal([riga, hamburg].sort());
  });

  it('is lost when the warehouse moves to another organization, also while the move is in progress', async () => {
    const { organizations, access, database } = on.service;
    await organizations.edit('organization', orgId(), { externalId: 'HERE' });
    await organizations.edit('organization', on.seeded.elsewhere.id, { externalId: 'THERE' });
    const { id } = await organizations.addWarehouse({ organizationId: orgId(), name: 'Moving', externalId: 'MOVING' });
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

  it('can be set only by owners and admins of the organization, in a warehouse of their own', async () => {
    const elsewhere = await on.service.organizations.addWarehouse({
      organizationId: on.seeded.elsewhere.id,
      name: 'Foreign',
    });
    const plain = await join('Petra Plain', 'member');
    expect((await plain.get(pathOf('end', riga))).status).to.equal(404);
    expect(await told(pathOf('end', elsewhere.id))).to.include(said('organizations.already-blocked'));
    expect(await on.service.database.query('SELECT FROM barred_in_warehouses')).to.deep.equal([]);
  });

  it('is set, shown and undone by the operator', async () => {
    const run = operatorFor(on.service);
    const client = on.clients.confidential.id;
    const ids = `${orgId()} ${client} --warehouse ${riga}`;
    expect(await valueFrom(run, `organizations block ${ids}`)).to.deep.equal({
      id: `${riga}/${client}`,
      organization_id: orgId(),
      warehouse_id: riga,
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
    await eventually(async () => expect(await warehousesOf(token)).to.deep.equal([riga, hamburg].sort()));
  });
});
