import { expect } from 'chai';
import { introspect } from '../support/oauth.ts';
import { startSeeded } from '../support/seeded.ts';
import { textOf } from './client-owner.ts';
import { type SignedInPerson, signedIn } from './signed-in-person.ts';

const PATH = '/profile/api-keys';
const DAY = 86_400;

/** Reads the secret from the page for a new key. */
const valueOn = (html: string): string => /<code data-secret[^>]*>([^<]*)</.exec(html)?.[1] ?? '';

describe('the page of API keys', () => {
  const on = startSeeded({ clock: true });
  let person: SignedInPerson;

  before(async () => {
    person = await signedIn(on.service, on.seeded.person);
  });
  beforeEach(() => on.service.database.query('DELETE FROM api_keys'));

  const create = async (name = 'Export', expires_in_days = '30') => {
    const page = await person.fillIn(PATH, { name, expires_in_days });
    return { page, value: valueOn(page.html) };
  };

  it('a new API key is shown once, and afterwards only its prefix and last four characters', async () => {
    const { page, value } = await create('Nightly export', '90');
    expect(page.url.pathname).to.equal(`${PATH}/created`);
    expect(page.headers.get('cache-control')).to.equal('no-store');
    expect(value).to.match(/^gate_key_[\w-]{49}$/);
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
  });
});

describe('the page of API keys, with a maximum lifetime', () => {
  const on = startSeeded({ clock: true, settings: { limits: { apiKeyDays: 60 } } });

  it('with limits.api_key_days the form offers, and the service accepts, only shorter lifetimes', async () => {
    const { accountId } = on.seeded.person;
    const endless = { accountId, name: 'Before the limit', expiresInDays: undefined };
    const { value } = await on.service.apiKeys.add(endless, { address: '::1', browser: '' });
    const person = await signedIn(on.service, on.seeded.person);
    const { html } = await person.get(PATH);
    const offered = [...html.matchAll(/name="expires_in_days" value="(\w+)"/g)];
    expect(offered.map(([, days]) => days)).to.deep.equal(['30', '60']);
    expect(html).to.match(/value="60"[^>]*checked/);
    for (const expires_in_days of ['none', '', '61', '90', '365']) {
      const refused = await person.send(PATH, { name: 'Export', expires_in_days });
      expect(refused.status, expires_in_days).to.equal(422);
      expect(refused.html).to.match(/<a href="#expires-in-30">Choose 30, 60 days\.</);
    }
    await person.fillIn(PATH, { name: 'Export', expires_in_days: '60' });
    const listed = await on.service.apiKeys.listOf(accountId);
    const made = listed.find(({ name }) => name === 'Export');
    const end = on.clock.clock() + 60 * DAY * 1_000;
    expect(made?.expiresAt).to.deep.equal(new Date(end));
    const { body } = await introspect(on.issuer, on.clients.resourceServer, value);
    expect(body).to.include({ active: true });
  });
});
