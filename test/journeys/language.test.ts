/** People read the pages in their language, and choose another one. */
import { expect } from 'chai';
import { authorizationUrl } from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { startSeeded } from '../support/seeded.ts';

const IN_GERMAN = { headers: { 'accept-language': 'de-AT,de;q=0.9,en;q=0.5' } };

describe('the language of the pages', () => {
  const on = startSeeded();

  it('the language follows Accept-Language, also on error pages, and caches are informed by Vary', async () => {
    for (const path of ['/login', '/nothing', '/interaction/unknown', '/oauth/authorize']) {
      const response = await fetch(on.issuer + path, IN_GERMAN);
      expect(response.headers.get('content-language'), path).to.equal('de');
      expect(response.headers.get('vary'), path).to.include('Accept-Language').and.include('Cookie');
      expect(await response.text(), path).to.include('<html lang="de">');
    }
  });

  it('the language follows ui_locales of an authorization request, unless the user chose a language', async () => {
    const languageFor = async (locales: string, cookie = '') => {
      const url = authorizationUrl(on.issuer, on.clients.confidential);
      url.searchParams.set('ui_locales', locales);
      const person = createPerson(on.issuer);
      if (cookie) await person.submit(await person.get('/language'), { language: cookie });
      return (await person.open(url)).html.match(/<html lang="(\w+)">/)?.[1];
    };
    expect(await languageFor('fr-CA de-AT en')).to.equal('de');
    expect(await languageFor('fr x-klingon')).to.equal('en');
    expect(await languageFor('de', 'en')).to.equal('en');
  });

  it('the language is English if the browser accepts no available language, or names none', async () => {
    for (const preferred of ['fr', '*', 'x'.repeat(5_000), ';q=,,;', 'de;q=0']) {
      const response = await fetch(`${on.issuer}/login`, {
        headers: { 'accept-language': preferred },
      });
      expect(response.headers.get('content-language'), preferred).to.equal('en');
    }
  });

  it('an unknown language changes nothing, and choosing a language never redirects to another site', async () => {
    const person = createPerson(on.issuer);
    const page = await person.get('/language');
    const targets = ['https://evil.example/', '//evil.example', '/.//evil.example', '\\\\evil.example', 'x:y', ''];
    for (const drawn_at of targets) {
      const chosen = await person.submit(page, { language: 'de', drawn_at });
      expect(chosen.location?.origin, drawn_at).to.equal(on.issuer);
    }
    const unknown = await person.submit(page, { language: 'tlh', drawn_at: '/login' });
    expect(unknown.location?.pathname).to.equal('/language');
    expect((await person.get('/login')).html).to.include('<html lang="de">');
    const tampered = { cookie: 'gate_language=../en', ...IN_GERMAN.headers };
    expect((await createPerson(on.issuer).get('/login', tampered)).html).to.include('lang="de"');
  });

  it('a page that refuses a form offers the languages, and choosing one from an error page leads back to that page', async () => {
    const person = createPerson(on.issuer);
    const refused = await person.submit(await person.get('/login'), { email: 'nobody@demo.test', password: 'wrong' });
    expect(refused.status).to.equal(401);
    expect(refused.html).to.include('name="language"');
    const url = authorizationUrl(on.issuer, { ...on.clients.confidential, redirectUri: 'https://other.example/' });
    const error = await person.open(url);
    expect(error.html).to.include('href="/language"').and.not.include('name="language"');
    const page = await person.get('/language', { referer: `${url}&answer=${'x'.repeat(43)}` });
    const chosen = await person.submit(page, { language: 'de' });
    expect(chosen.location?.href).to.equal(url.href);
    expect((await person.open(url)).html).to.include('<html lang="de">');
    const foreign = await person.get('/language', { referer: 'https://evil.example/' });
    expect(foreign.html).not.to.include('evil.example');
  });
});
