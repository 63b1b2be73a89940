/** What people who come for one thing click and read, in each language. */
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { textsFor } from '../../src/texts/texts.ts';
import { addMember, reachOf } from '../pages/organization-members.ts';
import { PHONE } from '../support/axe.ts';
import { countingReader, describeInBrowser } from '../support/browser.ts';
import { authorizationUrl } from '../support/oauth.ts';
import { startPartner } from '../support/partner.ts';
import { addTestClient, type SeededPerson } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';

for (const language of ['en', 'de']) {
  const t = textsFor(language);

  describeInBrowser(`few clicks and words, in ${language}`, (visit) => {
    const on = startSeeded();
    let counted: ReturnType<typeof countingReader>['counted'];
    let click: ReturnType<typeof countingReader>['click'];

    beforeEach(() => {
      ({ click, counted } = countingReader());
    });

    const readAndClick = (page: Page, role: 'button' | 'link', name: string): Promise<void> =>
      click(page.getByRole('main').getByRole(role, { name, exact: true }));

    async function signIn(page: Page, { email, password }: SeededPerson): Promise<void> {
      await page.locator('[name=email]').fill(email);
      await page.locator('[name=password]').fill(password);
      await readAndClick(page, 'button', t('sign-in.title'));
    }

    it('an administrator blocks an app with at most 5 clicks and 200 words to read', async () => {
      const organizationId = on.seeded.organization.id;
      const hamburg = (await on.service.organizations.addWarehouse({ organizationId, name: 'Hamburg' })).id;
      const admin = await addMember(on, 'Olga Owner', 'owner');
      const { accountId } = on.seeded.person;
      await on.service.memberships.setRights({ accountId }, hamburg, ['read', 'write']);
      const { accessToken } = await on.partner.tokens(on.clients.confidential);
      const reached = async (): Promise<string> => JSON.stringify(await reachOf(on, accessToken));
      expect(await reached()).to.include(hamburg);

      const { page } = await visit({ locale: language });
      await page.goto(`${on.issuer}/profile`);
      await signIn(page, admin);
      await readAndClick(page, 'link', 'Hamburg');
      await readAndClick(page, 'link', `${t('organizations.block')} Route Planner`);
      await readAndClick(page, 'button', t('organizations.block'));
      await page.getByText(t('organizations.blocked', { app: 'Route Planner', place: 'Hamburg' })).waitFor();
      expect(counted.clicks, 'clicks').to.be.at.most(5);
      expect(counted.words, 'words').to.be.at.most(200);
      expect(await reached())
        .to.include(on.seeded.warehouse.id)
        .and.not.include(hamburg);
    });

    it('a worker connects an app on a phone within 3 clicks and 150 words', async () => {
      const partner = await startPartner();
      const client = await addTestClient(on.service, 'Pallet Scanner', { redirectUris: [partner.redirectUri] });
      const { page } = await visit({ ...PHONE, locale: language });
      await page.goto(authorizationUrl(on.issuer, client).href);
      await signIn(page, on.seeded.person);
      await readAndClick(page, 'button', t('consent.approve'));
      expect((await partner.nextRedirect()).searchParams.get('code')).to.match(/^gate_ac_/);
      expect(counted.clicks, 'clicks').to.be.at.most(3);
      expect(counted.words, 'words').to.be.at.most(150);
    });
  });
}
