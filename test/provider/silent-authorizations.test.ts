/** A client that is authorized without a click: the user's activity and a mail say so. */
import { expect } from 'chai';
import { message } from '../../src/base/message.ts';
import { textsFor } from '../../src/texts/texts.ts';
import { eventually } from '../support/eventually.ts';
import { startsWithMail } from '../support/mail-server.ts';
import { authorizationUrl, type TestClient } from '../support/oauth.ts';
import { createPerson, type Person } from '../support/person.ts';
import { addPerson, addTestClient, type SeededPerson } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { outcomeOf } from './authorization-outcome.ts';

const DAY = 86_400;

/** A copy of the session in a browser that has no other cookie of ours, as a thief of the session would use it. */
const withSessionOnly = (browser: Person): Record<string, string> => ({
  cookie: browser
    .cookieHeader('/oauth/authorize')
    .split('; ')
    .filter((pair) => !/gate_device=/.test(pair))
    .join('; '),
});

describe('codes issued without a click are recorded, and the user gets a mail if the browser is unknown', () => {
  const mail = startsWithMail();
  const on = startSeeded({ on: mail.start, clock: true, settings: { sessions: { idleSeconds: 30 * DAY } } });
  let client: TestClient;
  let person: SeededPerson;
  let browser: Person;
  let count = 0;

  beforeEach(async () => {
    count += 1;
    client = await addTestClient(on.service, `Sync ${count}`);
    person = await addPerson(on.service, 'Nora', `nora${count}@example.test`);
    browser = createPerson(on.issuer);
    await browser.authorize(authorizationUrl(on.issuer, client), person);
  });

  const request = (parameters = {}) => authorizationUrl(on.issuer, client, parameters);
  const entries = async () =>
    (await on.service.activity.of(person.accountId, { limit: 50 })).filter(
      ({ action }) => action === 'authorized_silently',
    );
  const subject = textsFor('en')(message('mail.silent_authorization-subject', { brand: 'Gatehouse' }));
  const mails = () => mail.received.filter(({ to, raw }) => to.includes(person.email) && raw.includes(subject));
  /** Waits for a later mail to the same person: an earlier one would have been sent before it. */
  async function laterMail(): Promise<void> {
    const later = await addTestClient(on.service, `Later ${count}`);
    await browser.authorize(authorizationUrl(on.issuer, later), person);
    await eventually(() => expect(mail.received.some(({ raw }) => raw.includes(`Later ${count}`))).to.equal(true));
  }
  it('a code issued without a click of the user is recorded once a day per client, with the network address', async () => {
    expect(await entries()).to.have.length(0);
    for (const parameters of [{}, { prompt: 'none' }])
      expect(await outcomeOf(browser, request(parameters))).to.equal('code');
    const [entry, ...more] = await entries();
    expect(more).to.deep.equal([]);
    expect(entry?.details).to.deep.include({ client_id: client.id });
    expect(entry?.origin?.address).to.equal('127.0.0.1');
    const { html } = await browser.open('/profile/activity');
    expect(html).to.include(textsFor('en')(message('action.authorized_silently')));
    on.clock.advance(DAY + 60);
    await Promise.all(Array.from({ length: 10 }, () => browser.get(request())));
    expect(await entries()).to.have.length(2);
    expect(mails()).to.deep.equal([]);
  });

  it('a request that is refused, or that waits for the user, is not recorded', async () => {
    const other = await addTestClient(on.service, `Other ${count}`);
    expect(await outcomeOf(browser, authorizationUrl(on.issuer, other, { prompt: 'none' }))).to.equal(
      'consent_required',
    );
    expect(await outcomeOf(browser, request({ prompt: 'consent' }))).to.equal('consent');
    expect(await entries()).to.have.length(0);
  });

  it('the first authorization of a day in an unknown browser is recorded and mailed, even after one in a known browser', async () => {
    expect(await outcomeOf(browser, request())).to.equal('code');
    for (const _ of [1, 2]) {
      const { location } = await createPerson(on.issuer).get(request(), withSessionOnly(browser));
      expect(location?.searchParams.has('code')).to.equal(true);
    }
    await eventually(() => expect(mails()).to.have.length(1));
    expect(mails()[0]?.text).to.include(`Sync ${count}`).and.include('127.0.0.1');
    expect(await entries()).to.have.length(2);
  });

  it('on a shared terminal, a code issued without a click of the user is recorded, but not announced by mail', async () => {
    const { settings } = on.service;
    const sharedTerminals = ['127.0.0.0/8', '::1/128'];
    await on.service.apply({ ...settings, sessions: { ...settings.sessions, sharedTerminals } });
    const { location } = await browser.get(request());
    expect(location?.searchParams.has('code')).to.equal(true);
    expect(await entries()).to.have.length(1);
    await on.service.apply(settings);
    await laterMail();
    expect(mails()).to.deep.equal([]);
  });

  it('a user who does not want the mail gets none, but the authorization is recorded', async () => {
    await on.service.accounts.setUnwantedMail(person.accountId, ['silent_authorization']);
    await createPerson(on.issuer).get(request(), withSessionOnly(browser));
    expect(await entries()).to.have.length(1);
    await laterMail();
    expect(mails()).to.deep.equal([]);
  });
});
