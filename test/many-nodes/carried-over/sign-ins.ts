/** Sign-in methods and unfinished sign-ins that an upgrade must keep. */
import { expect } from 'chai';
import { fileOf, line } from '../../import/import-file.ts';
import { valueFrom } from '../../operator/run-operator.ts';
import { addPasskey, NEW, optionsFor, signInWith } from '../../pages/passkeys/soft-passkey.ts';
import { makePasskey } from '../../support/authenticator.ts';
import { authorizationUrl, exchangeCode } from '../../support/oauth.ts';
import { type Credentials, createPerson, type Page, type Person } from '../../support/person.ts';
import { createTraveller, type Traveller, type UpstreamAccount } from '../../support/upstream.ts';
import type { CarriedOver, ServedWorld } from './carried-over.ts';

const WITH_PLATFORM = { sign_in_with: 'platform' };
const PASSWORD = 'nine blue pallets, stacked';
/** The limit per account and address in the settings of the suite. */
const SIGN_IN_FAILURES = 2;

/** @returns the page that the sign-in leads to. */
const signInWithNewBrowser = (issuer: string, credentials: Credentials): Promise<Page> =>
  createPerson(issuer).signIn(credentials);

async function expectSignedIn(person: Person, name: string): Promise<void> {
  const { status, html } = await person.get('/profile');
  expect(status, html).to.equal(200);
  expect(html).to.include(name);
}

/** A new account without a password. The provider's `sub` is its external id. */
async function upstreamAccount({ operator, mark }: ServedWorld, purpose: string) {
  const sub = `${purpose}-${mark}`;
  const file = fileOf(line.account(sub));
  await valueFrom(operator, ['import', file]);
  return { account: { sub } satisfies UpstreamAccount, name: `Person ${sub}` };
}

async function goToProvider(
  { issuer, upstream }: ServedWorld,
  account: UpstreamAccount,
): Promise<{ person: Traveller; callback: URL }> {
  upstream.account = account;
  const person = createTraveller(issuer, upstream.issuer);
  const there = await person.submit(await person.get('/login'), WITH_PLATFORM);
  return { person, callback: await person.untilCallback(there) };
}

async function signInUpstream(world: ServedWorld, account: UpstreamAccount): Promise<Traveller> {
  const { person, callback } = await goToProvider(world, account);
  await person.travel(await person.get(callback));
  return person;
}

/** Adds an account. Returns the one-time link with which its user sets the password. */
async function invited({ operator, mark }: ServedWorld, purpose: string) {
  const email = `${purpose}-${mark}@example.test`;
  const add = ['accounts', 'add', '--email', email, '--name', `Ina ${mark}`, '--invite'];
  const { invite_link: link } = await valueFrom(operator, add);
  return { email, password: PASSWORD, link: String(link) };
}

/** Adds an account with a password, and signs a browser in to it by the invitation. */
async function newPerson(world: ServedWorld, purpose: string) {
  const { link, ...credentials } = await invited(world, purpose);
  const browser = createPerson(world.issuer);
  await setPassword(browser, await browser.follow(await browser.get(link)));
  return { browser, credentials, name: `Ina ${world.mark}` };
}

async function setPassword(browser: Person, page: Page): Promise<void> {
  const answer = await browser.submit(page, { new_password: PASSWORD });
  expect(answer.status, answer.html).to.equal(303);
}

export const SIGN_INS: readonly CarriedOver[] = [
  {
    what: 'a session',
    async start({ partner, clients, person }) {
      const { browser } = partner;
      await partner.code(clients.confidential);
      return async () => {
        await expectSignedIn(browser, person.email);
        const kept = await browser.post('/oauth/token/refresh', {});
        expect(kept.status, kept.html).to.equal(200);
      };
    },
  },
  {
    what: 'a sign-in page opened by an authorization request',
    async start({ issuer, clients, person }) {
      const browser = createPerson(issuer);
      const url = authorizationUrl(issuer, clients.confidential);
      const page = await browser.follow(await browser.get(url));
      return async () => {
        const { email, password } = person;
        const { location } = await browser.follow(await browser.submit(page, { email, password }));
        const code = location?.searchParams.get('code') ?? '';
        expect(code).to.match(/^gate_ac_/);
        expect((await exchangeCode(issuer, clients.confidential, code)).status).to.equal(200);
      };
    },
  },
  {
    what: 'an unfinished sign-in at a provider',
    async start(world) {
      const { account, name } = await upstreamAccount(world, 'travelling');
      const { person, callback } = await goToProvider(world, account);
      return async () => {
        await person.travel(await person.get(callback));
        await expectSignedIn(person, name);
      };
    },
  },
  {
    what: 'an account linked with a provider',
    async start(world) {
      const { account, name } = await upstreamAccount(world, 'linked');
      await signInUpstream(world, account);
      const { operator } = world;
      const { sub } = account;
      // From now on only the linked identity leads to the account.
      const moved = { ...line.account(`${sub}-moved`), former_external_id: sub };
      await valueFrom(operator, ['import', fileOf({ ...moved, email: `${sub}@example.test` })]);
      return async () => {
        await expectSignedIn(await signInUpstream(world, account), `${name}-moved`);
      };
    },
  },
  {
    what: 'a passkey',
    async start(world) {
      const { issuer } = world;
      const { browser, name } = await newPerson(world, 'passkey');
      const { passkey, answer } = await addPasskey(issuer, browser);
      expect(answer.status, answer.html).to.equal(303);
      return async () => {
        const other = createPerson(issuer);
        const entered = await signInWith(other, passkey);
        expect(entered.status, entered.html).to.equal(303);
        await expectSignedIn(other, name);
      };
    },
  },
  {
    what: 'the pending registration of a passkey, and a pending sign-in with one',
    async start(world) {
      const { issuer } = world;
      const { browser, name } = await newPerson(world, 'adding');
      const { passkey } = await addPasskey(issuer, browser);
      const form = await browser.get(NEW);
      const { made } = makePasskey(issuer, await optionsFor(browser, 'add'));
      const other = createPerson(issuer);
      const login = await other.get('/login');
      const signed = passkey.answer(await optionsFor(other, 'sign-in'));
      return async () => {
        const added = await browser.submit(form, { name: 'Phone', made_passkey: made });
        expect(added.status, added.html).to.equal(303);
        const entered = await other.submit(login, { passkey: signed });
        expect(entered.status, entered.html).to.equal(303);
        await expectSignedIn(other, name);
      };
    },
  },
  {
    what: 'an unopened one-time link',
    async start(world) {
      const { link, ...credentials } = await invited(world, 'invited');
      const { issuer } = world;
      return async () => {
        const browser = createPerson(issuer);
        await setPassword(browser, await browser.follow(await browser.get(link)));
        expect((await signInWithNewBrowser(issuer, credentials)).url.pathname).to.equal('/profile');
      };
    },
  },
  {
    what: 'the open page of a one-time link',
    async start(world) {
      const { link, ...credentials } = await invited(world, 'setting');
      const { issuer } = world;
      const browser = createPerson(issuer);
      const page = await browser.follow(await browser.get(link));
      return async () => {
        await setPassword(browser, page);
        expect((await signInWithNewBrowser(issuer, credentials)).url.pathname).to.equal('/profile');
      };
    },
  },
  {
    what: 'a known browser, while an attacker guesses the password',
    async start(world) {
      const { browser, credentials } = await newPerson(world, 'known');
      await browser.submit(await browser.get('/logout'), {});
      const { issuer } = world;
      const { email } = credentials;
      const guess = async () => {
        const stranger = createPerson(issuer);
        const fields = { email, password: 'seven red forklifts' };
        return (await stranger.submit(await stranger.get('/login'), fields)).status;
      };
      for (let count = 0; count < SIGN_IN_FAILURES; count += 1) expect(await guess()).to.equal(401);
      return async () => {
        // Failed guesses at the other version count at this version, too.
        expect(await guess()).to.equal(429);
        expect((await browser.signIn(credentials)).url.pathname).to.equal('/profile');
      };
    },
  },
];
