import { expect } from 'chai';
import { describeBrowser } from '../../src/accounts/browser-names.ts';
import { eventually } from '../support/eventually.ts';
import { createPerson } from '../support/person.ts';
import { startSeeded } from '../support/seeded.ts';
import { said, textOf } from './client-owner.ts';
import { type SignedInPerson, signedIn } from './signed-in-person.ts';

const PATH = '/profile/activity';
const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';

describe('the activity page', () => {
  const on = startSeeded({ clock: true });
  let person: SignedInPerson;

  before(async () => {
    person = await signedIn(on.service, on.seeded.person);
  });

  const logOf = (accountId: string) => on.service.activity.of(accountId, { limit: 100 });

  it('the activity page shows successful and failed sign-ins with time, address and a readable browser name', async () => {
    const { email, accountId } = on.seeded.person;
    const stranger = createPerson(on.issuer);
    const form = await stranger.get('/login', { 'user-agent': FIREFOX });
    const headers = { 'user-agent': FIREFOX };
    await stranger.submit(form, { email, password: 'not this one, no' }, headers);
    await eventually(async () => {
      expect((await logOf(accountId)).map(({ action }) => action)).to.include('sign_in_failed');
    });
    const { html } = await person.get(PATH);
    expect(textOf(html)).to.match(/Wrong password .* UTC Firefox on Linux, 127\.0\.0\.1 .*Signed in/);
    expect(html).to.match(/<time datetime="\d{4}-\d\d-\d\dT[\d:.]+Z">\d+ \w{3} \d{4}, \d\d:\d\d UTC</);
  });

  it("the activity page shows only the user's own entries", async () => {
    const other = await signedIn(on.service, on.seeded.other);
    expect(textOf((await other.get(PATH)).html)).not.to.include(said('action.sign_in_failed'));
    const mine = (await logOf(on.seeded.person.accountId))[0]?.id ?? 0;
    const guessed = await other.get(`${PATH}?before=${mine + 1}`);
    expect(textOf(guessed.html)).not.to.include(said('action.sign_in_failed'));
  });

  it('many wrong passwords for an account are recorded as one entry a minute, with their number', async () => {
    const { email, accountId } = on.seeded.other;
    const failures = async () =>
      (await logOf(accountId))
        .filter(({ action }) => action === 'sign_in_failed')
        .map(({ details }) => details.count ?? 1);
    const tryOnce = async (): Promise<void> => {
      const stranger = createPerson(on.issuer);
      await stranger.submit(await stranger.get('/login'), { email, password: 'not this one, no' });
    };
    await tryOnce();
    await eventually(async () => expect(await failures()).to.deep.equal([1]));
    for (let at = 0; at < 3; at += 1) await tryOnce();
    on.clock.advance(61);
    await eventually(async () => {
      await on.service.clean();
      expect(await failures()).to.deep.equal([3, 1]);
    });
    await tryOnce();
    on.clock.advance(61);
    await eventually(async () => {
      await on.service.clean();
      expect(await failures()).to.deep.equal([1, 3, 1]);
    });
    const other = await signedIn(on.service, on.seeded.other);
    expect(textOf((await other.get(PATH)).html)).to.contain('Wrong password 3 times within a minute');
  });

  it('confirming an action with a password is recorded as an entry of its own', async () => {
    const { person } = on.seeded;
    const owner = await signedIn(on.service, person);
    on.clock.advance(700);
    const asked = await owner.send('/profile/api-keys', { name: 'Key', expires_in_days: '30' });
    await owner.submit(asked, { current_password: person.password });
    const found = (await logOf(person.accountId)).find(({ action }) => action === 'signed_in');
    expect(found?.details).to.deep.equal({ method: 'password', confirmation: true });
    expect(found?.requestId).to.match(/^req_/);
    expect(textOf((await owner.get(PATH)).html)).to.contain('Identity confirmed with a password');
  });
});

describe('the readable name of a browser', () => {
  const safari = 'AppleWebKit/605.1.15 (KHTML, like Gecko)';
  const chrome = 'AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0';
  const known: Record<string, string> = {
    [FIREFOX]: 'Firefox on Linux',
    [`Mozilla/5.0 (Windows NT 10.0) ${chrome} Safari/537.36 Edg/130.0.0.0`]: 'Edge on Windows',
    [`Mozilla/5.0 (X11; CrOS x86_64 1) ${chrome} Safari/537.36 OPR/1`]: 'Opera on ChromeOS',
    [`Mozilla/5.0 (Linux; Android 14) SamsungBrowser/25 ${chrome}`]: 'Samsung Internet on Android',
    [`Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) ${safari} Version/18.0 Safari/605.1.15`]: 'Safari on macOS',
    [`Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) ${safari} Version/18.0 Mobile/1 Safari/604.1`]:
      'Safari on iPhone',
    [`Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) ${safari} CriOS/130 Mobile Safari/604.1`]:
      'Chrome on iPhone',
    'curl/8.5.0': 'curl',
    'Mozilla/5.0 (Windows NT 10.0) Something/1': 'A browser on Windows',
    '': 'An unknown browser',
    [`${'x'.repeat(200)}/1`]: 'An unknown browser',
  };
  it('a browser and its operating system are recognized by the User-Agent header', () => {
    for (const [header, words] of Object.entries(known)) expect(describeBrowser(header), header).to.equal(words);
  });
});
