import { expect } from 'chai';
import type { Page } from '../../support/person.ts';
import { startSeeded } from '../../support/seeded.ts';
import { nameWarehouseApi } from '../../support/warehouse-api.ts';
import { type ClientOwner, isSecretValid, LIST, REDIRECT_URI, shownOn, signInOwner, textOf } from '../client-owner.ts';

const NEW = `${LIST}/new`;

describe('creating an OAuth client', () => {
  const on = startSeeded();
  let owner: ClientOwner;

  before(async () => {
    await nameWarehouseApi(on);
    owner = await signInOwner(on.service, on.seeded.person);
  });

  const ownClients = () => on.service.clients.listByOwner(on.seeded.person.accountId);
  const rowsOf = ({ html }: Page) =>
    [...html.matchAll(/name="redirect_uris" value="([^"]*)"/g)].map(([, value]) => value);
  const problemsOf = ({ html }: Page) =>
    [...html.matchAll(/<p class="field-problem" id="([^"]*)">([^<]*)</g)].map(
      ([, id = '', message = '']) => `${id}: ${message}`,
    );

  it('creating a client shows its ID, and its secret once, and the secret works', async () => {
    const sent = await owner.submit(await owner.get(NEW), {
      name: '  Stock Sync ',
      redirect_uris: [REDIRECT_URI, 'https://partner.example/other'],
    });
    expect(sent.status).to.equal(303);
    const shown = await owner.follow(sent);
    expect(shown.headers.get('cache-control')).to.equal('no-store');
    const { id, secret } = shownOn(shown);
    expect(secret).to.match(/^gate_cs_[A-Za-z0-9_-]{49}$/);
    const client = { id, secret, redirectUri: REDIRECT_URI };
    expect(await isSecretValid(on.issuer, client)).to.equal(true);
    expect(await on.service.clients.find(id)).to.deep.include({
      name: 'Stock Sync',
      kind: 'confidential',
      isNative: false,
      ownerAccountId: on.seeded.person.accountId,
      redirectUris: [REDIRECT_URI, 'https://partner.example/other'],
    });
    const again = await owner.get(shown.url.pathname + shown.url.search);
    expect(again.html).not.to.include(secret);
    expect(textOf(again.html)).to.include('was shown already');
    for (const path of [LIST, `${LIST}/${id}`, `${LIST}/${id}/delete`]) {
      expect((await owner.get(path)).html).not.to.include(secret);
    }
  });

  it('a page with a new secret can be left only by confirming the copy or signing out, even without JavaScript', async () => {
    const client = await owner.fillIn(NEW, { name: 'Safe', redirect_uris: REDIRECT_URI });
    const key = await owner.fillIn('/profile/api-keys', { name: 'Safe', expires_in_days: '30' });
    for (const { html } of [client, key]) {
      expect(html).to.include('data-secret');
      const elements = html.match(/<(?:a|form)\s[^>]*>/g) ?? [];
      const leading = elements.filter((element) => !element.includes('target="_blank"'));
      const known = /href="#content"|data-copied|action="\/logout"/;
      expect(leading.filter((element) => !known.test(element))).to.deep.equal([]);
      expect(leading).to.have.length(3);
    }
  });

  it('the page after a shown secret clears the browser cache, so that the Back button cannot show it', async () => {
    const form = await owner.get(NEW);
    const sent = await owner.submit(form, { name: 'Cached', redirect_uris: REDIRECT_URI });
    const { html } = await owner.follow(sent);
    const [, next = ''] = /href="([^"]*from=secret)"/.exec(html) ?? [];
    expect((await owner.get(next)).headers.get('clear-site-data')).to.equal('"cache"');
  });

  it('a new secret is shown only on the page of its own client', async () => {
    const { id } = await owner.createClient('Another');
    const { location } = await owner.send(NEW, { name: 'Waiting', redirect_uris: REDIRECT_URI });
    const elsewhere = await owner.get(`${LIST}/${id}/created${location?.search}`);
    expect(shownOn(elsewhere).secret).to.equal('');
  });

  it('fields that the form for a new client does not have are ignored', async () => {
    const { location } = await owner.send(NEW, {
      name: 'Greedy',
      redirect_uris: REDIRECT_URI,
      kind: 'machine',
      grant_types: 'client_credentials',
      jwks_uri: 'https://evil.example/keys',
      scope: 'openid',
      application_type: 'native',
      native: 'true',
      owner: on.seeded.other.accountId,
      owner_account_id: on.seeded.other.accountId,
      account_id: on.seeded.other.accountId,
      client_id: on.clients.confidential.id,
    });
    const id = location?.pathname.split('/').at(-2) ?? '';
    expect(await on.service.clients.find(id)).to.deep.include({
      name: 'Greedy',
      kind: 'confidential',
      isNative: false,
      ownerAccountId: on.seeded.person.accountId,
    });
  });

  it('an invalid form for a new client shows a summary and an error per row, and keeps the values', async () => {
    const before = await ownClients();
    const page = await owner.send(NEW, {
      name: ' ',
      redirect_uris: ['https://App.example/cb', '', 'https://app.example/cb', 'https://a.example/*'],
    });
    expect(page.status).to.equal(422);
    expect(problemsOf(page)).to.deep.equal([
      'name-problem: Give the client a name.',
      'redirect-uri-1-problem: Remove this redirect URI: browsers send it exactly like the one in row 2.',
      'redirect-uri-3-problem: Replace the * : list each redirect URI in full, one per row.',
    ]);
    expect(rowsOf(page)).to.deep.equal(['https://App.example/cb', 'https://app.example/cb', 'https://a.example/*']);
    expect(page.html).to.include('<a href="#redirect-uri-3">Redirect URI 3:');
    expect(page.html).to.match(/id="redirect-uri-3"[^>]*aria-invalid="true"/s);
    expect(page.html).to.match(/<title>Error: /);
    expect(await ownClients()).to.have.length(before.length);
  });
});
