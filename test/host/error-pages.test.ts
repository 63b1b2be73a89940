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
});
