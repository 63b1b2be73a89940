/** `/login`: its redirect after the sign-in, also if a hostile link names the target. */
import { expect } from 'chai';
import { createPerson } from '../../support/person.ts';
import { startSeeded } from '../../support/seeded.ts';

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

describe('the sign-in page', () => {
  const on = startSeeded();

  const loginUrl = (target: string): string =>
    `/login?${new URLSearchParams({ return_to: target })}`;

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

  it('after the sign-in any other target redirects to the profile (an open redirect helps phishing)', async () => {
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
});
