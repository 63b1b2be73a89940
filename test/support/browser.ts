/** A real Chromium: one per process, with an unused browser context for each page. */
import { type Locator, type Page, chromium as playwright } from 'playwright-core';
import { cheapPasswords } from './cheap-passwords.ts';
import { atEndOfRun } from './end-of-run.ts';
import { madeOnce } from './made-once.ts';
import { createOpened } from './opened.ts';
import type { Credentials, Person } from './person.ts';
import { chromium, describeOn, required } from './requirements.ts';
import { runFolder } from './temporary-directory.ts';
import { PATIENCE_MS } from './timeout-factor.ts';

export interface Visit {
  readonly page: Page;
  /** Errors in the console: a failed script, a violated content security policy. */
  readonly problems: readonly string[];
}

/**
 * Defines a suite that needs a browser. Each call of `visit` returns a page without cookies or
 * cache, which is closed after the test that calls it.
 */
export function describeInBrowser(
  title: string,
  body: (visit: (options?: VisitOptions) => Promise<Visit>) => void,
): void {
  describeOn([chromium], title, () => {
    const opened = createOpened();
    cheapPasswords();
    afterEach('close the pages', opened.closeAll);
    body(async (options = {}) => {
      const browser = await sharedBrowser();
      const opening = browser.newContext({
        javaScriptEnabled: options.javaScript ?? true,
        locale: options.locale ?? 'en-GB',
        timezoneId: options.timezoneId ?? 'UTC',
        colorScheme: options.colorScheme ?? 'light',
        viewport: options.viewport ?? { width: 1280, height: 800 },
      });
      const context = await opened.add(opening, (one) => one.close());
      const page = await context.newPage();
      actOnlyOnReadyPages(page);
      page.setDefaultTimeout(PATIENCE_MS);
      const problems: string[] = [];
      page.on('pageerror', (error) => problems.push(error.message));
      page.on('console', (message) => {
        if (message.type() === 'error') problems.push(message.text());
      });
      return { page, problems };
    });
  });
}

let isReadyAwaited = false;

/**
 * Makes all clicks and typing of this process wait until the script of the page has run: Playwright acts on a field as
 * soon as it is there, and the script, which runs last, may rebuild it or would have handled the click.
 */
function actOnlyOnReadyPages(page: Page): void {
  if (isReadyAwaited) return;
  isReadyAwaited = true;
  const locators: Locator = Object.getPrototypeOf(page.locator('html'));
  for (const action of ['click', 'dblclick', 'fill', 'check', 'uncheck', 'press'] as const) {
    const act = locators[action] as (...given: unknown[]) => Promise<void>;
    Object.assign(locators, {
      async [action](this: Locator, ...given: unknown[]) {
        await this.waitFor({ state: 'attached' });
        await this.page().waitForLoadState('domcontentloaded');
        await act.apply(this, given);
      },
    });
  }
}

/**
 * Gives the browser of the page the session of this person, who has signed in. An authorization
 * gives the browser a new session; afterwards the session of `person` is invalid.
 */
export async function enterAs(page: Page, issuer: string, person: Person): Promise<void> {
  const pairs = person.cookieHeader('/').split('; ');
  const cookies = pairs.map((pair) => {
    const [name = ''] = pair.split('=');
    return { name, value: pair.slice(name.length + 1), url: issuer };
  });
  await page.context().addCookies(cookies);
}

/** Returns the button with exactly this name, in the main part of the page. */
export const button = (page: Page, name: string): Locator =>
  page.getByRole('main').getByRole('button', { name, exact: true });

/** Sends the sign-in form that the page shows, in English. */
export async function signInOn(page: Page, { email, password }: Credentials): Promise<void> {
  await page.getByLabel('Email address').fill(email);
  await page.getByLabel('Password', { exact: true }).fill(password);
  await button(page, 'Sign in').click();
}

interface VisitOptions {
  /** The language that the browser prefers. */
  readonly locale?: string;
  readonly timezoneId?: string;
  readonly javaScript?: boolean;
  readonly colorScheme?: 'light' | 'dark';
  readonly viewport?: { width: number; height: number };
}

const sharedBrowser = madeOnce(async () => {
  const browser = await playwright.launch({
    executablePath: required(chromium),
    headless: true,
    // Files that a killed Chromium leaves behind are removed at the end of the run.
    env: { ...process.env, TMPDIR: runFolder },
    args: [
      // Disable Chromium's sandbox, which does not work as root: the pages are our own.
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      // One renderer and no process for graphics: starting processes is much of the work of a page.
      '--renderer-process-limit=1',
      '--disable-site-isolation-trials',
      '--in-process-gpu',
      '--no-zygote',
    ],
  });
  atEndOfRun(() => browser.close());
  return browser;
});

/** A person who reads each page before the click that leaves it. `counted` are the clicks, and the words read. */
export function countingReader() {
  const counted = { clicks: 0, words: 0 };
  return {
    counted,
    async click(target: Locator): Promise<void> {
      counted.clicks += 1;
      // The last click may still be leaving its page.
      await target.waitFor();
      counted.words += await wordsOnPage(target.page());
      await target.click();
    },
  };
}

/**
 * Counts the visible words of the page's main part; neither code, nor navigation, nor what is clipped away is read. A
 * time is two words, such as *just now*: how long ago it was depends on the machine.
 */
const wordsOnPage = (page: Page): Promise<number> =>
  page.evaluate<number>(String.raw`
    [...document.querySelectorAll('main *:not(nav, nav *, code, code *, pre, pre *, .unseen)')]
      .filter((element) => element.checkVisibility() && getComputedStyle(element).clipPath === 'none')
      .flatMap((element) => [...element.childNodes].filter(({ nodeType }) => nodeType === Node.TEXT_NODE))
      .map(({ data, parentElement }) => (parentElement.matches('time') ? 'just now' : data))
      .reduce((count, text) => count + (text.match(/\S*[\p{L}\p{N}]\S*/gu)?.length ?? 0), 0)`);
