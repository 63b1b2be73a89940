/** The letter tile of an app, and the consent page in a browser. */
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { contrast, GROUNDS, MIN_CONTRAST } from '../../src/config/colour.ts';
import { TILE_COLOURS, tileOf } from '../../src/pages/words/tile.ts';
import { partnerTokens } from '../provider/partner-tokens.ts';
import { expectAccessible, PHONE } from '../support/axe.ts';
import { describeInBrowser, enterAs } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { authorizationUrl } from '../support/oauth.ts';
import { startSeeded } from '../support/seeded.ts';
import { type ClientOwner, signInOwner } from './client-owner.ts';

/** WCAG 2.2 §1.4.11, for pictures. */
const MIN_PICTURE_CONTRAST = 3;
const stylesheet = readFileSync(new URL('../../views/assets/gatehouse.css', import.meta.url), 'utf8');

describe('the letter tile of an app', () => {
  const letters: Record<string, string> = {
    'Parcel Pilot': 'P',
    // The stylesheet makes it upper case, if its script has that.
    'öffis Lager': 'ö',
    'o\u0308ffis': 'o\u0308',
    'مستودع الميناء': 'م',
    倉庫管理: '倉',
    नमस्ते: 'न',
    '3PL Hub': '3',
    '  „Quoted“ app': 'Q',
    // A large check mark or shield would look like a verification by the service.
    '✅ Parcel Pilot': 'P',
    '✔': '?',
    '👩🏽‍🔧 Repairs': 'R',
    '🇩🇪 Versand': 'V',
    '\u202e\u2066evil': 'e',
    '--': '?',
    '': '?',
  };
  for (const [name, letter] of Object.entries(letters)) {
    it(`the letter of ${JSON.stringify(name)} is ${JSON.stringify(letter)}`, () => {
      expect(tileOf({ id: 'gate_ci_1', name }).letter).to.equal(letter);
    });
  }

  it('a renamed app keeps its color, and all colors are used', () => {
    const ids = Array.from({ length: 500 }, (_, number) => `gate_ci_${number}`);
    const colours = ids.map((id) => tileOf({ id, name: 'Before' }).colour);
    expect(ids.map((id) => tileOf({ id, name: 'After' }).colour)).to.deep.equal(colours);
    expect([...new Set(colours)].sort()).to.deep.equal([...Array(TILE_COLOURS).keys()]);
  });

  it('letters are readable on each color of the stylesheet, and tiles stand out on light and dark pages', () => {
    const found = [...stylesheet.matchAll(/\.tile-(\d+) \{\s*background: (#[0-9a-f]{6});/g)];
    expect(found.map(([, number]) => Number(number))).to.deep.equal([...Array(TILE_COLOURS).keys()]);
    expect(stylesheet).to.match(/\n\.tile \{[^}]*\scolor: #ffffff;/);
    for (const [, , colour = ''] of found) {
      expect(contrast(colour, '#ffffff'), colour).to.be.at.least(MIN_CONTRAST);
      for (const ground of [...GROUNDS.light, ...GROUNDS.dark]) {
        expect(contrast(colour, ground), `${colour} on ${ground}`).to.be.at.least(MIN_PICTURE_CONTRAST);
      }
    }
  });

  describe('on the pages', () => {
    const on = startSeeded();
    let owner: ClientOwner;

    before(async () => {
      owner = await signInOwner(on.service, on.seeded.person);
      const { person, organization } = on.seeded;
      const { accountId } = person;
      await on.service.memberships.setRole({ accountId }, organization.id, 'owner');
    });

    it('an app has the same tile on the consent page, in Connections, in its organization and in the list of its owner', async () => {
      const client = await owner.createClient('Parcel Pilot');
      const { colour } = tileOf({ id: client.id, name: 'Parcel Pilot' });
      const tile = `<span class="tile tile-${colour}" data-letter="P" aria-hidden="true"></span>`;
      const asked = await owner.get(authorizationUrl(on.issuer, client).href);
      expect((await owner.follow(asked)).html, 'consent').to.include(tile);
      await partnerTokens(on.issuer, on.seeded, owner).code(client);
      for (const path of [
        '/profile/connections',
        `/profile/connections/${client.id}`,
        `/profile/organizations/${on.seeded.organization.id}`,
        '/profile/oauth-clients',
      ]) {
        expect((await owner.get(path)).html, path).to.include(tile);
      }
    });
  });
});

describeInBrowser('the consent page in a browser', (visit) => {
  const on = startSeeded();

  it('on a phone the buttons are visible from the start, also while the end of the page is far away', async () => {
    const owner = await signInOwner(on.service, on.seeded.person);
    const client = await owner.createClient('Parcel Pilot');
    const { page } = await visit(PHONE);
    await enterAs(page, on.issuer, owner);
    await page.goto(authorizationUrl(on.issuer, client).href);
    const height = await page.evaluate<number>('innerHeight');
    expect(await page.evaluate<number>('document.documentElement.scrollHeight')).to.be.above(height);
    for (const name of ['Approve', 'Deny']) {
      const box = await page.getByRole('button', { name }).boundingBox();
      expect((box?.y ?? height) + (box?.height ?? 0), name).to.be.at.most(height);
    }
  });

  for (const [language, approve] of [
    ['en', 'Approve'],
    ['de', 'Zulassen'],
  ] as const)
    it(`on a small phone a warehouse, the account and the host are visible above the buttons, in ${language}`, async () => {
      const owner = await signInOwner(on.service, on.seeded.person);
      const client = await owner.createClient(`Pilot of ${language}`);
      const subject = { accountId: on.seeded.person.accountId };
      const { page } = await visit({ locale: language, viewport: { width: 375, height: 667 } });
      await enterAs(page, on.issuer, owner);
      for (const places of [1, 2, 3]) {
        const text = await page.goto(authorizationUrl(on.issuer, client).href);
        expect(await text?.text()).to.include(`lang="${language}"`);
        const top = (await page.getByRole('button', { name: approve }).boundingBox())?.y ?? 0;
        const { name, email } = on.seeded.person;
        for (const seen of ['Rotterdam', name, email, 'partner.example'].map((one) =>
          page.getByText(one, { exact: true }),
        )) {
          const box = await seen.first().boundingBox();
          expect((box?.y ?? top) + (box?.height ?? 0), `${seen} of ${places}`).to.be.within(1, top);
        }
        if (places === 3) break;
        const { id } = await on.service.organizations.add({ name: `Storm Logistics ${language} ${places}` });
        const { id: hamburg } = await on.service.organizations.addWarehouse({ organizationId: id, name: 'Hamburg' });
        await on.service.memberships.setRole(subject, id, 'member');
        await on.service.memberships.setRights(subject, hamburg, ['read', 'write', 'manage']);
        const reached = () => on.service.access.accessOf(subject);
        await eventually(async () => expect(await reached()).to.have.length(places + 1));
      }
      for (const place of await on.service.access.accessOf(subject)) {
        if (place.name.startsWith('Storm')) await on.service.memberships.remove(subject, place.id);
      }
    });

  it('each link of the developer is on a line of its own, with its host', async () => {
    const links = {
      homepage: 'https://parcel.example/',
      support: 'https://help.parcel.example/',
      privacy: 'https://parcel.example/privacy',
    };
    const owner = await signInOwner(on.service, on.seeded.person);
    const client = await owner.createClient('Linked Pilot');
    const { name, redirectUris } = { name: 'Linked Pilot', redirectUris: [client.redirectUri] };
    await on.service.clients.edit(client.id, { name, redirectUris, links });
    for (const forcedColors of ['none', 'active'] as const) {
      const { page } = await visit(PHONE);
      await page.emulateMedia({ forcedColors });
      await enterAs(page, on.issuer, owner);
      await page.goto(authorizationUrl(on.issuer, client).href);
      const shown = page.locator('.own-links a');
      const texts = (await shown.allInnerTexts()).map((text) => text.split(/\s+/));
      expect(texts).to.deep.equal([
        ['Website', 'parcel.example'],
        ['Help', 'help.parcel.example'],
        ['Privacy', 'parcel.example'],
      ]);
      const tops = await Promise.all((await shown.all()).map(async (one) => one.boundingBox()));
      expect(new Set(tops.map((box) => Math.round(box?.y ?? 0))).size).to.equal(3);
      await expectAccessible(page, 'consent');
    }
  });
});
