/** From a new account to the first answer of the GraphQL API, in few clicks. */
import { expect } from 'chai';
import type { Locator, Page } from 'playwright-core';
import { expectAccessible, PHONE } from '../support/axe.ts';
import { describeInBrowser } from '../support/browser.ts';
import { authorizationUrl } from '../support/oauth.ts';
import { addTestClient } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { nameWarehouseApi } from '../support/warehouse-api.ts';

/** How many clicks a new developer should need at most, and how many words they meet before the answer. */
const MAX_CLICKS = 9;
const MAX_WORDS = 410;
const PASSWORD = 'nine green pallets';

describeInBrowser('a new developer', (visit) => {
  const on = startSeeded();
  let clicks = 0;
  let words = 0;

  before(() => nameWarehouseApi(on));

  async function click(target: Locator): Promise<void> {
    clicks += 1;
    // The last click may still be leaving its page.
    await target.waitFor();
    words += await target.page().evaluate<number>(WORDS_OF_PAGE);
    await target.click();
  }
  const button = (page: Page, name: string) => page.getByRole('main').getByRole('button', { name, exact: true });

  it('a new developer calls the API successfully within 9 clicks and sees the requests live', async () => {
    const { page, problems } = await visit(PHONE);
    const { service, issuer } = on;
    const account = await service.accounts.add({ email: 'new@example.test', name: 'Nia New' });
    const { token } = await service.passwordLinks.make(account, 'invitation', ORIGIN);
    await page.goto(`${issuer}/password?token=${token}`);
    await page.getByLabel('New password').fill(PASSWORD);
    await click(button(page, 'Set password'));
    await click(page.getByRole('link', { name: 'Developer' }));
    await click(page.getByRole('link', { name: 'Create OAuth Client' }));
    await page.getByLabel('Name').fill('Stock Sync');
    await page.getByLabel('Redirect URI 1').fill('http://127.0.0.1:4000/callback');
    await click(button(page, 'Create OAuth Client'));
    await page.getByRole('heading', { name: 'Your new OAuth client' }).waitFor();
    const id = (await page.locator('[data-client-id]').textContent()) ?? '';
    await expectAccessible(page, 'the new client');

    const secret = (await page.locator('[data-secret]').textContent()) ?? '';
    expect(secret).to.match(/^gate_cs_/);
    await click(page.getByRole('link', { name: 'I have copied it' }));
    await page.getByLabel('Client secret').fill(secret);
    await click(button(page, 'Test this client'));
    await click(button(page, 'Approve'));
    await page.getByText('This client works.').waitFor();
    const answer = page.getByRole('region', { name: 'What the API answered' });
    await answer.getByText('"username": "new@example.test"').waitFor();
    expect(clicks, 'clicks').to.be.at.most(MAX_CLICKS);
    expect(words, 'words').to.be.at.most(MAX_WORDS);
    await expectAccessible(page, 'the answer');
    await page.goto(`${issuer}/profile/oauth-clients/${id}`);
    await page.getByText('New ones appear by themselves.').waitFor();
    const client = { id, redirectUri: 'http://127.0.0.1:4000/other' };
    await fetch(authorizationUrl(issuer, client));
    await page.locator('.request', { hasText: 'invalid_redirect_uri' }).waitFor();
    await expectAccessible(page, 'the requests');
    await page.goBack();
    expect(await page.content()).not.to.include(secret);

    await page.goto(`${issuer}/profile/oauth-clients`);
    await page.getByRole('link', { name: '1 problem (Stock Sync)' }).click();
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
    await page.getByLabel('Email address').fill(on.seeded.person.email);
    await page.getByLabel('Password', { exact: true }).fill(on.seeded.person.password);
    await button(page, 'Sign in').click();
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

/** Counts the visible words of the page's main part; neither code nor navigation is read. Runs in the page. */
const WORDS_OF_PAGE = String.raw`
  [...document.querySelectorAll('main *:not(nav, nav *, code, code *, pre, pre *, .unseen, .visually-hidden)')]
    .filter((element) => element.checkVisibility())
    .flatMap((element) => [...element.childNodes].filter(({ nodeType }) => nodeType === Node.TEXT_NODE))
    .reduce((count, { data }) => count + (data.match(/\S*[\p{L}\p{N}]\S*/gu)?.length ?? 0), 0)`;

const ORIGIN = { address: '127.0.0.1', browser: 'test' };
