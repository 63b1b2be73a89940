import { expect } from 'chai';
import { authorizationUrl } from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { addPerson } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { textOf } from './client-owner.ts';
import { fieldOf, type SignedInPerson, signedIn } from './signed-in-person.ts';

const SECTIONS = [
  ...['', '/oauth-clients', '/connections', '/organizations', '/api-keys'],
  ...['/activity', '/security'],
];

describe('the profile', () => {
  const on = startSeeded();
  let person: SignedInPerson;

  before(async () => {
    person = await signedIn(on.service, on.seeded.person);
  });

  it('the profile shows the signed-in user, their access, and the number of entries per section', async () => {
    const { accountId } = on.seeded.person;
    const origin = { address: '::1', browser: '' };
    await on.service.apiKeys.add({ accountId, name: 'Export', expiresInDays: 30 }, origin);
    const { html } = await person.get('/profile');
    const text = textOf(html);
    expect(text).to.include('Grace Person grace@example.test');
    expect(text).to.match(/Northern Logistics member 1 warehouse Rotterdam read, write/);
    expect(text).to.include('0 connected apps');
    expect(text).to.include('1 API key');
    expect(text).to.include('0 OAuth clients');
    const other = await signedIn(on.service, on.seeded.other);
    expect(textOf((await other.get('/profile')).html)).to.include('1 OAuth client');
  });

  it('each section of the profile has a page, which marks its entry in the navigation', async () => {
    for (const section of SECTIONS) {
      const { status, html } = await person.get(`/profile${section}`);
      expect(status, section).to.equal(200);
      const links = [...html.matchAll(/<a href="\/profile([^"]*)" (aria-current="page")?/g)];
      const navigation = links.slice(0, SECTIONS.length);
      expect(navigation.map(([, path]) => path)).to.deep.equal(SECTIONS);
      expect(navigation.filter(([, , mark]) => mark).map(([, path]) => path)).to.deep.equal([
        section,
      ]);
      expect(html).to.include('data-keep-alive="/oauth/token/refresh"');
    }
  });

  it('every section of the profile redirects to the sign-in page and back', async () => {
    const stranger = createPerson(on.issuer);
    for (const section of SECTIONS) {
      const { status, location } = await stranger.get(`/profile${section}`);
      expect(status, section).to.equal(303);
      expect(location?.pathname).to.equal('/login');
      const back = location?.searchParams.get('return_to') ?? '/profile';
      expect(back).to.equal(`/profile${section}`);
    }
    const page = await stranger.signIn(on.seeded.person, '/profile/activity');
    expect(page.url.pathname).to.equal('/profile/activity');
  });

  it('the profile explains to a user without a membership what to do', async () => {
    const newcomer = await addPerson(on.service, 'New', 'new@example.test');
    const newcomerPages = await signedIn(on.service, newcomer);
    const text = textOf((await newcomerPages.get('/profile')).html);
    expect(text).to.include('You are not in an organization yet.');
  });

  it('every page names the signed-in user and has a button to sign out', async () => {
    const { confidential } = on.clients;
    const request = authorizationUrl(on.issuer, confidential);
    const consent = await person.follow(await person.get(request));
    const signIn = await person.follow(await person.get(`${request}&prompt=login`));
    const paths = ['/profile/activity', '/errors', '/nothing'];
    const others = ['/password', '/oauth/authorize?client_id=nobody', '/profile/oauth-clients/new'];
    const visited = [...paths, ...others].map((path) => person.get(path));
    const pages = [consent, signIn, ...(await Promise.all(visited))];
    for (const { html, url } of pages) {
      expect(textOf(html), url.pathname).to.include('Signed in as Grace Person grace@example.test');
    }
    const { html } = await createPerson(on.issuer).get('/errors');
    expect(html).to.not.include('Signed in as').and.not.include('id="sign-out"');
    const [last] = pages.slice(-1);
    const out = last && (await person.post('/logout', { form_token: fieldOf(last, 'form_token') }));
    expect((await person.get('/profile')).location?.pathname).to.equal('/login');
    expect(out?.location?.pathname).to.equal('/logout');
  });
});
