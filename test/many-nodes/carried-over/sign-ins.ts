/** Ways to sign in, and sign-ins that are half done. */
import { expect } from 'chai';
import type { JWTPayload } from 'jose';
import { fileOf, line } from '../../import/import-file.ts';
import { valueFrom } from '../../operator/run-operator.ts';
import { addPasskey, NEW, optionsFor, signInWith } from '../../pages/passkeys/soft-passkey.ts';
import { makePasskey } from '../../support/authenticator.ts';
import { authorizationUrl, exchangeCode } from '../../support/oauth.ts';
import { type Credentials, createPerson, type Page, type Person } from '../../support/person.ts';
import { createTraveller, type Traveller, type UpstreamAccount } from '../../support/upstream.ts';
import type { Beginning, CarriedOver } from './carried-over.ts';

const WAY = { sign_in_with: 'platform' };
const PASSWORD = 'nine blue pallets, stacked';
const LOGOUT_EVENT = { 'http://schemas.openid.net/event/backchannel-logout': {} };
/** As many as the settings of the suite allow for one account and address. */
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
async function upstreamAccount({ operator, mark }: Beginning, purpose: string) {
  const sub = `${purpose}-${mark}`;
  const file = fileOf(line.account(sub));
  await valueFrom(operator, ['import', file]);
  return { account: { sub } satisfies UpstreamAccount, name: `Person ${sub}` };
}

async function goToProvider(
  { issuer, upstream }: Beginning,
  account: UpstreamAccount,
): Promise<{ person: Traveller; callback: URL }> {
  upstream.account = account;
  const person = createTraveller(issuer, upstream.issuer);
  const there = await person.submit(await person.get('/login'), WAY);
  return { person, callback: await person.untilCallback(there) };
}

async function signInUpstream(beginning: Beginning, account: UpstreamAccount): Promise<Traveller> {
  const { person, callback } = await goToProvider(beginning, account);
  await person.travel(await person.get(callback));
  return person;
}

/** A new account, and the one-time link with which its person sets the password. */
async function invited({ operator, mark }: Beginning, purpose: string) {
  const email = `${purpose}-${mark}@example.test`;
  const add = ['accounts', 'add', '--email', email, '--name', `Ina ${mark}`, '--invite'];
  const { invite_link: link } = await valueFrom(operator, add);
  return { email, password: PASSWORD, link: String(link) };
}

/** A new account whose password is set, and a browser that is signed in to it. */
async function newPerson(beginning: Beginning, purpose: string) {
  const { link, ...credentials } = await invited(beginning, purpose);
  const browser = createPerson(beginning.issuer);
  await setPassword(browser, await browser.follow(await browser.get(link)));
  await browser.signIn(credentials);
  return { browser, credentials, name: `Ina ${beginning.mark}` };
}

async function setPassword(browser: Person, page: Page): Promise<void> {
  const answer = await browser.submit(page, { new_password: PASSWORD });
  expect(answer.status, answer.html).to.equal(303);
}

export const SIGN_INS: readonly CarriedOver[] = [
  {
    what: 'a session',
    async begin({ partner, clients, person }) {
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
    what: 'a sign-in page that an app waits behind',
    async begin({ issuer, clients, person }) {
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
    what: 'a sign-in that is under way at a provider',
    async begin(beginning) {
      const { account, name } = await upstreamAccount(beginning, 'travelling');
      const { person, callback } = await goToProvider(beginning, account);
      return async () => {
        await person.travel(await person.get(callback));
        await expectSignedIn(person, name);
      };
    },
  },
  {
    what: 'an account that is linked with a provider',
    async begin(beginning) {
      const { account, name } = await upstreamAccount(beginning, 'linked');
      await signInUpstream(beginning, account);
      const { operator } = beginning;
      const { sub } = account;
      // From now on only the link says whose account it is.
      const moved = { ...line.account(`${sub}-moved`), former_external_id: sub };
      await valueFrom(operator, ['import', fileOf({ ...moved, email: `${sub}@example.test` })]);
      return async () => {
        await expectSignedIn(await signInUpstream(beginning, account), `${name}-moved`);
      };
    },
  },
  {
    what: 'a session that ends with the one at the provider',
    async begin(beginning) {
      const { issuer, upstream, mark } = beginning;
      const { account, name } = await upstreamAccount(beginning, 'session');
      upstream.lie = { claims: (claims) => ({ ...claims, sid: mark }) };
      const person = await signInUpstream(beginning, account);
      upstream.lie = {};
      return async () => {
        await expectSignedIn(person, name);
        const iat = Math.floor(Date.now() / 1000);
        const claims: JWTPayload = {
          iss: upstream.issuer,
          aud: 'gatehouse',
          iat,
          exp: iat + 120,
          jti: `logout ${mark}`,
          sub: account.sub,
          sid: mark,
          events: LOGOUT_EVENT,
        };
        const logout_token = await upstream.sign(claims, { type: 'logout+jwt' });
        const answer = await fetch(`${issuer}/login/platform/backchannel-logout`, {
          method: 'POST',
          body: new URLSearchParams({ logout_token }),
        });
        expect(answer.status, await answer.text()).to.equal(200);
        expect((await person.get('/profile')).status).to.equal(303);
      };
    },
  },
  {
    what: 'a passkey',
    async begin(beginning) {
      const { issuer } = beginning;
      const { browser, name } = await newPerson(beginning, 'passkey');
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
    what: 'a passkey that is being added, and one that is being asked for',
    async begin(beginning) {
      const { issuer } = beginning;
      const { browser, name } = await newPerson(beginning, 'adding');
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
    what: 'a one-time link that was not opened yet',
    async begin(beginning) {
      const { link, ...credentials } = await invited(beginning, 'invited');
      const { issuer } = beginning;
      return async () => {
        const browser = createPerson(issuer);
        await setPassword(browser, await browser.follow(await browser.get(link)));
        expect((await signInWithNewBrowser(issuer, credentials)).url.pathname).to.equal('/profile');
      };
    },
  },
  {
    what: 'the open page of a one-time link',
    async begin(beginning) {
      const { link, ...credentials } = await invited(beginning, 'setting');
      const { issuer } = beginning;
      const browser = createPerson(issuer);
      const page = await browser.follow(await browser.get(link));
      return async () => {
        await setPassword(browser, page);
        expect((await signInWithNewBrowser(issuer, credentials)).url.pathname).to.equal('/profile');
      };
    },
  },
  {
    what: 'a browser that is known, while strangers guess the password',
    async begin(beginning) {
      const { browser, credentials } = await newPerson(beginning, 'known');
      await browser.submit(await browser.get('/logout'), {});
      const { issuer } = beginning;
      const { email } = credentials;
      const guess = async () => {
        const stranger = createPerson(issuer);
        const fields = { email, password: 'seven red forklifts' };
        return (await stranger.submit(await stranger.get('/login'), fields)).status;
      };
      for (let count = 0; count < SIGN_IN_FAILURES; count += 1) expect(await guess()).to.equal(401);
      return async () => {
        // The guesses on the other version count here, too.
        expect(await guess()).to.equal(429);
        expect((await browser.signIn(credentials)).url.pathname).to.equal('/profile');
      };
    },
  },
];
