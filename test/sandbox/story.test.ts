/** The whole story on one machine, from one command, as a newcomer would follow it. */
import { readdirSync } from 'node:fs';
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { describeInBrowser, type Visit } from '../support/browser.ts';
import { ask } from '../support/oauth.ts';
import { findProgram } from '../support/programs.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { type RunningSandbox, runSandbox, spawnSandbox } from './run-sandbox.ts';

describe('npm run sandbox', () => {
  const folder = temporaryDirectory('sandbox');
  let sandbox: RunningSandbox;

  before(async function startSandbox() {
    this.timeout(120_000);
    const elsewhere = 'postgres://nobody@127.0.0.1:1/operator';
    sandbox = await runSandbox({ TMPDIR: folder, DATABASE_URL: elsewhere, PORT: '1' });
  });
  after(() => sandbox?.end('SIGTERM'));

  it('prints commands that call the API as a machine client', async function callByCurl() {
    if (findProgram('curl') === undefined) this.skip();
    const [, , token = '', call = ''] = sandbox.commands;
    const answer = JSON.parse(await sandbox.run(`${token}\n${call}`));
    expect(answer).to.deep.equal({
      data: {
        caller: { method: 'client_credentials' },
        organizations: [
          { name: 'Demo Logistics', warehouses: [{ name: 'Hamburg', rights: ['read'] }] },
        ],
      },
    });
  });

  it('tells whoever opens the API what to send, and answers callers only', async () => {
    const { status, text } = await ask(new URL('/', sandbox.apiUrl), {});
    expect(status).to.equal(200);
    expect(text).to.include('adjustStock(');
    const url = new URL(`${sandbox.apiUrl}?query={caller{subject}}`);
    const anonymous = await ask(url, {});
    expect(anonymous.status).to.equal(401);
    expect(anonymous.headers.get('www-authenticate')).to.equal('Bearer');
    expect((await ask(new URL('/nowhere', sandbox.apiUrl), {})).status).to.equal(404);
  });

  it('connects nobody by a link that somebody else made', async () => {
    const url = new URL('/callback?code=gate_ac_x&state=x', sandbox.partner);
    const { headers } = await ask(url, {});
    const [cookie = ''] = headers.get('set-cookie')?.split(';') ?? [];
    const { text } = await ask(new URL(sandbox.partner), { headers: { cookie } });
    expect(text).to.include('Nothing was asked for').and.include('Connect your warehouse');
  });

  describeInBrowser('in a browser', (visit) => {
    let visitor: Visit;
    let page: Page;

    const press = (name: string): Promise<void> =>
      page.getByRole('button', { name, exact: true }).click();
    const says = (text: string): Promise<void> =>
      page.getByRole('status').filter({ hasText: text }).waitFor();
    /** The tokens as the page shows them, under their terms. */
    const shown = async (): Promise<Record<string, string>> =>
      Object.fromEntries(
        await page
          .locator('dl')
          .evaluate(({ children }) =>
            [...children].flatMap((term, at) =>
              term.tagName === 'DT'
                ? [[term.textContent, children[at + 1]?.querySelector('code')?.textContent]]
                : [],
            ),
          ),
      );

    it('connect, call, refresh, retry, lose the membership, get it back, revoke', async () => {
      visitor = await visit();
      page = visitor.page;

      await page.goto(sandbox.partner);
      await page.getByRole('link', { name: 'Connect your warehouse' }).click();
      await page.getByLabel('Email address').fill(sandbox.signIn.email);
      await page.getByLabel('Password', { exact: true }).fill(sandbox.signIn.password);
      await press('Sign in');
      await press('Deny');
      await says('access_denied');

      await page.getByRole('link', { name: 'Connect your warehouse' }).click();
      await press('Approve');
      await says('Connected.');
      expect(new URL(page.url()).origin).to.equal(sandbox.partner);
      const first = await shown();
      expect(first['Access token']).to.match(/^gate_at_.{4}….{4}$/);
      expect(first['Refresh token']).to.match(/^gate_rt_.{4}….{4}$/);

      await press('Show my stock');
      await page.getByText('Demo Logistics').first().waitFor();
      await press('One of Euro pallets more in Hamburg');
      await says('Euro pallets is 121 now');
      await press('One of Euro pallets more in Riga');
      await says('FORBIDDEN: this needs the right to write there');

      await press('Refresh the tokens');
      await says('Both tokens are new');
      const second = await shown();
      expect(second['Access token']).to.not.equal(first['Access token']);
      expect(second['The one before']).to.equal(first['Refresh token']);
      await press('Retry the old refresh token');
      await says('the same successor, a fresh access token');
      const third = await shown();
      expect(third['Refresh token']).to.equal(second['Refresh token']);
      expect(third['Access token']).to.not.equal(second['Access token']);

      const [remove, giveBack] = sandbox.commands;
      await sandbox.run(remove);
      await press('Show my stock');
      await page.getByText('reaches no organization now').waitFor();
      expect(await page.getByRole('table').count()).to.equal(0);
      await sandbox.run(giveBack);
      await press('Show my stock');
      await page.getByText('as owner').waitFor();
      await press('One of Euro pallets more in Riga');
      await says('Euro pallets is 121 now');

      await press('Revoke');
      await says('The authorization is over');
      await press('Show my stock');
      await says('The API answered 401, UNAUTHENTICATED');
      await press('Refresh the tokens');
      await says('invalid_grant');
      await page.getByRole('link', { name: 'Connect your warehouse' }).waitFor();

      // Everything that was sent is there to be read, and none of it could be used.
      const log = await page.locator('main').textContent();
      expect(log).to.include('grant_type=authorization_code').and.include('"refresh_token": "');
      expect(log).to.include('invalid_token').and.include('code_challenge_method=S256');
      expect(log).to.not.match(/gate_(?!ci_)[a-z]+_[\w-]{9}/);
      expect(visitor.problems).to.deep.equal([]);
    });
  });

  describe('when it is told to stop', () => {
    it('ends with all it started, and leaves nothing behind', async () => {
      expect(readdirSync(folder)).to.have.lengthOf(1);
      expect(await sandbox.end('SIGTERM')).to.equal(0);
      for (const address of [sandbox.partner, sandbox.issuer, sandbox.apiUrl]) {
        const reached = await fetch(address).catch(() => undefined);
        expect(reached, address).to.equal(undefined);
      }
      expect(readdirSync(folder)).to.deep.equal([]);
    });

    it('does so before it is ready, too', async () => {
      const starting = spawnSandbox({ TMPDIR: folder });
      await starting.says('Starting');
      expect(await starting.end('SIGTERM')).to.equal(0);
      expect(readdirSync(folder)).to.deep.equal([]);
    });
  });
});
