/** The pages of a user: their navigation, and what `/profile` says to do first, protects and uses the account. */
import { expect } from 'chai';
import { authorizationUrl, introspect } from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { addPerson, addTestClient, apiKeyOf, removePassword, type SeededPerson } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { said, shownOn, textOf } from './client-owner.ts';
import { addPasskey } from './passkeys/soft-passkey.ts';
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

const KEYS = '/profile/api-keys';
const DAY_MS = 86_400_000;

describe('the profile', () => {
  const on = startSeeded({ clock: true });
  let person: SignedInPerson;
  /** All sections, from the navigation: `routes.test.ts` checks that each page is in it. */
  let all: readonly string[];

  before(async () => {
    await apiKeyOf(on.service, on.seeded.person);
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

  it('each section of the profile has a page whose navigation marks the section as open', async () => {
    for (const section of all) {
      const page = await person.get(`/profile${section}`);
      expect(page.status, section).to.equal(200);
      expect(navigationOf(page)).to.deep.equal({ sections: all, open: [section] });
      expect(page.html).to.include('data-keep-alive="/oauth/token/refresh"');
    }
  });

  it('the navigation shows developer pages to owners of a client or API key, and to users on such a page', async () => {
    const pages = await signedIn(on.service, await addPerson(on.service, 'Fork Lift'));
    const oneLink = [...all.filter((path) => !DEVELOPER_SECTIONS.includes(path)), '/oauth-clients'];
    const sectionsOn = async (path: string) => navigationOf(await pages.get(path)).sections;
    expect(await sectionsOn('/profile/security')).to.deep.equal(oneLink);
    expect(await sectionsOn('/profile/api-keys')).to.deep.equal(all);
    expect(await sectionsOn('/errors')).to.deep.equal(all);
    await apiKeyOf(on.service, pages);
    expect(await sectionsOn('/profile/security')).to.deep.equal(all);
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

  describe('the start page of the profile', () => {
    const query = (text: string, values: unknown[] = []) => on.service.database.query(text, values);
    let person: SignedInPerson & SeededPerson;

    beforeEach(async () => {
      person = await signedIn(on.service, await addPerson(on.service, 'Pat'));
    });

    const home = async (): Promise<string> => (await person.get('/profile')).html;
    const sectionOf = (html: string, id: string): string =>
      html.match(new RegExp(`<section[^>]*aria-labelledby="${id}"[\\s\\S]*?</section>`))?.[0] ?? '';

    /** Connects a client that was used as many days ago. */
    async function connect(name: string, days?: number): Promise<string> {
      const { id } = await addTestClient(on.service, name);
      const used = days === undefined ? null : new Date(on.clock.clock() - days * DAY_MS);
      await query(
        `INSERT INTO connections (account_id, client_id, connected_at, approved_at, last_used_at,
            consented_name, consented_hosts)
          VALUES ($1, $2, $3, $3, $4, '', '{}')`,
        [person.accountId, id, new Date(on.clock.clock()), used],
      );
      return id;
    }

    async function addKey(name: string, days?: number): Promise<void> {
      const { id } = await apiKeyOf(on.service, person, name);
      const used = days === undefined ? null : new Date(on.clock.clock() - days * DAY_MS);
      await query('UPDATE api_keys SET last_used_at = $2 WHERE id = $1', [id, used]);
    }

    const actingOn = (html: string): string[] =>
      [...sectionOf(html, 'acting').matchAll(/<strong><a href="[^"]*"><bdi>([^<]*)</g)].map(([, name = '']) => name);

    it('the profile says how the account is protected, in words and not by color alone', async () => {
      const protection = async () => textOf(sectionOf(await home(), 'protection'));
      expect(await protection()).to.include(said('profile.by-password'));
      expect(await home()).to.include('<a href="/profile/security">Sign-in methods</a>');
      await removePassword(on.service, person);
      expect(await protection()).to.include(said('profile.by-nothing'));
      await addPasskey(on.issuer, person);
      expect(await protection()).to.match(/Good\. You can sign in with the passkey Laptop/);
    });

    it('the profile lists the five apps and API keys that were used most recently, and links to all of them', async () => {
      for (const [place, name] of ['A', 'B', 'C', 'D'].entries()) await connect(`App ${name}`, place);
      await connect('Unused app');
      await addKey('Fresh key', 0.5);
      await addKey('Old key', 20);
      const html = await home();
      expect(actingOn(html)).to.deep.equal(['App A', 'Fresh key', 'App B', 'App C', 'App D']);
      const section = sectionOf(html, 'acting');
      expect(section).to.match(/href="\/profile\/connections">All 5 connected apps</);
      expect(section).to.match(/href="\/profile\/api-keys">All 2 API keys</);
      expect(section.match(/<time /g)).to.have.length(5);
    });

    it('the profile lists no disconnected app and no expired API key, and marks suspended apps', async () => {
      const gone = await connect('Gone app', 1);
      await connect('Limited app', 1);
      const suspended = await connect('Suspended app', 2);
      await addKey('Short key', 1);
      const { accountId } = person;
      await on.service.connections.end({ accountId, clientId: gone }, 'person_disconnected');
      await query(`UPDATE connections SET limit_until = $2 WHERE account_id = $1 AND client_id <> $3`, [
        accountId,
        new Date(on.clock.clock() + 20 * DAY_MS),
        suspended,
      ]);
      await on.service.clients.suspend(suspended);
      const html = await home();
      expect(actingOn(html)).to.have.members(['Limited app', 'Short key', 'Suspended app']);
      expect(textOf(html)).to.include('Suspended app suspended App');
      on.clock.advance((31 * DAY_MS) / 1000);
      person = await signedIn(on.service, person);
      expect(actingOn(await home())).to.deep.equal(['Suspended app']);
    });
  });

  it('with limits.api_key_days, the form offers and the service accepts only lifetimes up to this limit', () =>
    on.service.withSettings({ limits: { apiKeyDays: 60 } }, async () => {
      const person = await signedIn(on.service, await addPerson(on.service, 'Kay'));
      const { value } = await apiKeyOf(on.service, person, 'Before the limit', { expiresInDays: undefined });
      const { html } = await person.get(KEYS);
      const offered = [...html.matchAll(/name="expires_in_days" value="(\w+)"/g)];
      expect(offered.map(([, days]) => days)).to.deep.equal(['30', '60']);
      expect(html).to.match(/value="60"[^>]*checked/);
      for (const expires_in_days of ['none', '', '61', '90', '365']) {
        const refused = await person.send(KEYS, { name: 'Export', expires_in_days });
        expect(refused.status, expires_in_days).to.equal(422);
        expect(refused.html).to.match(/<a href="#expires-in-30">Choose 30, 60 days\.</);
      }
      const shown = shownOn(await person.fillIn(KEYS, { name: 'Export', expires_in_days: '60' })).secret;
      const list = await person.get(KEYS);
      expect(list.html)
        .to.include(`gate_key_…${shown.slice(-4)}`)
        .and.not.include(shown);
      expect(textOf(list.html)).to.match(/ Export (?:(?!Last used).)*Last used Never/);
      const listed = await on.service.apiKeys.listOf(person.accountId);
      const made = listed.find(({ name }) => name === 'Export');
      const end = on.clock.clock() + 60 * DAY_MS;
      expect(made?.expiresAt).to.deep.equal(new Date(end));
      const { body } = await introspect(on.issuer, on.clients.resourceServer, value);
      expect(body).to.include({ active: true });
    }));
});
