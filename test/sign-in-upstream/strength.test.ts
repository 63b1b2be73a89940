/** sign_in.require and providers: when a sign-in with a provider counts as strong. */
import { expect } from 'chai';
import { isStrong, type UpstreamStrength } from '../../src/accounts/sign-in-strength.ts';
import { said } from '../pages/client-owner.ts';
import { authorizationUrl } from '../support/oauth.ts';
import { addPerson, type SeededPerson } from '../support/seed.ts';
import { startWithUpstream } from './service.ts';

const STRONG_SIGN_IN = '/profile/stronger-sign-in';
const REQUIRED = { require: 'passkey-or-upstream', requireGraceSeconds: 0 } as const;

describe('the provider must prove the second factor of an owner', () => {
  const provider = { acrValues: ['phr', 'mfa'], strongAcr: ['phr', 'mfa'], strongAmr: ['otp', 'hwk'] };
  const on = startWithUpstream({ provider, settings: { signIn: REQUIRED } });
  const STRONG = { acr: 'mfa', amr: ['pwd', 'otp'] };
  let owner: SeededPerson;

  before('an owner of an organization', async () => {
    owner = await addPerson(on.service, 'Olga Owner');
    const { id } = await on.service.organizations.add({ name: 'Storage' });
    await on.service.memberships.setRole(owner, id, 'owner');
  });

  /** From now on the ID tokens of the provider contain these claims. */
  const answering = (claims: object): void => {
    on.upstream.lie = { claims: (said) => ({ ...said, auth_time: Number(said.iat), ...claims }) };
  };
  /** Signs in with the provider, whose ID token contains these claims. */
  async function signIn(claims: object, person = on.traveller()) {
    answering(claims);
    const page = await on.signIn({ sub: 'olga', email: owner.email, email_verified: true }, person);
    return { person, page };
  }

  it('an owner who needs a strong sign-in is redirected to the provider with acr_values', async () => {
    const person = on.traveller();
    const page = await person.submit(await person.get('/login'), { sign_in_with: 'platform' });
    expect(page.location?.searchParams.get('acr_values')).to.equal('phr mfa');
  });

  for (const [which, claims] of Object.entries({
    'that says nothing': {},
    'with a password': { acr: 'mfa', amr: ['pwd'] },
    'in a lower context': { acr: '1', amr: ['otp'] },
    'with a text for its methods': { acr: 'mfa', amr: 'otp' },
  })) {
    it(`after a provider sign-in ${which} an owner reaches only the page that explains what is missing`, async () => {
      const { person, page } = await signIn(claims);
      expect(page.url.pathname).to.equal(STRONG_SIGN_IN);
      expect(page.html).to.include(said('strong-sign-in.provider'));
      expect((await person.get('/profile/api-keys')).location?.pathname).to.equal(STRONG_SIGN_IN);
      const asked = await person.get(authorizationUrl(on.service.issuer, on.seeded.clients.confidential));
      // The authorization shows a page, because a redirect to the provider would loop endlessly.
      const there = await person.follow(asked);
      expect(there.url.pathname).to.match(/^\/interaction\//);
      expect(there.html).to.include('Your last sign-in was not secure enough: sign in with Warehouse platform');
    });
  }

  it('an owner cannot choose a new password after a sign-in weaker than required', async () => {
    const { person } = await signIn(STRONG);
    const page = await person.get('/profile/security');
    answering({ acr: 'mfa', amr: ['pwd'] });
    const back = await person.travel(await person.submit(page, { confirm_with: 'platform' }));
    expect(back.url.pathname).to.equal('/profile/security');
    expect(back.html).to.include(said('upstream.too-weak'));
    answering(STRONG);
    const again = await person.submit(await person.get('/profile/security'), { confirm_with: 'platform' });
    expect((await person.travel(again)).url.pathname).to.equal('/password');
  });

  it('an owner with a weak sign-in sees the sign-in page again instead of a redirect loop, if there is no other method', () =>
    on.service.withSettings(on.providing({ strongAmr: ['otp'] }, { passwords: false }), async () => {
      const { person, page } = await signIn({ amr: ['pwd'] });
      expect(page.url.pathname).to.equal(STRONG_SIGN_IN);
      const url = authorizationUrl(on.service.issuer, on.seeded.clients.confidential);
      const asked = await person.travel(await person.get(url));
      expect(asked.html).to.include('Your last sign-in was not secure enough');
      on.upstream.lie = { claims: (said) => ({ ...said, amr: ['otp'] }) };
      const consent = await person.travel(await person.submit(asked, { sign_in_with: 'platform' }));
      expect(consent.html).to.include(owner.email).and.include('value="approve"');
    }));
});

describe('the settings decide whether a session from a provider is strong', () => {
  const PLAIN = { issuer: 'https://a.example', isStrong: true, strongAcr: [], strongAmr: [] };
  const WEAK: UpstreamStrength = { ...PLAIN, issuer: 'https://b.example', isStrong: false };
  const PROVING: UpstreamStrength = { ...PLAIN, strongAmr: ['mfa'] };
  const from = (issuer: string, amr: string[] = []) =>
    [{ by: 'provider', at: 0, issuer, acr: undefined, amr }] as const;

  it("a session's strength depends on the current settings, and it is weak once its provider is removed", () => {
    expect(isStrong(from(PLAIN.issuer), [PLAIN, WEAK])).to.equal(true);
    expect(isStrong(from(PLAIN.issuer), [PROVING])).to.equal(false);
    expect(isStrong(from(PLAIN.issuer, ['pwd', 'mfa']), [PROVING])).to.equal(true);
    expect(isStrong(from(WEAK.issuer, ['mfa']), [PROVING, WEAK])).to.equal(false);
    expect(isStrong(from(PLAIN.issuer), [WEAK])).to.equal(false);
  });
});
