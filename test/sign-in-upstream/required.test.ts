/**
 * sign_in.require: users who can change what others reach need more than a password, also after a mailed link, and for
 * every request that a session could still send after the end of the grace period.
 */
import { expect } from 'chai';
import type { LinkPurpose } from '../../src/accounts/password-links/password-links.ts';
import { operatorFor, valueFrom } from '../operator/run-operator.ts';
import { said } from '../pages/client-owner.ts';
import { addPasskey, optionsFor, signInWith } from '../pages/passkeys/soft-passkey.ts';
import { fieldOf } from '../pages/signed-in-person.ts';
import { outcomeOf } from '../provider/authorization-outcome.ts';
import { startsWithMail } from '../support/mail-server.ts';
import { authorizationUrl, introspect, type TestClient } from '../support/oauth.ts';
import { createPerson, type Page, type Person } from '../support/person.ts';
import { rawRequest } from '../support/raw-request.ts';
import { addPerson, addTestClient, apiKeyOf, passwordLink, type SeededPerson } from '../support/seed.ts';
import { startWithUpstream } from './service.ts';

/** Seconds of the grace period: shorter than everything that waits for a user, such as a sign-in. */
const GRACE_SECONDS = 120;
const IDLE_SECONDS = 3_600;
const NEW_PASSWORD = 'eight blue pallets, stacked';
const STRONG_SIGN_IN = '/profile/stronger-sign-in';
/** The routes that a user without a passkey or provider needs to add one. */
const ALLOWED = [
  'GET /profile/stronger-sign-in',
  'GET /profile/security/ways',
  'POST /profile/security/ways',
  'GET /profile/security/passkeys/new',
  'POST /profile/security/passkeys/new',
  'GET /passkey-options/add',
];
/** Routes that need no session, or that sign in and out. */
const PUBLIC =
  /^(GET \/passkey-options\/sign-in|(GET|OPTIONS) \/\.well-known\/|(GET|POST|OPTIONS) \/(login|logout|language|password|forgot-password|errors|openapi.json|assets|favicon.ico|apple-touch-icon.png|oauth|interaction|$))/;

describe('the service can require more than a password for a sign-in', () => {
  const mail = startsWithMail();
  const on = startWithUpstream({
    settings: {
      sessions: { idleSeconds: IDLE_SECONDS },
      signIn: { require: 'passkey-or-upstream', requireGraceSeconds: GRACE_SECONDS },
    },
    start: mail.start,
  });
  let owner: SeededPerson;

  const browser = (): Person => createPerson(on.service.issuer);
  const signedIn = async (credentials = owner): Promise<Person> => {
    const person = browser();
    await person.signIn(credentials);
    return person;
  };
  const givePasskey = async (who = owner) => (await addPasskey(on.service.issuer, await signedIn(who))).passkey;
  const endGrace = (): void => on.clock.advance(GRACE_SECONDS);

  describe('users who administer an organization or own a client need more than a password', () => {
    beforeEach('an owner of a new organization', async () => {
      owner = await addPerson(on.service, 'Olga Owner');
      await makeOwner(owner);
    });

    async function makeOwner({ accountId }: SeededPerson): Promise<void> {
      const { id } = await on.service.organizations.add({ name: `Storage of ${accountId}` });
      await on.service.memberships.setRole({ accountId }, id, 'owner');
    }

    const ask = (more = {}) =>
      authorizationUrl(on.service.issuer, on.seeded.clients.otherConfidential, { prompt: 'consent', ...more });
    const keys = () => on.service.apiKeys.listOf(owner.accountId);
    const afterGrace = async (): Promise<void> => {
      // The grace period starts when users are first informed.
      await signedIn();
      endGrace();
    };

    it('owners and admins see the end of the grace period on each page, and can use passwords until then', async () => {
      const person = await signedIn();
      const page = await person.get('/profile');
      const [, until] = /From <time datetime="([^"]+)"/.exec(page.html) ?? [];
      expect(Date.parse(until ?? '')).to.equal(on.clock.clock() + GRACE_SECONDS * 1_000);
      expect(page.html).to.include(`href="${STRONG_SIGN_IN}"`);
      on.clock.advance(100);
      const later = await (await signedIn()).get('/profile/activity');
      expect(later.html).to.include(`From <time datetime="${until}"`);
      await person.submit(await person.get('/profile/api-keys'), { name: 'Export' });
      expect(await keys()).to.have.length(1);
      expect((await person.get(STRONG_SIGN_IN)).html).to.include(said('passkey.add'));
      // A member who is no owner or admin is not asked to add a passkey.
      const member = await signedIn(on.seeded.person);
      expect((await member.get('/profile')).html).not.to.include(STRONG_SIGN_IN);
      expect((await member.get(STRONG_SIGN_IN)).location?.pathname).to.equal('/profile');
    });

    it('the refusal of a correct password names the required passkey; a wrong password reveals nothing', async () => {
      const passkey = await givePasskey();
      await afterGrace();
      const stranger = browser();
      const page = await stranger.follow(await stranger.get(ask()));
      const wrong = await stranger.submit(page, { email: owner.email, password: 'wrong password' });
      expect(wrong.status).to.equal(401);
      for (const { html } of [page, wrong]) expect(html).not.to.include('Laptop').and.not.include('no longer enough');
      const refused = await browser().signIn(owner);
      expect(refused.status).to.equal(403);
      expect(refused.html).to.include('sign in with the passkey <bdi>Laptop</bdi>');
      // The wrong password is recorded in the background, possibly later.
      const last = await on.service.activity.of(owner.accountId, { limit: 2 });
      expect(last.map(({ details }) => details)).to.deep.include({ reason: 'password_alone' });
      const again = browser();
      expect((await signInWith(again, passkey)).status).to.equal(303);
      expect((await again.get('/profile')).html).not.to.include(STRONG_SIGN_IN);
    });

    it('after the grace period a password cannot confirm an action, even if it is sent with the form for a passkey', async () => {
      const passkey = await givePasskey();
      await afterGrace();
      const after = browser();
      await signInWith(after, passkey);
      on.clock.advance(601);
      const page = await after.submit(await after.get('/profile/api-keys'), { name: 'Late' });
      expect(page.html).to.include(said('confirm.title')).and.not.include('current_password');
      const form = page.forms.find(({ names }) => names.has('passkey'));
      const { passkey: _, ...carried } = Object.fromEntries(form?.values ?? []);
      const sent = { ...carried, current_password: owner.password };
      const alone = await after.post('/profile/api-keys', sent);
      expect(alone.html).to.include(said('confirm.title'));
      expect(await keys()).to.deep.equal([]);
      const answer = passkey.answer(await optionsFor(after, 'confirm'));
      await after.submit(page, { passkey: answer });
      expect(await keys()).to.have.length(1);
      expect((await after.get('/profile')).status).to.equal(200);
    });

    const isBlocked = async (person: Pick<Person, 'get'>): Promise<boolean> =>
      (await person.get('/profile')).location?.pathname === STRONG_SIGN_IN;
    it('admins of an organization and owners of a client must have more than a password', async () => {
      const [admin, maker, member] = [
        await addPerson(on.service, 'Ada'),
        await addPerson(on.service, 'Max'),
        await addPerson(on.service, 'Mo'),
      ];
      const { id } = await on.service.organizations.add({ name: 'Office' });
      await on.service.memberships.setRole(admin, id, 'admin');
      await on.service.memberships.setRole(member, id, 'member');
      await addTestClient(on.service, 'Own', { ownerAccountId: maker.accountId });
      const sessions = [await signedIn(admin), await signedIn(maker), await signedIn(member)];
      endGrace();
      const blocked = await Promise.all(sessions.map(isBlocked));
      expect(blocked).to.deep.equal([true, true, false]);
    });

    it('users with a passkey are not locked out while passkeys are disabled: they can link a provider', async () => {
      await givePasskey();
      await afterGrace();
      const { signIn } = on.service.settings;
      const settings = { signIn: { ...signIn, passkeys: false } };
      const node = await mail.start({ sharing: on.service, clock: on.clock.clock, settings });
      const person = createPerson(node.issuer);
      const page = await person.signIn(owner);
      expect(page.url.pathname).to.equal(STRONG_SIGN_IN);
      expect(page.html).to.include('value="platform"').and.not.include(said('passkey.add'));
    });

    it('the operator sees which users still need a sign-in method stronger than a password', async () => {
      const operator = operatorFor(on.service);
      const owing = async () => {
        const accounts = await valueFrom(operator, 'accounts list --owing-a-passkey');
        return accounts.map(({ email }: { email: string }) => email);
      };
      expect(await owing())
        .to.include.members([owner.email, on.seeded.other.email])
        .and.not.include(on.seeded.person.email);
      await givePasskey();
      expect(await owing()).not.to.include(owner.email);
    });

    const linkFor = (purpose: LinkPurpose, { accountId } = owner): Promise<string> =>
      passwordLink(on.service, { accountId }, purpose);
    const passkeysOf = ({ accountId } = owner) => on.service.passkeys.of(accountId);
    const mailTo = async ({ email }: SeededPerson, what: string) => (await mail.mailTo(email, what)).text;
    /** Asks for a link as a user does, and returns the link of the mail. */
    const forgetPassword = async (): Promise<string> => {
      const person = browser();
      await person.submit(await person.get('/forgot-password'), { email: owner.email });
      return /http\S+\/password\?token=\S+/.exec(await mailTo(owner, 'Choose a new'))?.[0] ?? '';
    };
    /** Opens a link and sets the password, with these fields even if the page has no such checkbox. */
    async function use(link: string, removeWay: string): Promise<{ form: Page; answer: Page }> {
      const person = browser();
      const form = await person.open(link);
      const [sent] = form.forms.filter(({ names }) => names.has('new_password'));
      const values = { ...Object.fromEntries(sent?.values ?? []), new_password: NEW_PASSWORD, remove_way: removeWay };
      return { form, answer: await person.follow(await person.post('/password', values)) };
    }
    const signInWithNewPassword = (who = owner) => browser().signIn({ email: who.email, password: NEW_PASSWORD });

    it('a password set by a mailed link does not replace a required passkey, and the link cannot remove the passkey', async () => {
      const passkey = await givePasskey();
      const [{ id = '' } = {}] = await passkeysOf();
      endGrace();
      const { form, answer } = await use(await forgetPassword(), id);
      expect(form.html).to.include('sign in with the passkey <bdi>Laptop</bdi>.');
      expect(form.html).not.to.include('name="remove_way"');
      expect(answer.html)
        .to.include('Your password was set.')
        .and.include('sign in with the passkey <bdi>Laptop</bdi>.');
      expect(await passkeysOf()).to.have.length(1);
      const refused = await signInWithNewPassword();
      expect(refused.status).to.equal(403);
      expect(refused.html).to.include('A password is no longer enough for you');
      const person = browser();
      await signInWith(person, passkey);
      expect((await person.get('/profile')).status).to.equal(200);
    });

    it('a mailed link cannot remove the linked provider of a user who has meanwhile become an organization owner', async () => {
      const member = await addPerson(on.service, 'Mo');
      await on.signIn({ sub: member.email, email: member.email, email_verified: true });
      const provider = `provider ${on.upstream.issuer}`;
      const person = browser();
      const form = await person.open(await linkFor('forgotten', member));
      expect(form.html).to.include(`name="remove_way" value="${provider}"`);
      await makeOwner(member);
      await person.submit(form, { new_password: NEW_PASSWORD, remove_way: provider });
      expect(await on.service.identities.listOf(member.accountId)).to.have.length(1);
    });

    it('if passkeys are optional for a user, a password link keeps them, and the page says where to remove them', async () => {
      const member = await addPerson(on.service, 'Mo');
      await givePasskey(member);
      const [{ id = '' } = {}] = await passkeysOf(member);
      const { form, answer } = await use(await linkFor('forgotten', member), id);
      expect(form.html).to.include(said('password.kept')).and.include('Passkey <bdi>Laptop</bdi>');
      expect(answer.html).to.include(said('password.was-set'));
      expect(await passkeysOf(member)).to.have.length(1);
      expect(await mailTo(member, 'These were kept')).to.include('Passkey Laptop');
      expect((await signInWithNewPassword(member)).status).to.equal(200);
    });

    it('a mailed link does not sign a user in if passwords have been disabled since', async () => {
      await givePasskey();
      const { signIn } = on.service.settings;
      const settings = { signIn: { ...signIn, passwords: false } };
      const node = await mail.start({ sharing: on.service, clock: on.clock.clock, settings });
      const person = createPerson(node.issuer);
      const invited = await person.open(await linkFor('invitation'));
      const [, token = ''] = (await linkFor('forgotten')).split('token=');
      expect((await person.get(`/password?token=${token}`)).status).to.equal(303);
      expect((await person.get('/password')).status).to.equal(410);
      const [sent] = invited.forms.filter(({ names }) => names.has('token'));
      const values = { ...Object.fromEntries(sent?.values ?? []), token };
      expect((await person.post('/password', values)).status).to.equal(410);
      expect((await person.get('/profile')).status).to.equal(303);
    });
  });

  describe('after the grace period, a password session can only add a stronger sign-in method', () => {
    let client: Required<TestClient>;
    /** A browser signed in with the password before the end of the grace period. */
    let person: Person;

    beforeEach('the owner of a client, which they have connected', async () => {
      owner = await addPerson(on.service, 'Olga Owner');
      client = await addTestClient(on.service, 'Own Client', { ownerAccountId: owner.accountId });
      person = await signedIn();
      await person.authorize(ask(), owner);
    });

    const ask = (more = {}) => authorizationUrl(on.service.issuer, client, more);

    it('after the grace period, a password session cannot get a code, open a form result or change the language', async () => {
      const { issuer, settings } = on.service;
      const open = (more: object) => person.open(ask(more));
      const consent = await open({ prompt: 'consent' });
      const approver = await signedIn();
      const answered = await approver.submit(await approver.open(ask({ prompt: 'consent' })), { decision: 'approve' });
      const stranger = createPerson(issuer);
      const { email, password } = owner;
      const answeredSignIn = await stranger.submit(await stranger.open(ask()), { email, password });
      // The stored answer to a form.
      const path = '/profile/oauth-clients/new';
      const form = { form_token: fieldOf(await person.get(path), 'form_token'), name: '' };
      const { host } = new URL(issuer);
      const sent = { host, origin: issuer, cookie: person.cookieHeader(path), 'sec-fetch-mode': 'navigate' };
      const { headers } = await rawRequest(settings.server.port, path, { headers: sent, form });
      const cookie = `${person.cookieHeader(path)}; ${headers.getSetCookie()[0]?.split(';')[0]}`;
      const answer = () => createPerson(issuer).get(headers.get('location') ?? '', { cookie });
      expect((await answer()).status).to.equal(422);
      const choose = async (language: string) => person.submit(await person.get('/language'), { language });
      await choose('de');
      const { value } = await apiKeyOf(on.service, owner);

      endGrace();
      for (const [what, use] of Object.entries({
        'a new request': () => open({}),
        'an approval of before': () => approver.follow(answered),
        'an approval on a page of before': () => person.submit(consent, { decision: 'approve' }),
        'a sign-in of before': () => stranger.follow(answeredSignIn),
        'the answer to a form': answer,
      })) {
        const { location, url, html } = await use();
        expect((location ?? url).pathname, `${what} ${html}`).to.equal(STRONG_SIGN_IN);
      }
      await choose('en');
      expect((await on.service.accounts.find(owner.accountId))?.language).to.equal('de');
      const { body } = await introspect(issuer, on.seeded.clients.resourceServer, value);
      expect(body.active, 'the API key of before').to.equal(true);
    });

    it('a user with a password session is asked for the passkey during an authorization, which then continues', async () => {
      const passkey = await givePasskey();
      endGrace();
      const page = await person.follow(await person.get(ask()));
      expect(page.url.pathname).to.match(/^\/interaction\//);
      expect(page.html).to.include('no longer enough for you: sign in with the passkey <bdi>Laptop</bdi>');
      const answer = passkey.answer(await optionsFor(person, 'sign-in'));
      expect(await outcomeOf(person, await person.submit(page, { passkey: answer }))).to.equal('code');
      expect((await person.get('/profile')).status).to.equal(200);
    });

    it('a password session can open no page and send no form, except to add a first strong sign-in method', async () => {
      endGrace();
      const token = fieldOf(await person.get('/errors'), 'form_token');
      const open: string[] = [];
      for (const { method, path } of on.service.routes()) {
        const name = `${method} ${path}`;
        if (PUBLIC.test(name)) continue;
        const url = path.replace(':id', client.id).replace(/:\w+/g, 'x');
        const page = method === 'GET' ? await person.get(url) : await person.post(url, { form_token: token });
        if (page.location?.pathname !== STRONG_SIGN_IN || path === STRONG_SIGN_IN) open.push(name);
      }
      expect(open).to.have.members(ALLOWED);
    });

    it('if the grace period cannot be read, password sessions get errors, but passkey sessions work', async () => {
      const other = await signedIn();
      await addPasskey(on.service.issuer, other);
      endGrace();
      const { database } = on.service;
      // Rename the column, so that a request that reads it fails with 503.
      await database.query('ALTER TABLE accounts RENAME COLUMN grace_began_at TO away');
      try {
        expect((await other.get('/profile')).status).to.equal(200);
        expect(await outcomeOf(other, ask({ prompt: 'none' }))).to.equal('code');
        expect((await other.post('/oauth/token/refresh', {})).status).to.equal(200);
        expect((await person.get('/profile')).status).to.be.at.least(500);
      } finally {
        await database.query('ALTER TABLE accounts RENAME COLUMN away TO grace_began_at');
      }
    });
  });
});
