/** Computers that several people use: sessions end earlier there, and the next user finds nothing. */
import { expect } from 'chai';
import { GRACE, startWithUpstream, WITH_PLATFORM } from '../../sign-in-upstream/service.ts';
import { authorizationUrl } from '../../support/oauth.ts';
import { createPerson, type Page, type Person } from '../../support/person.ts';
import { startSeeded } from '../../support/seeded.ts';
import { type Overrides, onPostgresAndRedis } from '../../support/service.ts';
import { said } from '../client-owner.ts';

const MINUTE = 60;
const HOUR = 3_600;
const INACTIVE = 'signed out because you were inactive for';
const ENDED = 'signed out because your session was ended';
const HERE = { 'x-forwarded-for': '10.1.2.3' };
const ELSEWHERE = { 'x-forwarded-for': '203.0.113.9' };
const SHARED: Overrides = {
  server: { proxyHops: 1 },
  sessions: { sharedTerminals: ['10.1.0.0/16', '2001:db8::/32'] },
};

const sessionCookie = ({ headers }: Page): string =>
  headers.getSetCookie().find((line) => line.startsWith('gate_session=')) ?? '';

onPostgresAndRedis('a shared terminal', (start) => {
  let found: Overrides = {};
  const on = startSeeded({ on: start, clock: true, settings: SHARED, reloaded: () => found });

  async function signedIn(headers: Record<string, string>, who: 'person' | 'other' = 'person') {
    const person = createPerson(on.issuer);
    const { email, password } = on.seeded[who];
    const form = await person.get('/login', headers);
    return { person, answer: await person.submit(form, { email, password }, headers) };
  }
  const opens = async (person: Person, headers: Record<string, string>) =>
    (await person.get('/profile', headers)).status === 200;

  it('a session on a shared terminal ends after 15 minutes without a request, any other session after 12 hours', async () => {
    const { person: there } = await signedIn(HERE);
    const { person: mapped } = await signedIn({ 'x-forwarded-for': '::ffff:10.1.2.3' });
    const { person: sixth } = await signedIn({ 'x-forwarded-for': '2001:db8::1' });
    const { person: elsewhere } = await signedIn(ELSEWHERE);
    on.clock.advance(15 * MINUTE - 1);
    expect(await opens(there, HERE)).to.equal(true);
    on.clock.advance(1);
    expect(await opens(mapped, HERE)).to.equal(false);
    expect(await opens(sixth, HERE)).to.equal(false);
    on.clock.advance(15 * MINUTE - 1);
    expect(await opens(there, HERE)).to.equal(false);
    expect(await opens(elsewhere, ELSEWHERE)).to.equal(true);
  });

  it('on a shared terminal, the session cookie ends when the browser closes, and no device cookie is set', async () => {
    const { person, answer } = await signedIn(HERE);
    expect(sessionCookie(answer))
      .to.include('httponly')
      .and.not.match(/expires|max-age/i);
    expect(person.cookieNames).to.not.include('gate_device');
    const other = await signedIn(ELSEWHERE);
    expect(sessionCookie(other.answer)).to.match(/expires/i);
    expect(other.person.cookieNames).to.include('gate_device');
  });

  it('a client address that is not an IP address does not count as a shared terminal', async () => {
    const { answer } = await signedIn({ 'x-forwarded-for': 'unknown' });
    expect(sessionCookie(answer)).to.match(/expires/i);
  });

  it('a changed list of shared terminals applies to an open session from its next request', async () => {
    found = { sessions: { sharedTerminals: ['203.0.113.0/24'] } };
    const { person } = await signedIn(ELSEWHERE);
    await on.service.reload();
    on.clock.advance(HOUR);
    expect(await opens(person, ELSEWHERE)).to.equal(true);
    on.clock.advance(15 * MINUTE);
    expect(await opens(person, ELSEWHERE)).to.equal(false);
    found = {};
    await on.service.reload();
  });

  it('the sign-in page says why the session ended', async () => {
    const { person } = await signedIn(HERE);
    on.clock.advance(15 * MINUTE);
    const { location = '' } = await person.get('/profile/connections', HERE);
    const page = await person.get(location, HERE);
    expect(page.html).to.include(`${INACTIVE} 15 minutes. Sign in again to continue.`);
    expect(page.url.searchParams.get('return_to')).to.equal('/profile/connections');
    const { person: idle } = await signedIn(ELSEWHERE);
    on.clock.advance(12 * HOUR);
    expect((await idle.open('/profile', ELSEWHERE)).html).to.include(`${INACTIVE} 12 hours`);
    const { person: ended } = await signedIn(ELSEWHERE);
    await on.service.accounts.endSessions(on.seeded.person.accountId);
    expect((await ended.open('/profile', ELSEWHERE)).html).to.include(ENDED);
  });

  it('the sign-in page says nothing after a sign-out, on a first visit, or about a forged cookie', async () => {
    const { person } = await signedIn(ELSEWHERE);
    await person.submit(await person.get('/logout'), {});
    const forged = 'gate_session=0123456789abcdefghijk; gate_session.sig=0123456789abcdefghijklmnopq';
    for (const page of [
      await person.get('/login'),
      await createPerson(on.issuer).get('/login'),
      await createPerson(on.issuer).get('/login', { cookie: forged }),
    ]) {
      expect(page.status).to.equal(200);
      expect(page.html).to.not.include('You were signed out');
    }
  });

  it('after a sign-out on a shared terminal the next user sees no draft, notice, address or pending app of the previous one', async () => {
    const person = createPerson(on.issuer);
    const url = authorizationUrl(on.issuer, on.clients.confidential);
    await person.open(url);
    await person.signIn(on.seeded.person);
    const form = await person.get('/profile/api-keys');
    await on.service.accounts.endSessions(on.seeded.person.accountId);
    const sent = await person.submit(form, { name: 'Night sync' });
    const draft = sent.location?.searchParams.get('form') ?? '';
    expect(draft).to.match(/^[A-Za-z0-9_-]{43}$/);
    await person.signIn(on.seeded.person);
    const security = await person.get('/profile/security');
    const [, form_token = ''] = /name="form_token" value="([^"]+)"/.exec(security.html) ?? [];
    await person.post('/profile/security/sign-out-everywhere', { form_token });
    expect(person.cookieNames).to.include.members(['gate_browser', 'gate_notice']);
    await person.submit(await person.get('/logout', HERE), {}, HERE);
    const left = person.cookieNames.filter((name) => /browser|notice|waiting|session/.test(name));
    expect(left).to.deep.equal([]);
    await person.open('/logout');
    expect((await person.get('/login')).html).to.not.include(on.seeded.person.email);
    await person.signIn(on.seeded.other);
    for (const path of [`/profile/api-keys?form=${draft}`, '/profile/security']) {
      const { status, html } = await person.get(path);
      expect(status).to.equal(200);
      expect(html).to.not.include('Night sync').and.not.include('class="notice"');
      expect(html).to.not.include(on.seeded.person.email);
    }
  });

  it('after a user signs out and forgets the computer, no cookie says who used it', async () => {
    const { person } = await signedIn(ELSEWHERE);
    await person.submit(await person.get('/logout'), {});
    expect(person.cookieNames).to.include('gate_device');
    const page = await person.get('/logout');
    const gone = await person.submit(page, { forget: 'yes' });
    expect(gone.headers.get('clear-site-data')).to.equal('"cache", "storage"');
    expect(person.cookieNames).to.deep.equal(['gate_notice']);
    expect((await person.follow(gone)).html).to.include(said('signed-out.forgotten'));
  });

  it('forgetting a computer leaves cookies of other services alone, whatever their names are', async () => {
    const person = createPerson(on.issuer);
    const form = await person.get('/logout');
    const cookie = `${person.cookieHeader('/logout')}; gate_=1; gate_x%00=2; ;;=; shop=3; gate_"=4`;
    const { status, headers } = await person.submit(form, { forget: 'yes' }, { cookie });
    expect(status).to.equal(303);
    expect(headers.getSetCookie().join()).to.not.include('shop');
  });
});

describe('signing in with a provider on a shared terminal', () => {
  const sharedTerminals = ['127.0.0.0/8', '::1/128'];
  const on = startWithUpstream({ passwords: false, settings: { sessions: { sharedTerminals } } });

  it('the provider asks every time who signs in, even after an expired session, and no lasting cookie is left', async () => {
    const person = on.traveller();
    on.upstream.account = GRACE;
    const page = await person.get('/login');
    expect(page.html).to.include('Sign in with <bdi>Warehouse platform</bdi>');
    const there = await person.submit(page, WITH_PLATFORM);
    expect(there.location?.searchParams.get('prompt')).to.equal('login');
    const answer = await person.get(await person.untilCallback(there));
    expect(sessionCookie(answer))
      .to.include('httponly')
      .and.not.match(/expires|max-age/i);
    expect((await person.travel(answer)).html).to.include('Grace Person');
    expect(person.cookieNames).to.not.include('gate_device');
    on.clock.advance(15 * MINUTE);
    const again = await person.submit(await person.open('/profile'), WITH_PLATFORM);
    expect(again.location?.searchParams.get('prompt')).to.equal('login');
  });
});
