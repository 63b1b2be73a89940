/** What a page does to people who see it badly, in the dark, on a small screen, or not at all. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect } from 'chai';
import type { Page } from 'playwright-core';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** For `visit`: the smallest that pages must fit on. */
export const PHONE = { viewport: { width: 320, height: 640 } } as const;

/** Asserts that nothing of the page is out of reach: by axe-core, light and dark, and by its width. */
export async function expectAccessible(page: Page, name = page.url()): Promise<void> {
  const overflow = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
  expect(await page.evaluate(overflow), `${name} is wider than the screen`).to.equal(0);
  // The debugger may run what the content policy keeps out of the page.
  await page.evaluate(axe);
  expect(await violations(page, ''), name).to.deep.equal([]);
  // Colours that are on their way to others would be measured half-way.
  await page.emulateMedia({ colorScheme: 'dark', reducedMotion: 'reduce' });
  // Nothing but the colours is different then.
  expect(await violations(page, "'color-contrast'"), `${name}, dark`).to.deep.equal([]);
  await page.emulateMedia({ colorScheme: 'light' });
}

/** The rules that the page breaks, of these or of all, and where. */
const violations = (page: Page, rules: string): Promise<unknown> =>
  page.evaluate(`axe.run(${rules && `{ runOnly: [${rules}] }`}).then(({ violations }) => violations
    .map(({ id, nodes }) => ({ id, nodes: nodes.map(({ html }) => html) })))`);
