/** A user who signed in with a provider signs out here, and learns where else. */
import { expect } from 'chai';
import { expectAccessible } from '../support/axe.ts';
import { describeInBrowser } from '../support/browser.ts';
import { GRACE, startWithUpstream } from './service.ts';

describe('a user of a provider who signs out', () => {
  const on = startWithUpstream();

  it('reads where they may still be signed in, and the provider gets no request', async () => {
    const person = on.traveller();
    await on.signIn(GRACE, person);
    const before = on.upstream.requests.length;
    const page = await person.follow(await person.submit(await person.get('/logout'), {}));
    expect(page.html).to.include('also sign out of <bdi>Warehouse platform</bdi>');
    expect(on.upstream.requests.slice(before)).to.deep.equal([]);
    expect((await person.get('/profile')).location?.pathname).to.equal('/login');
  });
});

describeInBrowser('signing out after a sign-in at a provider, in Chromium', (visit) => {
  const on = startWithUpstream();

  for (const button of ['Sign out', 'Forget this computer']) {
    it(`“${button}” leads to a page that says so, and keeps no session`, async () => {
      on.upstream.account = GRACE;
      const { page, problems } = await visit();
      await page.goto(`${on.service.issuer}/login`);
      await page.getByRole('button', { name: 'Sign in with Warehouse platform' }).click();
      const keep = page.getByRole('link', { name: 'Keep everything' });
      const home = page.getByRole('heading', { name: 'Your access' });
      await keep.or(home).first().waitFor();
      await page.goto(`${on.service.issuer}/logout`);
      await expectAccessible(page);
      await page.locator('main').getByRole('button', { name: button }).click();
      await page.getByRole('heading', { name: 'You are signed out' }).waitFor();
      await expectAccessible(page);
      const names = (await page.context().cookies(on.service.issuer)).map(({ name }) => name);
      const isForgotten = button !== 'Sign out';
      expect(names.includes('gate_device')).to.equal(!isForgotten);
      expect(names.filter((name) => /session/.test(name))).to.deep.equal([]);
      expect((await page.innerText('body')).includes('is forgotten')).to.equal(isForgotten);
      expect(problems).to.deep.equal([]);
    });
  }
});
