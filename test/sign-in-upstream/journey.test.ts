/** An imported user of a provider connects a client and never has a password here. */
import { expect } from 'chai';
import { said } from '../pages/client-owner.ts';
import { authorizationUrl, exchangeCode, pkce } from '../support/oauth.ts';
import type { Traveller } from '../support/upstream.ts';
import { setExternalId, startWithUpstream, WITH_PLATFORM } from './service.ts';

describe('a new user without a password can sign in and confirm actions with a provider', () => {
  // Offer a single sign-in method, so that no page asks for a choice.
  const on = startWithUpstream({ provider: { match: 'external_id' }, passwords: false });
  const LINUS = { sub: 'employee-17', email: 'linus@example.test', email_verified: false };

  before('an account as an import creates it', async () => {
    await addImported(LINUS, 'Linus Lager');
    on.upstream.account = LINUS;
  });

  async function addImported({ sub, email }: typeof LINUS, name: string): Promise<void> {
    const { id } = await on.service.accounts.add({ email, name });
    await setExternalId(on.service, id, sub);
  }

  const account = () => on.service.accounts.findByEmail(LINUS.email);
  const accountId = async (): Promise<string> => (await account())?.id ?? '';
  /** Sends the form for a new API key. @returns the answer, which asks for a confirmation */
  const askForKey = async (person: Traveller) =>
    person.submit(await person.travel(await person.get('/profile/api-keys')), { name: 'Night sync' });

  it("a new user signs in from a client's request, approves, and the client is connected", async () => {
    const { confidential } = on.seeded.clients;
    const { verifier, parameters } = pkce();
    const person = on.traveller();
    const url = authorizationUrl(on.service.issuer, confidential, parameters);
    const consent = await person.travel(await person.get(url));
    expect(consent.html).to.include('Linus Lager').and.include('Route Planner');
    const { location } = await person.travel(await person.submit(consent, { decision: 'approve' }));
    expect(location?.searchParams.get('state')).to.equal('state-of-the-partner');
    const code = location?.searchParams.get('code') ?? '';
    const tokens = await exchangeCode(on.service.issuer, confidential, code, { code_verifier: verifier });
    expect(tokens.status, tokens.text).to.equal(200);
    expect(await account()).to.include({ hasPassword: false });
    const log = await on.service.activity.of(await accountId(), { limit: 9 });
    expect(log.map(({ action }) => action).toSorted()).to.deep.equal(['connected', 'identity_linked', 'signed_in']);
  });

  it('a user can return to the client without signing in with the provider', async () => {
    const { confidential } = on.seeded.clients;
    on.upstream.isCancelling = true;
    const person = on.traveller();
    const url = authorizationUrl(on.service.issuer, confidential);
    const page = await person.travel(await person.get(url));
    on.upstream.isCancelling = false;
    expect(page.status).to.equal(200);
    expect(page.html).to.include('You came back from <bdi>Warehouse platform</bdi> without signing');
    const { location } = await person.travel(await person.submit(page, { decision: 'deny' }));
    expect(location?.searchParams.get('error')).to.equal('access_denied');
    expect(location?.searchParams.get('state')).to.equal('state-of-the-partner');
  });

  it('a user who cancels at the provider comes back to the sign-in page, and keeps what they typed', async () => {
    const person = on.traveller();
    const form = await person.travel(await person.get('/profile/api-keys'));
    await on.service.accounts.endSessions(await accountId());
    const sent = await person.submit(form, { name: 'Night sync' });
    const callback = await person.untilCallback(sent);
    callback.searchParams.delete('code');
    callback.searchParams.set('error', 'access_denied');
    const page = await person.travel(await person.get(callback));
    expect(page.url.pathname).to.equal('/login');
    expect(page.html).to.include('without signing in. Try again.').and.not.include('Cancel');
    const back = await person.travel(await person.submit(page, WITH_PLATFORM));
    expect(back.url.pathname).to.equal('/profile/api-keys');
    expect(back.html).to.include('value="Night sync"');
  });

  it('a user who cancels a confirmation at the provider returns to the form, and the action is not done', async () => {
    const person = on.traveller();
    const form = await person.travel(await person.get('/profile/api-keys'));
    on.clock.advance(601);
    const asked = await person.submit(form, { name: 'Night sync' });
    on.upstream.isCancelling = true;
    const back = await person.travel(await person.submit(asked, WITH_PLATFORM));
    on.upstream.isCancelling = false;
    expect(back.url.pathname).to.equal('/profile/api-keys');
    expect(back.html).to.include('value="Night sync"');
    expect(await on.service.apiKeys.listOf(await accountId())).to.deep.equal([]);
  });

  it('with passwords disabled, no page offers a password, and a sign-in with a password is refused', async () => {
    for (const path of ['/forgot-password', '/profile/security/password']) {
      expect((await on.traveller().get(path)).status, path).to.equal(404);
    }
    // The page of an invitation link still exists, because the link signs its user in.
    expect((await on.traveller().get('/password?token=x')).status).to.equal(410);
    const person = on.traveller();
    const security = await person.travel(await person.get('/profile/security'));
    expect(security.html).to.include('Warehouse platform').and.not.include('new-password');
    const stranger = on.traveller();
    const login = await stranger.get('/login?choose=yes');
    expect(login.html).not.to.include('name="password"');
    const { email, password } = on.seeded.person;
    const [form] = login.forms;
    const sent = { ...Object.fromEntries(form?.values ?? []), email, password };
    expect((await stranger.post('/login', sent)).status).to.equal(403);
    expect((await stranger.get('/profile')).status).to.equal(303);
  });

  it('a user confirms an action at the provider, the form keeps the entered values, and the log has the confirmation', async () => {
    const person = on.traveller();
    const asked = await askForKey(person);
    expect(asked.html).to.include(said('confirm.title')).and.not.include('current_password');
    // Chromium applies form-action to the redirect to the provider, too.
    expect(asked.headers.get('content-security-policy')).not.to.include('form-action');
    const there = await person.submit(asked, { sign_in_with: 'platform' });
    expect(there.location?.searchParams.get('max_age')).to.equal('0');
    const back = await person.travel(there);
    expect(back.url.pathname).to.equal('/profile/api-keys');
    expect(back.html).to.include('value="Night sync"');
    // The user returns from the provider, but the form is not sent.
    expect(await on.service.apiKeys.listOf(await accountId())).to.have.lengthOf(0);
    const made = await person.follow(await person.submit(back, { name: 'Night sync' }));
    expect(made.html).to.include('data-secret');
    const log = await on.service.activity.of(await accountId(), { limit: 9, actions: ['signed_in'] });
    const [confirmed, signedInBefore] = log.map(({ details }) => details);
    expect(confirmed).to.include({ provider_name: 'Warehouse platform', confirmation: true });
    expect(signedInBefore).to.not.have.property('confirmation');
  });

  it('a user cannot confirm an action as an unknown user, nor with an old authentication', async () => {
    const person = on.traveller();
    const confirm = async () => person.travel(await person.submit(await askForKey(person), WITH_PLATFORM));
    await person.travel(await person.get('/profile'));
    on.upstream.lie = { claims: ({ auth_time, ...claims }) => ({ ...claims, auth_time: 1 }) };
    const stale = await confirm();
    expect(stale.html).to.include('does not prove who you are');
    on.upstream.lie = { claims: ({ auth_time: _, ...claims }) => claims };
    expect((await confirm()).html).to.include('does not prove who you are');
    on.upstream.lie = { claims: (claims) => ({ ...claims, sub: 'linked with no account' }) };
    expect((await confirm()).html).to.include(said('upstream.another-heading'));
    on.upstream.lie = {};
    expect((await askForKey(person)).html).to.include(said('confirm.title'));
    const [last] = await on.service.activity.of(await accountId(), { limit: 1 });
    expect(last).to.deep.include({ action: 'sign_in_refused' });
  });
});
