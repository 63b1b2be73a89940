/** The first sign-in with a provider, to an account that another person may have used before. */
import { expect } from 'chai';
import type { LinkPurpose } from '../../src/accounts/passwords/links.ts';
import { addPasskey } from '../pages/passkeys/soft-passkey.ts';
import { authorizationUrl } from '../support/oauth.ts';
import { createPerson, type Page, type Person } from '../support/person.ts';
import { addPerson, passwordLink, type SeededPerson } from '../support/seed.ts';
import type { UpstreamAccount } from '../support/upstream.ts';
import { startWithUpstream, WAY } from './service.ts';

const QUESTION = '/profile/security/first-sign-in';
const SET_BY_ANOTHER = 'eight blue pallets, stacked';

describe('the first sign-in with a provider', () => {
  const on = startWithUpstream();
  let people = 0;
  let person: SeededPerson;
  let atProvider: UpstreamAccount;

  beforeEach('an account with a password', async () => {
    people += 1;
    person = await addPerson(on.service, 'Pat', `pat-${people}@example.test`);
    atProvider = { sub: `pat-${people}`, email: person.email, email_verified: true };
    on.upstream.account = atProvider;
  });

  /** A person who has the link, with its page still open. @returns how they use it. */
  async function holder(purpose: LinkPurpose = 'invitation') {
    const browser = createPerson(on.service.issuer);
    const form = await browser.open(await passwordLink(on.service, person, purpose));
    expect(form.status).to.equal(200);
    return async (): Promise<number> =>
      (await browser.submit(form, { new_password: SET_BY_ANOTHER })).status;
  }
  const signedIn = async (): Promise<Person> => {
    const browser = createPerson(on.service.issuer);
    await browser.signIn(person);
    return browser;
  };
  const isIn = async (browser: Person): Promise<boolean> =>
    (await browser.get('/profile')).status === 200;
  const arrived = async (
    path = '/login',
  ): Promise<{ owner: ReturnType<typeof on.traveller>; page: Page }> => {
    const owner = on.traveller();
    const start = await owner.follow(await owner.get(path));
    return { owner, page: await owner.arrive(await owner.submit(start, WAY)) };
  };
  const account = async () => on.service.accounts.find(person.accountId);

  const NEW_WAYS: Readonly<Record<string, () => Promise<unknown>>> = {
    'the first sign-in of its owner': () => on.signIn(atProvider),
    async 'a link that a signed-in person adds'() {
      const browser = on.traveller();
      await browser.signIn(person);
      const page = await browser.get('/profile/security');
      const added = await browser.travel(await browser.submit(page, { link_with: 'platform' }));
      expect(added.html).to.include('from now on');
    },
    'a link that an import or a node of the version before adds': () => linkOfImport(),
    'a passkey': async () => addPasskey(on.service.issuer, await signedIn(), { name: 'Phone' }),
  };
  for (const [what, add] of Object.entries(NEW_WAYS)) {
    it(`${what} ends the open one-time links of the account`, async () => {
      const holders = await Promise.all(
        (['invitation', 'forgotten', 'confirmed'] as const).map((purpose) => holder(purpose)),
      );
      await add();
      for (const useLink of holders) expect(await useLink()).to.equal(410);
      expect(await isIn(await signedIn())).to.equal(true);
    });
  }

  const linkOfImport = () =>
    on.service.database.query(
      `INSERT INTO account_identities (issuer, subject, account_id, created_at)
        VALUES ($1, $2, $3, $4)`,
      [on.upstream.issuer, atProvider.sub, person.accountId, new Date(on.clock.clock())],
    );

  it('with a link of an import ends invitations of since then, and asks as well', async () => {
    await linkOfImport();
    const useLink = await holder();
    expect((await arrived()).page.url.pathname).to.equal(QUESTION);
    expect(await useLink()).to.equal(410);
    // One that the operator makes later works.
    const useLater = await holder();
    expect((await arrived()).page.url.pathname).to.equal('/profile');
    expect(await useLater()).to.equal(303);
  });

  it('asks its person what to keep, and ends what they tick', async () => {
    const intruder = await signedIn();
    const keys = await intruder.get('/profile/api-keys');
    await intruder.submit(keys, { name: 'Mine' });
    const { owner, page } = await arrived('/profile/activity');
    expect(page.url.pathname).to.equal(QUESTION);
    for (const choice of ['the password', 'another browser', 'your API key']) {
      expect(page.html).to.include(`<bdi>${choice}</bdi>`);
    }
    expect(page.html).not.to.include('the sign-in with');
    const ticked = { remove_password: 'yes', end_sessions: 'yes', revoke_api_keys: 'yes' };
    // The provider does not say when it asked, so it is asked again; the ticks come back.
    const asked = await owner.submit(page, ticked);
    const again = await owner.arrive(await owner.submit(asked, WAY));
    expect(again.url.pathname).to.equal(QUESTION);
    expect(Object.fromEntries(again.forms[0]?.values ?? [])).to.include(ticked);
    expect(await account()).to.include({ hasPassword: true });
    const done = await owner.submit(again, ticked);
    expect(done.location?.pathname, done.html).to.equal('/profile/activity');
    expect((await owner.follow(done)).html).to.include('it was removed, after the first sign-in');
    expect(await isIn(intruder)).to.equal(false);
    expect((await createPerson(on.service.issuer).signIn(person)).status).to.equal(401);
    expect(await on.service.apiKeys.listOf(person.accountId)).to.deep.equal([]);
    expect(await isIn(owner)).to.equal(true);
  });

  it('keeps what is not ticked, and leads on to the client that was waiting', async () => {
    const other = await signedIn();
    const url = authorizationUrl(on.service.issuer, on.seeded.clients.confidential);
    const { owner, page } = await arrived(`${url.pathname}${url.search}`);
    expect(page.url.pathname).to.equal(QUESTION);
    const [, onward = ''] = /href="([^"]+)">Keep everything/.exec(page.html) ?? [];
    const consent = await owner.follow(await owner.get(onward.replaceAll('&amp;', '&')));
    expect(consent.html).to.include('Route Planner');
    expect(await account()).to.include({ hasPassword: true });
    expect(await isIn(other)).to.equal(true);
    expect((await arrived()).page.url.pathname).to.equal('/profile');
  });

  it('asks nothing where there was nothing before', async () => {
    await on.service.database.query('UPDATE accounts SET password_hash = NULL WHERE id = $1', [
      person.accountId,
    ]);
    expect((await arrived('/profile/activity')).page.url.pathname).to.equal('/profile/activity');
  });

  it('leaves something to sign in with, or ends nothing', async () => {
    const { owner, page } = await arrived();
    const own = `provider ${on.upstream.issuer}`;
    const ticked = { remove_password: 'yes', remove_way: own };
    const sent = ({ forms }: Page) => ({
      ...Object.fromEntries(forms[0]?.values ?? []),
      ...ticked,
    });
    const asked = await owner.post(QUESTION, sent(page));
    const again = await owner.arrive(await owner.submit(asked, WAY));
    const refused = await owner.post(QUESTION, sent(again));
    expect(refused.status, refused.html).to.equal(422);
    expect(refused.html).to.include('nothing would be left to sign in with');
    expect(await account()).to.include({ hasPassword: true });
    expect(await on.service.identities.listOf(person.accountId)).to.have.lengthOf(1);
  });
});
