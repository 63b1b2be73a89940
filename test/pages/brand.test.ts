/** The operator's brand on pages and in mail, and rights in the operator's words. */
import { expect } from 'chai';
import { logoFile, png, WEBP } from '../config/brand-files.ts';
import { settingsOf } from '../config/configuration.ts';
import { eventually } from '../support/eventually.ts';
import { startsWithMail } from '../support/mail-server.ts';
import { authorizationUrl, introspect } from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { startSeeded } from '../support/seeded.ts';
import type { Overrides } from '../support/service.ts';
import { signedIn } from './signed-in-person.ts';

const BLUE = '#0B5CAD';
const LINKS = {
  homeUrl: 'https://www.acme.example/',
  support: 'help+de@acme.example',
  privacyUrl: 'https://www.acme.example/privacy',
  termsUrl: 'https://www.acme.example/terms',
};

const wide = Buffer.from(WEBP.extended, 'base64');
wide.writeUIntLE(239, 24, 3);
wide.writeUIntLE(59, 27, 3);
logoFile('acme.webp', wide);
logoFile('acme.png', png(48, 48));
const brandOf = (yaml: string) => settingsOf(`brand: { ${yaml} }`).brand;
const { logo, logoDark } = brandOf('logo: acme.webp, logo_dark: acme.png');
if (!logo || !logoDark) throw new Error('the logos were not read');

/** Texts in several languages. */
const IN_LANGUAGES = {
  name: { en: 'Acme Storage', de: 'Acme Lager' },
  privacyUrl: { en: 'https://acme.example/privacy', de: 'https://acme.example/datenschutz' },
  support: { de: 'hilfe@acme.example' },
};
const RIGHTS = { read: { en: 'see stock', de: 'Bestand sehen' }, write: 'change stock', manage: 'run the warehouse' };

describe('the brand of the operator', () => {
  const mail = startsWithMail();
  let found: Overrides = {};
  const brand = { name: 'Acme <Storage>', ...LINKS, logo, logoDark, colour: BLUE };
  const on = startSeeded({ on: mail.start, settings: { brand }, reloaded: () => found });

  const visitor = () => createPerson(on.issuer);
  const urlsIn = (html: string, pattern: RegExp): string[] => [...html.matchAll(pattern)].map(([, url = '']) => url);
  const logosIn = (html: string) => urlsIn(html, /"(\/assets\/logo\.[^"]+)"/g);
  const stylesheetIn = (html: string) => urlsIn(html, /rel="stylesheet" href="([^"]+)"/g)[0] ?? '';

  async function reloadWith(overrides: Overrides): Promise<readonly string[]> {
    found = overrides;
    return (await on.service.reload()).changed;
  }

  it('pages, errors and mails show the name of the brand instead of Gatehouse', async () => {
    const { person } = on.seeded;
    const member = await signedIn(on.service, person);
    const consent = await member.get(
      (await member.get(authorizationUrl(on.issuer, on.clients.confidential))).location ?? '',
    );
    expect(consent.html).to.include('Route Planner');
    const pages = {
      'sign-in': await visitor().get('/login'),
      consent,
      profile: await member.get('/profile'),
      missing: await visitor().get('/nothing'),
      refused: await visitor().get('/oauth/authorize?client_id=none'),
    };
    for (const [name, { html }] of Object.entries(pages)) {
      expect(html, name).to.match(/<title>[^<]+ · Acme &lt;Storage&gt;<\/title>/);
      expect(html, name).to.include('alt="Acme &lt;Storage&gt;"').and.not.include('Gatehouse');
      expect(html, name).to.not.include('class="hut"').and.not.include('class="boom"');
    }
    await member.fillIn('/profile/api-keys', { name: 'Export', expires_in_days: '30' });
    const { subject, text } = await mail.mailTo(person.email, 'API key');
    expect(subject).to.equal('A new API key can access your Acme <Storage> account');
    expect(text).to.match(/-- \r?\nAcme <Storage>\r?\nhttps:\/\/www\.acme\.example\/\r?\nhelp\+de@acme\.example/);
  });

  it('the footer of pages links to website, support, privacy policy and terms in new tabs', async () => {
    const { html } = await visitor().get('/login');
    const footer = html.slice(html.indexOf('<footer'));
    expect(urlsIn(footer, /href="([^"]+)"/g)).to.deep.equal([
      'https://www.acme.example/',
      'mailto:help%2Bde@acme.example',
      'https://www.acme.example/privacy',
      'https://www.acme.example/terms',
    ]);
    expect(footer.match(/target="_blank" rel="noopener noreferrer"/g)).to.have.length(3);
    await reloadWith({ brand: { support: 'https://www.acme.example/help' } });
    expect((await visitor().get('/login')).html).to.include('href="https://www.acme.example/help" target="_blank"');
    await reloadWith({});
  });

  it('the uploaded logo is served unchanged under a name with its hash, and browsers may cache it for a year', async () => {
    const { html } = await visitor().get('/login');
    const [icon, dark, light, ...others] = logosIn(html);
    expect(others).to.deep.equal([]);
    expect(html).to.include(`<link rel="icon" href="${light}">`);
    expect(icon).to.equal(light);
    expect(html).to.match(
      /<source media="\(prefers-color-scheme: dark\)" srcset="[^"]+" width="48" height="48"><img class="logo" src="[^"]+" width="240" height="60" alt="/,
    );
    const files = [
      [light, 'image/webp', wide],
      [dark, 'image/png', png(48, 48)],
    ] as const;
    for (const [url, type, content] of files) {
      const answer = await fetch(`${on.issuer}${url}`);
      expect(answer.status).to.equal(200);
      expect(answer.headers.get('content-type')).to.equal(type);
      expect(answer.headers.get('x-content-type-options')).to.equal('nosniff');
      expect(answer.headers.get('cache-control')).to.equal('public, max-age=31536000, immutable');
      expect(Buffer.from(await answer.arrayBuffer())).to.deep.equal(content);
    }
    const unknown = await fetch(`${on.issuer}/assets/logo.0000000000000000.png`);
    expect(unknown.status).to.equal(404);
    expect(unknown.headers.get('cache-control')).to.equal('no-store');
  });

  it('the stylesheet contains the brand colour for both themes, also if another node has another colour', async () => {
    const url = stylesheetIn((await visitor().get('/login')).html);
    expect(url).to.match(/^\/assets\/gatehouse\.[\w-]{16}\.css\?colour=0b5cad$/);
    const read = async (href: string) => (await fetch(on.issuer + href)).text();
    const plain = await read(url.replace(/\?.*/, ''));
    const added = async (href: string) => (await read(href)).slice(plain.length);
    const blue = ':root { --brand: #0b5cad; --brand-dark: #5c92c8; }\n';
    expect(await added(url)).to.equal(blue);
    await reloadWith({ brand: { colour: '#846a00' } });
    expect(await added(url)).to.equal(blue);
    expect(await added(url.replace('0b5cad', '846a00'))).to.include('--brand: #846a00;');
    for (const wrong of ['0b5ca', 'red;}', '0b5cad&colour=846a00', '%230b5cad', '']) {
      expect(await added(url.replace('0b5cad', wrong)), wrong).to.equal('');
    }
    const known = { 'if-none-match': (await fetch(on.issuer + url)).headers.get('etag') ?? '' };
    const asked = { ...known, 'cache-control': 'max-age=0' };
    expect((await visitor().get(url, asked)).status).to.equal(304);
    expect((await visitor().get(url.replace('0b5cad', '846a00'), asked)).status).to.equal(200);
    await reloadWith({});
  });

  it('a reload replaces name, logo and colour without a restart, and the URL of a replaced logo answers 404', async () => {
    const before = logosIn((await visitor().get('/login')).html)[0];
    const other = brandOf(`logo: ${logoFile('other.png', png(200, 50))}`).logo;
    if (!other) throw new Error('the logo was not read');
    const changed = await reloadWith({
      brand: { name: 'Nova', logo: other, colour: '#846a00' },
    });
    expect(changed).to.have.members(['brand.name', 'brand.logo', 'brand.colour']);
    const { html } = await visitor().get('/login');
    expect(html).to.include('<title>Sign in · Nova</title>').and.include('alt="Nova"');
    expect(stylesheetIn(html)).to.match(/\?colour=846a00$/);
    const [after] = logosIn(html);
    expect(after).to.match(/\.png$/);
    expect((await fetch(on.issuer + after)).status).to.equal(200);
    expect((await fetch(on.issuer + before)).status).to.equal(404);
    await reloadWith({});
    expect((await fetch(on.issuer + before)).status).to.equal(200);
  });

  it('a client may not have a name that resembles a name of the brand in any language, also after a reload', async () => {
    const owner = await signedIn(on.service, on.seeded.other);
    const create = async (name: string) => {
      const fields = { name, redirect_uris: ['https://app.example/cb'] };
      const form = await owner.get('/profile/oauth-clients/new');
      return (await owner.submit(form, fields)).html;
    };
    const refusal = 'this one could be taken';
    expect(await create('Acme-Storage Security')).to.include(refusal);
    expect(await create('Gatehouse Security')).to.include(refusal);
    await reloadWith({ brand: { name: 'Nova' } });
    expect(await create('N0VA')).to.include(refusal);
    expect(await create('Acme Storage Security')).to.not.include(refusal);
    await reloadWith({ brand: IN_LANGUAGES });
    for (const name of Object.values(IN_LANGUAGES.name)) expect(await create(name), name).to.include(refusal);
    await reloadWith({});
  });

  it('a logo that is not wide has the name next to it, and is the icon at both well-known paths', async () => {
    const iconOf = async (name: string) => {
      const answer = await fetch(`${on.issuer}/${name}`);
      return [answer.status, answer.headers.get('content-type')] as const;
    };
    for (const name of ['favicon.ico', 'apple-touch-icon.png']) {
      expect(await iconOf(name), `${name} with a WebP logo`).to.deep.equal([200, 'image/webp']);
    }
    await reloadWith({ brand: { logo: logoDark } });
    const { html } = await visitor().get('/login');
    expect(html).to.include('alt=""></picture> <bdi>Acme &lt;Storage&gt;</bdi>');
    for (const name of ['favicon.ico', 'apple-touch-icon.png']) {
      expect(await iconOf(name), `${name} with a PNG logo`).to.deep.equal([200, 'image/png']);
    }
    await reloadWith({});
  });

  it("pages and mail show a text of the brand in the reader's language, else in English, else in its only language", () =>
    on.service.withSettings({ brand: IN_LANGUAGES }, async () => {
      const german = { 'accept-language': 'de' };
      const person = createPerson(on.issuer);
      const shown = (await person.get('/login', german)).html;
      expect(shown).to.include('· Acme Lager</title>').and.include('href="https://acme.example/datenschutz"');
      const english = (await person.get('/login')).html;
      expect(english).to.include('· Acme Storage</title>').and.include('/privacy"');
      expect(english).to.include('mailto:hilfe@acme.example');
      await on.service.accounts.setLanguage(on.seeded.other.accountId, 'de');
      const member = await signedIn(on.service, on.seeded.other);
      await member.fillIn('/profile/api-keys', { name: 'Export', expires_in_days: '30' });
      await eventually(() => {
        expect(mail.received.at(-1)?.text).to.include('Acme Lager').and.include('hilfe@acme.example');
      });
    }));

  it('pages describe rights in the words of the operator, but introspection returns the names of the rights', () =>
    on.service.withSettings({ rights: RIGHTS }, async () => {
      const { person, warehouse } = on.seeded;
      const { accountId } = person;
      const all = ['read', 'write', 'manage'] as const;
      await on.service.memberships.setRights({ accountId }, warehouse.id, all);
      const words = 'see stock, change stock, run the warehouse';
      const member = await signedIn(on.service, person);
      expect((await member.get('/profile')).html).to.include(`<span class="rights">${words}</span>`);
      await on.service.accounts.setLanguage(accountId, 'de');
      expect((await member.get('/profile')).html).to.include('Bestand sehen, change stock');
      await on.service.accounts.setLanguage(accountId, 'en');
      const url = authorizationUrl(on.issuer, on.clients.confidential);
      const consent = await member.get((await member.get(url)).location ?? '');
      expect(consent.html).to.include(`<span class="rights">${words}</span>`);
      const { accessToken } = await on.partner.tokens(on.clients.confidential);
      const known = await introspect(on.issuer, on.clients.resourceServer, accessToken);
      expect(JSON.stringify(known.body)).to.include('"rights":["read","write","manage"]');
    }));
});
