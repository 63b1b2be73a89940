/** The session of a browser: its cookie, when the cookie changes, and how the session ends. */
import { expect } from 'chai';
import type { Settings } from '../../src/config/settings.ts';
import { said } from '../pages/client-owner.ts';
import { signedIn } from '../pages/signed-in-person.ts';
import { authorizationUrl } from '../support/oauth.ts';
import { createPerson, type Page, type Person } from '../support/person.ts';
import { rawRequest } from '../support/raw-request.ts';
import type { Seed } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';

describe('browser sessions', () => {
  let lifetimes: Partial<Settings['sessions']> = {};
  const on = startSeeded({ clock: true, reloaded: () => ({ sessions: lifetimes }) });

  const begin = () => signedIn(on, on.seeded.person);

  it('the session cookie is set only at the sign-in, HttpOnly, for this host, and not sent with requests from other sites', async () => {
    const person = createPerson(on.issuer);
    await person.open(authorizationUrl(on.issuer, on.clients.confidential));
    expect(sessionCookie(person)).to.equal('');
    const page = await person.submit(await person.get('/login'), credentials(on.seeded.person));
    expect(setCookies(page.headers)).to.deep.equal({
      gate_device: ['httponly', 'path=/', 'samesite=lax'],
      gate_session: ['httponly', 'path=/', 'samesite=lax'],
      'gate_session.sig': ['httponly', 'path=/', 'samesite=lax'],
    });
  });

  it('approving a client does not make the sign-in more recent', async () => {
    const person = createPerson(on.issuer);
    const url = authorizationUrl(on.issuer, on.clients.confidential, { prompt: 'consent' });
    const signIn = await person.follow(await person.get(url));
    const consent = await person.follow(await person.submit(signIn, credentials(on.seeded.person)));
    on.clock.advance(1_000);
    await person.follow(await person.submit(consent, { decision: 'approve' }));
    const fields = { name: 'x', expires_in_days: '30' };
    const asked = await person.submit(await person.get('/profile/api-keys'), fields);
    expect(asked.html).to.include(said('confirm.title'));
  });

  it('the earlier session ends when another user signs in for a client', async () => {
    const victim = await begin();
    const earlierCookie = sessionCookie(victim);
    const url = authorizationUrl(on.issuer, on.clients.confidential, { prompt: 'login' });
    const page = await victim.follow(await victim.get(url));
    const next = await victim.follow(await victim.submit(page, credentials(on.seeded.other)));
    expect(next.html).to.include(on.seeded.other.email);
    expect(sessionCookie(victim)).not.to.equal(earlierCookie);
    const silent = authorizationUrl(on.issuer, on.clients.confidential, { prompt: 'none' });
    const ask = (path: string | URL) => createPerson(on.issuer).get(path, { cookie: earlierCookie });
    expect((await ask('/profile')).location?.pathname).to.equal('/login');
    expect((await ask(silent)).location?.searchParams.get('error')).to.equal('login_required');
    expect((await victim.get('/profile')).status).to.equal(200);
  });

  it('signing out clears the browser’s cache and storage, but no cookies of other sites', async () => {
    const person = createPerson(on.issuer);
    await person.signIn(on.seeded.person);
    const answer = await person.submit(await person.get('/logout'), {});
    // Expect no `"cookies"`: that would delete the cookies of every site of the same registered domain.
    expect(answer.headers.get('clear-site-data')).to.equal('"cache", "storage"');
    expect(person.cookieNames).to.include('gate_device').and.not.include('gate_session');
    expect((await person.get('/logout')).headers.get('clear-site-data')).to.equal(null);
  });

  describe('a shorter session lifetime applies to existing sessions after a reload', () => {
    const MINUTE = 60;
    const reloadWith = async (changed: typeof lifetimes): Promise<void> => {
      lifetimes = changed;
      await on.service.reload();
    };
    before('end the sessions of before', () => on.service.accounts.endSessions(on.seeded.person.accountId));
    afterEach('restore the lifetimes', () => reloadWith({}));

    const keepAlive = (person: Person): Promise<Page> => person.post('/oauth/token/refresh', {});
    const silent = async (person: Person): Promise<string | null | undefined> => {
      const url = authorizationUrl(on.issuer, on.clients.confidential, { prompt: 'none' });
      const { searchParams } = (await person.get(url)).location ?? {};
      return searchParams?.get('code') ? 'a code' : searchParams?.get('error');
    };
    const keys = () => on.service.apiKeys.listOf(on.seeded.person.accountId);
    const othersListed = async (person: Person): Promise<number> =>
      [...(await person.get('/profile/security')).html.matchAll(/\/sign-out"/g)].length;

    it('a shorter idle limit ends only sessions that have been idle for longer', async () => {
      const [idle, active] = [await begin(), await begin()];
      on.clock.advance(64);
      expect(await othersListed(active)).to.equal(1);
      await reloadWith({ idleSeconds: MINUTE });
      expect((await keepAlive(idle)).status).to.equal(401);
      expect((await idle.get('/profile')).location?.pathname).to.equal('/login');
      const { status, html } = await keepAlive(active);
      expect({ status, html }).to.deep.equal({ status: 200, html: '{"session_expires_in":60}' });
      expect(await othersListed(active)).to.equal(0);
    });

    it('a shorter session lifetime applies to existing sessions: older ones create no API key and get no code', async () => {
      const old = await begin();
      const request = authorizationUrl(on.issuer, on.clients.confidential);
      await old.authorize(request, on.seeded.person);
      const form = await old.get('/profile/api-keys');
      expect(await silent(old)).to.equal('a code');
      on.clock.advance(MINUTE);
      await reloadWith({ absoluteSeconds: MINUTE });
      const young = await begin();
      const sent = await old.submit(form, { name: 'Late' });
      expect(sent.location?.pathname).to.equal('/login');
      expect(await keys()).to.deep.equal([]);
      expect(await silent(old)).to.equal('login_required');
      expect(await silent(young)).to.equal('a code');
      await young.submit(await young.get('/profile/api-keys'), { name: 'In time' });
      expect(await keys()).to.have.length(1);
    });

    it('a shorter session lifetime applies to the session of an open consent page', async () => {
      const person = await begin();
      const url = authorizationUrl(on.issuer, on.clients.otherConfidential, { prompt: 'consent' });
      const consent = await person.follow(await person.get(url));
      on.clock.advance(MINUTE);
      await reloadWith({ absoluteSeconds: MINUTE });
      const answer = await person.follow(await person.submit(consent, { decision: 'approve' }));
      expect(answer.forms.some(({ names }) => names.has('password'))).to.equal(true);
      const { accountId } = on.seeded.person;
      const { id } = on.clients.otherConfidential;
      expect(await on.service.connections.find(accountId, id)).to.equal(undefined);
    });
  });
});

describe('cookies of an https issuer', () => {
  const issuer = 'https://gatehouse.example';
  const on = startSeeded({ settings: { issuer, server: { proxyHops: 1 } } });

  /** Sends a request like a proxy that terminates TLS, but reports http as the scheme. */
  const ask = (path: string, cookie = '', form?: Record<string, string>) =>
    rawRequest(on.service.settings.server.port, path, {
      headers: { host: 'gatehouse.example', origin: issuer, cookie, 'x-forwarded-proto': 'http' },
      ...(form && { form }),
    });

  it('all cookies are Secure and bound to this host, and those of an authorization request to its path', async () => {
    const url = authorizationUrl(issuer, on.clients.confidential);
    const asked = await ask(url.pathname + url.search);
    expect(asked.status).to.equal(303);
    const location = new URL(asked.headers.get('location') ?? '', issuer);
    expect(location.origin).to.equal(issuer);
    const shared = ['httponly', 'samesite=lax', 'secure'];
    const uid = location.pathname.split('/')[2];
    const interaction = [`path=/interaction/${uid}`, ...shared].toSorted();
    const resume = [`path=/oauth/authorize/${uid}`, ...shared].toSorted();
    const host = ['path=/', ...shared].toSorted();
    expect(setCookies(asked.headers)).to.deep.equal({
      '__Secure-gate_interaction': interaction,
      '__Secure-gate_interaction.sig': interaction,
      '__Secure-gate_resume': resume,
      '__Secure-gate_resume.sig': resume,
    });

    const form = await ask('/login');
    expect(setCookies(form.headers)).to.deep.equal({ '__Host-gate_form': host });
    const cookie = form.headers.getSetCookie().join().split(';')[0];
    const token = /name="form_token" value="([^"]+)"/.exec(form.text)?.[1] ?? '';
    const signIn = await ask('/login', cookie, {
      ...credentials(on.seeded.person),
      form_token: token,
    });
    expect(signIn.status).to.equal(303);
    expect(setCookies(signIn.headers)).to.deep.equal({
      '__Host-gate_device': host,
      '__Host-gate_session': host,
      '__Host-gate_session.sig': host,
    });
  });
});

const credentials = ({ email, password }: Seed['person']) => ({ email, password });

/** The session cookie and its signature, as the browser sends them. */
function sessionCookie(person: Person): string {
  const cookies = person.cookieHeader('/profile').split('; ');
  return cookies.filter((cookie) => cookie.startsWith('gate_session')).join('; ');
}

/** The attributes of each cookie that is set, sorted, without the expiry. */
function setCookies(headers: Headers): Record<string, string[]> {
  const lines = headers.getSetCookie().map((line) => line.split('; '));
  return Object.fromEntries(
    lines.map(([pair = '', ...attributes]) => [
      pair.slice(0, pair.indexOf('=')),
      attributes.filter((attribute) => !attribute.startsWith('expires=')).toSorted(),
    ]),
  );
}
