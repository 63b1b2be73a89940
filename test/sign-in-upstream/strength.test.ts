/** sign_in.require and providers: a sign-in there is as strong as it proves, or as the operator says. */
import { expect } from 'chai';
import { isStrongSession, type UpstreamStrength } from '../../src/accounts/sign-in-strength.ts';
import type { SignInProvider } from '../../src/config/sign-in-providers.ts';
import { addPasskey, optionsFor } from '../pages/passkeys/soft-passkey.ts';
import { authorizationUrl } from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { addPerson, type SeededPerson } from '../support/seed.ts';
import { startWithUpstream } from './service.ts';

const STRONGER = '/profile/stronger-sign-in';
const REQUIRED = { require: 'passkey-or-upstream', requireGraceSeconds: 0 } as const;

/** What a suite of these does: an owner of an organization, who comes from the provider. */
function withOwner(provider: Partial<SignInProvider>, { passwords = true } = {}) {
  const on = startWithUpstream({ provider, passwords, settings: { signIn: REQUIRED } });
  let owner: SeededPerson;
  const olga = () => ({ sub: 'olga', email: owner.email, email_verified: true });
  before('an owner of an organization', async () => {
    owner = await addPerson(on.service, 'Olga Owner', 'olga@example.test');
    const { id } = await on.service.organizations.add({ name: 'Storage' });
    await on.service.memberships.setRole({ accountId: owner.accountId }, id, 'owner');
  });
  return {
    on,
    owner: () => owner,
    /** Signs in there, where the ID token says this. */
    async signIn(claims: object, person = on.traveller()) {
      on.upstream.lie = { claims: (said) => ({ ...said, auth_time: Number(said.iat), ...claims }) };
      const page = await on.signIn(olga(), person);
      return { person, page };
    },
  };
}

describe('an owner who comes from a provider that must prove a second step', () => {
  const { on, signIn } = withOwner({
    ...{ acrValues: ['phr', 'mfa'], strongAcr: ['phr', 'mfa'], strongAmr: ['otp', 'hwk'] },
  });
  const STRONG = { acr: 'mfa', amr: ['pwd', 'otp'] };

  it('is asked for it there', async () => {
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
    it(`reaches nothing but the page that says so by a sign-in ${which}`, async () => {
      const { person, page } = await signIn(claims);
      expect(page.url.pathname).to.equal(STRONGER);
      expect(page.html).to.include('Your sign-in at your provider did not prove more');
      expect((await person.get('/profile/api-keys')).location?.pathname).to.equal(STRONGER);
      const asked = await person.get(
        authorizationUrl(on.service.issuer, on.seeded.clients.confidential),
      );
      // The authorization asks for the sign-in, with a page: it would be sent there without end.
      const there = await person.follow(asked);
      expect(there.url.pathname).to.match(/^\/interaction\//);
      expect(there.html).to.include(
        'Your last sign-in did not prove enough: sign in with Warehouse platform',
      );
    });
  }

  it('goes on by one that proves it, in every session that follows from it', async () => {
    const { person, page } = await signIn(STRONG);
    expect(page.url.pathname).to.equal('/profile');
    on.clock.advance(601);
    const asked = await person.submit(await person.get('/profile/api-keys'), { name: 'Export' });
    const confirmed = await person.travel(await person.submit(asked, { sign_in_with: 'platform' }));
    expect(confirmed.url.pathname).to.equal('/profile/api-keys');
    const security = await person.get('/profile/security');
    const everywhere = security.forms.find(({ action }) => action.endsWith('everywhere'));
    await person.post('/profile/security/sign-out-everywhere', {
      ...Object.fromEntries(everywhere?.values ?? []),
    });
    expect((await person.get('/profile')).status).to.equal(200);
  });

  it('chooses no other password by a sign-in there that proves less than they are asked for', async () => {
    const { person } = await signIn(STRONG);
    const page = await person.get('/profile/security');
    on.upstream.lie = {
      claims: (said) => ({ ...said, auth_time: Number(said.iat), acr: 'mfa', amr: ['pwd'] }),
    };
    const back = await person.travel(await person.submit(page, { confirm_with: 'platform' }));
    expect(back.url.pathname).to.equal('/profile/security');
    expect(back.html).to.include('did not prove enough to choose another password');
    on.upstream.lie = {
      claims: (said) => ({ ...said, auth_time: Number(said.iat), ...STRONG }),
    };
    const again = await person.submit(await person.get('/profile/security'), {
      confirm_with: 'platform',
    });
    expect((await person.travel(again)).url.pathname).to.equal('/password');
  });

  it('may go on once a passkey has confirmed that it is them', async () => {
    const { person } = await signIn(STRONG);
    const { passkey } = await addPasskey(on.service.issuer, person);
    const { person: weak } = await signIn({});
    expect((await weak.get('/profile')).location?.pathname).to.equal(STRONGER);
    // A client asks for a sign-in in that session, and gets one by the passkey.
    const ask = { prompt: 'login consent' };
    const url = authorizationUrl(on.service.issuer, on.seeded.clients.confidential, ask);
    const login = await weak.follow(await weak.get(url));
    await weak.submit(login, { passkey: passkey.answer(await optionsFor(weak, 'sign-in')) });
    expect((await weak.get('/profile')).status).to.equal(200);
  });
});

describe('an owner who has nothing but a provider that must prove a second step', () => {
  const { on, owner, signIn } = withOwner(
    { match: 'verified_email', strongAmr: ['otp'] },
    { passwords: false },
  );

  it('is shown the sign-in of an authorization again, and not sent to and fro without end', async () => {
    const { person, page } = await signIn({ amr: ['pwd'] });
    expect(page.url.pathname).to.equal(STRONGER);
    const url = authorizationUrl(on.service.issuer, on.seeded.clients.confidential);
    const asked = await person.travel(await person.get(url));
    expect(asked.html).to.include('Your last sign-in did not prove enough');
    on.upstream.lie = { claims: (said) => ({ ...said, amr: ['otp'] }) };
    const consent = await person.travel(await person.submit(asked, { sign_in_with: 'platform' }));
    expect(consent.html).to.include(owner().email).and.include('value="approve"');
  });
});

describe('an owner who comes from a provider that the operator calls weak', () => {
  const { on, owner, signIn } = withOwner({ isStrong: false });

  it('has no way yet, so the page offers a passkey and not that provider', async () => {
    const { person, page } = await signIn({ acr: 'phr', amr: ['hwk'] });
    expect(page.url.pathname).to.equal(STRONGER);
    expect(page.html).to.include('Add a passkey').and.not.include('from now on');
    // With the password as well: the link is no way that would have to be used instead.
    const typed = createPerson(on.service.issuer);
    expect((await typed.signIn(owner())).url.pathname).to.equal(STRONGER);
    await addPasskey(on.service.issuer, person);
    expect((await person.get('/profile')).status).to.equal(200);
    const refused = await createPerson(on.service.issuer).signIn(owner());
    expect(refused.html)
      .to.include('sign in with the passkey')
      .and.not.include('or Warehouse platform');
  });
});

describe('a session from a provider', () => {
  const PLAIN = { issuer: 'https://a.example', isStrong: true, strongAcr: [], strongAmr: [] };
  const WEAK: UpstreamStrength = { ...PLAIN, issuer: 'https://b.example', isStrong: false };
  const PROVING: UpstreamStrength = { ...PLAIN, strongAmr: ['mfa'] };
  const from = (issuer: string, amr: string[] = []) =>
    ({ method: 'upstream', proof: { issuer, acr: undefined, amr } }) as const;
  const OF_BEFORE = { method: 'upstream' } as const;

  it('of an older version is strong as long as every provider is without a proof', () => {
    expect(isStrongSession(OF_BEFORE, [PLAIN])).to.equal(true);
    expect(isStrongSession(OF_BEFORE, [PLAIN, WEAK])).to.equal(false);
    expect(isStrongSession(OF_BEFORE, [PROVING])).to.equal(false);
  });

  it('is judged by the settings of now, and not strong once its provider is gone', () => {
    expect(isStrongSession(from(PLAIN.issuer), [PLAIN, WEAK])).to.equal(true);
    expect(isStrongSession(from(PLAIN.issuer), [PROVING])).to.equal(false);
    expect(isStrongSession(from(PLAIN.issuer, ['pwd', 'mfa']), [PROVING])).to.equal(true);
    expect(isStrongSession(from(WEAK.issuer, ['mfa']), [PROVING, WEAK])).to.equal(false);
    expect(isStrongSession(from(PLAIN.issuer), [WEAK])).to.equal(false);
  });
});
