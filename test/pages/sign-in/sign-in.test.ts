/** `/login`: its redirect after the sign-in, also if a hostile link names the target. */
import { expect } from 'chai';
import { createPerson } from '../../support/person.ts';
import { rawRequest } from '../../support/raw-request.ts';
import { startSeeded } from '../../support/seeded.ts';
import { fieldOf } from '../signed-in-person.ts';

/** Targets that a browser, or a careless comparison, may resolve to a place outside the profile. */
const REFUSED_TARGETS = [
  'https://evil.example/',
  '//evil.example',
  '/\\evil.example',
  '/profile//evil.example/../..//evil.example',
  '/profile@evil.example',
  '/profile.evil.example',
  '/profile/../logout',
  '/profile/%2e%2e/logout',
  '/profile?next=//evil.example',
  '/profile#x',
  '/profile\r\nLocation: https://evil.example',
  '/oauth/authorize?client_id=x',
  'javascript:alert(1)',
  ' /profile',
  '',
];

describe('the sign-in page returns users only to pages of this service', () => {
  const on = startSeeded();

  const loginUrl = (target: string): string => `/login?${new URLSearchParams({ return_to: target })}`;

  it('after the sign-in the user returns to the profile page that required it', async () => {
    const { email, password } = on.seeded.person;
    const person = createPerson(on.issuer);
    const page = await person.get(loginUrl('/profile/api-keys'));
    const { location } = await person.submit(page, { email, password });
    expect(location?.href).to.equal(`${on.issuer}/profile/api-keys`);
    // If the user is signed in already, the same link redirects immediately.
    const again = await person.get(loginUrl('/profile/security'));
    expect(again.location?.href).to.equal(`${on.issuer}/profile/security`);
  });

  it('a sign-in with an invalid `return_to` redirects to the profile, so that phishing finds no open redirect', async () => {
    const { email, password } = on.seeded.person;
    const signedIn = createPerson(on.issuer);
    await signedIn.signIn(on.seeded.person);
    for (const target of REFUSED_TARGETS) {
      const person = createPerson(on.issuer);
      const page = await person.get(loginUrl(target));
      const first = await person.submit(page, { email, password });
      expect(first.location?.href, target).to.equal(`${on.issuer}/profile`);
      const { location } = await signedIn.get(loginUrl(target));
      expect(location?.href, target).to.equal(`${on.issuer}/profile`);
    }
    const twice = await signedIn.get('/login?return_to=/profile&return_to=//evil.example');
    expect(twice.location?.href).to.equal(`${on.issuer}/profile`);
  });

  it('the email field is not of type email, because browsers refuse or change some addresses in such a field', async () => {
    const { html } = await createPerson(on.issuer).get('/login');
    expect(html)
      .to.match(/<input id="email"/)
      .and.not.match(/type="email"/);
  });

  it('the stored result of a failed sign-in cannot be opened as a draft of the sign-in form', async () => {
    const { host, port } = new URL(on.issuer);
    const person = createPerson(on.issuer);
    const page = await person.get('/login');
    // These headers make the request a navigation; `fetch` cannot set them.
    const navigation = { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'navigate' };
    const cookie = person.cookieHeader('/');
    const failed = await rawRequest(Number(port), '/login', {
      headers: { host, cookie, ...navigation },
      form: {
        form_token: fieldOf(page, 'form_token'),
        email: on.seeded.person.email,
        password: 'not-this-1',
      },
    });
    const location = failed.headers.get('location') ?? '';
    const [browser = ''] = /(?:__Host-)?gate_browser=[^;]+/.exec(failed.headers.getSetCookie().join()) ?? [''];
    const open = async (path: string): Promise<string> => {
      const headers = { host, cookie: `${cookie}; ${browser}`, ...navigation };
      return (await rawRequest(Number(port), path, { headers })).text;
    };
    expect(location).to.match(/[?&]answer=/);
    expect(await open(location))
      .to.include('role="alert"')
      .and.not.include('not-this-1');
    const form = await open(location.replace('answer=', 'form='));
    expect(form).to.include('name="email"').and.not.include('[object');
    expect(/name="email"[^>]*value="([^"]*)"/.exec(form)?.[1] ?? '').to.equal('');
  });
});
