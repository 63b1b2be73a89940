/** `npm run pictures`: takes the pictures of the README and the docs, from a service of its own. */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type Browser, type Page, chromium as playwright } from 'playwright-core';
import { availablePort } from '../examples/sandbox/listening.ts';
import { partnerTokens } from './provider/partner-tokens.ts';
import { createTestClock } from './support/clock.ts';
import { endRun } from './support/end-of-run.ts';
import { authorizationUrl, introspect, type TestClient } from './support/oauth.ts';
import { chromium, required } from './support/requirements.ts';
import { addPerson, addTestClient, type SeededPerson } from './support/seed.ts';
import { startTestService, type TestService } from './support/service.ts';
import { runFolder } from './support/temporary-directory.ts';

export const FOLDER = path.join(import.meta.dirname, '../docs/pictures');
export const NAMES = [...(['sign-in', 'consent', 'profile', 'connections', 'secret', 'organization'] as const)];

type Name = (typeof NAMES)[number];

const WIDTH = 1200;
const MAX_HEIGHT = 1300;
const DAY = 86_400;

/** Fills the service with three weeks of an organization's life. The time then is the present. */
async function live(service: TestService, advance: (seconds: number) => void) {
  const { organizations, memberships } = service;
  const add = (name: string, email: string) => addPerson(service, name, email);
  const ada = await add('Ada Berger', 'ada@harbor-logistics.example');
  const tom = await add('Tom Weber', 'tom@harbor-logistics.example');
  const lena = await add('Lena Krüger', 'lena@harbor-logistics.example');
  const kim = await add('Kim Novak', 'kim@route-planner.example');

  const { id: organizationId } = await organizations.add({ name: 'Harbor Logistics' });
  const warehouse = async (name: string) => (await organizations.addWarehouse({ organizationId, name })).id;
  const [hamburg, riga] = [await warehouse('Hamburg'), await warehouse('Riga')];
  await memberships.setRole(ada, organizationId, 'owner');
  await memberships.setRole(tom, organizationId, 'member');
  await memberships.setRights(tom, hamburg, ['read', 'write']);
  await memberships.setRole(lena, organizationId, 'viewer');
  await memberships.setRights(lena, riga, ['read']);
  const { id: other } = await organizations.add({ name: 'Baltic Storage' });
  const shed = await organizations.addWarehouse({ organizationId: other, name: 'Klaipėda' });
  await memberships.setRole(ada, other, 'viewer');
  await memberships.setRights(ada, shed.id, ['read']);

  const owned = { ownerAccountId: kim.accountId };
  const client = (name: string, host: string) =>
    addTestClient(service, name, { redirectUris: [`https://${host}/callback`], ...owned });
  const reports = await client('Stock Reports', 'stock-reports.example');
  const labels = await client('Label Printer', 'labels.example');
  const planner = await client('Route Planner', 'app.route-planner.example');
  await service.clients.verify(planner.id, true);
  const resourceServer = await addTestClient(service, 'Warehouse API', { kind: 'resource-server' });

  const use = async (person: SeededPerson, connected: TestClient) => {
    const seed = { person, clients: { resourceServer } };
    const { accessToken } = await partnerTokens(service.issuer, seed).tokens(connected);
    await introspect(service.issuer, resourceServer, accessToken);
    await service.lastUsed.flush();
  };
  await use(ada, reports);
  advance(9 * DAY);
  await use(ada, labels);
  await use(tom, reports);
  await use(tom, planner);
  advance(11 * DAY);
  await use(lena, labels);
  await use(ada, reports);
  advance(DAY);
  return { ada, kim, planner, organizationId };
}

async function takePictures(service: TestService, browser: Browser, world: World): Promise<void> {
  const { issuer } = service;
  const { ada, kim, planner, organizationId } = world;
  const open = async (): Promise<Page> => {
    const viewport = { width: WIDTH, height: 800 };
    const context = await browser.newContext({ viewport, locale: 'en-GB' });
    return context.newPage();
  };
  const signIn = async (page: Page, { email, password }: SeededPerson) => {
    await page.locator('input[name=email]').fill(email);
    await page.locator('input[name=password]').fill(password);
    await page.locator('input[name=password]').press('Enter');
    await page.waitForURL((url) => url.pathname !== '/login');
  };

  const person = await open();
  await person.goto(authorizationUrl(issuer, planner).href);
  await person.locator('input[name=password]').waitFor();
  await shoot(person, 'sign-in');
  await signIn(person, ada);
  await person.locator('[name=decision][value=approve]').waitFor();
  await shoot(person, 'consent');
  for (const [name, url] of [
    ['profile', '/profile'],
    ['connections', '/profile/connections'],
    ['organization', `/profile/organizations/${organizationId}`],
  ] as const) {
    await person.goto(issuer + url);
    await shoot(person, name);
  }

  const developer = await open();
  await developer.goto(`${issuer}/login`);
  await signIn(developer, kim);
  await developer.goto(`${issuer}/profile/oauth-clients/new`);
  await developer.locator('input[name=name]').fill('Dock Scheduler');
  const redirectUri = developer.locator('input[name=redirect_uris]').first();
  await redirectUri.fill('https://dock-scheduler.example/callback');
  await redirectUri.press('Enter');
  await developer.locator('[data-secret]').waitFor();
  await shoot(developer, 'secret');
}

type World = Awaited<ReturnType<typeof live>>;

/** Writes a picture of the top of the page as WebP. Playwright's `screenshot` cannot write WebP. */
async function shoot(page: Page, name: Name): Promise<void> {
  const height = await page.evaluate<number>('document.documentElement.scrollHeight');
  const clip = { x: 0, y: 0, width: WIDTH, height: Math.min(height, MAX_HEIGHT), scale: 1 };
  const devTools = await page.context().newCDPSession(page);
  const options = { format: 'webp', quality: 85, captureBeyondViewport: true, clip } as const;
  const { data } = await devTools.send('Page.captureScreenshot', options);
  const picture = Buffer.from(data, 'base64');
  writeFileSync(path.join(FOLDER, `${name}.webp`), picture);
  console.log(`docs/pictures/${name}.webp: ${Math.ceil(picture.length / 1000)} kB`);
}

async function main(): Promise<void> {
  const { clock, advance, restore } = createTestClock(new Date(Date.now() - 21 * DAY * 1000));
  const port = await availablePort(3000, '127.0.0.1');
  const settings = { server: { port } };
  const service = await startTestService({ deployment: 'embedded', clock, settings });
  const browser = await playwright.launch({
    executablePath: required(chromium),
    env: { ...process.env, TMPDIR: runFolder },
    // Disable Chromium's sandbox, which does not work as root: the pages are our own.
    args: ['--no-sandbox', '--disable-gpu'],
  });
  try {
    mkdirSync(FOLDER, { recursive: true });
    await takePictures(service, browser, await live(service, advance));
  } finally {
    await browser.close();
    await service.close();
    restore();
    await endRun();
  }
}

if (import.meta.main) await main();
