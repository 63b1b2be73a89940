/** More journeys with a provider in Chromium than `browser.test.ts` makes. */
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { add, button, offerNothingWhileTyping, plugIn, signIn } from '../pages/passkeys/chromium.ts';
import { SECURITY } from '../pages/passkeys/soft-passkey.ts';
import { expectAccessible, PHONE } from '../support/axe.ts';
import { describeInBrowser } from '../support/browser.ts';
import { addPerson, type SeededPerson } from '../support/seed.ts';
import { startWithUpstream } from './service.ts';

const HERE = '127.0.0.1/32';

async function signOut(page: Page, issuer: string): Promise<void> {
  await page.goto(`${issuer}/logout`);
  await button(page, 'Sign out').last().click();
  await page.getByText('You are signed out').first().waitFor();
}

describeInBrowser('journeys with a provider in Chromium', (visit) => {
  const on = startWithUpstream();
  const security = () => `${on.service.issuer}${SECURITY}`;
  const addPat = async (name: string): Promise<SeededPerson> => {
    const who = await addPerson(on.service, `${name} Person`, `${name.toLowerCase()}@example.test`);
    on.upstream.account = { sub: `${name} at the platform` };
    return who;
  };

  it('a user with a passkey connects a provider, and signs in there', async () => {
    const who = await addPat('Lina');
    const { page, problems } = await visit(PHONE);
    const { touch } = await plugIn(page);
    await offerNothingWhileTyping(page);
    await page.goto(security());
    await signIn(page, who);
    await touch(true);
    await add(page, 'Phone');
    await page.getByText('Passkey added').waitFor();
    await page.locator('[name=link_with]').click();
    await page.getByText('Warehouse platform').first().waitFor();
    await page.locator('a[href*="/ways/remove"]').waitFor();
    await expectAccessible(page);
    await touch(false);
    await signOut(page, on.service.issuer);
    await page.goto(security());
    await button(page, 'Sign in with Warehouse platform').click();
    await page.waitForURL(security());
    expect(problems).to.deep.equal([]);
  });

  it('a user who forgot the password confirms at the provider, and sets a new one', async () => {
    const who = await addPat('Rosa');
    const { page, problems } = await visit(PHONE);
    await page.goto(security());
    await signIn(page, who);
    await page.locator('[name=link_with]').click();
    await page.locator('[name=confirm_with]').click();
    await page.waitForURL('**/password');
    await expectAccessible(page);
    const password = 'eight blue pallets, stacked';
    await page.locator('[name=new_password]').fill(password);
    await button(page, 'Set password').click();
    await page.waitForURL('**/login*');
    await page.goto(security());
    await signIn(page, { ...who, password });
    await page.waitForURL(security());
    expect(problems).to.deep.equal([]);
  });
});

describeInBrowser('a shared terminal in Chromium', (visit) => {
  const on = startWithUpstream({ settings: { sessions: { sharedTerminals: [HERE, '::1/128'] } } });

  it('a user signs in with a provider, and leaves neither a session nor a known browser for the next one', async () => {
    const who = await addPerson(on.service, 'Tara Terminal', 'tara@example.test');
    const { page, problems } = await visit();
    await page.goto(`${on.service.issuer}${SECURITY}`);
    await signIn(page, who);
    on.upstream.account = { sub: 'Tara at the platform' };
    await page.locator('[name=link_with]').click();
    await page.locator('a[href*="/ways/remove"]').waitFor();
    await signOut(page, on.service.issuer);
    await expectAccessible(page);
    await page.goto(`${on.service.issuer}/login`);
    await button(page, 'Sign in with Warehouse platform').click();
    await page.waitForURL(`${on.service.issuer}/profile`);
    const cookies = await page.context().cookies(on.service.issuer);
    const lasting = cookies.filter(({ expires }) => expires !== -1).map(({ name }) => name);
    expect(cookies.find(({ name }) => name === 'gate_session')?.expires).to.equal(-1);
    expect(lasting).to.not.include('gate_device');
    await signOut(page, on.service.issuer);
    await page.goto(`${on.service.issuer}/login`);
    expect(await page.innerText('body')).to.not.include('tara');
    expect(await page.getByLabel('Email address').inputValue()).to.equal('');
    expect(problems).to.deep.equal([]);
  });
});
