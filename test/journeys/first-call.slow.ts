/** From a new account to the first answer of the GraphQL API, in few clicks. */
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { textsFor } from '../../src/texts/texts.ts';
import { expectAccessible, PHONE } from '../support/axe.ts';
import { button, countingReader, describeInBrowser, signInOn } from '../support/browser.ts';
import { authorizationUrl, exchangeCode } from '../support/oauth.ts';
import { type Partner, startPartner } from '../support/partner.ts';
import { addTestClient, passwordLink } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { nameWarehouseApi } from '../support/warehouse-api.ts';

const PASSWORD = 'nine green pallets';

describeInBrowser('a new developer', (visit) => {
  const on = startSeeded();

  let graphqlUrl: string;
  /** Listens where the programs of *Connect* do. */
  let partner: Partner;

  before(async () => {
    graphqlUrl = await nameWarehouseApi(on);
    partner = await startPartner();
  });

  /** From the invitation of a new account to the first answer of the API; `look` sees the page of the secret. */
  async function walk(page: Page, language: string, look: () => Promise<void> = async () => {}) {
    const t = textsFor(language);
    const { service, issuer } = on;
    const { click, counted } = countingReader();
    const email = `new-${language}@example.test`;
    const { id: accountId } = await service.accounts.add({ email, name: 'Nia New' });
    await page.goto(issuer + (await passwordLink(service, { accountId }, 'invitation')));
    await page.getByLabel(t('password.new'), { exact: true }).fill(PASSWORD);
    await click(button(page, t('password.set')));
    await click(page.getByRole('link', { name: t('navigation.developer') }));
    await click(page.getByRole('link', { name: t('oauth-clients.create') }));
    await page.locator('[name=name]').fill(`Stock Sync ${language}`);
    await page.getByLabel(t('client-form.uri', { row: 1 })).fill(partner.redirectUri);
    await click(button(page, t('oauth-clients.create')));
    await page.getByRole('heading', { name: t('client-secret.new-client') }).waitFor();
    const id = (await page.locator('[data-client-id]').textContent()) ?? '';
    await look();
    const secret = (await page.locator('[data-secret]').textContent()) ?? '';
    expect(secret).to.match(/^gate_cs_/);
    await click(page.getByRole('link', { name: t('client-secret.copied') }));
    await click(page.getByText(t('client-connect.programs'), { exact: true }));
    const client = { id, secret, redirectUri: partner.redirectUri };
    await page.goto(authorizationUrl(issuer, client).href);
    await click(button(page, t('consent.approve')));
    const code = (await partner.nextRedirect()).searchParams.get('code') ?? '';
    const { body } = await exchangeCode(issuer, client, code);
    const answer = await fetch(graphqlUrl, {
      method: 'POST',
      headers: { authorization: `Bearer ${body.access_token}`, 'content-type': 'application/json' },
      body: '{"query":"{ caller { username } }"}',
    });
    expect(await answer.text()).to.include(`"username":"${email}"`);
    expect(counted.clicks, 'clicks').to.be.at.most(8);
    expect(counted.words, 'words').to.be.at.most(400);
    return { id, secret };
  }

  it('a new developer calls the API within 8 clicks and 400 words, also in German', async () => {
    await walk((await visit({ ...PHONE, locale: 'de-DE' })).page, 'de');
  });

  it('a new developer calls the API successfully within 8 clicks and sees what was refused', async () => {
    const { page, problems } = await visit(PHONE);
    const { issuer } = on;
    const { id, secret } = await walk(page, 'en', () => expectAccessible(page, 'the new client'));
    const client = { id, redirectUri: 'http://127.0.0.1:4000/other' };
    await fetch(authorizationUrl(issuer, client));
    await page.goto(`${issuer}/profile/oauth-clients/${id}`);
    await page.getByText('invalid_redirect_uri').waitFor();
    await expectAccessible(page, 'the overview');
    await page.goBack();
    expect(await page.content()).not.to.include(secret);

    await page.goto(`${issuer}/profile/oauth-clients`);
    await page.getByRole('link', { name: '1 problem (Stock Sync en)' }).click();
    await page.waitForURL('**/problems');
    await expectAccessible(page, 'the problems');
    expect(problems).to.deep.equal([]);
  });

  it('a developer is warned before leaving the settings with unsaved changes', async () => {
    const { page } = await visit();
    const dialogs: string[] = [];
    page.on('dialog', (dialog) => {
      dialogs.push(dialog.type());
      void dialog.accept();
    });
    const owner = { ownerAccountId: on.seeded.person.accountId };
    const client = await addTestClient(on.service, 'Unsaved', owner);
    await page.goto(`${on.issuer}/profile/oauth-clients/${client.id}/settings`);
    await signInOn(page, on.seeded.person);
    await page.getByLabel('Name').click();
    await page.getByRole('link', { name: 'Connect', exact: true }).click();
    await page.getByRole('heading', { name: 'Connect', exact: true }).waitFor();
    expect(dialogs, 'nothing was typed').to.deep.equal([]);
    await page.getByRole('link', { name: 'Settings' }).click();
    // Also for the script, which asks before the page is left.
    await page.waitForURL('**/settings');
    await page.getByLabel('Name').fill('Typed');
    await page.getByRole('link', { name: 'Connect', exact: true }).click();
    await page.getByRole('heading', { name: 'Connect', exact: true }).waitFor();
    expect(dialogs).to.deep.equal(['beforeunload']);
    await page.getByRole('link', { name: 'Settings' }).click();
    // Also for the script, which asks before the page is left.
    await page.waitForURL('**/settings');
    await page.getByLabel('Name').fill('Typed');
    await button(page, 'Save changes').last().click();
    await page.getByText('The changes are saved.').waitFor();
    expect(dialogs).to.have.length(1);
  });
});
