/** `/login`: where it leads afterwards, whoever wrote the link to it. */
import { expect } from 'chai';
import { createPerson } from '../../support/person.ts';
import { startSeeded } from '../../support/seeded.ts';

/** Each leads away from the profile, to a browser or to a careless comparison. */
const ELSEWHERE = [
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

  const linkTo = (target: string): string => `/login?${new URLSearchParams({ return_to: target })}`;

  it('leads back to the page of the profile that asked for it', async () => {
    const { email, password } = on.seeded.person;
    const person = createPerson(on.issuer);
    const page = await person.get(linkTo('/profile/api-keys'));
    const { location } = await person.submit(page, { email, password });
    expect(location?.href).to.equal(`${on.issuer}/profile/api-keys`);
    // Signed in already, the same link leads there at once.
    const again = await person.get(linkTo('/profile/security'));
    expect(again.location?.href).to.equal(`${on.issuer}/profile/security`);
  });

  it('leads nowhere else: any other target is the profile (an open redirect is phishing)', async () => {
    const { email, password } = on.seeded.person;
    const signedIn = createPerson(on.issuer);
    await signedIn.signIn(on.seeded.person);
    for (const target of ELSEWHERE) {
      const person = createPerson(on.issuer);
      const page = await person.get(linkTo(target));
      const first = await person.submit(page, { email, password });
      expect(first.location?.href, target).to.equal(`${on.issuer}/profile`);
      const { location } = await signedIn.get(linkTo(target));
      expect(location?.href, target).to.equal(`${on.issuer}/profile`);
    }
    const twice = await signedIn.get('/login?return_to=/profile&return_to=//evil.example');
    expect(twice.location?.href).to.equal(`${on.issuer}/profile`);
  });
});
