/** The page of a new secret: nothing on it loses the secret, and its programs are tabs. */
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { expectAccessible, PHONE } from '../../support/axe.ts';
import { describeInBrowser, enterAs } from '../../support/browser.ts';
import { startSeeded } from '../../support/seeded.ts';
import { nameWarehouseApi } from '../../support/warehouse-api.ts';
import { type ClientOwner, LIST, REDIRECT_URI, shownOn, signInOwner } from '../client-owner.ts';

const KEYS = '/profile/api-keys';
const MAX_PAGE_BYTES = 100_000;

describeInBrowser('the page of a new secret', (visit) => {
  const on = startSeeded();
  let owner: ClientOwner;

  before(() => nameWarehouseApi(on));

  beforeEach(async () => {
    owner = await signInOwner(on.service, on.seeded.person);
  });

  const makeClient = (name: string) =>
    owner.fillIn(`${LIST}/new`, { name, redirect_uris: REDIRECT_URI });
  const makeKey = (name: string) => owner.fillIn(KEYS, { name, expires_in_days: '30' });

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

  it('no link or form leads away from an uncopied secret, also without JavaScript, except signing out', async () => {
    for (const { html } of [await makeClient('Safe'), await makeKey('Safe')]) {
      expect(html).to.include('data-secret');
      const elements = html.match(/<(?:a|form)\s[^>]*>/g) ?? [];
      const leading = elements.filter((element) => !element.includes('target="_blank"'));
      const known = /href="#content"|data-copied|action="\/logout"/;
      expect(leading.filter((element) => !known.test(element))).to.deep.equal([]);
      expect(leading).to.have.length(3);
    }
  });

  it('the .env comes first, with client ID, secret and issuer on its first lines', async () => {
    const page = await makeClient('First');
    const { id, secret } = shownOn(page);
    const [, file = ''] = /The .env file"[^>]*><code>([^<]*)</.exec(page.html) ?? [];
    const first = [`CLIENT_ID=${id}`, `CLIENT_SECRET=${secret}`, `OAUTH_ISSUER=${on.issuer}`];
    expect(file.split('\n').slice(0, 3)).to.deep.equal(first);
    expect(page.html.indexOf('The .env file')).to.be.below(page.html.indexOf('data-secret'));
  });

  it('the page of a new secret is small and takes at most five requests', async () => {
    const { page } = await visit();
    await enterAs(page, on.issuer, owner);
    const { location } = await owner.send(`${LIST}/new`, {
      ...{ name: 'Small', redirect_uris: REDIRECT_URI },
    });
    const requested: string[] = [];
    page.on('request', (request) => requested.push(request.url()));
    const response = await page.goto(String(location));
    const body = (await response?.body()) ?? '';
    await page.waitForLoadState('networkidle');
    expect(String(body)).to.include('data-secret');
    expect(body.length).to.be.below(MAX_PAGE_BYTES);
    expect(requested.length, requested.join(' ')).to.be.at.most(5);
  });

  it('the browser asks before the user leaves a secret that was not copied, and not afterwards', async () => {
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
        await tab.getByRole('button', { name: 'Copy client ID' }).click();
        await tab.goto(`${on.issuer}/profile`);
        expect(dialogs, 'only the client ID was copied').to.have.length(2);
        await openNew(tab, what);
        await tab.getByRole('button', { name: 'Copy .env file' }).click();
      } else {
        await tab.getByRole('button', { name: 'Copy API key' }).click();
      }
      const copied = String(await tab.evaluate('navigator.clipboard.readText()'));
      if (what === 'key') expect(copied).to.equal(secret);
      else expect(copied).to.match(/^CLIENT_SECRET=gate_cs_\S+$/m);
      const asked = dialogs.length;
      await tab.goto(`${on.issuer}/profile`);
      expect(dialogs, 'copied by a button').to.have.length(asked);

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

  it('the button that confirms the copy looks the same after a client and after an API key, and is not as wide as the page', async () => {
    const looks: unknown[] = [];
    for (const what of ['client', 'key'] as const) {
      const { page } = await visit();
      await openNew(page, what);
      const link = page.getByRole('link', { name: 'I have copied it' });
      const box = await link.boundingBox();
      looks.push({ style: await link.getAttribute('class'), ...box, x: 0, y: 0 });
      expect(box?.width).to.be.below(300);
    }
    expect(looks[0]).to.deep.equal(looks[1]);
  });

  describe('the programs', () => {
    const shown = (page: Page) => page.getByRole('group', { name: /^The flow with / });
    const connectUrl = (id: string) => `${on.issuer}${LIST}/${id}/connect`;

    it('one program is shown at a time, chosen by click or arrow keys, without JavaScript as well', async () => {
      const { id } = await owner.createClient('Tabs');
      for (const javaScript of [true, false]) {
        const { page } = await visit({ javaScript });
        await enterAs(page, on.issuer, owner);
        await page.goto(connectUrl(id));
        const expectOne = async (name: string) => {
          await page.getByRole('group', { name: `The flow with ${name}`, exact: true }).waitFor();
          expect(await shown(page).count(), name).to.equal(1);
        };
        await expectOne('curl');
        await page.getByText('Java', { exact: true }).click();
        await expectOne('Java');
        await page.keyboard.press('ArrowRight');
        await expectOne('PHP');
        await page.keyboard.press('ArrowLeft');
        await page.keyboard.press('ArrowLeft');
        await expectOne('Go');
        expect(await page.getByRole('radio', { name: 'Go' }).isChecked()).to.equal(true);
        // The program comes after its name in the order of the Tab key.
        await page.keyboard.press('Tab');
        if (javaScript) await page.keyboard.press('Tab');
        const label = await page.evaluate('document.activeElement.getAttribute("aria-label")');
        expect(label).to.equal('The flow with Go');
      }
    });

    it('the language that was chosen is remembered on every page with programs', async () => {
      const { page, problems } = await visit();
      await openNew(page);
      await page.getByText('Python', { exact: true }).click();
      const { id } = await owner.createClient('Another');
      await page.getByRole('link', { name: 'I have copied it' }).click();
      await page.goto(connectUrl(id));
      await page.getByRole('group', { name: 'The flow with Python' }).waitFor();
      expect(await shown(page).count()).to.equal(1);
      await openNew(page);
      await page.getByRole('group', { name: 'The flow with Python' }).waitFor();
      expect(problems).to.deep.equal([]);
    });

    it('programs also work in a browser that keeps no data for the site', async () => {
      const { page, problems } = await visit();
      const { id } = await owner.createClient('Forgetful');
      await page.addInitScript(
        "Object.defineProperty(window, 'localStorage', { get() { throw new Error('denied'); } })",
      );
      await enterAs(page, on.issuer, owner);
      await page.goto(connectUrl(id));
      await page.getByText('Ruby', { exact: true }).click();
      await page.getByRole('group', { name: 'The flow with Ruby' }).waitFor();
      await page.getByRole('button', { name: 'Copy client ID' }).waitFor();
      expect(problems).to.deep.equal([]);
    });

    it('the colours of the programs are readable in light and dark', async () => {
      const { page } = await visit(PHONE);
      const { id } = await owner.createClient('Colours');
      await enterAs(page, on.issuer, owner);
      await page.goto(connectUrl(id));
      // These three have all colours.
      for (const name of ['curl', 'Node', 'Ruby']) {
        await page.getByText(name, { exact: true }).click();
        expect(await shown(page).locator('.code-comment').count(), name).to.be.above(0);
        await expectAccessible(page, name);
      }
    });
  });
});
