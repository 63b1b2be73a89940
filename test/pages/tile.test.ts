/** The letter tile of an app, and the consent page in a browser. */
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { contrast, GROUNDS, MIN_CONTRAST } from '../../src/config/colour.ts';
import { TILE_COLOURS, tileOf } from '../../src/pages/words/tile.ts';
import { PHONE } from '../support/axe.ts';
import { describeInBrowser, enterAs } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { authorizationUrl } from '../support/oauth.ts';
import type { SeededPerson } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { type ClientOwner, signInOwner } from './client-owner.ts';
import { connect } from './organization-members.ts';

/** WCAG 2.2 §1.4.11, for pictures. */
const MIN_PICTURE_CONTRAST = 3;
const stylesheet = readFileSync(new URL('../../views/assets/gatehouse.css', import.meta.url), 'utf8');

describe('the letter tile of an app', () => {
  const letters: Record<string, string> = {
    'Parcel Pilot': 'P',
    // The stylesheet makes it upper case, if its script has that.
    'öffis Lager': 'ö',
    倉庫管理: '倉',
    '3PL Hub': '3',
    '  „Quoted“ app': 'Q',
    // A large check mark or shield would look like a verification by the service.
    '✅ Parcel Pilot': 'P',
    '✔': '?',
    '👩🏽‍🔧 Repairs': 'R',
    '\u202e\u2066evil': 'e',
    '': '?',
  };

  it('the letter of an app is the first letter or digit of its name', () => {
    for (const [name, letter] of Object.entries(letters)) {
      expect(tileOf({ id: 'gate_ci_1', name }).letter, name).to.equal(letter);
    }
  });

  it('an app keeps the color of its tile after a rename, and different apps use all colors', () => {
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

  describe('pages show the tile of an app', () => {
    const on = startSeeded();
    let owner: ClientOwner & SeededPerson;

    before(async () => {
      owner = await signInOwner(on.service, on.seeded.person);
      await on.service.memberships.setRole(on.seeded.person, on.seeded.organization.id, 'owner');
    });

    it('an app has the same tile on the consent page, in Connections, in its organization and in the list of its owner', async () => {
      const client = await owner.createClient('Parcel Pilot');
      const { colour } = tileOf({ id: client.id, name: 'Parcel Pilot' });
      const tile = `<span class="tile tile-${colour}" data-letter="P" aria-hidden="true"></span>`;
      const asked = await owner.get(authorizationUrl(on.issuer, client).href);
      expect((await owner.follow(asked)).html, 'consent').to.include(tile);
      await connect(on, owner, client);
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

/** Returns the texts of the form that no element hides, cuts off or covers, and that end above the bar of the buttons. */
const VISIBLE_TEXTS = `(() => {
  const form = document.querySelector('form:has(.choice)');
  const bar = form.querySelector('.choice').getBoundingClientRect().top;
  const isVisible = (node) => {
    const range = document.createRange();
    range.selectNodeContents(node);
    const boxes = [...range.getClientRects()];
    return boxes.length > 0 && boxes.every(({ left, right, top, bottom }) =>
      right - left > 4 && top >= 0 && bottom <= bar && [left + 4, right - 4].every((x) =>
        node.parentElement.contains(document.elementFromPoint(x, (top + bottom) / 2))));
  };
  const texts = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
  const visible = [];
  while (texts.nextNode()) if (isVisible(texts.currentNode)) visible.push(texts.currentNode.data.trim());
  return visible;
})()`;

describeInBrowser('the consent page in a browser', (visit) => {
  const on = startSeeded();

  it('on a phone Approve and Deny are visible without scrolling, even if the page is long', async () => {
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

  // The German texts are the longer ones.
  it('on a small phone, in German, access, role, account and host of three organizations fit above the buttons', async () => {
    const { organizations, memberships, access } = on.service;
    const { accountId, name, email } = on.seeded.person;
    for (let added = 0; added < 2; added += 1) {
      const { id } = await organizations.add({ name: 'Storm Logistics' });
      const { id: hamburg } = await organizations.addWarehouse({ organizationId: id, name: 'Hamburg' });
      await memberships.setRole({ accountId }, id, 'member');
      await memberships.setRights({ accountId }, hamburg, ['read', 'write', 'manage']);
      await eventually(async () => {
        const reached = await access.accessOf({ accountId });
        expect(reached.find((one) => one.id === id)?.warehouses).to.have.length(1);
      });
    }
    const owner = await signInOwner(on.service, on.seeded.person);
    const client = await owner.createClient('Parcel Pilot');
    const { page } = await visit({ locale: 'de', viewport: { width: 375, height: 667 } });
    await enterAs(page, on.issuer, owner);
    const answer = await page.goto(authorizationUrl(on.issuer, client, { prompt: 'consent' }).href);
    expect(await answer?.text()).to.include('lang="de"');
    const visible = await page.evaluate<string[]>(VISIBLE_TEXTS);
    const route = [name, email, 'partner.example'];
    expect(visible).to.include.members(['Northern Logistics', 'Rotterdam', '(ansehen, ändern)', ...route]);
    expect(visible.filter((text) => text === 'Mitglied')).to.have.length(3);
    expect(visible.filter((text) => text === 'Hamburg')).to.have.length(2);
  });
});
