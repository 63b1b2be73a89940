import { expect } from 'chai';
import { authorizationUrl } from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { addPerson } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { said, textOf } from './client-owner.ts';
import { fieldOf, type SignedInPerson, signedIn } from './signed-in-person.ts';

const DEVELOPER_SECTIONS = ['/oauth-clients', '/api-keys'];

/** The sections in the navigation of a page, and those of them that are marked as open. */
function navigationOf({ html }: { readonly html: string }) {
  const [navigation = ''] = /<nav class="sections"[\s\S]*?<\/nav>/.exec(html) ?? [];
  const links = [...navigation.matchAll(/<a href="\/profile([^"]*)"[^>]*?(aria-current="page")?>/g)];
  return {
    sections: links.map(([, path = '']) => path),
    open: links.filter(([, , mark]) => mark).map(([, path]) => path),
  };
}

const origin = { address: '::1', browser: '' };

describe('the profile', () => {
  const on = startSeeded();
  let person: SignedInPerson;
  /** All sections, from the navigation: `routes.test.ts` checks that each page is in it. */
  let all: readonly string[];

  before(async () => {
    const { accountId } = on.seeded.person;
    await on.service.apiKeys.add({ accountId, name: 'Export', expiresInDays: 30 }, origin);
    person = await signedIn(on.service, on.seeded.person);
    all = navigationOf(await person.get('/profile')).sections;
    expect(all).to.include.members(['', '/connections', ...DEVELOPER_SECTIONS]);
  });

  it('the profile shows the signed-in user, their access, and a link to the OAuth clients', async () => {
    const { html } = await person.get('/profile');
    const text = textOf(html);
    expect(text).to.include('Grace Person grace@example.test');
    expect(text).to.match(/Northern Logistics member 1 warehouse Rotterdam see, change/);
    expect(html).to.match(/<a href="\/profile\/oauth-clients" *>OAuth Clients<\/a>/);
  });

  it('each section of the profile has a page, which marks its entry in the navigation', async () => {
    for (const section of all) {
      const page = await person.get(`/profile${section}`);
      expect(page.status, section).to.equal(200);
      expect(navigationOf(page)).to.deep.equal({ sections: all, open: [section] });
      expect(page.html).to.include('data-keep-alive="/oauth/token/refresh"');
    }
  });

  it('the navigation lists the pages of developers for owners of a client or an API key, and on these pages', async () => {
    const newcomer = await addPerson(on.service, 'Fork Lift', 'fork@example.test');
    const pages = await signedIn(on.service, newcomer);
    const oneLink = [...all.filter((path) => !DEVELOPER_SECTIONS.includes(path)), '/oauth-clients'];
    const sectionsOn = async (path: string) => navigationOf(await pages.get(path)).sections;
    expect(await sectionsOn('/profile/security')).to.deep.equal(oneLink);
    expect(await sectionsOn('/profile/api-keys')).to.deep.equal(all);
    expect(await sectionsOn('/errors')).to.deep.equal(all);
    const { accountId } = newcomer;
    await on.service.apiKeys.add({ accountId, name: 'Export', expiresInDays: 30 }, origin);
    expect(await sectionsOn('/profile/security')).to.deep.equal(all);
  });

  it('every section of the profile redirects to the sign-in page and back', async () => {
    const stranger = createPerson(on.issuer);
    for (const section of all) {
      const { status, location } = await stranger.get(`/profile${section}`);
      expect(status, section).to.equal(303);
      expect(location?.pathname).to.equal('/login');
      const back = location?.searchParams.get('return_to') ?? '/profile';
      expect(back).to.equal(`/profile${section}`);
    }
    const page = await stranger.signIn(on.seeded.person, '/profile/activity');
    expect(page.url.pathname).to.equal('/profile/activity');
  });

  it('every page names the signed-in user and has a button to sign out, or to choose another account', async () => {
    const { confidential } = on.clients;
    const request = authorizationUrl(on.issuer, confidential);
    const consent = await person.follow(await person.get(request));
    const signIn = await person.follow(await person.get(`${request}&prompt=login`));
    const paths = ['/profile/activity', '/errors', '/nothing'];
    const others = ['/password', '/oauth/authorize?client_id=nobody', '/profile/oauth-clients/new'];
    const visited = [...paths, ...others].map((path) => person.get(path));
    const pages = [signIn, ...(await Promise.all(visited))];
    for (const { html, url } of pages) {
      expect(textOf(html), url.pathname).to.include('Signed in as Grace Person grace@example.test');
    }
    // There the account is part of the question, with a button to choose another one.
    expect(textOf(consent.html)).to.match(/Grace Person .* grace@example\.test/);
    expect(consent.html).to.include('value="switch-account"');
    const { html } = await createPerson(on.issuer).get('/errors');
    expect(html).to.not.include(said('common.signed-in-as')).and.not.include('id="sign-out"');
    const [last] = pages.slice(-1);
    const out = last && (await person.post('/logout', { form_token: fieldOf(last, 'form_token') }));
    expect((await person.get('/profile')).location?.pathname).to.equal('/login');
    expect(out?.location?.pathname).to.equal('/logout');
  });
});
