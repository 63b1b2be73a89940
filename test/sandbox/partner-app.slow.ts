/** The partner app of the sandbox, through the whole life of a connection. */
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { type PartnerApp, startPartnerApp } from '../../examples/sandbox/partner-app.ts';
import { describeInBrowser } from '../support/browser.ts';
import { atEndOfFile } from '../support/end-of-run.ts';
import { eventually } from '../support/eventually.ts';
import { ask } from '../support/oauth.ts';
import { freePort } from '../support/programs.ts';
import { startSeeded } from '../support/seeded.ts';
import { apiKeyOf, type CalledApi, startCalledApi } from './called-api.ts';

describe('the partner app', () => {
  const on = startSeeded();
  let app: PartnerApp;
  let api: CalledApi;

  before(async () => {
    api = await startCalledApi(on.service, on.clients.resourceServer, true);
    const redirectUri = `http://127.0.0.1:${await freePort()}/callback`;
    const draft = { kind: 'confidential', name: 'Stock Planner', isNative: false } as const;
    const added = await on.service.clients.add({ ...draft, redirectUris: [redirectUri] });
    const { client, secret: clientSecret = '' } = added;
    const registration = { issuer: on.issuer, clientId: client.id, clientSecret, redirectUri };
    app = await startPartnerApp({ registration, apiUrl: api.url });
    atEndOfFile(app.close);
  });

  it('an attacker’s callback link does not connect a user with the example app', async () => {
    const { headers } = await ask(new URL('/callback?code=gate_ac_x&state=x', app.origin), {});
    const [cookie = ''] = headers.get('set-cookie')?.split(';') ?? [];
    const { text } = await ask(new URL(app.origin), { headers: { cookie } });
    expect(text).to.include('There is no pending authorization').and.include('Connect your warehouse');
  });

  describeInBrowser('in a browser', (visit) => {
    let page: Page;

    const press = (name: string): Promise<void> => page.getByRole('button', { name, exact: true }).click();
    const connect = () => page.getByRole('link', { name: 'Connect your warehouse' }).click();
    const says = (text: string): Promise<void> => page.getByRole('status').filter({ hasText: text }).waitFor();
    /** Returns the tokens that the page shows, by their labels. */
    async function shown(): Promise<Record<string, string>> {
      const terms = await page.locator('dl dt').allTextContents();
      const values = terms.map((term) =>
        page.locator('dt', { hasText: term }).locator('+ dd code').first().textContent(),
      );
      const texts = await Promise.all(values);
      return Object.fromEntries(terms.map((term, at) => [term, texts[at] ?? '']));
    }

    it('with the example app a user can connect, call the API, refresh, lose and regain access, and revoke', async () => {
      const visitor = await visit();
      page = visitor.page;
      const { person, organization, warehouse } = on.seeded;
      const who = { accountId: person.accountId };
      const draft = { organizationId: organization.id, name: 'Riga' };
      const riga = await on.service.organizations.addWarehouse(draft);
      await on.service.memberships.setRights(who, riga.id, ['read']);

      await page.goto(app.origin);
      await connect();
      await page.getByLabel('Email address').fill(person.email);
      await page.getByLabel('Password', { exact: true }).fill(person.password);
      await press('Sign in');
      await press('Deny');
      await says('access_denied');
      await connect();
      await press('Approve');
      await says('Connected.');
      expect(new URL(page.url()).origin).to.equal(app.origin);
      const first = await shown();
      expect(first['Access token']).to.match(/^gate_at_.{4}….{4}$/);
      expect(first['Refresh token']).to.match(/^gate_rt_.{4}….{4}$/);

      await press('Show my stock');
      await page.getByText(organization.name).first().waitFor();
      await press(`One of Euro pallets more in ${warehouse.name}`);
      await says('Euro pallets is now 121');
      await press('One of Euro pallets more in Riga');
      await says('FORBIDDEN: the right to write is required for this');

      await press('Refresh the tokens');
      await says('Both tokens are new');
      const second = await shown();
      expect(second['Access token']).to.not.equal(first['Access token']);
      expect(second['The one before']).to.equal(first['Refresh token']);
      await press('Retry the old refresh token');
      await says('the same successor, a new access token');
      const third = await shown();
      expect(third['Refresh token']).to.equal(second['Refresh token']);
      expect(third['Access token']).to.not.equal(second['Access token']);

      // The membership is changed in the database, so the service learns of it a moment later.
      const eventuallyShown = (text: string): Promise<void> =>
        eventually(async () => {
          await press('Show my stock');
          expect(await page.locator('main').textContent()).to.include(text);
        });
      await on.service.memberships.remove(who, organization.id);
      await eventuallyShown('reaches no organization now');
      expect(await page.getByRole('table').count()).to.equal(0);
      await on.service.memberships.setRole(who, organization.id, 'owner');
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
        expect(await watched.textContent()).to.match(/Riga: Euro pallets is now 12\d/);
      });
      const otherTab = await page.context().newPage();
      await otherTab.goto(app.origin);
      await otherTab.getByRole('button', { name: 'Revoke', exact: true }).click();
      await watched.getByText('The API ended the subscription').last().waitFor();
      await watched.getByText('refused with 401: the subscription has ended').waitFor();
      await otherTab.getByText('The authorization has ended').waitFor();
      await api.expectLetIn((await apiKeyOf(on.service, on.seeded.person)).value);
      await otherTab.goto(new URL('/', api.url).href);
      const calls = otherTab.getByRole('table', { name: 'Calls, the latest first' });
      for (const text of ['remembered', 'asked Gatehouse, refused with 401', 'access ended']) {
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
      expect(visitor.problems).to.deep.equal([]);
    });
  });
});
