/** The programs of docs/libraries.md work with the unmodified libraries. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { describeInBrowser } from '../support/browser.ts';
import { atEndOfFile } from '../support/end-of-run.ts';
import { eventually } from '../support/eventually.ts';
import { installedLock } from '../support/npm-packages.ts';
import type { TestClient } from '../support/oauth.ts';
import { freePort } from '../support/programs.ts';
import { pythonWith } from '../support/python.ts';
import { addTestClient } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { nameWarehouseApi } from '../support/warehouse-api.ts';
import {
  BROWSER_LIBRARIES,
  documentedFiles,
  type Library,
  NODE_LIBRARIES,
  PYTHON_LIBRARIES,
  PYTHON_PACKAGES,
} from './libraries.ts';

const PROGRAMS = path.join(import.meta.dirname, 'programs');
const FILES = documentedFiles();

/** Runs a library with these settings until it is done. @throws Error if a step fails */
type Run = (library: Library, documented: string) => Promise<void>;

/** Defines a test of the documented settings of each library. */
function testLibraries(extension: string, libraries: readonly Library[], run: Run): void {
  for (const library of libraries) {
    const documented = FILES.get(`${library.name}.${extension}`) ?? '';
    if (library.cannot === undefined) {
      it(`${library.name} connects with the documented settings`, () => run(library, documented));
    } else {
      const message = library.cannot;
      it(`${library.name} cannot connect`, () => expectFailure(run(library, documented), message));
    }
  }
}

async function expectFailure(running: Promise<void>, message: RegExp): Promise<void> {
  const failure = await running.catch((error: unknown) => error);
  expect(failure).to.be.an('error').with.property('message').that.matches(message);
}

/** Returns a folder with the programs and the documented files. */
function programFolder(documented: string, extension: string): string {
  const folder = temporaryDirectory('library');
  cpSync(PROGRAMS, folder, { recursive: true });
  mkdirSync(path.join(folder, 'gatehouse_login'));
  for (const [file, text] of FILES) {
    if (file.startsWith('gatehouse')) writeFileSync(path.join(folder, file), text);
  }
  writeFileSync(path.join(folder, `documented.${extension}`), documented);
  return folder;
}

describe('the libraries of docs/libraries.md that run on a server', () => {
  const on = startSeeded({ clock: true });
  let apiUrl: string;
  before(async () => {
    apiUrl = await nameWarehouseApi(on);
  });

  async function environment({ name, redirectPath }: Library): Promise<NodeJS.ProcessEnv> {
    const redirectUri = `http://127.0.0.1:${await freePort()}${redirectPath}`;
    const client = await addTestClient(on.service, name, { redirectUris: [redirectUri] });
    const { PATH, HOME } = process.env;
    const values = { ISSUER: on.issuer, API_URL: apiUrl, AUTH_SECRET: 'x'.repeat(32) };
    return { PATH, HOME, ...values, ...clientEnvironment(client) };
  }

  /** Runs a program, which asks for approvals and reports its steps. */
  async function runProgram(
    command: readonly [program: string, file: string],
    folder: string,
    library: Library,
  ): Promise<void> {
    const [program, file] = command;
    const child = spawn(program, [file], { cwd: folder, env: await environment(library) });
    atEndOfFile(() => void child.kill());
    const ended = once(child, 'close');
    let output = '';
    child.stderr.on('data', (text) => {
      output += text;
    });
    const steps: string[] = [];
    let earlier = '';
    for await (const line of createInterface({ input: child.stdout })) {
      output += `${line}\n`;
      if (!line.startsWith('{"')) continue;
      const { open, step, accessToken, refreshToken } = JSON.parse(line);
      let answer = '';
      if (open === undefined) {
        steps.push(step);
        await expectStep(step, accessToken, refreshToken, earlier);
        earlier = refreshToken ?? '';
      } else {
        const callback = await on.partner.browser.authorize(open, on.seeded.person);
        answer = callback.href;
        output += `${answer}\n`;
      }
      child.stdin.write(`${answer}\n`);
    }
    const [status] = await ended;
    expect(status, output).to.equal(0);
    expect(steps, output).to.deep.equal(library.steps);
  }

  async function expectStep(
    step: string,
    accessToken: string,
    refreshToken: string | undefined,
    earlier: string,
  ): Promise<void> {
    expect(accessToken).to.match(/^gate_at_/);
    if (refreshToken !== undefined) expect(refreshToken).to.match(/^gate_rt_/);
    if (step === 'refreshed') expect(refreshToken).not.to.equal(earlier);
    expect(await on.partner.isActive(accessToken), step).to.equal(step !== 'revoked');
    // A library may keep the earlier token for itself: the next refresh is beyond the retry window, as an hour later.
    if (step === 'refreshed') await passRetryWindow(accessToken);
  }

  async function passRetryWindow(accessToken: string): Promise<void> {
    const id = accessToken.slice('gate_at_'.length).slice(0, 22);
    await eventually(async () => {
      expect(await on.service.store.readAuthorization(id)).to.include({ isConfirmed: true });
    });
    on.clock.advance(on.service.settings.tokens.retryWindowSeconds + 20);
  }

  describe('the documented Node libraries work with the service', () => {
    let packages: string;
    before(async function () {
      packages = await locked(this);
    });

    testLibraries('mjs', NODE_LIBRARIES, (library, documented) => {
      const folder = programFolder(documented, 'mjs');
      symlinkSync(packages, path.join(folder, 'node_modules'));
      return runProgram([process.execPath, `${library.name}.mjs`], folder, library);
    });
  });

  describe('the documented Python libraries work with the service', () => {
    let python: string;
    before(async function () {
      const found = await pythonWith(PYTHON_PACKAGES);
      if ('reason' in found) return leaveOut(this, found.reason);
      python = found.program;
    });

    testLibraries('py', PYTHON_LIBRARIES, (library, documented) =>
      runProgram([python, `${library.name}.py`], programFolder(documented, 'py'), library),
    );
  });
});

describeInBrowser('the libraries of the guide in a browser', (visit) => {
  const on = startSeeded();
  let packages: string;
  before(async function () {
    packages = await locked(this);
  });

  /** Serves a page with the program. @returns its public client */
  async function startApp({ name }: Library, documented: string): Promise<TestClient> {
    const port = await freePort();
    const redirectUris = [`http://127.0.0.1:${port}/callback`];
    const client = await addTestClient(on.service, name, { kind: 'public', redirectUris });
    const folder = programFolder(documented, 'mjs');
    symlinkSync(packages, path.join(folder, 'node_modules'));
    cpSync(path.join(folder, `${name}.mjs`), path.join(folder, 'library.mjs'));
    const values = { NODE_ENV: 'production', ISSUER: on.issuer, ...clientEnvironment(client) };
    const define = `--define:process.env=${JSON.stringify(values)}`;
    const flags = ['--bundle', '--format=esm', define, '--outfile=app.js'];
    const bundler = path.join(packages, '.bin/esbuild');
    await promisify(execFile)(bundler, ['page.mjs', ...flags], { cwd: folder });
    const { default: express } = await import('express');
    const app = express()
      .use(express.static(folder))
      .use((_request, response) => {
        response.send('<body></body><script type="module" src="/app.js"></script>');
      });
    const server = createServer(app).listen(port, '127.0.0.1');
    atEndOfFile(() => void server.close());
    await once(server, 'listening');
    return client;
  }

  /** Waits for the element, and throws an error if the program fails or returns too early. */
  async function arriveAt(page: Page, selector: string): Promise<void> {
    const end = page.locator(`${selector}, #failed, #returned`).first();
    await end.waitFor();
    if (await page.locator(selector).count()) return;
    throw new Error((await page.locator('body').textContent()) ?? 'empty page');
  }

  testLibraries('mjs', BROWSER_LIBRARIES, async (library, documented) => {
    const { redirectUri } = await startApp(library, documented);
    const { page } = await visit();
    await page.goto(new URL('/', redirectUri).href);
    await arriveAt(page, '#ready');
    await page.evaluate('connect()');
    await arriveAt(page, '[name=password]');
    await page.locator('[name=email]').fill(on.seeded.person.email);
    await page.locator('[name=password]').fill(on.seeded.person.password);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByRole('button', { name: 'Approve' }).click();
    await arriveAt(page, '#returned');
    let [access, refresh] = ['', ''];
    for (const step of library.steps) {
      const tokens: unknown = await page.evaluate(`take('${step}')`);
      if (step !== 'revoked') {
        const [accessToken, refreshToken] = tokens as [string, string];
        expect(accessToken).to.match(/^gate_at_/);
        expect(refreshToken)
          .to.match(/^gate_rt_/)
          .and.not.equal(refresh);
        [access, refresh] = [accessToken, refreshToken];
      }
      expect(await on.partner.isActive(access), step).to.equal(step !== 'revoked');
    }
  });
});

const clientEnvironment = ({ id, secret, redirectUri }: TestClient) => ({
  CLIENT_ID: id,
  ...(secret !== undefined && { CLIENT_SECRET: secret }),
  REDIRECT_URI: redirectUri,
});

/** Returns the folder `node_modules` with the libraries. */
async function locked(context: Mocha.Context): Promise<string> {
  const found = await installedLock(path.join(import.meta.dirname, 'packages'));
  return 'folder' in found ? found.folder : leaveOut(context, found.reason);
}

/** Leaves the suite out, and says why. */
function leaveOut(context: Mocha.Context, reason: string): never {
  console.error(reason);
  return context.skip();
}
