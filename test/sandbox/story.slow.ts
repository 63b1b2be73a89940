/** `npm run sandbox` as a newcomer uses it. `partner-app.slow.ts` tests the app itself. */
import { readdirSync } from 'node:fs';
import { expect } from 'chai';
import { signInOwner, textOf } from '../pages/client-owner.ts';
import { testBrowser } from '../pages/oauth-clients/test-browser.ts';
import { describeInBrowser } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { ask } from '../support/oauth.ts';
import { findProgram } from '../support/programs.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { type RunningSandbox, runSandbox, spawnSandbox } from './run-sandbox.ts';

describe('npm run sandbox', () => {
  const folder = temporaryDirectory('sandbox');
  let sandbox: RunningSandbox;

  before(async () => {
    const elsewhere = 'postgres://nobody@127.0.0.1:1/operator';
    sandbox = await runSandbox({ TMPDIR: folder, DATABASE_URL: elsewhere, PORT: '1' });
  });
  after(() => sandbox?.end('SIGTERM'));

  it('npm run sandbox prints commands that call the API as a machine client', async function callByCurl() {
    if (findProgram('curl') === undefined) this.skip();
    const [, , token = '', call = ''] = sandbox.commands;
    const answer = JSON.parse(await sandbox.run(`${token}\n${call}`));
    const warehouses = [{ name: 'Hamburg', rights: ['read'] }];
    const organizations = [{ name: 'Demo Logistics', warehouses }];
    expect(answer).to.deep.equal({
      data: { caller: { method: 'client_credentials' }, organizations },
    });
  });

  it('the sandbox prints its instructions', () => {
    expect(sandbox.output).to.include('1. Open the partner app');
  });

  it('the test of a new client in the sandbox ends with the stock of both warehouses', async () => {
    const owner = await signInOwner(sandbox, sandbox.signIn);
    const client = await owner.createClient('My first app');
    const browser = await testBrowser(sandbox, sandbox.signIn);
    const result = textOf((await browser.run(client)).html);
    expect(result).to.include('This client works.');
    for (const shown of ['Hamburg', 'Riga', 'Euro pallets', 'count&#34;: 120']) {
      expect(result).to.include(shown);
    }
  });

  it('the sandbox API shows a browser which request to send, and refuses anonymous queries', async () => {
    const { status, text } = await ask(new URL('/', sandbox.apiUrl), {});
    expect(status).to.equal(200);
    expect(text).to.include('adjustStock(');
    const url = new URL(`${sandbox.apiUrl}?query={caller{subject}}`);
    const anonymous = await ask(url, {});
    expect(anonymous.status).to.equal(401);
    expect(anonymous.headers.get('www-authenticate')).to.equal('Bearer');
    expect((await ask(new URL('/nowhere', sandbox.apiUrl), {})).status).to.equal(404);
  });

  describeInBrowser('in a browser', (visit) => {
    it('a user can connect in the sandbox, and the printed commands end and restore the user’s membership', async () => {
      const { page, problems } = await visit();
      const press = (name: string): Promise<void> => page.getByRole('button', { name, exact: true }).click();
      await page.goto(sandbox.partner);
      await page.getByRole('link', { name: 'Connect your warehouse' }).click();
      await page.getByLabel('Email address').fill(sandbox.signIn.email);
      await page.getByLabel('Password', { exact: true }).fill(sandbox.signIn.password);
      await press('Sign in');
      await press('Approve');
      await press('Show my stock');
      await press('One of Euro pallets more in Hamburg');
      await page.getByRole('status').filter({ hasText: 'Euro pallets is now 121' }).waitFor();
      await press('One of Euro pallets more in Riga');
      await page.getByRole('status').filter({ hasText: 'FORBIDDEN' }).waitFor();

      // Another process makes the change: the service learns of it a moment later.
      const eventuallyShown = (text: string): Promise<void> =>
        eventually(async () => {
          await press('Show my stock');
          expect(await page.locator('main').textContent()).to.include(text);
        });
      const [remove, restore] = sandbox.commands;
      await sandbox.run(remove);
      await eventuallyShown('reaches no organization now');
      await sandbox.run(restore);
      await eventuallyShown('as owner');
      expect(problems).to.deep.equal([]);
    });
  });

  describe('after SIGTERM', () => {
    it('after SIGTERM the sandbox ends all its processes and leaves no files behind', async () => {
      expect(readdirSync(folder)).to.have.lengthOf(1);
      expect(await sandbox.end('SIGTERM')).to.equal(0);
      for (const address of [sandbox.partner, sandbox.issuer, sandbox.apiUrl]) {
        const reached = await fetch(address).catch(() => undefined);
        expect(reached, address).to.equal(undefined);
      }
      expect(readdirSync(folder)).to.deep.equal([]);
    });

    it('a SIGTERM before the sandbox is ready also ends it and leaves no files behind', async () => {
      const starting = spawnSandbox({ TMPDIR: folder });
      await starting.prints('Starting');
      expect(await starting.end('SIGTERM')).to.equal(0);
      expect(readdirSync(folder)).to.deep.equal([]);
    });
  });
});
