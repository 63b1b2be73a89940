/** Checks the accessibility of pages, in the light and dark color schemes, and on small screens. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect } from 'chai';
import type { Page } from 'playwright-core';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** An option of `visit`: the smallest screen that pages must fit on. */
export const PHONE = { viewport: { width: 320, height: 640 } } as const;

export async function expectFitting(page: Page, name = page.url()): Promise<void> {
  const overflow = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
  expect(await page.evaluate(overflow), `${name} is wider than the screen`).to.equal(0);
}

/**
 * Asserts that axe-core finds nothing, light and dark, and that the page fits the screen.
 *
 * @param options.dark false for a page with nothing whose dark colors were not looked at elsewhere
 */
export async function expectAccessible(page: Page, name = page.url(), { dark = true } = {}): Promise<void> {
  await expectFitting(page, name);
  // Use `evaluate`, because the content security policy would keep a script tag out of the page.
  await page.evaluate(axe);
  expect(await violations(page, ''), name).to.deep.equal([]);
  if (!dark) return;
  // Reduce motion: axe-core would measure colours in the middle of a transition.
  await page.emulateMedia({ colorScheme: 'dark', reducedMotion: 'reduce' });
  // Check only contrasts, because in the dark color scheme only colors differ.
  expect(await violations(page, "'color-contrast'"), `${name}, dark`).to.deep.equal([]);
  await page.emulateMedia({ colorScheme: 'light' });
}

/** Checks these rules, or all if empty. @returns the violated rules with the HTML of their elements */
const violations = (page: Page, rules: string): Promise<unknown> =>
  page.evaluate(`axe.run({ resultTypes: ['violations'], ${rules && `runOnly: [${rules}]`} }).then(({ violations }) => violations
    .map(({ id, nodes }) => ({ id, nodes: nodes.map(({ html }) => html) })))`);
