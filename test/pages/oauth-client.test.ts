import { expect } from 'chai';
import { createTestClock, type TestClock } from '../support/clock.ts';
import type { TestClient } from '../support/oauth.ts';
import { type Seed, seed } from '../support/seed.ts';
import { forEachDeployment, type TestService } from '../support/service.ts';
import {
  type ClientOwner,
  fieldOf,
  isSecretGood,
  LIST,
  REDIRECT_URI,
  shownOn,
  signInOwner,
  textOf,
} from './client-owner.ts';

forEachDeployment('the page of an OAuth client', (start) => {
  let service: TestService;
  let seeded: Seed;
  let owner: ClientOwner;
  let client: Required<TestClient>;
  let path: string;
  let time: TestClock;

  before(async () => {
    time = createTestClock();
    service = await start({ clock: time.clock });
    seeded = await seed(service);
  });
  after(() => time.restore());
  beforeEach(async () => {
    owner = await signInOwner(service, seeded.person);
    client = await owner.createClient('Stock Sync');
    path = `${LIST}/${client.id}`;
  });
  afterEach(() =>
    service.clients.remove(client.id, { revokeGrant: async () => {} }).catch(() => {}),
  );

  const kept = () => service.clients.find(client.id);
  const lastRecord = async () =>
    (await service.activity.of(seeded.person.accountId, { limit: 1 }))[0];
  const section = async (id: string) => {
    const { html } = await owner.get(path);
    const [, text = ''] = new RegExp(`<h2 id="${id}">(.*?)</section>`, 's').exec(html) ?? [];
    return text;
  };
  async function rotate(): Promise<string> {
    // Secrets of the same moment have no order.
    time.advance(1);
    const shown = await owner.follow(await owner.post(`${path}/rotate-secret`));
    return shownOn(shown).secret;
  }

  it('has the values that a library asks for', async () => {
    const connect = textOf(await section('connect'));
    expect(connect).to.include(client.id);
    for (const endpoint of ['authorize', 'token']) {
      expect(connect).to.include(`${service.issuer}/oauth/${endpoint}`);
    }
  });

  it('name and redirect URIs are edited, and nothing else', async () => {
    const page = await owner.get(path);
    const redirect_uris = ['https://new.example/cb', 'http://new.example/cb'];
    const saved = await owner.submit(page, { name: 'Renamed', redirect_uris });
    expect(saved.location?.search).to.equal('?done=saved');
    const drawn = await owner.follow(saved);
    expect(textOf(drawn.html)).to.include('The changes are saved.').and.include('unencrypted');
    expect(drawn.html).to.match(/<h1><bdi>Renamed</);
    const record = await lastRecord();
    expect(record).to.deep.include({
      action: 'client_changed',
      details: { client_id: client.id, client_name: 'Renamed', redirect_uris },
    });
    await owner.post(path, {
      ...{ name: 'Renamed', redirect_uris, kind: 'machine', owner: seeded.other.accountId },
      ...{ scope: 'openid', grant_types: 'client_credentials', suspended: '' },
    });
    expect(await kept()).to.deep.include({
      ...{ name: 'Renamed', redirectUris: redirect_uris, kind: 'confidential' },
      ownerAccountId: seeded.person.accountId,
    });
    // Nothing was changed by the second one, so nothing was recorded.
    expect(await lastRecord()).to.deep.equal(record);
  });

  it('changes that are refused keep what was typed, and change nothing', async () => {
    const before = await kept();
    const redirect_uris = [REDIRECT_URI, 'https://Partner.example:443/x'];
    const page = await owner.post(path, { name: '<b>', redirect_uris });
    expect(page.status).to.equal(422);
    expect(page.html).to.include('value="https://Partner.example:443/x"');
    expect(page.html).to.include('value="&lt;b&gt;"').and.include('<h1><bdi>Stock Sync<');
    expect(page.html).to.include('id="redirect-uri-2-problem"');
    const more = await owner.post(path, { name: 'More', redirect_uris, more: '1' });
    expect(more.status).to.equal(200);
    expect(more.html.match(/name="redirect_uris"/g)).to.have.length(3);
    expect(await kept()).to.deep.equal(before);
  });

  it('a rotation keeps the secret in use until it is removed', async () => {
    const second = await rotate();
    expect(second)
      .to.match(/^gate_cs_/)
      .and.not.equal(client.secret);
    expect(await lastRecord()).to.deep.include({
      action: 'client_secret_added',
      details: { client_id: client.id, client_name: 'Stock Sync', last_four: second.slice(-4) },
    });
    const newer = { ...client, secret: second };
    expect(await isSecretGood(service.issuer, client)).to.equal(true);
    expect(await isSecretGood(service.issuer, newer)).to.equal(true);

    const [first] = (await kept())?.secrets ?? [];
    const removed = await owner.post(`${path}/remove-secret`, { secret_id: first?.id ?? '' });
    expect(removed.location?.search).to.equal('?done=secret-removed');
    expect(await isSecretGood(service.issuer, client)).to.equal(false);
    expect(await isSecretGood(service.issuer, newer)).to.equal(true);
    expect(await lastRecord()).to.deep.include({
      action: 'client_secret_removed',
      details: {
        ...{ client_id: client.id, client_name: 'Stock Sync' },
        last_four: client.secret.slice(-4),
      },
    });
  });

  it('parallel clicks leave two secrets at most and one at least', async () => {
    const clicks = await Promise.all(
      Array.from({ length: 8 }, () => owner.post(`${path}/rotate-secret`)),
    );
    expect(clicks.map(({ status }) => status).sort()).to.deep.equal([303, ...Array(7).fill(422)]);
    const refused = clicks.find(({ status }) => status === 422)?.html ?? '';
    expect(textOf(refused)).to.include('The client has 2 secrets already.');
    const ids = (await kept())?.secrets.map(({ id }) => id) ?? [];
    expect(ids).to.have.length(2);
    const removals = await Promise.all(
      ids.map((secret_id) => owner.post(`${path}/remove-secret`, { secret_id })),
    );
    expect(removals.map(({ status }) => status).sort()).to.deep.equal([303, 422]);
    expect((await kept())?.secrets).to.have.length(1);
  });

  it('a secret of another client, or of none, is not found and stays', async () => {
    await rotate();
    const other = await service.clients.find(seeded.clients.confidential.id);
    for (const secret_id of [other?.secrets[0]?.id ?? '', 'sec_\0', '']) {
      const page = await owner.post(`${path}/remove-secret`, { secret_id });
      expect(page.status, secret_id).to.equal(404);
    }
    expect((await kept())?.secrets).to.have.length(2);
    expect((await service.clients.find(other?.id ?? ''))?.secrets).to.have.length(1);
  });

  it('each secret says when it was last used, and that it is safe to remove after a day', async () => {
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

    await isSecretGood(service.issuer, client);
    await service.lastUsed.flush();
    expect(await firstRow()).to.match(/Last used \d/);
    time.advance(86_399);
    await isSecretGood(service.issuer, second);
    await service.lastUsed.flush();
    owner = await signInOwner(service, seeded.person);
    expect(await firstRow()).not.to.match(/safe to remove/);
    time.advance(1);
    expect(await firstRow()).to.match(/safe to remove/);
    expect(await secondRow())
      .to.match(/Last used \d/)
      .and.not.match(/safe to remove/);
    // When nobody uses either, the one that was needed last stays.
    time.advance(86_400);
    owner = await signInOwner(service, seeded.person);
    expect(await firstRow()).to.match(/safe to remove/);
    expect(await secondRow()).not.to.match(/safe to remove/);
  });

  it('asks for the password before secrets and redirect URIs change, when the sign-in is old', async () => {
    await rotate();
    const before = await kept();
    const [first] = before?.secrets ?? [];
    time.advance(601);
    const attempts = [
      owner.post(path, { name: 'Late', redirect_uris: 'https://evil.example/' }),
      owner.post(`${path}/rotate-secret`),
      owner.post(`${path}/remove-secret`, { secret_id: first?.id ?? '' }),
    ];
    for (const attempt of attempts) {
      expect(textOf((await attempt).html)).to.include('Confirm it is you');
    }
    expect(await kept()).to.deep.equal(before);
    const asked = await owner.post(`${path}/remove-secret`, { secret_id: first?.id ?? '' });
    const wrong = await owner.submit(asked, { current_password: 'not my password' });
    expect(wrong.status).to.equal(401);
    expect((await kept())?.secrets).to.have.length(2);
    const { password } = seeded.person;
    await owner.submit(wrong, { current_password: password });
    expect((await kept())?.secrets).to.have.length(1);
  });

  it('is 404 for anybody else, on every verb, and nothing changes', async () => {
    const before = await kept();
    const other = await signInOwner(service, seeded.other);
    const fields = {
      ...{ name: 'Mine now', redirect_uris: 'https://evil.example/' },
      ...{ secret_id: before?.secrets[0]?.id ?? '', confirm_name: 'Stock Sync' },
    };
    for (const below of ['', '/created', '/rotate-secret', '/remove-secret', '/delete', '/x']) {
      expect((await other.get(path + below)).status, `GET ${below}`).to.equal(404);
      const posted = await other.post(path + below, fields);
      expect(posted.status, `POST ${below}`).to.equal(404);
      expect(posted.html).not.to.include('Stock Sync');
      for (const method of ['PUT', 'PATCH', 'DELETE']) {
        const answer = await other.request(path + below, method);
        expect(answer.status, `${method} ${below}`).to.equal(404);
      }
    }
    for (const id of ['gate_ci_0000000000000000000000', 'x', '%00', '..%2f..%2fprofile']) {
      expect((await other.get(`${LIST}/${id}`)).status, id).to.equal(404);
    }
    expect(await kept()).to.deep.equal(before);
  });

  it('leads who is not signed in to sign in, and nothing changes', async () => {
    const before = await kept();
    const stranger = await signInOwner(service, seeded.other);
    await stranger.post('/logout');
    for (const below of ['', '/rotate-secret', '/remove-secret', '/delete']) {
      const { status, location } = await stranger.post(path + below, { name: 'x' });
      expect([status, location?.pathname]).to.deep.equal([303, '/login']);
    }
    expect(await kept()).to.deep.equal(before);
    // Signed in again, a button that was pressed leads back to the page it is on.
    for (const below of ['/rotate-secret', '/remove-secret']) {
      expect((await owner.get(path + below)).location?.pathname).to.equal(path);
    }
  });

  it('says so when the operator has suspended it', async () => {
    await service.clients.suspend(client.id);
    expect(textOf((await owner.get(path)).html)).to.include('Suspended.');
  });

  it('of a kind that only the operator provides shows what it has, and keeps it', async () => {
    const draft = { name: 'Robot', isNative: false, ownerAccountId: seeded.person.accountId };
    const { client: robot } = await service.clients.add({
      ...{ ...draft, kind: 'machine', redirectUris: [] },
    });
    const { client: phone } = await service.clients.add({
      ...{ ...draft, kind: 'public', isNative: true, redirectUris: ['com.example.app:/cb'] },
    });
    const page = await owner.get(`${LIST}/${robot.id}`);
    expect(page.html).not.to.include('name="redirect_uris"');
    const fields = { name: 'Renamed', redirect_uris: 'https://evil.example/' };
    expect((await owner.post(`${LIST}/${robot.id}`, fields)).status).to.equal(303);
    expect(await service.clients.find(robot.id)).to.deep.include({
      ...{ name: 'Renamed', kind: 'machine', redirectUris: [] },
    });
    const ofPhone = await owner.get(`${LIST}/${phone.id}`);
    expect(fieldOf(ofPhone, 'redirect_uris')).to.equal('com.example.app:/cb');
    expect(ofPhone.html).not.to.include('rotate-secret');
    expect((await owner.post(`${LIST}/${phone.id}/rotate-secret`)).status).to.equal(422);
  });
});
