/** A real Chromium: one per run, and a browser nobody has used yet for each page asked for. */
import { type Browser, type Page, chromium as playwright } from 'playwright-core';
import { atEndOfRun } from './end-of-run.ts';
import { chromium, describeOn, required } from './requirements.ts';

export interface Visit {
  readonly page: Page;
  /** What the console called an error: a script that failed, a content policy that refused. */
  readonly problems: readonly string[];
}

/**
 * Defines a suite that needs a browser. Each call of `visit` answers a page without cookies or
 * cache, which is closed after the test that asked for it.
 */
export function describeInBrowser(
  title: string,
  body: (visit: (options?: VisitOptions) => Promise<Visit>) => void,
): void {
  describeOn([chromium], title, () => {
    const closings: (() => Promise<void>)[] = [];
    afterEach('close the pages', async () => {
      for (const close of closings.splice(0)) await close();
    });
    body(async (options = {}) => {
      browser ??= launch();
      const context = await (await browser).newContext({
        javaScriptEnabled: options.javaScript ?? true,
        colorScheme: options.colorScheme ?? 'light',
        viewport: options.viewport ?? { width: 1280, height: 800 },
      });
      closings.push(() => context.close());
      const page = await context.newPage();
      page.setDefaultTimeout(10_000);
      const problems: string[] = [];
      page.on('pageerror', (error) => problems.push(error.message));
      page.on('console', (message) => {
        if (message.type() === 'error') problems.push(message.text());
      });
      return { page, problems };
    });
  });
}

export interface VisitOptions {
  readonly javaScript?: boolean;
  readonly colorScheme?: 'light' | 'dark';
  readonly viewport?: { width: number; height: number };
}

let browser: Promise<Browser> | undefined;

async function launch(): Promise<Browser> {
  const launched = await playwright.launch({
    executablePath: required(chromium),
    headless: true,
    args: [
      // Root may not use Chromium's sandbox; the pages are our own.
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
  atEndOfRun(() => launched.close());
  return launched;
}
