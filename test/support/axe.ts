/** What a page does to people who see it badly, or not at all. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The rules that the page breaks, and where; none where all is well. */
export async function violationsOn(page: Page): Promise<unknown> {
  // The debugger may run what the content policy keeps out of the page.
  await page.evaluate(axe);
  return page.evaluate(`axe.run().then(({ violations }) => violations
    .map(({ id, nodes }) => ({ id, nodes: nodes.map(({ html }) => html) })))`);
}
