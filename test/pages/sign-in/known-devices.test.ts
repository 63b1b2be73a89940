/** Account owners can sign in during an attack: from a known browser, or by a one-time link. */
import { expect } from 'chai';
import { eventually } from '../../support/eventually.ts';
import { startMailServer } from '../../support/mail-server.ts';
import { createPerson } from '../../support/person.ts';
import { passwordLink } from '../../support/seed.ts';
import { startSeeded } from '../../support/seeded.ts';
import { windowOf } from '../../support/stopwatch.ts';
import {
  atOnce,
  attempt,
  expectLimitUsedUp,
  guesses,
  newPerson,
  PER_ACCOUNT,
  problemOf,
  retryAfter,
  settings,
  spread,
  wrong,
} from './password-guessing.ts';

describe('password guessing is limited, but does not lock out the owner', () => {
  const on = startSeeded({ settings });

  it('parallel correct sign-ins are never counted as failures; refused ones get a Retry-After of 1 to 5 seconds', async () => {
    const { email, password } = await newPerson(on.service);
    const answers = await atOnce(on.service, 32, { email, password }, '192.0.2.10');
    const [refused, accepted] = [429, 303].map((status) => answers.filter((answer) => answer.status === status));
    // On an idle machine at least 11: one at once, and ten that wait.
    expect(accepted?.length).to.be.at.least(2);
    expect(refused?.length).to.equal(32 - (accepted?.length ?? 0));
    for (const answer of refused ?? []) expect(retryAfter(answer)).to.be.within(1, 5);
    const next = await attempt(createPerson(on.issuer), { email, password }, '192.0.2.10');
    expect(next.status).to.equal(303);
  });

  it('many parallel wrong passwords use up the limit exactly like sequential ones', () =>
    expectLimitUsedUp(on.service, 50, ['192.0.2.11', '192.0.2.12']));

  it("attackers who guess a password from many addresses are blocked, but not the owner's known browser", async () => {
    const person = await newPerson(on.service);
    const own = createPerson(on.issuer);
    expect((await attempt(own, person, '192.0.2.1')).status).to.equal(303);

    const left = windowOf(3_600);
    const seen = await guesses(on.service, person, spread(PER_ACCOUNT + 3, 1));
    expect(seen).to.deep.equal([...Array(PER_ACCOUNT).fill(401), 429, 429, 429]);
    const elsewhere = await attempt(createPerson(on.issuer), person, '192.0.2.2');
    expect(elsewhere.status).to.equal(429);
    expect(Number(elsewhere.headers.get('retry-after'))).to.be.within(left(), 3_600);
    expect(problemOf(elsewhere)).to.match(
      /^Too many attempts\. Try again in \d\d minutes, or ask your administrator for a new link\./,
    );
    expect((await attempt(own, person, '192.0.2.3')).status).to.equal(303);

    // The first failure and the reached limit are entries at once, and the operator was warned
    // once. Wait for that: attempts are recorded after the answer, whose time would otherwise
    // reveal that the account exists.
    await eventually(async () => {
      const log = await on.service.activity.of(person.accountId, { limit: 100 });
      const failed = log.filter(({ action }) => action === 'sign_in_failed');
      expect(failed.map(({ details }) => details)).to.deep.equal([{}]);
      const limited = log.filter(({ action }) => action === 'sign_in_refused');
      expect(limited.map(({ details }) => details)).to.deep.equal([{ reason: 'too_many' }]);
    });
    await on.service.withSettings({ sessions: { sharedTerminals: ['192.0.2.0/24'] } }, async () => {
      const there = await attempt(own, person, '192.0.2.3');
      expect(there.status, 'a shared terminal, with a cookie from before the setting').to.equal(429);
    });

    const warnings = on.service.logLines
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter(({ level, accountId }) => level === 40 && accountId === person.accountId);
    expect(warnings.map(({ limit }) => limit)).to.deep.equal(['account']);
    expect(on.service.logLines.join()).not.to.include(person.email);
  });

  it('known browsers are not blocked, even at the IP address of an attacker', async () => {
    const here = '192.0.2.50';
    const person = await newPerson(on.service);
    const neighbor = await newPerson(on.service);
    const own = createPerson(on.issuer);
    await attempt(own, person, here);
    const first = await guesses(on.service, person, Array<string>(4).fill(here));
    expect(first).to.deep.equal([401, 401, 401, 429]);
    const unknownUser = { email: 'nobody@example.test', password: '' };
    const second = await guesses(on.service, unknownUser, [here]);
    expect(second).to.deep.equal([401]);
    // A new browser at this address has to wait; a known browser does not.
    const stranger = await attempt(createPerson(on.issuer), neighbor, here);
    expect(stranger.status).to.equal(429);
    expect((await attempt(own, person, here)).status).to.equal(303);
    expect((await attempt(createPerson(on.issuer), neighbor, '192.0.2.51')).status).to.equal(303);
  });

  it('sign-ins with an unknown email address get the same limit and answers as sign-ins of a known account', async () => {
    const unknownUser = { email: 'nobody-else@example.test', password: 'x' };
    const seen = await guesses(on.service, unknownUser, spread(PER_ACCOUNT + 1, 2));
    expect(seen).to.deep.equal([...Array(PER_ACCOUNT).fill(401), 429]);
  });

  it('attempts refused because of their address do not count for the account, and vice versa', async () => {
    const person = await newPerson(on.service);
    // The service checks at most three attempts of one address, however many arrive.
    await guesses(on.service, person, Array<string>(6).fill('192.0.2.60'));
    expect(await guesses(on.service, person, spread(PER_ACCOUNT - 2, 3))).to.deep.equal([
      ...Array(PER_ACCOUNT - 3).fill(401),
      429,
    ]);
    // Attempts that are refused for the account do not count for the address either.
    const neighbor = await newPerson(on.service);
    const at = Array<string>(3).fill('192.0.2.61');
    expect(await guesses(on.service, person, at)).to.deep.equal([429, 429, 429]);
    expect(await guesses(on.service, neighbor, at)).to.deep.equal([401, 401, 401]);
  });

  it('a successful sign-in does not allow others at the same address more attempts', async () => {
    const here = '192.0.2.70';
    const person = await newPerson(on.service);
    const attacker = await newPerson(on.service);
    for (let round = 0; round < 2; round += 1) {
      const victims = [await newPerson(on.service), await newPerson(on.service)];
      for (const victim of victims) await guesses(on.service, victim, [here]);
      await attempt(createPerson(on.issuer), attacker, here);
    }
    expect(await guesses(on.service, person, [here])).to.deep.equal([429]);
  });

  it('a known browser uses up its own limit first, and then the limits for unknown browsers', async () => {
    const person = await newPerson(on.service);
    const own = createPerson(on.issuer);
    await attempt(own, person, '192.0.2.80');
    const seen: number[] = [];
    for (let index = 0; index < 8; index += 1) {
      seen.push((await attempt(own, wrong(person), '192.0.2.81')).status);
    }
    expect(seen).to.deep.equal([...Array(6).fill(401), 429, 429]);
    expect((await attempt(own, person, '192.0.2.82')).status).to.equal(303);
  });

  it('during an attack the owner can sign in with a one-time link, in any browser', async () => {
    const person = await newPerson(on.service);
    await guesses(on.service, person, spread(PER_ACCOUNT, 4));
    const browser = createPerson(on.issuer);
    const here = { 'x-forwarded-for': '192.0.2.90' };
    expect((await attempt(browser, person, '192.0.2.90')).status).to.equal(429);
    const form = await browser.open(await passwordLink(on.service, person), here);
    const password = 'eight blue pallets, stacked';
    expect((await browser.submit(form, { new_password: password }, here)).status).to.equal(303);
    expect((await attempt(browser, { ...person, password }, '192.0.2.90')).status).to.equal(303);
  });

  it('a sign-in refused during an attack suggests a mailed link; each network can request 30 links an hour', async () => {
    const mailServer = await startMailServer();
    const mail = { smtpUrl: mailServer.url, from: 'gatehouse@example.test' };
    await on.service.withSettings({ mail }, async () => {
      const person = await newPerson(on.service);
      await guesses(on.service, person, spread(PER_ACCOUNT, 8));
      const refused = await attempt(createPerson(on.issuer), person, '192.0.2.1');
      expect(problemOf(refused)).to.include('“Forgot your password, or never set one?” mails you a link');

      const visitor = createPerson(on.issuer);
      const form = await visitor.get('/forgot-password');
      const ask = (from: string) => visitor.submit(form, { email: 'nobody@example.test' }, { 'x-forwarded-for': from });
      const left = windowOf(3_600);
      for (let index = 0; index < 30; index += 1) {
        expect((await ask('2001:db8::1')).status).to.equal(303);
      }
      const limited = await ask('2001:db8::2');
      expect(limited.status).to.equal(429);
      expect(Number(limited.headers.get('retry-after'))).to.be.within(left(), 3_600);
      expect(problemOf(limited)).to.match(/^Too many links were requested from your network/);
      expect((await ask('2001:db8:1::1')).status).to.equal(303);
    });
  });
});
