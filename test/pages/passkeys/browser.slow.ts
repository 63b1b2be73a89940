/** More journeys with passkeys in Chromium than `browser.test.ts` makes. */
import { expect } from 'chai';
import { expectAccessible, PHONE } from '../../support/axe.ts';
import { button, describeInBrowser, signInOn } from '../../support/browser.ts';
import { cheapPasswords } from '../../support/cheap-passwords.ts';
import { authorizationUrl } from '../../support/oauth.ts';
import { startSeeded } from '../../support/seeded.ts';
import { said } from '../client-owner.ts';
import { add, plugIn } from './chromium.ts';
import { NEW, SECURITY } from './soft-passkey.ts';

describeInBrowser('journeys with passkeys in Chromium', (visit) => {
  cheapPasswords();
  const on = startSeeded({ clock: true });
  const security = () => `${on.issuer}${SECURITY}`;

  it('two users of one browser can sign in, each with their own passkey', async () => {
    const { page, problems } = await visit();
    const { touch } = await plugIn(page);
    for (const who of [on.seeded.person, on.seeded.other]) {
      await touch(false);
      await page.goto(security());
      await signInOn(page, who);
      await touch(true);
      await add(page, `Of ${who.name}`);
      await page.getByText('Passkey added').waitFor();
      // The page requests the passkey of the signed-in user, not the other one in this browser.
      on.clock.advance(601);
      await page.goto(`${on.issuer}/profile/api-keys`);
      await page.locator('[name=name]').fill('Night sync');
      await button(page, 'Create API key').click();
      await button(page, 'Confirm with a passkey').waitFor();
      await expectAccessible(page);
      await button(page, 'Confirm with a passkey').click();
      await page.locator('[data-secret]').waitFor();
      expect(await page.textContent('header')).to.include(who.email);
      await page.goto(`${on.issuer}/logout`);
      await button(page, 'Sign out').last().click();
      await page.getByText('You are signed out').first().waitFor();
    }
    await page.goto(`${on.issuer}/profile/connections`);
    await page.getByRole('heading', { name: 'Connections' }).waitFor();
    expect(problems).to.deep.equal([]);
  });

  it('passkeys are not offered without JavaScript, and the page to add a passkey says so', async () => {
    const { page } = await visit({ javaScript: false });
    await page.goto(security());
    expect(await button(page, 'Sign in with a passkey').isVisible()).to.equal(false);
    await signInOn(page, on.seeded.person);
    await page.getByRole('navigation', { name: 'Your profile' }).waitFor();
    await page.goto(`${on.issuer}${NEW}`);
    expect(await page.innerText('main')).to.include(said('passkey.cannot-create'));
  });
});

describeInBrowser('a user for whom a password is not enough', (visit) => {
  const on = startSeeded({
    settings: { signIn: { require: 'passkey-or-upstream', requireGraceSeconds: 0 } },
  });

  it("a user adds a passkey during a client's request and then reaches the consent page", async () => {
    const { page, problems } = await visit(PHONE);
    const { touch } = await plugIn(page);
    await touch(true);
    await page.goto(authorizationUrl(on.issuer, on.clients.otherConfidential).href);
    await signInOn(page, on.seeded.other);
    await page.getByRole('heading', { name: 'You need a stronger sign-in method' }).waitFor();
    await expectAccessible(page);
    await page.getByRole('link', { name: 'Add a passkey' }).click();
    await button(page, 'Create passkey').click();
    await button(page, 'Approve').waitFor();
    expect(problems).to.deep.equal([]);
  });
});
