/** A user who signed in with a provider signs out here, and is led to sign out there, too. */
import { expect } from 'chai';
import { expectAccessible } from '../support/axe.ts';
import { describeInBrowser } from '../support/browser.ts';
import type { Page } from '../support/person.ts';
import { ticksOf } from '../support/stopwatch.ts';
import type { Traveller } from '../support/upstream.ts';
import { GRACE, startWithUpstream } from './service.ts';

const DISCOVERY = '/.well-known/openid-configuration';
const END = '/session/end';

const urlIn = ({ html }: Page): URL | undefined => {
  const [, href] = /class="button solid" href="([^"]+)"/.exec(html) ?? [];
  return href === undefined ? undefined : new URL(href.replaceAll('&amp;', '&'));
};

describe('a user of a provider who signs out', () => {
  const on = startWithUpstream();

  afterEach('the provider answers as usual', () => {
    on.upstream.changes.clear();
    on.upstream.state = 'up';
    // The service caches the discovery document for an hour.
    on.clock.advance(3_601);
  });

  async function signOut(fields = {}, person = on.traveller()): Promise<Page> {
    await on.signIn(GRACE, person);
    return person.submit(await person.get('/logout'), fields);
  }
  async function signedOut(person: Traveller = on.traveller()): Promise<Page> {
    return person.follow(await signOut({}, person));
  }

  it('is offered to sign out at the provider, which learns nothing about the user', async () => {
    const page = await signedOut();
    expect(page.html).to.include('You are signed out').and.include('Warehouse platform</bdi>, too');
    const url = urlIn(page);
    expect(url?.origin).to.equal(on.upstream.issuer);
    expect(Object.fromEntries(url?.searchParams ?? [])).to.deep.equal({
      client_id: 'gatehouse',
      post_logout_redirect_uri: `${on.service.issuer}/logout`,
      state: 'signed-out',
    });
  });

  it('comes back from the provider to a page that offers nothing more', async () => {
    const person = on.traveller();
    await signedOut(person);
    const page = await person.get('/logout?state=signed-out');
    expect(page.html).to.include('You are signed out').and.not.include('Warehouse platform');
  });

  it('stays at a provider at which our URI is not registered', async () => {
    on.upstream.changes.set(END, (ctx) => {
      if (ctx.query.post_logout_redirect_uri !== undefined) ctx.status = 400;
    });
    const url = urlIn(await signedOut());
    expect([...(url?.searchParams ?? [])]).to.deep.equal([['client_id', 'gatehouse']]);
  });

  const unable: Readonly<Record<string, () => void>> = {
    'refuses sign-outs without an ID token': () =>
      on.upstream.changes.set(END, (ctx) => {
        ctx.status = 400;
      }),
    'has no address for it': () =>
      on.upstream.changes.set(DISCOVERY, (ctx) => {
        delete (ctx.body as Record<string, unknown>).end_session_endpoint;
      }),
    'has its address on an unknown host': () =>
      on.upstream.changes.set(DISCOVERY, (ctx) => {
        ctx.body = { ...(ctx.body as object), end_session_endpoint: 'http://localhost:1/end' };
      }),
  };
  for (const [what, change] of Object.entries(unable)) {
    it(`is only signed out here if the provider ${what}`, async () => {
      change();
      const person = on.traveller();
      const page = await signedOut(person);
      expect(urlIn(page)).to.equal(undefined);
      expect(page.html).to.include('also sign out of <bdi>Warehouse platform</bdi>');
      expect((await person.get('/profile')).location?.pathname).to.equal('/login');
    });
  }

  it('is signed out here even if the provider does not answer', async () => {
    const person = on.traveller();
    await on.signIn(GRACE, person);
    const form = await person.get('/logout');
    on.upstream.state = 'hung';
    const page = await person.follow(await person.submit(form, {}));
    expect(page.html).to.include('You are signed out');
    expect(urlIn(page)).to.equal(undefined);
    expect((await person.get('/profile')).location?.pathname).to.equal('/login');
  });

  it('waits at most two seconds for the provider, also if its addresses have to be loaded again', async () => {
    const person = on.traveller();
    await on.signIn(GRACE, person);
    const form = await person.get('/logout');
    on.clock.advance(3_601);
    on.upstream.state = 'hung';
    expect(await ticksOf(person.submit(form, {}))).to.be.below(3_500);
    expect((await person.get('/profile')).location?.pathname).to.equal('/login');
  });

  it('is not offered it after a sign-in with a password', async () => {
    const person = on.traveller();
    await person.signIn(on.seeded.person);
    const page = await person.follow(await person.submit(await person.get('/logout'), {}));
    expect(urlIn(page)).to.equal(undefined);
  });

  it('is never led to a URL that this service did not make', async () => {
    const offer = Buffer.from('{"provider":"X","url":"https://evil.test/"}').toString('base64url');
    for (const sent of [offer, `${offer}.${'a'.repeat(43)}`, '%00', 'a&offer=b']) {
      const person = on.traveller();
      const page = await person.get(`/logout?offer=${sent}`);
      expect(page.status).to.equal(200);
      expect(page.html).to.not.include('evil.test');
      const { location } = await person.submit(page, { forget: 'yes' });
      expect(location?.href).to.equal(`${on.service.issuer}/logout`);
    }
  });

  it('is led to the provider by “Forget this computer”, now or after the sign-out', async () => {
    const { location } = await signOut({ forget: 'yes' });
    expect(location?.origin).to.equal(on.upstream.issuer);
    expect(location?.pathname).to.equal(END);
    const person = on.traveller();
    const later = await person.submit(await signedOut(person), { forget: 'yes' });
    expect(later.location?.href).to.equal(location?.href);
  });
});

describeInBrowser('signing out at a provider, in Chromium', (visit) => {
  const on = startWithUpstream();

  for (const button of ['Sign out', 'Forget this computer']) {
    it(`“${button}” leads to the provider and back, to a page that says so`, async () => {
      on.upstream.account = GRACE;
      const { page, problems } = await visit();
      await page.goto(`${on.service.issuer}/login`);
      await page.getByRole('button', { name: 'Sign in with Warehouse platform' }).click();
      const keep = page.getByRole('link', { name: 'Keep everything' });
      const home = page.getByRole('heading', { name: 'What you can access' });
      await keep.or(home).first().waitFor();
      await page.goto(`${on.service.issuer}/logout`);
      await expectAccessible(page);
      await page.locator('main').getByRole('button', { name: button }).click();
      if (button === 'Sign out') {
        await page.getByRole('heading', { name: 'You are signed out' }).waitFor();
        await expectAccessible(page);
        await page.getByRole('link', { name: 'Sign out of Warehouse platform, too' }).click();
      }
      await page.getByRole('button', { name: 'Yes' }).click();
      await page.waitForURL(`${on.service.issuer}/logout?state=signed-out`);
      await page.getByRole('heading', { name: 'You are signed out' }).waitFor();
      const names = (await page.context().cookies(on.service.issuer)).map(({ name }) => name);
      const isForgotten = button !== 'Sign out';
      expect(names.includes('gate_device')).to.equal(!isForgotten);
      expect(names.filter((name) => /session/.test(name))).to.deep.equal([]);
      expect((await page.innerText('body')).includes('is forgotten')).to.equal(isForgotten);
      expect(problems).to.deep.equal([]);
    });
  }
});
