/** The first sign-in with a provider, to an account that another person may have used before. */
import { expect } from 'chai';
import type { LinkPurpose } from '../../src/accounts/password-links/password-links.ts';
import { said } from '../pages/client-owner.ts';
import { addPasskey } from '../pages/passkeys/soft-passkey.ts';
import { authorizationUrl } from '../support/oauth.ts';
import { createPerson, isSignedIn, type Page, type Person } from '../support/person.ts';
import { addPerson, passwordLink, type SeededPerson } from '../support/seed.ts';
import type { UpstreamAccount } from '../support/upstream.ts';
import { startWithUpstream, WITH_PLATFORM } from './service.ts';

const QUESTION = '/profile/security/first-sign-in';
const OTHER_PASSWORD = 'eight blue pallets, stacked';

describe('the first sign-in with a provider', () => {
  const on = startWithUpstream();
  let person: SeededPerson;
  let atProvider: UpstreamAccount;

  beforeEach('an account with a password', async () => {
    person = await addPerson(on.service, 'Pat');
    atProvider = { sub: person.email, email: person.email, email_verified: true };
    on.upstream.account = atProvider;
  });

  /** Opens the page of a one-time link in another browser. @returns a function that sends its form. */
  async function openLink(purpose: LinkPurpose = 'invitation') {
    const browser = createPerson(on.service.issuer);
    const form = await browser.open(await passwordLink(on.service, person, purpose));
    expect(form.status).to.equal(200);
    return async (): Promise<number> => (await browser.submit(form, { new_password: OTHER_PASSWORD })).status;
  }
  const signedIn = async (): Promise<Person> => {
    const browser = createPerson(on.service.issuer);
    await browser.signIn(person);
    return browser;
  };
  const arrived = async (path = '/login'): Promise<{ owner: ReturnType<typeof on.traveller>; page: Page }> => {
    const owner = on.traveller();
    const start = await owner.follow(await owner.get(path));
    return { owner, page: await owner.arrive(await owner.submit(start, WITH_PLATFORM)) };
  };
  const account = async () => on.service.accounts.find(person.accountId);

  const NEW_METHODS: Readonly<Record<string, () => Promise<unknown>>> = {
    'the first sign-in of the owner': () => on.signIn(atProvider),
    async 'a link that a signed-in user adds'() {
      const browser = on.traveller();
      await browser.signIn(person);
      const page = await browser.get('/profile/security');
      const added = await browser.travel(await browser.submit(page, { link_with: 'platform' }));
      expect(added.html).to.include('from now on');
    },
    'a link that an import adds': () => addImportedLink(),
    'a passkey': async () => addPasskey(on.service.issuer, await signedIn(), { name: 'Phone' }),
  };
  for (const [what, add] of Object.entries(NEW_METHODS)) {
    it(`${what} invalidates the open one-time links of the account`, async () => {
      const parties = await Promise.all((['invitation', 'forgotten'] as const).map((purpose) => openLink(purpose)));
      await add();
      for (const useLink of parties) expect(await useLink()).to.equal(410);
      expect(await isSignedIn(await signedIn())).to.equal(true);
    });
  }

  const addImportedLink = () =>
    on.service.database.query(
      `INSERT INTO account_identities (issuer, subject, account_id, created_at)
        VALUES ($1, $2, $3, $4)`,
      [on.upstream.issuer, atProvider.sub, person.accountId, new Date(on.clock.clock())],
    );

  it('the first sign-in with an imported link invalidates open invitations, and offers to end older credentials', async () => {
    await addImportedLink();
    const useLink = await openLink();
    expect((await arrived()).page.url.pathname).to.equal(QUESTION);
    expect(await useLink()).to.equal(410);
    // An invitation that the operator creates later works.
    const useLater = await openLink();
    expect((await arrived()).page.url.pathname).to.equal('/profile');
    expect(await useLater()).to.equal(303);
  });

  it('a form whose session ended meanwhile ends no connections, and the session stays ended', async () => {
    const owner = on.traveller();
    await owner.authorize(authorizationUrl(on.service.issuer, on.seeded.clients.confidential), person);
    await addImportedLink();
    const intruder = await signedIn();
    const method = `provider ${on.upstream.issuer}`;
    const page = await intruder.get(`${QUESTION}?${new URLSearchParams({ way: method })}`);
    const { accounts, connections } = on.service;
    const { changeMethods } = accounts;
    // The request waits for its turn while another browser ends all sessions.
    accounts.changeMethods = async (...about) => {
      accounts.changeMethods = changeMethods;
      await accounts.endSessions(person.accountId);
      return changeMethods(...about);
    };
    await intruder.submit(page, { end_connections: 'yes' });
    expect(accounts.changeMethods).to.equal(changeMethods);
    expect(await connections.listOf(person.accountId)).to.have.length(1);
    expect(await isSignedIn(intruder)).to.equal(false);
  });

  it('a first sign-in with a provider offers to end password, sessions and keys, and ends the selected ones', async () => {
    const intruder = await signedIn();
    const keys = await intruder.get('/profile/api-keys');
    await intruder.submit(keys, { name: 'Mine' });
    const { owner, page } = await arrived('/profile/activity');
    expect(page.url.pathname).to.equal(QUESTION);
    for (const choice of ['Your password', 'The sign-ins in other browsers', 'Your API key']) {
      expect(page.html).to.include(choice);
    }
    expect(page.html).not.to.include('Sign-in with');
    const ticked = { remove_password: 'yes', end_sessions: 'yes', revoke_api_keys: 'yes' };
    // The provider sends no auth_time, so a confirmation is required; afterwards the page restores the ticks.
    const asked = await owner.submit(page, ticked);
    const again = await owner.arrive(await owner.submit(asked, WITH_PLATFORM));
    expect(again.url.pathname).to.equal(QUESTION);
    expect(Object.fromEntries(again.forms[0]?.values ?? [])).to.include(ticked);
    expect(await account()).to.include({ hasPassword: true });
    const done = await owner.submit(again, ticked);
    expect(done.location?.pathname, done.html).to.equal('/profile/activity');
    expect((await owner.follow(done)).html).to.include(said('activity.link-removed'));
    expect(await isSignedIn(intruder)).to.equal(false);
    expect((await createPerson(on.service.issuer).signIn(person)).status).to.equal(401);
    expect(await on.service.apiKeys.listOf(person.accountId)).to.deep.equal([]);
    expect(await isSignedIn(owner)).to.equal(true);
  });

  it('an active session is found among many expired ones, with at most 25 sessions read at a time', async () => {
    const { database, store } = on.service;
    const intruder = await signedIn();
    await database.query(
      `INSERT INTO browser_sessions (uid, account_id, cookie_hash, generation, begun_at, address, browser)
        SELECT 'expired ' || n, account_id, 'none', generation, begun_at + interval '1 second', address, browser
          FROM browser_sessions, generate_series(1, 60) n WHERE account_id = $1`,
      [person.accountId],
    );
    let [now, most] = [0, 0];
    const { readSessionByUid } = store;
    store.readSessionByUid = async (uid) => {
      now += 1;
      most = Math.max(most, now);
      return readSessionByUid.call(store, uid).finally(() => {
        now -= 1;
      }) as never;
    };
    const { page } = await arrived();
    store.readSessionByUid = readSessionByUid;
    expect(page.html).to.include('The sign-ins in other browsers');
    expect(most).to.be.within(1, 25);
    expect(await isSignedIn(intruder)).to.equal(true);
  });

  it('“Keep everything” at the first sign-in with a provider ends nothing and continues the authorization', async () => {
    const other = await signedIn();
    const url = authorizationUrl(on.service.issuer, on.seeded.clients.confidential);
    const { owner, page } = await arrived(`${url.pathname}${url.search}`);
    expect(page.url.pathname).to.equal(QUESTION);
    const [, onward = ''] = /href="([^"]+)">Keep everything/.exec(page.html) ?? [];
    const consent = await owner.follow(await owner.get(onward.replaceAll('&amp;', '&')));
    expect(consent.html).to.include('Route Planner');
    expect(await account()).to.include({ hasPassword: true });
    expect(await isSignedIn(other)).to.equal(true);
    expect((await arrived()).page.url.pathname).to.equal('/profile');
  });

  it('a first sign-in with a provider asks nothing if the account has no password, connection, key or session', async () => {
    await on.service.database.query('UPDATE accounts SET password_hash = NULL WHERE id = $1', [person.accountId]);
    expect((await arrived('/profile/activity')).page.url.pathname).to.equal('/profile/activity');
  });

  it('at the first sign-in, a form that selects every sign-in method for removal is refused, and nothing is ended', async () => {
    const { owner, page } = await arrived();
    const own = `provider ${on.upstream.issuer}`;
    const ticked = { remove_password: 'yes', remove_way: own };
    const sent = ({ forms }: Page) => ({
      ...Object.fromEntries(forms[0]?.values ?? []),
      ...ticked,
    });
    const asked = await owner.post(QUESTION, sent(page));
    const again = await owner.arrive(await owner.submit(asked, WITH_PLATFORM));
    const refused = await owner.post(QUESTION, sent(again));
    expect(refused.status, refused.html).to.equal(422);
    expect(refused.html).to.include(said('first-sign-in.last'));
    expect(await account()).to.include({ hasPassword: true });
    expect(await on.service.identities.listOf(person.accountId)).to.have.lengthOf(1);
  });
});
