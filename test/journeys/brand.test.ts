/** Pages with the operator's brand in a real browser: readable, in few requests, and without errors. */
import { expect } from 'chai';
import { logoFile, png } from '../config/brand-files.ts';
import { settingsOf } from '../config/configuration.ts';
import { expectAccessible, PHONE } from '../support/axe.ts';
import { describeInBrowser, signInOn } from '../support/browser.ts';
import { authorizationUrl } from '../support/oauth.ts';
import { startSeeded } from '../support/seeded.ts';

const MAX_REQUESTS = 5;

logoFile('acme-light.png', png(240, 60));
logoFile('acme.png', png(240, 60));
const { brand } = settingsOf(`brand:
  name: Acme Storage
  logo: acme-light.png
  logo_dark: acme.png
  colour: "#846a00"
  support: help@acme.example
  privacy_url: https://www.acme.example/privacy
`);

describeInBrowser('a brand in the browser', (visit) => {
  const on = startSeeded({ settings: { brand } });

  it('branded sign-in and consent pages are accessible, and the sign-in page loads with at most 5 requests', async () => {
    const { page, problems } = await visit(PHONE);
    const answers = new Set<string>();
    page.on('response', (response) => answers.add(response.url()));
    await page.goto(`${on.issuer}/login`, { waitUntil: 'networkidle' });
    // The browser of the tests does not ask for the icon of the tab: it is the logo.
    expect([...answers]).to.have.lengthOf.at.most(MAX_REQUESTS);
    const shown = 'document.querySelector("img.logo").naturalWidth';
    expect(await page.evaluate(shown)).to.equal(240);
    // This changes the color scheme, and with it the image, which has no width until it is loaded.
    await expectAccessible(page, 'sign-in');

    await page.goto(authorizationUrl(on.issuer, on.clients.confidential).href);
    await signInOn(page, on.seeded.person);
    await page.getByRole('button', { name: 'Approve' }).waitFor();
    await expectAccessible(page, 'consent');
    await page.goto(`${on.issuer}/profile`);
    await expectAccessible(page, 'profile');
    expect(problems).to.deep.equal([]);
  });

  it('buttons have the brand colour, and a stronger shade under the mouse, in light and dark mode', async () => {
    for (const [colorScheme, shade, hovered] of [
      ['light', 'rgb(132, 106, 0)', [0.362, 0.291, 0]],
      ['dark', 'rgb(161, 142, 61)', [0.742, 0.69, 0.467]],
    ] as const) {
      const { page } = await visit({ colorScheme });
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      await page.goto(`${on.issuer}/login`);
      const button = page.getByRole('main').getByRole('button', { name: 'Sign in' }).first();
      const background = () =>
        page.evaluate<string>('getComputedStyle(document.querySelector("main .solid")).backgroundColor');
      expect(await background(), colorScheme).to.equal(shade);
      await button.hover();
      // A mixed color has shares of 1 in place of numbers up to 255.
      const shares = (await background()).match(/\d[\d.]*/g)?.map(Number) ?? [];
      expect(shares, colorScheme).to.have.length(3);
      hovered.forEach((share, index) => {
        expect(shares[index], colorScheme).to.be.closeTo(share, 0.001);
      });
    }
  });
});
