/** A user signs out, and another one signs in, in a browser with a session at a provider. */
import { expect } from 'chai';
import { said } from '../pages/client-owner.ts';
import { authorizationUrl } from '../support/oauth.ts';
import type { Page } from '../support/person.ts';
import type { Traveller } from '../support/upstream.ts';
import { GRACE, startWithUpstream, WITH_PLATFORM } from './service.ts';

const OSCAR = { sub: 'oscar-there', email: 'oscar@example.test', email_verified: true };
const PARTNER = { sign_in_with: 'partner' };
const PROMPTS = ['none', 'login', 'select_account'];

const promptOf = ({ location }: Page) => location?.searchParams.get('prompt');
const isConsent = ({ forms }: Page): boolean => forms.some(({ names }) => names.has('decision'));

describe('the provider session of one user does not sign in the next user of the browser', () => {
  const on = startWithUpstream({ hasSecond: true });

  before('one provider supports prompt=select_account', () => {
    on.second.changes.set('/.well-known/openid-configuration', (ctx) => {
      ctx.body = { ...(ctx.body as object), prompt_values_supported: PROMPTS };
    });
  });

  const signedIn = async (): Promise<Traveller> => {
    const person = on.traveller();
    expect((await on.signIn(GRACE, person)).html).to.include('Grace Person');
    return person;
  };
  const signOut = async (person: Traveller): Promise<void> => {
    await person.follow(await person.submit(await person.get('/logout'), {}));
  };
  const begin = async (person: Traveller, fields: Record<string, string> = WITH_PLATFORM): Promise<Page> =>
    person.submit(await person.get('/login'), fields);

  /** Leads a browser to the provider that another user has used in it. @returns the redirect to the provider */
  const WAYS: Readonly<Record<string, (person: Traveller) => Promise<Page>>> = {
    async 'after a sign-out'(person) {
      await on.signIn(GRACE, person);
      await signOut(person);
      return begin(person);
    },
    async 'after "Not you?" on the consent page'(person) {
      await on.signIn(GRACE, person);
      const consent = await person.open(authorizationUrl(on.service.issuer, on.seeded.clients.confidential));
      const page = await person.follow(await person.submit(consent, { decision: 'switch-account' }));
      return person.submit(page, WITH_PLATFORM);
    },
    async 'after a sign-in with an unknown account'(person) {
      const refused = await on.signIn({ ...OSCAR, sub: 'n', email: 'n@example.test' }, person);
      expect(refused.html).to.include(said('upstream.unknown-heading'));
      const [, again = ''] = /href="(\/login\?[^"]+)"/.exec(refused.html) ?? [];
      return person.submit(await person.get(again.replaceAll('&amp;', '&')), WITH_PLATFORM);
    },
    async 'even if another tab started its sign-in before the sign-out'(person) {
      const inAnotherTab = await person.get('/login');
      await on.signIn(GRACE, person);
      const callback = await person.untilCallback(await person.submit(inAnotherTab, WITH_PLATFORM));
      await signOut(person);
      return person.get(callback);
    },
  };
  for (const [when, arrive] of Object.entries(WAYS)) {
    it(`the provider prompts the next user of the browser ${when}`, async () => {
      const person = on.traveller();
      const there = await arrive(person);
      expect(promptOf(there)).to.equal('login');
      on.upstream.account = OSCAR;
      expect((await person.travel(there)).html)
        .to.include('Oscar Other')
        .and.not.include('Grace Person');
    });
  }

  it('after a sign-out each provider prompts the next user once, with prompt=select_account if it supports this', async () => {
    const person = await signedIn();
    await signOut(person);
    on.upstream.account = OSCAR;
    await person.travel(await begin(person));
    await on.service.accounts.endSessions(on.seeded.other.accountId);
    expect(promptOf(await begin(person))).to.equal(null);
    expect(promptOf(await begin(person, PARTNER))).to.equal('select_account');
  });

  it('a sign-out causes no prompt in another browser, and its cookie contains only provider ids', async () => {
    const person = await signedIn();
    await signOut(person);
    expect(person.cookieHeader('/')).to.match(/gate_ask_who=platform~partner(;|$)/);
    expect(promptOf(await begin(on.traveller()))).to.equal(null);
  });

  const alone = (work: () => Promise<unknown>) => on.service.withSettings(on.providing({}, { passwords: false }), work);

  it("without passwords and with one provider, the next user of a browser sees the sign-in page instead of the previous user's consent page", () =>
    alone(async () => {
      const person = on.traveller();
      on.upstream.account = GRACE;
      const hint = { login_hint: GRACE.email };
      const url = authorizationUrl(on.service.issuer, on.seeded.clients.confidential, hint);
      const consent = await person.travel(await person.get(url));
      expect(isConsent(consent)).to.equal(true);
      on.upstream.account = OSCAR;
      const page = await person.travel(await person.submit(consent, { decision: 'switch-account' }));
      expect(page.html).to.include('Sign in with <bdi>Warehouse platform</bdi>');
      const there = await person.submit(page, WITH_PLATFORM);
      expect(promptOf(there)).to.equal('login');
      // Leave out the client's login_hint, which names the previous user.
      expect(there.location?.searchParams.get('login_hint')).to.equal(null);
      const again = await person.travel(there);
      expect(again.html).to.include('Oscar Other').and.not.include('Grace Person');
    }));

  it("without passwords and with one provider, the next user after a sign-out sees the sign-in page; a portal's sign-in link leads to a prompt", () =>
    alone(async () => {
      const person = on.traveller();
      await on.signIn(GRACE, person);
      const signedOut = await person.follow(await person.submit(await person.get('/logout'), {}));
      expect(signedOut.html).to.match(/also sign out of\s+<bdi>Warehouse platform/);
      expect((await person.get('/login')).html).to.include('Warehouse platform');
      expect(promptOf(await person.get('/login/platform'))).to.equal('login');
    }));
});
