import { expect } from 'chai';
import pg from 'pg';
import { partnerTokens } from '../provider/partner-tokens.ts';
import { eventually } from '../support/eventually.ts';
import { authorizationUrl, introspect, refresh, type TestClient } from '../support/oauth.ts';
import { addPerson, addTestClient } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import type { Overrides } from '../support/service.ts';
import { said, textOf } from './client-owner.ts';
import { type SignedInPerson, signedIn } from './signed-in-person.ts';

const PATH = '/profile/connections';
const SUPPORT = 'https://www.acme.example/help';
const UNUSED = '1 app has not been used for 90 days.';

/** @returns the statements that this process sends to PostgreSQL meanwhile. */
async function statementsDuring(work: () => Promise<unknown>): Promise<string[]> {
  const sent: string[] = [];
  const { query } = pg.Client.prototype;
  pg.Client.prototype.query = function watched(this: pg.Client, ...given: never) {
    const [asked] = given as [string | { readonly text: string }];
    sent.push(typeof asked === 'string' ? asked : asked.text);
    return (query as (...given: never) => never).apply(this, given);
  } as typeof query;
  await work().finally(() => {
    pg.Client.prototype.query = query;
  });
  return sent;
}

describe('the connections page', () => {
  let found: Overrides = {};
  const on = startSeeded({ reloaded: () => found });
  let person: SignedInPerson;

  before(async () => {
    person = await signedIn(on.service, on.seeded.person);
  });
  afterEach(() => person.send(`${PATH}/disconnect-all`));

  const connect = (client: TestClient, parameters = {}, who = person) =>
    partnerTokens(on.issuer, on.seeded, who).tokens(client, parameters);
  const isActive = (token: string) => on.partner.isActive(token);
  const pathOf = ({ id }: TestClient, more = ''): string => `${PATH}/${id}${more}`;
  const textAt = async (path: string, who = person): Promise<string> => textOf((await who.get(path)).html);

  it('the connections page lists each client once, with its provider, even if authorized twice', async () => {
    const { confidential, otherConfidential } = on.clients;
    await connect(confidential);
    await connect(confidential);
    await connect(otherConfidential);
    const text = await textAt(PATH);
    expect(text.match(/Route Planner Made by/g)).to.have.length(1);
    expect(text).to.include('Route Planner Made by Oscar Other');
    expect(text).to.include('Stock Reports Made by the operator of this service');
    expect(text).to.include('your 1 warehouse in 1 organization .').and.include('Last used Never');
  });

  it('the last use of a connection is the last introspection by a resource server, not by the client itself', async () => {
    const { confidential } = on.clients;
    const { accessToken: access } = await connect(confidential);
    await introspect(on.issuer, confidential, access);
    await on.service.lastUsed.flush();
    expect(await textAt(PATH)).to.include('Last used Never');
    await isActive(access);
    await on.service.lastUsed.flush();
    expect((await person.get(PATH)).html).to.match(/Last used<\/dt><dd><time datetime="20/);
  });

  it('the page of a connection shows what the client can access now', async () => {
    const { memberships, organizations } = on.service;
    const { confidential } = on.clients;
    const pat = await addPerson(on.service, 'Pat', 'pat@example.test');
    const subject = { accountId: pat.accountId };
    const organizationId = on.seeded.organization.id;
    await memberships.setRole(subject, organizationId, 'member');
    await memberships.setRights(subject, on.seeded.warehouse.id, ['read', 'write']);
    const newcomer = await signedIn(on.service, pat);
    const text = () => textAt(pathOf(confidential), newcomer);
    await connect(confidential, {}, newcomer);
    expect(await text()).to.include('Rotterdam see, change');

    const riga = await organizations.addWarehouse({ organizationId, name: 'Riga' });
    await memberships.setRights(subject, riga.id, ['read']);
    await memberships.setRights(subject, on.seeded.warehouse.id, ['read']);
    await eventually(async () => {
      expect(await text()).to.match(/Riga see .*Rotterdam see /);
    });
    await memberships.remove(subject, organizationId);
    await eventually(async () => {
      expect(await text()).to.not.include('Northern Logistics member');
    });
    await connect(confidential, { prompt: 'consent' }, newcomer);
    expect(await text()).to.include(said('connection.approved'));
  });

  it('disconnecting a client ends all its authorizations at the next introspection, and deletes the consent', async () => {
    const { confidential, otherConfidential } = on.clients;
    const tokens = [await connect(confidential), await connect(confidential)];
    const others = await connect(otherConfidential);
    const asked = await person.get(pathOf(confidential, '/disconnect'));
    expect(textOf(asked.html)).to.include(said('connections.disconnect-one-heading', { app: 'Route Planner' }));
    expect(await isActive(tokens[0]?.accessToken ?? '')).to.equal(true);

    const list = await person.follow(await person.submit(asked, {}));
    expect(textOf(list.html)).to.include(said('connections.one-disconnected'));
    expect(textOf(list.html)).not.to.include('Route Planner');
    for (const { accessToken, refreshToken } of tokens) {
      expect(await isActive(accessToken)).to.equal(false);
      expect(await refresh(on.issuer, confidential, refreshToken)).to.include({ status: 400 });
    }
    expect(await isActive(others.accessToken)).to.equal(true);

    const silent = authorizationUrl(on.issuer, confidential, { prompt: 'none' });
    const answer = await person.authorize(silent, on.seeded.person);
    expect(answer.searchParams.get('error')).to.equal('consent_required');
  });

  it('the connections page suggests disconnecting apps unused for 90 days, and can list only these apps', async () => {
    const { confidential, otherConfidential } = on.clients;
    await connect(confidential);
    await connect(otherConfidential);
    const ago = (days: number | null, client: TestClient) =>
      on.service.database.query(
        `UPDATE connections SET connected_at = now() - interval '200 days', approved_at = now() - interval '200 days',
          last_used_at = now() - $2 * interval '1 day' WHERE client_id = $1`,
        [client.id, days],
      );
    await ago(89, confidential);
    await ago(89, otherConfidential);
    expect(await textAt(PATH)).to.not.include(UNUSED);
    for (const days of [null, 91]) {
      await ago(days, confidential);
      expect(await textAt(PATH), `last used ${days} days ago`).to.include(UNUSED);
    }
    expect((await person.get(PATH)).html).to.include(`href="${PATH}?only=unused"`);
    expect(await textAt(`${PATH}?only=unused`))
      .to.include('Route Planner')
      .and.not.include('Stock Reports')
      .and.not.include(UNUSED);
    expect((await person.get(`${PATH}?only=unused`)).html, 'the way to all apps').to.include(`href="${PATH}">All</a>`);
    const question = await person.get(pathOf(confidential, '/disconnect?only=unused'));
    expect(question.html).to.include(`href="${PATH}?only=unused"`);
    // A new approval is wanted, whenever the app was used before.
    await on.service.database.query('UPDATE connections SET approved_at = now() WHERE client_id = $1', [
      confidential.id,
    ]);
    expect(await textAt(PATH)).to.not.include(UNUSED);
    await ago(91, confidential);
    expect((await person.get(`${PATH}?only=unused`)).html).to.include(`${confidential.id}/disconnect?only=unused"`);
    const { location } = await person.submit(question, {});
    expect(`${location?.pathname}${location?.search}`).to.equal(`${PATH}?only=unused`);
  });

  it('the first view of the page runs few database statements, even for a user with many connections', async () => {
    const { service } = on;
    const who = await addPerson(service, 'Mia Many', 'mia@example.test');
    await service.database.query(
      `WITH many AS (
          INSERT INTO clients (id, kind, name, redirect_uris, native, created_at, updated_at)
            SELECT 'gate_ci_many' || lpad(n::text, 18, '0'), 'confidential', 'Many ' || n,
              '{https://many.example/}', false, now(), now() FROM generate_series(1, 60) n RETURNING id)
        INSERT INTO connections (account_id, client_id, connected_at, approved_at, consented_name, consented_hosts)
          SELECT $1, id, now(), now(), 'Many', '{}' FROM many`,
      [who.accountId],
    );
    const mia = await signedIn(service, who);
    await mia.get('/profile/activity');
    const sent = await statementsDuring(() => mia.get(PATH).then(({ status }) => expect(status).to.equal(200)));
    // Not those of jobs that run at this moment.
    const ofPage = sent.filter((text) => /\b(accounts|connections|barred_clients)\b/.test(text));
    expect(ofPage.length, ofPage.join('\n')).to.be.within(1, 6);
  });

  it('the consent page and the page of a connection link to the operator for problems with the app', async () => {
    const app = await addTestClient(on.service, 'Parcel Maps');
    const request = authorizationUrl(on.issuer, app);
    const consent = await person.open(request);
    const plain = 'Something wrong with this app? Tell the operator of this service';
    expect(textOf(consent.html)).to.include(plain);
    await person.follow(await person.submit(consent, { decision: 'approve' }));
    const path = `/profile/connections/${app.id}`;
    expect(textOf((await person.get(path)).html)).to.include(plain);
    found = { brand: { support: SUPPORT } };
    await on.service.reload();
    const link =
      `Something wrong with this app? <a href="${SUPPORT}" target="_blank" ` +
      'rel="noopener noreferrer"><bdi>Tell the operator of this service</bdi></a>';
    const again = await person.open(new URL(`${request}&prompt=consent`));
    for (const { html } of [again, await person.get(path)]) expect(html).to.include(link);
    found = {};
    await on.service.reload();
  });

  it('the consent page warns of a new client, but not of a client that the operator provides', async () => {
    const asked = async (of: TestClient): Promise<string> =>
      textOf((await person.open(authorizationUrl(on.issuer, of, { prompt: 'consent' }))).html);
    const owned = await addTestClient(on.service, 'Free Maps', { ownerAccountId: on.seeded.other.accountId });
    expect(await asked(owned)).to.include(
      'Do you know this app? Approve the app only if you expected its request. ' +
        'Registered today · connected by no one yet · not checked by the operator',
    );
    const provided = await asked(on.clients.otherConfidential);
    expect(provided).to.include('Registered today · connected by no one yet');
    expect(provided).to.not.include('Do you know').and.not.include('checked by');
  });
});
