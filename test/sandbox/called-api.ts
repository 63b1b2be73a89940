/** The warehouse API of the sandbox with a service, and callers of each kind. */
import { expect } from 'chai';
import { startWarehouseApi } from '../../examples/sandbox/warehouse-api.ts';
import { cachedCaller, introspectorOf } from '../../modules/node/test/stand-in.ts';
import { atEndOfFile } from '../support/end-of-run.ts';
import { type Answer, ask, type TestClient } from '../support/oauth.ts';
import type { Page, Person } from '../support/person.ts';
import type { TestService } from '../support/service.ts';

export interface CalledApi {
  readonly url: URL;
  /** Sends one GraphQL request with this bearer token. */
  query(bearer: string, query: string): Promise<Answer>;
  /** Asserts that the API accepts this bearer token. */
  expectLetIn(bearer: string): Promise<void>;
  /** Asserts that the API refuses this bearer token as RFC 6750 §3.1 says, without data. */
  expectRefused(bearer: string): Promise<void>;
}

/**
 * Starts the API, which authenticates at this service as `client`, and is closed after the file.
 *
 * @param live true if the API caches accepted callers
 */
export async function startCalledApi({ issuer }: TestService, client: TestClient, live = false): Promise<CalledApi> {
  let ahead = 0;
  const clock = () => Date.now() + ahead;
  // Ignore failures here: the API answers them with 503, which fails the test.
  const introspector = introspectorOf(client, { issuer, onFailure: () => {}, live, clock });
  const { url, close } = await startWarehouseApi({ introspector });
  atEndOfFile(close);

  const query: CalledApi['query'] = (bearer, text) =>
    ask(url, {
      method: 'POST',
      headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
      body: JSON.stringify({ query: text }),
    });

  return {
    url,
    query,

    async expectLetIn(bearer) {
      const { status, body, text } = await query(bearer, '{ caller { subject } }');
      expect(status, text).to.equal(200);
      expect(body, text).to.have.nested.property('data.caller.subject');
      if (!live) return;
      await cachedCaller(introspector, bearer, () => {
        ahead += 6_000;
      });
    },

    async expectRefused(bearer) {
      const { status, headers, body, text } = await query(bearer, '{ caller { subject } }');
      expect(status, text).to.equal(401);
      expect(headers.get('www-authenticate')).to.match(/^Bearer error="invalid_token", /);
      expect(body).to.not.have.property('data');
    },
  };
}

/** Opens the page at `path` in a signed-in browser, and sends its form with the same path. */
export async function confirmAt(
  browser: Person,
  path: string,
  fields: Readonly<Record<string, string>> = {},
): Promise<Page> {
  const page = await browser.get(path);
  const form = page.forms.find(({ action }) => action === path);
  if (!form) throw new Error(`no form at ${path}: ${page.status} ${page.html}`);
  const sent = await browser.post(path, { ...Object.fromEntries(form.values), ...fields });
  expect(sent.status, sent.html).to.equal(303);
  return sent;
}
