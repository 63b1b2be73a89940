/** Error pages for users: a sentence, a link to continue, and a reference. */
import { expect } from 'chai';
import { ask } from '../support/oauth.ts';
import { createPerson, type Page } from '../support/person.ts';
import { startSeeded } from '../support/seeded.ts';

describe('error pages', () => {
  const on = startSeeded();

  /** Asserts the heading, that the status is not printed, and the reference by which an operator finds the request. */
  function expectErrorPage({ status, html, headers }: Page, expected: number, heading: string) {
    expect(status).to.equal(expected);
    expect(html).to.include(`<h1>${heading}</h1>`);
    expect(html).to.not.include(`<dd>${expected}</dd>`);
    const reference = /data-copy="reference">([^<]+)</.exec(html)?.[1];
    expect(reference).to.match(/^req_/);
    expect(headers.get('x-request-id')).to.equal(reference);
    expect(html).not.to.match(/Error:|node_modules|\.ts:|\n +at /);
  }

  it('the page for an unknown URL links to the profile', async () => {
    const person = createPerson(on.issuer);
    for (const path of ['/nothing', '/profile/nothing', '/errors/nothing', '/errors/__proto__']) {
      const page = await person.get(path);
      expectErrorPage(page, 404, 'Page not found');
      expect(page.html).to.include('href="/profile"');
    }
  });

  it('for an unknown path under /oauth or /.well-known, programs get JSON and browsers get a page', async () => {
    const person = createPerson(on.issuer);
    const browser = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };
    for (const path of ['/oauth/nothing', '/oauth/token/', '/.well-known/openid-configuration']) {
      for (const accept of ['application/json', '*/*', 'application/json, text/html;q=0.9']) {
        const answer = await ask(new URL(path, on.issuer), { headers: { accept } });
        expect(answer.status).to.equal(404);
        expect(answer.body, answer.text).to.have.property('error', 'invalid_request');
        expect(answer.headers.get('vary')).to.include('Accept');
      }
      expectErrorPage(await person.get(path, browser), 404, 'Page not found');
    }
    const elsewhere = await ask(new URL('/nothing', on.issuer), {
      headers: { accept: 'application/json' },
    });
    expect(elsewhere.headers.get('content-type')).to.include('text/html');
  });

  it('a wrong method, a form that is too large and a wrong content type are answered with pages', async () => {
    const person = createPerson(on.issuer);
    expectErrorPage(await person.post('/profile', {}), 405, 'This address cannot be opened like this');
    const page = await person.get('/login');
    const large = await person.submit(page, { email: 'x'.repeat(300_000), password: 'x' });
    expectErrorPage(large, 413, 'That is too much text for one form');
    const type = { 'content-type': 'multipart/form-data; boundary=x' };
    const other = await person.submit(page, { email: 'a@b.test', password: 'x' }, type);
    expectErrorPage(other, 400, 'This request cannot be understood');
  });

  it('a URL that cannot be decoded is answered with 4xx, and not logged as a failure', async () => {
    const person = createPerson(on.issuer);
    const broken = ['/%', '/%E0%A4%A', '/errors/%FF', '/interaction/%00', '/assets/%2e%2e%2fx'];
    for (const path of broken) {
      const { status } = await person.get(path);
      expect(status, path).to.be.within(400, 499);
    }
    expect(on.service.logLines.filter((line) => line.includes('request failed'))).to.deep.equal([]);
  });
});
