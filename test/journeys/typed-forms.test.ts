/** Entered values survive invalid forms, Back, an ended session, a forgotten password. */
import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { LIST } from '../pages/client-owner.ts';
import { fieldOf, signedIn } from '../pages/signed-in-person.ts';
import { createPerson, type Person } from '../support/person.ts';
import { rawRequest } from '../support/raw-request.ts';
import { startSeeded } from '../support/seeded.ts';

describe('a redirect to the result of a submitted form', () => {
  const on = startSeeded({ clock: true });

  /** Sends navigations like a browser, which `fetch` cannot, and keeps the browser cookie. */
  function browserOf(person: Person) {
    let own = '';
    return async (path: string, form?: Readonly<Record<string, string>>) => {
      const { host, port } = new URL(on.issuer);
      const cookie = [person.cookieHeader('/'), own].filter((pairs) => pairs !== '').join('; ');
      const headers = { host, cookie, 'sec-fetch-site': 'same-origin' };
      const answer = await rawRequest(Number(port), path, {
        headers: { ...headers, 'sec-fetch-mode': 'navigate' },
        ...(form && { form }),
      });
      const [given] = answer.headers.getSetCookie().filter((one) => one.startsWith('gate_browser='));
      own = given?.split(';')[0] ?? own;
      return { ...answer, location: answer.headers.get('location') ?? '' };
    };
  }

  async function refuseForm() {
    const person = await signedIn(on.service, on.seeded.person);
    const page = await person.get(`${LIST}/new`);
    const form = { form_token: fieldOf(page, 'form_token'), name: 'Stock Sync' };
    const browse = browserOf(person);
    const { status, location } = await browse(`${LIST}/new`, { ...form, redirect_uris: 'nowhere' });
    expect(status).to.equal(303);
    const direct = await person.submit(page, { name: 'Stock Sync', redirect_uris: 'nowhere' });
    return { person, browse, location, direct };
  }

  it('the result of a submitted form can be opened for an hour, with its status and headers', async () => {
    const { browse, location, direct } = await refuseForm();
    for (const { status, text, headers } of [await browse(location), await browse(location)]) {
      expect(status).to.equal(direct.status).and.to.equal(422);
      expect(text).to.include('value="Stock Sync"').and.include('aria-invalid');
      for (const name of ['content-security-policy', 'cache-control', 'content-type']) {
        expect(headers.get(name), name).to.equal(direct.headers.get(name));
      }
    }
    on.clock.advance(3_600);
    const late = await browse(location);
    expect(late.status).to.equal(200);
    expect(late.text).not.to.include('Stock Sync');
  });

  it('the result of a submitted form is shown only to its user, in the same browser, at its URL', async () => {
    const { person, browse, location } = await refuseForm();
    const elsewhere = await signedIn(on.service, on.seeded.person);
    expect((await elsewhere.get(location)).status, 'another browser').to.equal(200);
    const moved = location.replace(`${LIST}/new`, '/profile/api-keys');
    expect((await browse(moved)).status, 'another address').to.equal(200);
    expect((await browse(location)).status, 'here').to.equal(422);
    await person.submit(await person.get('/logout'), {});
    expect((await browse(location)).location, 'signed out').to.include('/login');
    await person.signIn(on.seeded.other);
    expect((await browse(location)).status, 'another person').to.equal(200);
  });

  it('a stored form result keeps Retry-After; a program, a long form or the 201st form an hour gets no redirect', async () => {
    const person = createPerson(on.issuer);
    const browse = browserOf(person);
    const page = await person.get('/login');
    const credentials = { email: 'nobody@example.test', password: 'seven red forklifts' };
    const form = { ...credentials, form_token: fieldOf(page, 'form_token') };
    const shown = await browse((await browse('/login', form)).location);
    expect(shown.status).to.equal(401);
    expect(shown.text).to.include(credentials.email).and.not.include(credentials.password);
    const long = { ...form, email: randomBytes(12_000).toString('base64') };
    expect((await browse('/login', long)).status, 'a form that is too long to be stored').to.equal(401);
    let last = await person.submit(page, credentials);
    expect(last.status).to.equal(401);
    while (last.status !== 429) last = await person.submit(page, credentials);
    const paused = await browse('/login', form);
    expect(paused.headers.get('retry-after')).to.equal(null);
    const { status, headers } = await browse(paused.location);
    expect(status).to.equal(429);
    expect(Number(headers.get('retry-after'))).to.be.within(1, 900);

    // At most 200 results an hour are stored; further forms are answered without a redirect.
    let stored = 2;
    let next = await browse('/login', form);
    for (; next.status === 303 && stored < 250; stored += 1) next = await browse('/login', form);
    expect(stored).to.equal(200);
    expect(next.status).to.equal(429);
  });
});
