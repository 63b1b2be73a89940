/** Checks pages for users with poor or no sight, for the dark color scheme, and small screens. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect } from 'chai';
import type { Page } from 'playwright-core';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** For `visit`: the smallest screen that pages must fit on. */
export const PHONE = { viewport: { width: 320, height: 640 } } as const;

/** Asserts that axe-core finds nothing, light and dark, and that the page fits the screen. */
export async function expectAccessible(page: Page, name = page.url()): Promise<void> {
  const overflow = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
  expect(await page.evaluate(overflow), `${name} is wider than the screen`).to.equal(0);
  // `evaluate` may run what the content security policy keeps out of the page.
  await page.evaluate(axe);
  expect(await violations(page, ''), name).to.deep.equal([]);
  // Reduce motion: axe-core would measure colours in the middle of a transition.
  await page.emulateMedia({ colorScheme: 'dark', reducedMotion: 'reduce' });
  // Only the colours differ in the dark.
  expect(await violations(page, "'color-contrast'"), `${name}, dark`).to.deep.equal([]);
  await page.emulateMedia({ colorScheme: 'light' });
}

/** Returns the rules that the page breaks, of these or of all, and where. */
const violations = (page: Page, rules: string): Promise<unknown> =>
  page.evaluate(`axe.run(${rules && `{ runOnly: [${rules}] }`}).then(({ violations }) => violations
    .map(({ id, nodes }) => ({ id, nodes: nodes.map(({ html }) => html) })))`);
