/** Signing in with a provider: to the provider, back, and on to the requested page. */
import { expect } from 'chai';
import { said } from '../pages/client-owner.ts';
import { startsWithMail } from '../support/mail-server.ts';
import { authorizationUrl } from '../support/oauth.ts';
import { addPerson } from '../support/seed.ts';
import { GRACE, startWithUpstream, WITH_PLATFORM } from './service.ts';

describe('signing in with a provider', () => {
  const on = startWithUpstream({ hasSecond: true });

  const identities = (accountId: string) => on.service.identities.listOf(accountId);

  it('a sign-in with a provider uses PKCE, state and nonce, and returns to the requested page', async () => {
    on.upstream.account = GRACE;
    const person = on.traveller();
    const page = await person.get('/login?return_to=/profile/api-keys');
    // Expect no form-action, because Chromium applies it to the redirect to the provider, too.
    expect(page.headers.get('content-security-policy')).not.to.include('form-action');
    const there = await person.submit(page, WITH_PLATFORM);
    const asked = Object.fromEntries(there.location?.searchParams ?? []);
    expect(asked).to.include({
      response_type: 'code',
      redirect_uri: `${on.service.issuer}/login/platform/callback`,
      code_challenge_method: 'S256',
      scope: 'openid email profile',
    });
    expect(asked.state).to.match(/^[\w-]{43}$/);
    expect(asked.nonce).to.match(/^[\w-]{43}$/);
    const arrived = await person.travel(there);
    expect(arrived.url.pathname, arrived.html).to.equal('/profile/api-keys');
    expect(arrived.html).to.include('Grace Person');
    const [last] = await on.service.activity.of(on.seeded.person.accountId, { limit: 1 });
    expect(last?.details).to.deep.include({ method: 'upstream', provider: 'platform' });
  });

  it('the first sign-in links the account by its verified email; later ones use only the link', async () => {
    const { accountId } = on.seeded.person;
    expect(await identities(accountId)).to.have.lengthOf(1);
    // The address has changed and is not verified.
    const moved = { sub: GRACE.sub, email: 'oscar@example.test', email_verified: false };
    expect((await on.signIn(moved)).html).to.include('Grace Person');
    expect(await identities(accountId)).to.have.lengthOf(1);
  });

  it('an account whose address changes during the sign-in is not linked by its former address', async () => {
    const email = 'mover@example.test';
    const { accountId } = await addPerson(on.service, 'Mona Mover', email);
    const { database } = on.service;
    const { query } = database;
    Object.assign(database, {
      query: async (text: string, values: unknown[]) => {
        const rows = await query(text, values);
        if (!text.includes('email_key = $1')) return rows;
        Object.assign(database, { query });
        await on.service.accounts.changeEmail(accountId, 'mona@new.example');
        return rows;
      },
    });
    const arrived = await on.signIn({ sub: 'mover', email, email_verified: true });
    expect(database.query, 'the address was changed meanwhile').to.equal(query);
    expect(arrived.html).to.not.include('Mona Mover');
    expect(await identities(accountId)).to.have.lengthOf(0);
  });

  it('prompt=login requires a new authentication at the provider; otherwise its session is enough', async () => {
    const { confidential } = on.seeded.clients;
    on.upstream.account = GRACE;
    const person = on.traveller();
    await on.signIn(GRACE, person);
    const ask = (more = {}) => person.get(authorizationUrl(on.service.issuer, confidential, more));
    const page = await person.follow(await ask({ prompt: 'login' }));
    const there = await person.submit(page, WITH_PLATFORM);
    expect(there.location?.searchParams.get('max_age')).to.equal('0');
    expect(there.location?.searchParams.get('prompt')).to.equal('login');
    const consent = await person.travel(there);
    expect(consent.html).to.include('Route Planner');
    expect(consent.forms.some(({ names }) => names.has('decision'))).to.equal(true);
  });

  it("a provider's user without an account is refused, and no account is created", async () => {
    const before = (await on.service.accounts.list()).items;
    const page = await on.signIn({ sub: 'n', email: 'nobody@example.test', email_verified: true });
    expect(page.status).to.equal(403);
    expect(page.html).to.include(said('upstream.unknown-heading'));
    expect((await on.service.accounts.list()).items).to.deep.equal(before);
    // The log contains the subject, so that the operator finds it by the reference of the page.
    expect(on.service.logLines.join()).to.include('"subject":"n"');
  });
});

describe('a user is mailed once about a sign-in with a provider in a new browser', () => {
  const mail = startsWithMail();
  const on = startWithUpstream({ start: mail.start, hasSecond: true });

  it('a sign-in in a new browser sends one mail, about the new provider link or else about the browser', async () => {
    const person = on.traveller();
    await person.signIn(on.seeded.person);
    await person.submit(await person.get('/logout'), {});
    for (const _ of [1, 2]) {
      await on.signIn(GRACE, person);
      await person.submit(await person.get('/logout'), {});
    }
    await on.signIn(GRACE);
    on.second.account = { ...GRACE, sub: 'grace-at-the-partner' };
    const another = on.traveller();
    await another.travel(await another.submit(await another.get('/login'), { sign_in_with: 'partner' }));
    // Mail is sent in the background, and the service sends all of it before it closes.
    await on.service.close();
    const subjects = mail.received.map(({ subject }) => subject);
    expect(subjects.toSorted()).to.deep.equal([
      'A sign-in method was added to your Gatehouse account',
      'A sign-in method was added to your Gatehouse account',
      'We noticed a new sign-in to your Gatehouse account',
      'We noticed a new sign-in to your Gatehouse account',
    ]);
    const [link] = mail.received.filter(({ raw }) => raw.includes('was added') && raw.includes('Warehouse platform'));
    expect(link?.to).to.deep.equal([on.seeded.person.email]);
  });
});
