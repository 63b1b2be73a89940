import { expect } from 'chai';
import { createPerson } from '../support/person.ts';
import { addPerson, type Seed, seed } from '../support/seed.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { textOf } from './client-owner.ts';
import { signedIn } from './signed-in-person.ts';

const SECTIONS = ['', '/oauth-clients', '/connections', '/api-keys', '/activity', '/security'];

describe('the profile', () => {
  let service: TestService;
  let seeded: Seed;

  before(async () => {
    service = await startTestService();
    seeded = await seed(service);
  });
  after(() => service.close());

  it('says who is signed in, what they reach, and how much there is elsewhere', async () => {
    const { accountId } = seeded.person;
    const origin = { address: '::1', browser: '' };
    await service.apiKeys.add({ accountId, name: 'Export', expiresInDays: 30 }, origin);
    const person = await signedIn(service, seeded.person);
    const { html } = await person.get('/profile');
    const text = textOf(html);
    expect(text).to.include('Grace Person grace@example.test');
    expect(text).to.match(/Northern Logistics member 1 warehouse Rotterdam read, write/);
    expect(text).to.include('0 clients act for you');
    expect(text).to.include('1 API key of yours');
    expect(text).to.include('0 OAuth clients you registered');
    const other = await signedIn(service, seeded.other);
    expect(textOf((await other.get('/profile')).html)).to.include('1 OAuth client you registered');
  });

  it('has a page for each of its sections, which marks where one is', async () => {
    const person = await signedIn(service, seeded.person);
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

  it('is for who is signed in: every section leads to the sign-in page and back', async () => {
    for (const section of SECTIONS) {
      const stranger = createPerson(service.issuer);
      const page = await stranger.signIn(seeded.person, `/profile${section}`);
      expect(page.url.pathname).to.equal(`/profile${section}`);
    }
  });

  it('tells a person without anything what to do', async () => {
    const nobody = await addPerson(service, 'New', 'new@example.test');
    const person = await signedIn(service, nobody);
    const text = textOf((await person.get('/profile')).html);
    expect(text).to.include('You belong to no organization yet.');
  });

  it('anything else in `done` says nothing', async () => {
    const person = await signedIn(service, seeded.person);
    for (const done of ['x', '<b>', '__proto__', 'constructor', 'toString']) {
      for (const section of ['connections', 'api-keys', 'security']) {
        const page = await person.get(`/profile/${section}?done=${encodeURIComponent(done)}`);
        expect(page.status).to.equal(200);
        expect(page.html).not.to.include('role="status"');
      }
    }
  });
});
