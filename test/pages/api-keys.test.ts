import { expect } from 'chai';
import { describeInBrowser } from '../support/browser.ts';
import { createTestClock, type TestClock } from '../support/clock.ts';
import { introspect } from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { type Seed, seed } from '../support/seed.ts';
import { forEachDeployment, startTestService, type TestService } from '../support/service.ts';
import { textOf } from './client-owner.ts';
import { type SignedInPerson, signedIn } from './signed-in-person.ts';

const PATH = '/profile/api-keys';
const DAY = 86_400;
const HOSTILE = `<img src=x onerror=alert(1)>"'&<%= 1 %>`;

/** The value that the page for a new key shows. */
const valueOn = (html: string): string => /<code data-secret[^>]*>([^<]*)</.exec(html)?.[1] ?? '';

forEachDeployment('the page of API keys', (start) => {
  let service: TestService;
  let seeded: Seed;
  let person: SignedInPerson;
  let time: TestClock;

  before(async () => {
    time = createTestClock();
    service = await start({ clock: time.clock, settings: { limits: { apiKeysPerPerson: 3 } } });
    seeded = await seed(service);
  });
  beforeEach(async () => {
    await service.database.query('DELETE FROM api_keys');
    person = await signedIn(service, seeded.person);
  });
  after(() => time.restore());

  const create = async (name = 'Export', expires_in_days = '30') => {
    const page = await person.fillIn(PATH, { name, expires_in_days });
    return { page, value: valueOn(page.html) };
  };
  const ask = async (value: string) =>
    (await introspect(service.issuer, seeded.clients.resourceServer, value)).body;
  const keys = () => service.apiKeys.listOf(seeded.person.accountId);

  it('is for who is signed in, and leads there', async () => {
    const stranger = createPerson(service.issuer);
    const page = await stranger.get(PATH);
    expect(page.status).to.equal(303);
    expect(page.location?.searchParams.get('return_to')).to.equal(PATH);
  });

  it('says what a key is for while there is none', async () => {
    const { html } = await person.get(PATH);
    expect(textOf(html)).to.include('You have no API keys.').and.include('Create an API key');
    expect(html).to.match(/value="90"[^>]*checked/);
  });

  it('a new key is shown once, then only its beginning and its end', async () => {
    const { page, value } = await create('Nightly export', '90');
    expect(page.url.pathname).to.equal(`${PATH}/created`);
    expect(page.headers.get('cache-control')).to.equal('no-store');
    expect(value).to.match(/^gate_key_[\w-]{43}$/);
    expect(textOf(page.html)).to.include('Nightly export').and.include('It is not shown again.');

    const again = await person.get(page.url);
    expect(again.status).to.equal(200);
    expect(again.html).not.to.include(value);
    expect(textOf(again.html)).to.include('was shown already');
    const list = await person.get(PATH);
    expect(list.html)
      .to.include(`gate_key_…${value.slice(-4)}`)
      .and.not.include(value);
    expect(textOf(list.html)).to.match(/Nightly export .* Last used Never/);
    expect(service.logLines.join()).not.to.include(value);
  });

  it('a new key is shown to its person only, and not after five minutes', async () => {
    const sent = await person.send(PATH, { name: 'x', expires_in_days: '30' });
    const other = await signedIn(service, seeded.other);
    expect((await other.get(sent.location ?? '')).html).not.to.include('gate_key_');
    const late = await person.send(PATH, { name: 'x', expires_in_days: '30' });
    time.advance(301);
    expect(valueOn((await person.get(late.location ?? '')).html)).to.equal('');
  });

  it('a look at the headers alone does not use the page up', async () => {
    const sent = await person.send(PATH, { name: 'x', expires_in_days: '30' });
    const headers = { cookie: person.cookieHeader(PATH) };
    await fetch(sent.location ?? '', { method: 'HEAD', headers });
    expect(valueOn((await person.get(sent.location ?? '')).html)).to.match(/^gate_key_/);
  });

  it('the key acts for its person from now on, and no longer once it is revoked', async () => {
    const { value } = await create();
    expect(await ask(value)).to.include({ active: true, username: seeded.person.email });
    const [key] = await keys();
    const asked = await person.get(`${PATH}/${key?.id}/revoke`);
    expect(textOf(asked.html)).to.include('Revoke Export ?');
    expect(await ask(value)).to.include({ active: true });
    const list = await person.follow(await person.submit(asked, {}));
    expect(textOf(list.html)).to.include('The key is revoked');
    expect(await ask(value)).to.deep.equal({ active: false });
    expect(await keys()).to.deep.equal([]);
  });

  it('the times a key may live are those of the form', async () => {
    for (const choice of ['30', '90', '365', 'none']) {
      await service.database.query('DELETE FROM api_keys');
      await create('Export', choice);
      const [key] = await keys();
      const days = key?.expiresAt && (key.expiresAt.getTime() - time.clock()) / 1000 / DAY;
      expect(days, choice).to.equal(choice === 'none' ? undefined : Number(choice));
    }
    for (const choice of ['0', '-1', '31', '1e3', '999999', 'never', '30 ']) {
      const refused = await person.send(PATH, { name: 'Export', expires_in_days: choice });
      expect(refused.status, choice).to.equal(422);
    }
    expect((await person.send(PATH, { name: 'Export' })).status).to.equal(422);
  });

  it('what is wrong is said beside its field, and what was typed is kept', async () => {
    const refused = await person.send(PATH, { name: 'x'.repeat(101), expires_in_days: '365' });
    expect(refused.status).to.equal(422);
    expect(refused.html).to.match(/<a href="#name">Give the key a name/);
    expect(refused.html).to.match(/id="name-problem"/);
    expect(refused.html).to.match(/<input id="name"[^>]*aria-describedby="[^"]*name-problem"/s);
    expect(refused.html).to.include('x'.repeat(101));
    expect(refused.html).to.match(/value="365"[^>]*checked/);
    expect(await keys()).to.deep.equal([]);
  });

  it('at the limit there is no form, and one sent by hand is refused in words', async () => {
    for (let made = 0; made < 3; made += 1) await create();
    expect((await person.get(PATH)).html).not.to.include('Create an API key');
    const refused = await person.send(PATH, { name: 'Fourth', expires_in_days: '30' });
    expect(refused.status).to.equal(422);
    expect(textOf(refused.html)).to.include('You have 3 API keys, which is as many');
    expect(await keys()).to.have.length(3);
  });

  it('an expired key is shown as expired and makes room', async () => {
    for (let made = 0; made < 3; made += 1) await create('Old', '30');
    time.advance(30 * DAY);
    person = await signedIn(service, seeded.person);
    const { html } = await person.get(PATH);
    expect(textOf(html)).to.include('Expired').and.include('Create an API key');
  });

  it('a key belongs to who is signed in, whatever the form says', async () => {
    const { accountId } = seeded.other;
    await person.send(PATH, {
      ...{ name: 'Mine', expires_in_days: '30', account_id: accountId, owner: accountId },
      ...{ id: 'key_0123456789abcdef', key_hash: 'x', expires_at: '2099-01-01' },
    });
    expect(await service.apiKeys.listOf(accountId)).to.deep.equal([]);
    expect((await keys()).map(({ name }) => name)).to.deep.equal(['Mine']);
  });

  it('another person’s key is 404 on every verb, and nothing changes', async () => {
    await create('Mine');
    const [key] = await keys();
    const other = await signedIn(service, seeded.other);
    for (const path of [`${PATH}/${key?.id}/revoke`, `${PATH}/key_0000000000000000/revoke`]) {
      expect((await other.get(path)).status, path).to.equal(404);
      expect((await other.send(path)).status, path).to.equal(404);
    }
    expect(textOf((await other.get(PATH)).html)).not.to.include('Mine');
    expect(await keys()).to.have.length(1);
  });

  it('nothing is made or revoked from elsewhere, without the form’s token or by a link', async () => {
    await create();
    const [key] = await keys();
    const revoke = `${PATH}/${key?.id}/revoke`;
    const fields = { name: 'Planted', expires_in_days: '30' };
    const elsewhere = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' };
    for (const [path, values] of [
      [PATH, fields],
      [revoke, {}],
    ] as const) {
      expect((await person.send(path, values, elsewhere)).status).to.equal(403);
      expect((await person.send(path, { ...values, form_token: 'x' })).status).to.equal(403);
      expect((await person.post(path, values)).status).to.equal(403);
    }
    await person.get(`${PATH}?${new URLSearchParams(fields)}`);
    expect(await keys()).to.have.length(1);
  });

  it('an old sign-in is asked for the password again, and what was typed goes along', async () => {
    time.advance(601);
    const asked = await person.fillIn(PATH, { name: HOSTILE, expires_in_days: '365' });
    expect(textOf(asked.html)).to.include('Confirm it is you');
    expect(await keys()).to.deep.equal([]);
    const wrong = await person.submit(asked, { current_password: 'not this one, no' });
    expect(wrong.status).to.equal(401);
    expect(await keys()).to.deep.equal([]);
    const right = await person.submit(wrong, { current_password: seeded.person.password });
    expect(valueOn((await person.follow(right)).html)).to.match(/^gate_key_/);
    expect((await keys()).map(({ name }) => name)).to.deep.equal([HOSTILE]);
    // Now the sign-in is recent again.
    expect((await create()).value).to.match(/^gate_key_/);
  });

  it('an old sign-in is asked for the password again before a key is revoked, too', async () => {
    await create();
    const [key] = await keys();
    time.advance(601);
    const asked = await person.fillIn(`${PATH}/${key?.id}/revoke`);
    expect(textOf(asked.html)).to.include('Confirm it is you');
    expect(await keys()).to.have.length(1);
    await person.submit(asked, { current_password: seeded.person.password });
    expect(await keys()).to.deep.equal([]);
  });

  it('a name is shown as text, wherever it stands', async () => {
    const { page } = await create(HOSTILE);
    const [key] = await keys();
    const list = await person.get(PATH);
    const confirm = await person.get(`${PATH}/${key?.id}/revoke`);
    for (const { html } of [page, list, confirm]) {
      expect(html).to.include('&lt;img src=x onerror=alert(1)&gt;').and.not.include('<img');
    }
  });

  it('its last use is shown', async () => {
    const { value } = await create();
    await ask(value);
    await service.lastUsed.flush();
    const { html } = await person.get(PATH);
    expect(html).to.match(/Last used<\/dt><dd><time datetime="20/);
  });
});

describeInBrowser('API keys in a browser', (visit) => {
  let service: TestService;
  let seeded: Seed;

  before(async () => {
    service = await startTestService();
    seeded = await seed(service);
  });
  after(() => service.close());

  for (const javaScript of [true, false]) {
    it(`a person makes a key, uses it and revokes it, ${javaScript ? 'with' : 'without'} JavaScript`, async () => {
      const { page, problems } = await visit({ javaScript });
      await page.goto(`${service.issuer}${PATH}`);
      await page.getByLabel('Email address').fill(seeded.person.email);
      await page.getByLabel('Password', { exact: true }).fill(seeded.person.password);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByLabel('Name').fill('Night export');
      await page.getByLabel('365 days').check();
      await page.getByRole('button', { name: 'Create API key' }).click();
      const value = (await page.locator('[data-secret]').textContent()) ?? '';
      const { resourceServer } = seeded.clients;
      expect((await introspect(service.issuer, resourceServer, value)).body.active).to.equal(true);

      await page.getByRole('link', { name: 'I have copied it' }).click();
      await page.getByRole('heading', { name: 'API keys' }).waitFor();
      await page.goBack();
      expect(await page.content()).not.to.include(value);
      await page.goForward();

      await page.getByRole('link', { name: 'Revoke Night export' }).click();
      await page.getByRole('button', { name: 'Revoke' }).click();
      await page.getByRole('status').filter({ hasText: 'The key is revoked' }).waitFor();
      expect((await introspect(service.issuer, resourceServer, value)).body.active).to.equal(false);
      expect(problems).to.deep.equal([]);
    });
  }
});
