/** From the sign-in of an administrator to an app that can no longer act in one warehouse: few clicks, few words. */
import { expect } from 'chai';
import type { Locator, Page } from 'playwright-core';
import { describeInBrowser } from '../support/browser.ts';
import { introspect } from '../support/oauth.ts';
import { addPerson, type SeededPerson } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { wordsOf } from '../support/words.ts';

const MAX_CLICKS = 5;
/** For two people and an app; 195 in the demo, with one person. */
const MAX_WORDS = 220;

describeInBrowser('an administrator', (visit) => {
  const on = startSeeded();
  let admin: SeededPerson;
  let hamburg: string;

  before(async () => {
    const organizationId = on.seeded.organization.id;
    hamburg = (await on.service.organizations.addWarehouse({ organizationId, name: 'Hamburg' })).id;
    admin = await addPerson(on.service, 'Olga Owner', 'olga@example.test');
    await on.service.memberships.setRole({ accountId: admin.accountId }, organizationId, 'owner');
    const { accountId } = on.seeded.person;
    await on.service.memberships.setRights({ accountId }, hamburg, ['read', 'write']);
  });

  it(`blocks an app in Hamburg within ${MAX_CLICKS} clicks and ${MAX_WORDS} words`, async () => {
    const { accessToken } = await on.partner.tokens(on.clients.confidential);
    const reached = async (): Promise<string> =>
      JSON.stringify((await introspect(on.issuer, on.clients.resourceServer, accessToken)).body.organizations);
    expect(await reached()).to.include(hamburg);
    const { page } = await visit();
    let clicks = 0;
    let words = 0;
    /** Counts what the page says, without its navigation, and clicks. */
    async function readAndClick(target: Locator): Promise<void> {
      await target.waitFor();
      const text = await page.evaluate<string>(`(() => {
        const copy = document.querySelector('main').cloneNode(true);
        for (const one of copy.querySelectorAll('nav:not(.parts), .unseen, [hidden], [aria-hidden]')) one.remove();
        return copy.textContent;
      })()`);
      words += wordsOf(text).length;
      clicks += 1;
      await target.click();
    }
    const button = (name: string) => inMain(page).getByRole('button', { name, exact: true });
    await page.goto(`${on.issuer}/profile`);
    await page.getByLabel('Email address').fill(admin.email);
    await page.locator('[name=password]').fill(admin.password);
    await readAndClick(button('Sign in'));
    await readAndClick(inMain(page).getByRole('link', { name: 'Hamburg' }));
    await readAndClick(inMain(page).getByRole('link', { name: 'Block Route Planner' }));
    await readAndClick(button('Block'));
    await page.getByText('Route Planner is blocked in Hamburg.').waitFor();
    expect(clicks, 'clicks').to.be.at.most(MAX_CLICKS);
    expect(words, 'words').to.be.at.most(MAX_WORDS);
    expect(await reached())
      .to.include(on.seeded.warehouse.id)
      .and.not.include(hamburg);
  });
});

const inMain = (page: Page): Locator => page.getByRole('main');
