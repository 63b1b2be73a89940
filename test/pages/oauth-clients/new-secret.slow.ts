/** The page of a new secret in a browser: nothing on it loses the secret, and its programs are tabs. */
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { describeInBrowser, enterAs } from '../../support/browser.ts';
import { eventually } from '../../support/eventually.ts';
import { startSeeded } from '../../support/seeded.ts';
import { nameWarehouseApi } from '../../support/warehouse-api.ts';
import { type ClientOwner, LIST, REDIRECT_URI, signInOwner } from '../client-owner.ts';

const KEYS = '/profile/api-keys';

describeInBrowser('the page of a new secret', (visit) => {
  const on = startSeeded();
  let owner: ClientOwner;

  before(() => nameWarehouseApi(on));

  beforeEach(async () => {
    owner = await signInOwner(on.service, on.seeded.person);
  });

  /** Opens the page of a new secret of a client, or of a new API key. */
  async function openNew(page: Page, what: 'client' | 'key' = 'client'): Promise<string> {
    await enterAs(page, on.issuer, owner);
    await page.goto(on.issuer + (what === 'client' ? `${LIST}/new` : KEYS));
    await page.getByLabel('Name', { exact: true }).fill(`New ${what}`);
    if (what === 'client') await page.getByLabel('Redirect URI 1').fill(REDIRECT_URI);
    const label = what === 'client' ? 'Create OAuth Client' : 'Create API key';
    await page.getByRole('button', { name: label }).last().click();
    return (await page.locator('[data-secret]').textContent()) ?? '';
  }

  /** Accepts the dialogs of the page. @returns their types, as they come */
  function dialogsOf(page: Page): string[] {
    const types: string[] = [];
    page.on('dialog', (dialog) => {
      types.push(dialog.type());
      void dialog.accept();
    });
    return types;
  }

  it('the browser asks for confirmation before the user leaves a page with an uncopied secret, and not afterwards', async () => {
    const { page, problems } = await visit();
    const { page: second } = await visit();
    for (const [what, tab] of [['client', page] as const, ['key', second] as const]) {
      await tab.context().grantPermissions(['clipboard-read', 'clipboard-write']);
      const dialogs = dialogsOf(tab);
      await openNew(tab, what);
      await tab.goto(`${on.issuer}/profile`);
      expect(dialogs, 'left without a copy').to.deep.equal(['beforeunload']);

      const secret = await openNew(tab, what);
      if (what === 'client') {
        await tab.getByRole('button', { name: 'Copy .env' }).click();
      } else {
        await tab.getByRole('button', { name: 'Copy API key' }).click();
      }
      const copied = String(await tab.evaluate('navigator.clipboard.readText()'));
      if (what === 'key') expect(copied).to.equal(secret);
      else expect(copied).to.match(/^CLIENT_SECRET=gate_cs_\S+$/m);
      const asked = dialogs.length;
      await tab.goto(`${on.issuer}/profile`);
      expect(dialogs, 'copied by a button').to.have.length(asked);

      // The page of a key has the same script.
      if (what === 'key') continue;
      await openNew(tab, what);
      await tab.locator('[data-secret]').click();
      await tab.keyboard.press('Control+C');
      await tab.goto(`${on.issuer}/profile`);
      expect(dialogs, 'copied by the keyboard').to.have.length(asked);

      await openNew(tab, what);
      await tab.getByRole('link', { name: 'I have copied it' }).click();
      await tab.waitForURL((url) => !url.pathname.endsWith('/created'));
      expect(dialogs, 'copied by hand').to.have.length(asked);
    }
    expect(problems).to.deep.equal([]);
  });

  describe('the page for connecting a client shows example programs that can be copied', () => {
    const shown = (page: Page) => page.getByRole('group', { name: /^The program for / });
    const connectUrl = (id: string) => `${on.issuer}${LIST}/${id}/connect`;

    it('one example program is shown at a time, chosen by click or arrow keys, even without JavaScript', async () => {
      const { id } = await owner.createClient('Tabs');
      for (const javaScript of [true, false]) {
        const { page } = await visit({ javaScript });
        await enterAs(page, on.issuer, owner);
        await page.goto(connectUrl(id));
        const expectOne = async (name: string) => {
          await page.getByRole('group', { name: `The program for ${name}`, exact: true }).waitFor();
          expect(await shown(page).count(), name).to.equal(1);
        };
        await expectOne('curl');
        await page.getByText('Node', { exact: true }).click();
        await expectOne('Node');
        await page.keyboard.press('ArrowRight');
        await expectOne('Python');
        await page.keyboard.press('ArrowLeft');
        await page.keyboard.press('ArrowLeft');
        await expectOne('curl');
        expect(await page.getByRole('radio', { name: 'curl' }).isChecked()).to.equal(true);
        // The program comes after its name in the order of the Tab key.
        await page.keyboard.press('Tab');
        if (javaScript) await page.keyboard.press('Tab');
        const label = await page.evaluate('document.activeElement.getAttribute("aria-label")');
        expect(label).to.equal('The program for curl');
      }
    });

    it('the copy button copies an example program exactly as it is shown', async () => {
      const { page } = await visit();
      const { id } = await owner.createClient('Copied');
      await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
      await enterAs(page, on.issuer, owner);
      await page.goto(connectUrl(id));
      for (const name of ['curl', 'Python', 'Node']) {
        await page.getByText(name, { exact: true }).click();
        const code = page.getByRole('group', { name: `The program for ${name}`, exact: true }).locator('code');
        const text = await code.textContent();
        await page.getByRole('button', { name: `Copy the program for ${name}` }).click();
        await eventually(async () => {
          expect(await page.evaluate('navigator.clipboard.readText()'), name).to.equal(text?.trim());
        });
      }
    });
  });
});
