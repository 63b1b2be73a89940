/** A browser in which the owner of a client runs its test and can stop at any step. */
import type { TestClient } from '../../support/oauth.ts';
import type { Credentials, Fields, Page } from '../../support/person.ts';
import type { TestService } from '../../support/service.ts';
import { signedIn } from '../signed-in-person.ts';

export const CALLBACK = '/profile/oauth-clients/test/callback';

export interface TestBrowser extends Awaited<ReturnType<typeof signedIn>> {
  /** Sends the form. @returns the authorization request that the browser is redirected to. */
  begin(client: TestClient, fields?: Fields): Promise<URL>;
  /** Opens an authorization request and decides. @returns where the browser is redirected to. */
  decide(request: URL, decision?: 'approve' | 'deny'): Promise<URL>;
  /** Runs the whole test. @returns the page with its result. */
  run(client: TestClient, decision?: 'approve' | 'deny', fields?: Fields): Promise<Page>;
}

export async function testBrowser(
  service: Pick<TestService, 'issuer'>,
  credentials: Credentials,
): Promise<TestBrowser> {
  const person = await signedIn(service, credentials);

  const browser: TestBrowser = {
    ...person,

    async begin({ id, secret }, more) {
      const fields = { ...more, ...(secret !== undefined && { client_secret: secret }) };
      return redirectOf(await person.send(testPath(id), fields));
    },

    async decide(request, decision = 'approve') {
      const question = await person.follow(await person.get(request));
      let page = await person.submit(question, { decision });
      while (page.location && page.location.pathname !== CALLBACK) {
        page = await person.get(page.location);
      }
      return redirectOf(page);
    },

    async run(client, decision, fields) {
      const callback = await browser.decide(await browser.begin(client, fields), decision);
      return person.follow(await person.get(callback));
    },
  };
  return browser;
}

export const testPath = (id: string): string => `/profile/oauth-clients/${id}/test`;

function redirectOf({ location, status, url, html }: Page): URL {
  if (location) return location;
  throw new Error(`${url.pathname} answered ${status} and no redirect: ${html}`);
}
