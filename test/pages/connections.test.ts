import { expect } from 'chai';
import { describeInBrowser } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import {
  authorizationUrl,
  exchangeCode,
  introspect,
  refresh,
  type TestClient,
} from '../support/oauth.ts';
import { startPartner } from '../support/partner.ts';
import { createPerson } from '../support/person.ts';
import { addPerson, REDIRECT_URI, type Seed, type SeededPerson, seed } from '../support/seed.ts';
import { forEachDeployment, startTestService, type TestService } from '../support/service.ts';
import { textOf } from './client-owner.ts';
import { type SignedInPerson, signedIn } from './signed-in-person.ts';

const PATH = '/profile/connections';

forEachDeployment('the page of connections', (start) => {
  let service: TestService;
  let seeded: Seed;
  let credentials: SeededPerson;
  let person: SignedInPerson;
  let people = 0;

  before(async () => {
    service = await start();
    seeded = await seed(service);
  });
  beforeEach(async () => {
    people += 1;
    credentials = await addPerson(service, 'Pat', `pat-${people}@example.test`);
    const { memberships } = service;
    const subject = { accountId: credentials.accountId };
    await memberships.setRole(subject, seeded.organization.id, 'member');
    await memberships.setRights(subject, seeded.warehouse.id, ['read', 'write']);
    person = await signedIn(service, credentials);
  });

  async function connect(client: TestClient, parameters = {}) {
    const url = authorizationUrl(service.issuer, client, parameters);
    const answer = await person.authorize(url, credentials);
    const code = answer.searchParams.get('code') ?? '';
    const { body } = await exchangeCode(service.issuer, client, code);
    return { access: String(body.access_token), refresh: String(body.refresh_token) };
  }
  const isActive = async (token: string): Promise<unknown> =>
    (await introspect(service.issuer, seeded.clients.resourceServer, token)).body.active;
  const pathOf = ({ id }: TestClient, more = ''): string => `${PATH}/${id}${more}`;
  const textAt = async (path: string): Promise<string> => textOf((await person.get(path)).html);

  it('is for who is signed in, and leads there', async () => {
    const page = await createPerson(service.issuer).get(PATH);
    expect(page.location?.searchParams.get('return_to')).to.equal(PATH);
  });

  it('says what will be here while there is nothing', async () => {
    expect(await textAt(PATH))
      .to.include('Nothing acts for you.')
      .and.not.include('Disconnect all');
  });

  it('lists each client once, however often it was authorized, with who provides it', async () => {
    const { confidential, otherConfidential } = seeded.clients;
    await connect(confidential);
    await connect(confidential);
    await connect(otherConfidential);
    const text = await textAt(PATH);
    expect(text.match(/Route Planner Provided by/g)).to.have.length(1);
    expect(text).to.include('Route Planner Provided by Oscar Other');
    expect(text).to.include('Stock Reports Provided by the operator of this service');
    expect(text).to.include('1 organization, 1 warehouse').and.include('Last used Never');
  });

  it('shows when it was last used: asked for by a resource server, not by itself', async () => {
    const { confidential } = seeded.clients;
    const { access } = await connect(confidential);
    await introspect(service.issuer, confidential, access);
    await service.lastUsed.flush();
    expect(await textAt(PATH)).to.include('Last used Never');
    await isActive(access);
    await service.lastUsed.flush();
    expect((await person.get(PATH)).html).to.match(/Last used<\/dt><dd><time datetime="20/);
  });

  it('shows what it reaches now, and what changed since it was approved', async () => {
    const { memberships, organizations } = service;
    const { confidential } = seeded.clients;
    const subject = { accountId: credentials.accountId };
    await connect(confidential);
    expect(await textAt(pathOf(confidential))).to.include('The same as when you approved it.');

    const organizationId = seeded.organization.id;
    const riga = await organizations.addWarehouse({ organizationId, name: 'Riga' });
    await memberships.setRights(subject, riga.id, ['read']);
    await memberships.setRights(subject, seeded.warehouse.id, ['read']);
    await memberships.setRole(subject, seeded.elsewhere.id, 'admin');
    await eventually(async () => {
      expect(await textAt(PATH)).to.include('2 added, 1 changed');
    });
    const text = await textAt(pathOf(confidential));
    expect(text).to.match(/Elsewhere Storage admin added/);
    expect(text).to.match(/Riga added read .*Rotterdam was read, write read/);

    await memberships.remove(subject, organizationId);
    await eventually(async () => {
      expect(await textAt(pathOf(confidential))).to.match(/Northern Logistics member no longer/);
    });
    // Approved anew, the person has seen it.
    await connect(confidential, { prompt: 'consent' });
    expect(await textAt(pathOf(confidential))).to.include('The same as when you approved it.');
    expect(await textAt(pathOf(confidential))).to.include('Last approved');
  });

  it('disconnecting ends every grant at the next introspection, and the consent is forgotten', async () => {
    const { confidential, otherConfidential } = seeded.clients;
    const tokens = [await connect(confidential), await connect(confidential)];
    const others = await connect(otherConfidential);
    const asked = await person.get(pathOf(confidential, '/disconnect'));
    expect(textOf(asked.html)).to.include('Disconnect Route Planner ?');
    expect(await isActive(tokens[0]?.access ?? '')).to.equal(true);

    const list = await person.follow(await person.submit(asked, {}));
    expect(textOf(list.html)).to.include('Disconnected: every access it had is over');
    expect(textOf(list.html)).not.to.include('Route Planner');
    for (const { access, refresh: refreshToken } of tokens) {
      expect(await isActive(access)).to.equal(false);
      expect(await refresh(service.issuer, confidential, refreshToken)).to.include({ status: 400 });
    }
    expect(await isActive(others.access)).to.equal(true);

    const silent = authorizationUrl(service.issuer, confidential, { prompt: 'none' });
    const answer = await person.authorize(silent, credentials);
    expect(answer.searchParams.get('error')).to.equal('consent_required');
  });

  it('disconnecting all ends all of one’s own, and of nobody else', async () => {
    const { confidential, otherConfidential } = seeded.clients;
    const mine = [await connect(confidential), await connect(otherConfidential)];
    const [mineOnly, myself] = [person, credentials];
    credentials = seeded.other;
    person = await signedIn(service, credentials);
    const theirs = await connect(confidential);
    [person, credentials] = [mineOnly, myself];

    const list = await person.fillIn(`${PATH}/disconnect-all`);
    expect(textOf(list.html)).to.include('Everything is disconnected').and.include('Nothing acts');
    for (const { access } of mine) expect(await isActive(access)).to.equal(false);
    expect(await isActive(theirs.access)).to.equal(true);
  });

  it('each end is in the log, once', async () => {
    const { confidential } = seeded.clients;
    await connect(confidential);
    await person.fillIn(pathOf(confidential, '/disconnect'));
    await person.send(pathOf(confidential, '/disconnect'));
    const log = await service.activity.of(credentials.accountId, { limit: 10 });
    const ends = log.filter(({ action }) => action === 'disconnected');
    expect(ends).to.have.length(1);
    expect(ends[0]?.details).to.deep.equal({
      client_id: confidential.id,
      client_name: 'Route Planner',
    });
  });

  it('what one is not connected to is 404 on every verb, and nothing changes', async () => {
    const { confidential } = seeded.clients;
    const { access } = await connect(confidential);
    const other = await signedIn(service, await addPerson(service, 'Eve', `eve-${people}@e.test`));
    const paths = [pathOf(confidential), `${PATH}/gate_ci_0000000000000000000000`, `${PATH}/x`];
    for (const path of paths.flatMap((path) => [path, `${path}/disconnect`])) {
      expect((await other.get(path)).status, path).to.equal(404);
      const sent = await other.send(path);
      expect(sent.status, path).to.equal(path.endsWith('/disconnect') ? 404 : 405);
    }
    await other.send(pathOf(confidential, '/disconnect'), { account_id: credentials.accountId });
    await other.send(`${PATH}/disconnect-all`, { account_id: credentials.accountId });
    expect(await isActive(access)).to.equal(true);
  });

  it('nothing ends from elsewhere, without the form’s token or by a link', async () => {
    const { confidential } = seeded.clients;
    const { access } = await connect(confidential);
    const elsewhere = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' };
    for (const path of [pathOf(confidential, '/disconnect'), `${PATH}/disconnect-all`]) {
      expect((await person.send(path, {}, elsewhere)).status).to.equal(403);
      expect((await person.post(path, {})).status).to.equal(403);
      await person.get(path);
    }
    expect(await isActive(access)).to.equal(true);
  });

  it('a suspended client is shown as such', async () => {
    const { confidential } = seeded.clients;
    await connect(confidential);
    await service.clients.suspend(confidential.id);
    expect(await textAt(PATH)).to.include('Route Planner suspended');
    expect(await textAt(pathOf(confidential))).to.include('It is suspended');
    await service.clients.resume(confidential.id);
  });

  it('a name is shown as text, wherever it stands', async () => {
    const { client, secret = '' } = await service.clients.add({
      ...{ kind: 'confidential', name: '<img src=x onerror=alert(1)>"\'', isNative: false },
      redirectUris: [REDIRECT_URI],
    });
    await connect({ id: client.id, secret, redirectUri: REDIRECT_URI });
    for (const path of [PATH, `${PATH}/${client.id}`, `${PATH}/${client.id}/disconnect`]) {
      const { html } = await person.get(path);
      expect(html, path).to.include('&lt;img src=x').and.not.include('<img');
    }
  });
});

describeInBrowser('connections in a browser', (visit) => {
  it('a person sees what they connected, ends it, and is asked again', async () => {
    const service = await startTestService();
    const partner = await startPartner();
    try {
      const seeded = await seed(service, { redirectUris: [partner.redirectUri] });
      const { person, clients } = seeded;
      const { page } = await visit();
      const url = authorizationUrl(service.issuer, clients.confidential).href;
      await page.goto(url);
      await page.getByLabel('Email address').fill(person.email);
      await page.getByLabel('Password', { exact: true }).fill(person.password);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByRole('button', { name: 'Approve' }).click();
      const code = (await partner.nextRedirect()).searchParams.get('code') ?? '';
      const { body } = await exchangeCode(service.issuer, clients.confidential, code);
      const ask = () =>
        introspect(service.issuer, clients.resourceServer, String(body.access_token));
      expect((await ask()).body.active).to.equal(true);

      await page.goto(`${service.issuer}/profile`);
      await page.getByRole('link', { name: '1 client acts for you' }).click();
      await page.getByRole('link', { name: 'Route Planner', exact: true }).click();
      await page.getByText('Rotterdam').waitFor();
      await page.getByRole('link', { name: 'Disconnect' }).click();
      await page.getByRole('button', { name: 'Disconnect' }).click();
      await page.getByRole('status').filter({ hasText: 'Disconnected' }).waitFor();
      expect((await ask()).body.active).to.equal(false);

      await page.goto(url);
      await page.getByRole('button', { name: 'Approve' }).waitFor();
    } finally {
      await partner.close();
      await service.close();
    }
  });
});
