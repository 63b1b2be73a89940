import { expect } from 'chai';
import { operatorFor } from '../../operator/run-operator.ts';
import type { TestClient } from '../../support/oauth.ts';
import type { Page } from '../../support/person.ts';
import { addTestClient } from '../../support/seed.ts';
import { startSeeded } from '../../support/seeded.ts';
import {
  type ClientOwner,
  isSecretValid,
  LIST,
  REDIRECT_URI,
  said,
  shownOn,
  signInOwner,
  textOf,
} from '../client-owner.ts';
import { fieldOf } from '../signed-in-person.ts';

describe('the page of an OAuth client', () => {
  const on = startSeeded({ clock: true, settings: { limits: { clientsPerPerson: 100 } } });
  let owner: ClientOwner;
  let client: Required<TestClient>;
  let path: string;

  before(async () => {
    owner = await signInOwner(on.service, on.seeded.person);
  });
  beforeEach(async () => {
    client = await owner.createClient('Stock Sync');
    path = `${LIST}/${client.id}`;
  });

  const stored = () => on.service.clients.find(client.id);
  const lastRecord = async () => (await on.service.activity.of(on.seeded.person.accountId, { limit: 1 }))[0];
  const section = async (id: string) => {
    const { html } = await owner.get(`${path}/${id}`);
    const [, text = ''] = new RegExp(`<h2 id="${id}">(.*?)</section>`, 's').exec(html) ?? [];
    return text;
  };
  async function rotate(): Promise<string> {
    // Move the clock: secrets created at the same moment have no order.
    on.clock.advance(1);
    const shown = await owner.follow(await owner.send(`${path}/rotate-secret`));
    return shownOn(shown).secret;
  }

  it('only the value yes or no changes the consent setting of a client; any other or missing value is ignored', async () => {
    const asks = async () => (await stored())?.alwaysAsks;
    for (const [choice, expected] of [
      [{ always_ask: 'yes' }, true],
      [{}, true],
      [{ always_ask: 'maybe' }, true],
      [{ always_ask: 'no' }, false],
    ] as const) {
      await owner.send(`${path}/settings/always-ask`, choice);
      expect(await asks(), JSON.stringify(choice)).to.equal(expected);
    }
  });

  it('an owner cannot switch off “always ask” if the operator has set it, even from an older page', async () => {
    const asks = async () => (await stored())?.alwaysAsks;
    await on.service.clients.setAlwaysAsks(client.id, true, 'operator');
    expect(textOf((await owner.get(`${path}/settings`)).html)).to.include('Only they can change it.');
    const refused = await owner.send(`${path}/settings/always-ask`, { always_ask: 'no' });
    expect(refused.status).to.equal(422);
    const { output } = await operatorFor(on.service)(`clients show ${client.id}`);
    expect(output).to.include('asked for each request, set by the operator');
    expect(textOf(refused.html)).to.include('The operator of this service has set this.');
    expect(await asks()).to.equal(true);
    await on.service.clients.setAlwaysAsks(client.id, false, 'operator');
    expect(await asks()).to.equal(false);
  });

  it('the settings form of a client changes its name and redirect URIs, and nothing else', async () => {
    const page = await owner.get(`${path}/settings`);
    const redirect_uris = ['https://new.example/cb', 'http://new.example/cb'];
    const saved = await owner.submit(page, { name: 'Renamed', redirect_uris });
    const drawn = await owner.follow(saved);
    expect(textOf(drawn.html)).to.include('The changes are saved.').and.include('unencrypted');
    expect(drawn.html).to.match(/<h1><bdi>Renamed</);
    const record = await lastRecord();
    expect(record).to.deep.include({
      action: 'client_changed',
      details: { client_id: client.id, client_name: 'Renamed', redirect_uris },
    });
    await owner.send(`${path}/settings`, {
      name: 'Renamed',
      redirect_uris,
      kind: 'machine',
      owner: on.seeded.other.accountId,
      scope: 'openid',
      grant_types: 'client_credentials',
      suspended: '',
    });
    expect(await stored()).to.deep.include({
      name: 'Renamed',
      redirectUris: redirect_uris,
      kind: 'confidential',
      ownerAccountId: on.seeded.person.accountId,
    });
    // The second request changed nothing, so no record was added.
    expect(await lastRecord()).to.deep.equal(record);
  });

  it('a refused settings form of a client keeps the entered values and changes nothing', async () => {
    const before = await stored();
    const redirect_uris = [REDIRECT_URI, 'https://Partner.example:443/x'];
    const page = await owner.send(`${path}/settings`, { name: '<b>', redirect_uris });
    expect(page.status).to.equal(422);
    expect(page.html).to.include('value="https://Partner.example:443/x"');
    expect(page.html).to.include('value="&lt;b&gt;"').and.include('<h1><bdi>Stock Sync<');
    expect(page.html).to.include('id="redirect-uri-2-problem"');
    const more = await owner.send(`${path}/settings`, { name: 'More', redirect_uris, more: '1' });
    expect(more.status).to.equal(200);
    expect(more.html.match(/name="redirect_uris"/g)).to.have.length(3);
    expect(await stored()).to.deep.equal(before);
  });

  it('after a rotation the old client secret works until it is removed', async () => {
    const second = await rotate();
    expect(second)
      .to.match(/^gate_cs_/)
      .and.not.equal(client.secret);
    expect(await lastRecord()).to.deep.include({
      action: 'client_secret_added',
      details: { client_id: client.id, client_name: 'Stock Sync', last_four: second.slice(-4) },
    });
    const newer = { ...client, secret: second };
    expect(await isSecretValid(on.issuer, client)).to.equal(true);
    expect(await isSecretValid(on.issuer, newer)).to.equal(true);

    const full = await owner.send(`${path}/rotate-secret`);
    expect(full.status).to.equal(422);
    expect(textOf(full.html)).to.include('The client already has 2 secrets.');
    const remove = (secret_id = '') => owner.send(`${path}/remove-secret`, { secret_id });
    expect(textOf((await owner.follow(await remove('sec_\0'))).html)).to.include(said('oauth-clients.no-such-secret'));
    const [first, last] = (await stored())?.secrets ?? [];
    const removed = await remove(first?.id);
    expect(textOf((await owner.follow(removed)).html)).to.include('The secret is removed.');
    expect(await isSecretValid(on.issuer, client)).to.equal(false);
    expect(await isSecretValid(on.issuer, newer)).to.equal(true);
    expect(await lastRecord()).to.deep.include({
      action: 'client_secret_removed',
      details: {
        client_id: client.id,
        client_name: 'Stock Sync',
        last_four: client.secret.slice(-4),
      },
    });
    expect((await remove(last?.id)).status).to.equal(422);
  });

  it('removing a client secret requires a confirmation, which shows when the secret was last used', async () => {
    const confirmationPage = async (id = '') => owner.get(`${path}/remove-secret?secret_id=${id}`);
    const [first] = (await stored())?.secrets ?? [];
    expect((await confirmationPage(first?.id)).location?.pathname).to.equal(`${path}/secrets`);
    await rotate();
    const [link] = /[^"]*remove-secret[^"]*/.exec((await section('secrets')).split('…')[2] ?? '') ?? [];
    expect(link).to.equal(`${path}/remove-secret?secret_id=${first?.id}`);
    const ending = client.secret.slice(-4);
    const page = await confirmationPage(first?.id);
    expect(textOf(page.html)).to.include(`Remove the secret ending in ${ending} of Stock Sync?`);
    expect(textOf(page.html)).to.match(/gate_cs_…\S{4} was created on .* and never used/);
    on.service.lastUsed.record('client_secret', first?.id ?? '');
    await on.service.lastUsed.flush();
    const used = textOf((await confirmationPage(first?.id)).html);
    expect(used).to.match(/gate_cs_…\S{4} was last used on \d+ \w+ 20\d\d, \d\d:\d\d UTC/);
    expect((await stored())?.secrets).to.have.length(2);
    const unknown = await owner.follow(await confirmationPage('sec_0000000000000000'));
    expect(textOf(unknown.html)).to.include(said('oauth-clients.no-such-secret'));
    await owner.follow(await owner.submit(page, { secret_id: first?.id ?? '' }));
    expect((await stored())?.secrets).to.have.length(1);
  });

  it('a client’s page shows each secret’s last use, and calls an old secret safe to remove after a day without use', async () => {
    const second = { ...client, secret: await rotate() };
    const rows = async () =>
      textOf(await section('secrets'))
        .split('gate_cs_…')
        .slice(1);
    const isFirst = (row: string) => row.startsWith(client.secret.slice(-4));
    const firstRow = async () => (await rows()).find(isFirst);
    const secondRow = async () => (await rows()).find((row) => !isFirst(row));
    expect(await firstRow())
      .to.match(/Last used Never/)
      .and.not.match(/safe to remove/);

    await isSecretValid(on.issuer, client);
    await on.service.lastUsed.flush();
    expect(await firstRow()).to.match(/Last used \d/);
    expect(textOf((await owner.get(path)).html)).to.match(/Last used \d/);
    on.clock.advance(86_399);
    await isSecretValid(on.issuer, second);
    await on.service.lastUsed.flush();
    owner = await signInOwner(on.service, on.seeded.person);
    expect(await firstRow()).not.to.match(/safe to remove/);
    on.clock.advance(1);
    expect(await firstRow()).to.match(/safe to remove/);
    expect(await secondRow())
      .to.match(/Last used \d/)
      .and.not.match(/safe to remove/);
    // If neither secret was used lately, the one that was used last is not safe to remove.
    on.clock.advance(86_400);
    owner = await signInOwner(on.service, on.seeded.person);
    expect(await firstRow()).to.match(/safe to remove/);
    expect(await secondRow()).not.to.match(/safe to remove/);
  });

  it('a GET request for the URL of a form’s action redirects to the page with the form', async () => {
    for (const below of ['/rotate-secret', '/remove-secret']) {
      const { location } = await owner.get(path + below);
      expect(location?.pathname).to.equal(`${path}/secrets`);
    }
    expect((await owner.get(`${path}/redirect-uris`)).location?.pathname).to.equal(path);
  });

  it('each parallel registration of a valid redirect URI is saved once or refused, and no saved URI is lost', async () => {
    const register = (redirect_uri: string) => owner.send(`${path}/redirect-uris`, { redirect_uri });
    expect((await register('https://*.example/')).status).to.equal(422);
    expect((await register(REDIRECT_URI)).location?.pathname).to.equal(`${path}/connect`);
    expect((await stored())?.redirectUris).to.deep.equal([REDIRECT_URI]);
    const uris = Array.from({ length: 24 }, (_, index) => `https://partner.example/${index}`);
    const parallel = uris.slice(0, 8);
    const statuses = (await Promise.all(parallel.map(register))).map(({ status }) => status);
    expect(statuses).to.include(303);
    expect(statuses.filter((status) => status !== 303 && status !== 409)).to.deep.equal([]);
    const saved = parallel.filter((_, index) => statuses[index] === 303);
    expect((await stored())?.redirectUris).to.have.members([REDIRECT_URI, ...saved]);
    expect((await lastRecord())?.action).to.equal('client_changed');
    let refused: Page | undefined;
    for (const uri of uris) refused = await register(uri);
    expect((await stored())?.redirectUris).to.have.members([REDIRECT_URI, ...uris.slice(0, 19)]);
    expect(refused?.status).to.equal(422);
    expect(textOf(refused?.html ?? '')).to.include('at most 20 redirect URIs');
  });

  it('parallel repeats of a form for settings or redirect URIs are all answered as saved', async () => {
    const settings = await owner.get(`${path}/settings`);
    const added = 'https://partner.example/twice';
    const sends = {
      settings: () => owner.submit(settings, { name: 'Renamed' }),
      connect: () => owner.send(`${path}/redirect-uris`, { redirect_uri: added }),
    };
    for (const [page, send] of Object.entries(sends)) {
      for (const { status, location } of await Promise.all([send(), send(), send()])) {
        expect([status, location?.pathname]).to.deep.equal([303, `${path}/${page}`]);
      }
    }
    expect(await stored()).to.deep.include({ name: 'Renamed', redirectUris: [REDIRECT_URI, added] });
  });

  it('a settings form opened before another change is refused, and shows the present values and what was entered', async () => {
    const first = await owner.get(`${path}/settings`);
    const added = 'https://partner.example/added';
    const typed = [REDIRECT_URI, 'https://partner.example/typed'];
    await owner.send(`${path}/redirect-uris`, { redirect_uri: added });
    await on.service.clients.edit(client.id, { name: 'Renamed meanwhile' });
    const conflict = await owner.submit(first, { name: 'Stock Sync', redirect_uris: typed });
    expect(conflict.status).to.equal(409);
    expect(textOf(conflict.html))
      .to.include('changed after you opened this form')
      .and.include(`You entered: Stock Sync, ${typed.join(', ')}`);
    const present = { name: 'Renamed meanwhile', redirectUris: [REDIRECT_URI, added] };
    expect(fieldOf(conflict, 'name')).to.equal(present.name);
    expect(await stored()).to.deep.include(present);
    const saved = await owner.follow(await owner.submit(conflict, {}));
    expect(textOf(saved.html)).to.include('The changes are saved.');
    expect(await stored()).to.deep.include(present);
  });

  it('a redirect URI that was removed meanwhile is not restored by an older form that is sent after a sign-in', async () => {
    const gone = 'https://robbed.example/cb';
    await owner.send(`${path}/redirect-uris`, { redirect_uri: gone });
    const before = await owner.get(`${path}/settings`);
    await on.service.clients.edit(client.id, { redirectUris: [REDIRECT_URI] });
    await owner.submit(await owner.get('/logout'), {});
    const login = await owner.follow(await owner.submit(before, { name: 'Typed' }));
    const { email, password } = on.seeded.person;
    const back = await owner.follow(await owner.submit(login, { email, password }));
    expect(textOf(back.html)).to.include(said('form.draft-kept'));
    const conflict = await owner.submit(back, {});
    expect(conflict.status).to.equal(409);
    expect(textOf(conflict.html)).to.include(`You entered: Typed, ${REDIRECT_URI}, ${gone}`);
    expect((await owner.submit(conflict, {})).status).to.equal(303);
    expect((await stored())?.redirectUris).to.deep.equal([REDIRECT_URI]);
  });

  it('if several settings forms are sent in parallel, one is saved, and the others show its change', async () => {
    const page = await owner.get(`${path}/settings`);
    const answers = await Promise.all(['One', 'Two', 'Three'].map((name) => owner.submit(page, { name })));
    expect(answers.map(({ status }) => status).sort()).to.deep.equal([303, 409, 409]);
    const conflict = answers.find(({ status }) => status === 409);
    expect(conflict && fieldOf(conflict, 'name')).to.equal((await stored())?.name);
  });

  it('a settings page shows only fields for this kind of client, and a machine client cannot get redirect URIs', async () => {
    const { accountId: ownerAccountId } = on.seeded.person;
    const robot = await addTestClient(on.service, 'Robot', { kind: 'machine', ownerAccountId });
    const native = { kind: 'public', isNative: true, redirectUris: ['com.example.app:/cb'] } as const;
    const phone = await addTestClient(on.service, 'Robot', { ...native, ownerAccountId });
    const page = await owner.get(`${LIST}/${robot.id}/settings`);
    expect(page.html).not.to.include('name="redirect_uris"');
    const fields = { name: 'Renamed', redirect_uris: 'https://evil.example/' };
    expect((await owner.send(`${LIST}/${robot.id}/settings`, fields)).status).to.equal(303);
    expect(await on.service.clients.find(robot.id)).to.deep.include({
      name: 'Renamed',
      kind: 'machine',
      redirectUris: [],
    });
    const phonePage = await owner.get(`${LIST}/${phone.id}/settings`);
    expect(fieldOf(phonePage, 'redirect_uris')).to.equal('com.example.app:/cb');
    expect(phonePage.html).not.to.include('/secrets');
    expect((await owner.get(`${path}/settings`)).html).to.include('/secrets');
    expect((await owner.get(`${LIST}/${phone.id}/secrets`)).status).to.equal(404);
    expect((await owner.send(`${LIST}/${phone.id}/rotate-secret`)).status).to.equal(422);
  });

  it('https links of a client are saved; any other link is refused with an error next to its field', async () => {
    const linksOf = async () => (await stored())?.links;
    const saved = await owner.fillIn(`${path}/links`, {
      homepage_url: ' https://app.example/ ',
      support_url: '',
      privacy_url: '',
    });
    expect(textOf(saved.html)).to.include('The links are saved.');
    expect(await linksOf()).to.deep.equal({ homepage: 'https://app.example/' });
    const refused = await owner.submit(await owner.get(`${path}/links`), {
      homepage_url: 'javascript:alert(1)',
      support_url: 'http://app.example/',
      privacy_url: `https://app.example/${'x'.repeat(500)}`,
    });
    expect(refused.status).to.equal(422);
    expect(refused.html.match(/class="field-problem"/g)).to.have.length(3);
    expect(refused.html).to.include('value="http://app.example/"');
    expect(await linksOf()).to.deep.equal({ homepage: 'https://app.example/' });
  });

  it('deleting a client requires entering its exact name', async () => {
    for (const confirm_name of ['', 'stock sync', 'Stock Sync!', client.id]) {
      const page = await owner.submit(await owner.get(`${path}/delete`), { confirm_name });
      expect(page.status, confirm_name).to.equal(422);
      expect(page.html).to.include('id="name-problem"').and.include(`value="${confirm_name}"`);
    }
    expect((await owner.send(`${path}/delete`)).status).to.equal(422);
    expect(await stored()).to.include({ isSuspended: false });
  });

  it('two parallel requests delete the client once, and both are answered', async () => {
    const fields = { confirm_name: 'Stock Sync' };
    const clicks = await Promise.all([owner.send(`${path}/delete`, fields), owner.send(`${path}/delete`, fields)]);
    for (const { status } of clicks) expect(status).to.be.oneOf([303, 404]);
    expect(clicks.map(({ status }) => status)).to.include(303);
    expect(await stored()).to.equal(undefined);
  });
});
