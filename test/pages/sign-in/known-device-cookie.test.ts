/** The cookie of a known browser: it cannot be forged, it expires, and it can be revoked. */
import { expect } from 'chai';
import { createPerson, type Page, type Person } from '../../support/person.ts';
import type { SeededPerson } from '../../support/seed.ts';
import { startSeeded } from '../../support/seeded.ts';
import { attempt, guesses, newPerson, PER_ACCOUNT, settings, spread } from './password-guessing.ts';

const DAY = 86_400;
const COOKIE = /^gate_device=([^;]*); path=\/; expires=[^;]+; samesite=lax; httponly$/i;

const withOtherStart = (text: string): string => `${text.startsWith('A') ? 'B' : 'A'}${text.slice(1)}`;

describe('the cookie of a known browser', () => {
  const on = startSeeded({ settings, clock: true });
  let person: SeededPerson;
  let networks = 0;

  beforeEach(async () => {
    person = await newPerson(on.service);
  });

  const cookieOf = ({ headers }: Page): string =>
    headers.getSetCookie().find((cookie) => /gate_device=/.test(cookie)) ?? '';

  /** Signs a browser in, and then exhausts the account's attempts for unknown browsers. */
  async function ownBrowser(): Promise<{ own: Person; value: string }> {
    const own = createPerson(on.issuer);
    const signedIn = await attempt(own, person, '192.0.2.1');
    networks += 1;
    await guesses(on.service, person, spread(PER_ACCOUNT, 100 + networks));
    return { own, value: COOKIE.exec(cookieOf(signedIn))?.[1] ?? '' };
  }

  const canSignIn = async (browser: Person): Promise<boolean> =>
    (await attempt(browser, person, '192.0.2.2')).status === 303;

  it('the known-device cookie is HttpOnly, contains no name, and is valid for half a year', async () => {
    const { own, value } = await ownBrowser();
    expect(value).to.match(/^acc_[\w-]{16}\.[\w-]{22}\.\d+\.[\w-]{43}$/);
    on.clock.advance(180 * DAY - 60);
    await guesses(on.service, person, spread(PER_ACCOUNT, 6));
    expect(await canSignIn(own)).to.equal(true);
    on.clock.advance(180 * DAY + 60);
    await guesses(on.service, person, spread(PER_ACCOUNT, 7));
    expect(await canSignIn(own)).to.equal(false);
  });

  it('the known-device cookie is invalid if it was changed or is for another account', async () => {
    const { value } = await ownBrowser();
    const other = await newPerson(on.service);
    const [id = '', nonce = '', since = '', mac = ''] = value.split('.');
    const forged = [
      [other.accountId, nonce, since, mac].join('.'),
      [id, withOtherStart(nonce), since, mac].join('.'),
      [id, nonce, String(Number(since) + 1), mac].join('.'),
      [id, nonce, since, withOtherStart(mac)].join('.'),
      `${id}.${nonce}.${since}.`,
      '~~~',
      '',
    ];
    for (const text of forged) {
      const browser = createPerson(on.issuer);
      const headers = { 'x-forwarded-for': '192.0.2.2' };
      const page = await browser.get('/login', headers);
      const cookie = `${browser.cookieHeader('/login')}; gate_device=${text}`;
      const fields = { email: person.email, password: person.password };
      const sent = await createPerson(on.issuer).post(
        '/login',
        { ...Object.fromEntries(page.forms[0]?.values ?? []), ...fields },
        { ...headers, cookie },
      );
      expect(sent.status, text).to.equal(429);
    }
  });

  it('a new password or a sign-out everywhere revokes the known-device cookies of all other browsers', async () => {
    const { own } = await ownBrowser();
    const second = createPerson(on.issuer);
    const page = await own.get('/profile/security');
    const action = '/profile/security/sign-out-everywhere';
    const form = page.forms.find((candidate) => candidate.action === action);
    const done = await own.post(action, Object.fromEntries(form?.values ?? []));
    expect(done.status).to.equal(303);
    expect(await canSignIn(own)).to.equal(true);

    await on.service.accounts.endSessions(person.accountId);
    expect(await canSignIn(own)).to.equal(false);
    expect(await canSignIn(second)).to.equal(false);
  });

  it('the known-device cookie remembers the last five accounts of a browser', async () => {
    const own = createPerson(on.issuer);
    const accounts = [];
    for (let index = 0; index < 6; index += 1) {
      const account = await newPerson(on.service);
      accounts.push(account.accountId);
      await attempt(own, account, `192.0.2.${100 + index}`);
    }
    const cookie = /gate_device=([^;]+)/.exec(own.cookieHeader('/'))?.[1] ?? '';
    const remembered = cookie.split('~').map((entry) => entry.split('.')[0]);
    expect(remembered).to.deep.equal(accounts.slice(1).reverse());
  });
});
