/** `npm run sandbox` as a newcomer uses it: its commands, its API, and the whole life of a connection of its app. */
import { mkdtempSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect } from 'chai';
import { startGatehouse } from '../../examples/sandbox/gatehouse.ts';
import { logoFile, png } from '../config/brand-files.ts';
import { fileWith } from '../config/configuration.ts';
import { describeInBrowser, signInOn } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { ask } from '../support/oauth.ts';
import { findProgram } from '../support/programs.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { type RunningSandbox, runSandbox, spawnSandbox } from './run-sandbox.ts';

const LOGO = png(240, 60);

describe('npm run sandbox', () => {
  const folder = temporaryDirectory('sandbox');
  let sandbox: RunningSandbox;

  before(async () => {
    const elsewhere = 'postgres://nobody@127.0.0.1:1/operator';
    logoFile('sandbox.png', LOGO);
    const settings = 'issuer: https://auth.example.com\nbrand: { name: Acme, logo: sandbox.png }\n';
    const environment = { TMPDIR: folder, DATABASE_URL: elsewhere, PORT: '1' };
    sandbox = await runSandbox(environment, fileWith(settings, 'sandbox.yaml'));
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
    // An answer from just after a change is not remembered, because another node may not know of the change yet.
    await eventually(async () => {
      await sandbox.run(`${token}\n${call}\n${call}`);
      const { text } = await ask(new URL('/', sandbox.apiUrl), {});
      expect(text).to.include('remembered');
    });
  });

  it('the sandbox prints its instructions, and takes the brand and nothing else from the settings file', async () => {
    expect(sandbox.output).to.include('1. Open the partner app');
    expect(sandbox.issuer).to.match(/^http:\/\/localhost:/);
    const html = await (await fetch(`${sandbox.issuer}/login`)).text();
    expect(html).to.include('<title>Sign in · Acme</title>').and.include('alt="Acme"');
    const [, logo = ''] = /src="(\/assets\/logo[^"]+)"/.exec(html) ?? [];
    const answer = await fetch(sandbox.issuer + logo);
    expect(Buffer.from(await answer.arrayBuffer())).to.deep.equal(LOGO);
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

  it('a callback link from an attacker does not connect a user with the example app', async () => {
    const { headers } = await ask(new URL('/callback?code=gate_ac_x&state=x', sandbox.partner), {});
    const [cookie = ''] = headers.get('set-cookie')?.split(';') ?? [];
    const { text } = await ask(new URL(sandbox.partner), { headers: { cookie } });
    expect(text).to.include('There is no pending authorization').and.include('Connect your warehouse');
  });

  describeInBrowser('in a browser', (visit) => {
    it('a user can connect, call the API, refresh, lose and regain access by the printed commands, and revoke', async () => {
      const { page, problems } = await visit();
      const press = (name: string): Promise<void> => page.getByRole('button', { name, exact: true }).click();
      const connect = () => page.getByRole('link', { name: 'Connect your warehouse' }).click();
      const says = (text: string): Promise<void> => page.getByRole('status').filter({ hasText: text }).waitFor();
      const shown = async (label: string): Promise<string> =>
        (await page.locator('dt', { hasText: label }).locator('+ dd code').first().textContent()) ?? '';
      await page.goto(sandbox.partner);
      await connect();
      await signInOn(page, sandbox.signIn);
      await press('Deny');
      await says('access_denied');
      await connect();
      await press('Approve');
      await says('Connected.');
      expect(new URL(page.url()).origin).to.equal(new URL(sandbox.partner).origin);
      const first = { access: await shown('Access token'), refresh: await shown('Refresh token') };
      expect(first.access).to.match(/^gate_at_.{4}….{4}$/);
      expect(first.refresh).to.match(/^gate_rt_.{4}….{4}$/);

      await press('Show my stock');
      await press('One of Euro pallets more in Hamburg');
      await says('Euro pallets is now 121');
      await press('One of Euro pallets more in Riga');
      await says('FORBIDDEN: the right to write is required for this');

      await press('Refresh the tokens');
      await says('Both tokens are new');
      const second = { access: await shown('Access token'), refresh: await shown('Refresh token') };
      expect(second.access).to.not.equal(first.access);
      expect(await shown('The one before')).to.equal(first.refresh);
      await press('Retry the old refresh token');
      await says('the same successor, a new access token');
      expect(await shown('Refresh token')).to.equal(second.refresh);
      expect(await shown('Access token')).to.not.equal(second.access);

      // Another process makes the change: the service learns of it a moment later.
      const eventuallyShown = (text: string): Promise<void> =>
        eventually(async () => {
          await press('Show my stock');
          expect(await page.locator('main').textContent()).to.include(text);
        });
      const [remove, restore] = sandbox.commands;
      await sandbox.run(remove);
      await eventuallyShown('reaches no organization now');
      expect(await page.getByRole('table').count()).to.equal(0);
      await sandbox.run(restore);
      await eventuallyShown('as owner');
      await press('One of Euro pallets more in Riga');
      await says('Euro pallets is now 121');

      await press('Watch my stock');
      const watched = page.getByRole('log');
      await watched.getByText('The subscription is open.').first().waitFor();
      // Repeat this: after a recent change the API identifies the caller again, which also ends a subscription.
      await eventually(async () => {
        await press('One of Euro pallets more in Riga');
        await says('Adjusted');
        expect(await watched.textContent()).to.match(/Riga: Euro pallets is now \d+/);
      });
      const otherTab = await page.context().newPage();
      await otherTab.goto(sandbox.partner);
      await otherTab.getByRole('button', { name: 'Revoke', exact: true }).click();
      await watched.getByText('The API ended the subscription').last().waitFor();
      await watched.getByText('refused with 401: the subscription has ended').waitFor();
      await otherTab.getByText('The authorization has ended').waitFor();
      await otherTab.goto(new URL('/', sandbox.apiUrl).href);
      const calls = otherTab.getByRole('table', { name: 'Calls, the latest first' });
      for (const text of ['asked Gatehouse, refused with 401', 'access ended']) {
        await calls.getByText(text).first().waitFor();
      }
      await otherTab.close();

      await press('Show my stock');
      await says('The API answered 401, UNAUTHENTICATED');
      await press('Refresh the tokens');
      await says('invalid_grant');
      await page.getByRole('link', { name: 'Connect your warehouse' }).waitFor();
      // The log shows everything that was sent, but no complete token.
      const log = await page.locator('main').textContent();
      expect(log).to.include('grant_type=authorization_code').and.include('"refresh_token": "');
      expect(log).to.include('invalid_token').and.include('code_challenge_method=S256');
      expect(log).to.not.match(/gate_(?!ci_)[a-z]+_[\w-]{9}/);
      expect(problems).to.deep.equal([]);
    });
  });

  describe('the sandbox leaves no processes or files behind', () => {
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

    it('a settings file that cannot be read stops the sandbox before it creates a directory', async () => {
      const before = process.env.TMPDIR;
      const empty = mkdtempSync(path.join(tmpdir(), 'sandbox-test-'));
      process.env.TMPDIR = empty;
      const stop = new AbortController().signal;
      const parts = { port: 1, apiUrl: 'http://127.0.0.1:1/graphql', stop, lookOf: 'none.yaml' };
      const error = await startGatehouse(parts).catch(({ code }) => code);
      if (before === undefined) delete process.env.TMPDIR;
      else process.env.TMPDIR = before;
      expect(error).to.equal('ENOENT');
      expect(readdirSync(empty)).to.deep.equal([]);
    });
  });
});
