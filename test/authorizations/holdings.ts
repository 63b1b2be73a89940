/** Credentials of users, their clients and their browsers, and the endpoints that accept them. */
import { expect } from 'chai';
import { signedIn } from '../pages/signed-in-person.ts';
import { outcomeOf } from '../provider/authorization-outcome.ts';
import { partnerTokens, type Tokens, tokensOf } from '../provider/partner-tokens.ts';
import { type CalledApi, startCalledApi } from '../sandbox/called-api.ts';
import { eventually } from '../support/eventually.ts';
import {
  type Answer,
  authorizationUrl,
  clientCredentials,
  exchangeCode,
  introspect,
  refresh,
  type TestClient,
} from '../support/oauth.ts';
import { createPerson, type Page, type Person } from '../support/person.ts';
import { addPerson, addTestClient, apiKeyOf, type SeededPerson } from '../support/seed.ts';
import type { Seeded } from '../support/seeded.ts';
import type { TestService } from '../support/service.ts';

const DAY = 86_400;

/** Runs a check: repeatedly until it passes, or only once if the access must have ended already. */
export type Check = (check: () => Promise<void>) => Promise<void>;

/** How soon the end of access is in force: at the node that ended it, and at all others. */
export interface Timing {
  readonly here: Check;
  readonly elsewhere: Check;
}

/** A token, code, key, secret or session that gives access, with its checks. */
interface Credential {
  /** Makes an API cache the caller who has this credential. */
  readonly cache: () => Promise<unknown>;
  /**
   * Asserts that every endpoint accepts the credential; a code stays unused. @param isEmpty true if
   * the credential reaches no organization
   */
  readonly expectValid: (timing: Timing, isEmpty: boolean) => Promise<unknown>;
  /** Asserts that every endpoint refuses the credential. */
  readonly expectRefused: (timing: Timing) => Promise<unknown>;
}

export const HELD = [
  'authorization',
  'second authorization',
  'code',
  'authorization of another client',
  'authorization of another person',
  'API key',
  'second API key',
  'machine token',
  'second machine token',
  'machine secret',
  'browser',
  'second browser',
] as const;
export type HeldName = (typeof HELD)[number];

export interface Holdings {
  readonly on: Seeded;
  readonly person: SeededPerson;
  readonly organizationId: string;
  /** A client of the seeded user `other`, who owns the organization. */
  readonly client: TestClient & { readonly name: string };
  readonly machine: TestClient;
  readonly first: Tokens & { readonly former: string; readonly replaced: string };
  readonly code: string;
  readonly keys: readonly { readonly id: string; readonly value: string }[];
  readonly machineToken: string;
  readonly browser: Awaited<ReturnType<typeof signedIn>>;
  readonly credentials: Readonly<Record<HeldName, Credential>>;
  /** Signs the user in and gets new tokens for the same client. @param secret the client's present one, if it is new */
  reconnect(secret?: string): Promise<Credential>;
  isConnected(): Promise<boolean>;
}

export interface Apis {
  readonly on: Seeded;
  /** Another node of the same deployment; on the embedded database, the same node. */
  readonly elsewhere: TestService;
  /** An API with a cache, which the other node invalidates. */
  readonly caching: CalledApi;
}

/** Starts the API of a seeded service. Call it in a hook. */
export async function openApis(on: Seeded, elsewhere: TestService): Promise<Apis> {
  const { resourceServer } = on.clients;
  return {
    on,
    elsewhere,
    caching: await startCalledApi(elsewhere, resourceServer, true),
  };
}

let people = 0;

/** Adds a user with an organization, connected and machine clients, and all their credentials. */
export async function hold(apis: Apis): Promise<Holdings> {
  const { on } = apis;
  const { service, issuer, seeded } = on;
  const { memberships } = service;
  people += 1;
  const person = await addPerson(service, 'Pat Holder', `holder-${people}@example.test`);
  const { accountId } = person;
  const { id: organizationId } = await service.organizations.add({ name: `Holding ${people}` });
  const owner = { ownerAccountId: seeded.other.accountId };
  const client = {
    ...(await addTestClient(service, 'Route Planner', owner)),
    name: 'Route Planner',
  };
  const otherClient = await addTestClient(service, 'Stock Reports', owner);
  const unconnected = await addTestClient(service, 'Dock Planner', owner);
  const machine = await addTestClient(service, 'Night Sync', { kind: 'machine' });
  await memberships.setRole({ accountId: seeded.other.accountId }, organizationId, 'owner');
  await memberships.setRole({ accountId }, organizationId, 'viewer');
  await memberships.setRole({ clientId: machine.id }, organizationId, 'viewer');

  const mine = partnerTokens(issuer, { ...seeded, person });
  const theirs = partnerTokens(issuer, { ...seeded, person: seeded.other });
  const renew = async ({ refreshToken }: Tokens): Promise<Tokens> =>
    tokensOf(await refresh(issuer, client, refreshToken));

  // Move the clock, because the end of access must also apply to an approval that is a month old.
  const earlier = await mine.tokens(client);
  on.clock.advance(29 * DAY);
  await service.clean();
  // Sign in again, because the session of the earlier approval has expired.
  const now = partnerTokens(issuer, { ...seeded, person });
  const before = await renew(earlier);
  const former = { former: before.accessToken, replaced: before.refreshToken };
  const first = { ...(await renew(before)), ...former };
  const second = await now.tokens(client);
  const ofOtherClient = await now.tokens(otherClient);
  const ofOtherPerson = await theirs.tokens(client);
  const code = await now.code(client);
  const keys = [await apiKeyOf(service, person), await apiKeyOf(service, person)];
  const [machineToken = '', secondMachineToken = ''] = await Promise.all(
    [1, 2].map(async () => tokensOf(await clientCredentials(issuer, machine)).accessToken),
  );
  const browser = await signedIn(service, person);
  const secondBrowser = await signedIn(service, person);

  // Let some seconds pass: an API does not cache callers whose data has just changed.
  on.clock.advance(6);

  const tokensWith = (tokens: Tokens, of: TestClient, ...older: string[]): Credential =>
    all([
      ...[tokens.accessToken, ...older].map((value) => bearer(apis, value, organizationId)),
      grant(apis, (at) => refresh(at, of, tokens.refreshToken)),
    ]);
  const keyWith = ({ value = '' }: { value?: string } = {}) => bearer(apis, value, organizationId);
  return {
    on,
    person,
    organizationId,
    client,
    machine,
    first,
    code,
    keys,
    machineToken,
    browser,
    credentials: {
      authorization: tokensWith(first, client, before.accessToken),
      'second authorization': tokensWith(second, client),
      code: grant(
        apis,
        (at) => exchangeCode(at, client, code),
        async (at) => {
          // A wrong redirect URI does not consume the code, and is refused last.
          const { text } = await exchangeCode(at, client, code, { redirect_uri: 'https://elsewhere.example.test/' });
          return text.includes('redirect_uri is not');
        },
      ),
      'authorization of another client': tokensWith(ofOtherClient, otherClient),
      'authorization of another person': tokensWith(ofOtherPerson, client),
      'API key': keyWith(keys[0]),
      'second API key': keyWith(keys[1]),
      'machine token': bearer(apis, machineToken, organizationId),
      'second machine token': bearer(apis, secondMachineToken, organizationId),
      'machine secret': grant(apis, (at) => clientCredentials(at, machine)),
      browser: await session(apis, browser, person, unconnected),
      'second browser': await session(apis, secondBrowser, person, unconnected),
    },
    async reconnect(secret = client.secret) {
      const present = { ...client, ...(secret !== undefined && { secret }) };
      return tokensWith(await partnerTokens(issuer, { ...seeded, person }).tokens(present), present);
    },
    isConnected: async () => (await service.connections.find(accountId, client.id)) !== undefined,
  };
}

const all = (credentials: readonly Credential[]): Credential => ({
  async cache() {
    for (const one of credentials) await one.cache();
  },
  expectValid: (timing, isEmpty) => Promise.all(credentials.map((one) => one.expectValid(timing, isEmpty))),
  expectRefused: (timing) => Promise.all(credentials.map((one) => one.expectRefused(timing))),
});

/** A bearer token, checked at introspection, and at an API with a cache. */
function bearer({ on, elsewhere, caching }: Apis, value: string, organizationId: string): Credential {
  const { resourceServer } = on.clients;
  const answers = async (issuer: string, expected: (answer: Answer) => void): Promise<void> =>
    expected(await introspect(issuer, resourceServer, value));
  const isReached = (organizations: unknown, isEmpty: boolean) => {
    const ids = (organizations as { id: string }[] | undefined)?.map(({ id }) => id);
    expect(ids?.includes(organizationId)).to.equal(!isEmpty);
  };
  const isInactive = ({ text }: Answer) => expect(text).to.equal('{"active":false}');
  return {
    cache: () => caching.expectLetIn(value),
    async expectValid(timing, isEmpty) {
      const isActive = ({ body, text }: Answer) => {
        expect(body, text).to.include({ active: true });
        isReached(body.organizations, isEmpty);
      };
      await timing.here(() => answers(on.issuer, isActive));
      await timing.elsewhere(() => answers(elsewhere.issuer, isActive));
      await eventually(async () => {
        const { body } = await caching.query(value, '{ organizations { id } }');
        isReached((body.data as { organizations?: unknown } | undefined)?.organizations, isEmpty);
      });
    },
    async expectRefused(timing) {
      await timing.here(() => answers(on.issuer, isInactive));
      await timing.elsewhere(() => answers(elsewhere.issuer, isInactive));
      await eventually(() => caching.expectRefused(value));
    },
  };
}

/**
 * A code, refresh token or client secret, checked at the token endpoint.
 *
 * @param wouldAccept for a code, which works only once: whether the node would exchange it
 */
function grant(
  { on, elsewhere }: Apis,
  ask: (issuer: string) => Promise<Answer>,
  wouldAccept?: (issuer: string) => Promise<boolean>,
): Credential {
  /** Lets a node learn of a change before the code is presented: afterwards the code is used. */
  const expectKnown = async (issuer: string, isActive: boolean): Promise<void> => {
    if (wouldAccept) expect(await wouldAccept(issuer), 'the node would exchange the code').to.equal(isActive);
  };
  const refuses = async (issuer: string): Promise<void> => {
    await expectKnown(issuer, false);
    const { status, body, text } = await ask(issuer);
    const error = status === 401 ? 'invalid_client' : 'invalid_grant';
    expect({ status, error: body.error }, text).to.deep.equal({
      status: status === 401 ? 401 : 400,
      error,
    });
  };
  const accepts = async (issuer: string): Promise<void> => {
    if (wouldAccept) return expectKnown(issuer, true);
    const { status, text } = await ask(issuer);
    expect(status, text).to.equal(200);
  };
  return {
    cache: async () => {},
    expectValid: (timing) => timing.elsewhere(() => accepts(elsewhere.issuer)),
    async expectRefused(timing) {
      await timing.here(() => refuses(on.issuer));
      await timing.elsewhere(() => refuses(elsewhere.issuer));
    },
  };
}

/** A signed-in browser, checked on its pages and on consent pages that it has open. */
async function session(
  { on }: Apis,
  browser: Person,
  { accountId, email, name }: SeededPerson,
  unconnected: TestClient,
): Promise<Credential> {
  const request = authorizationUrl(on.issuer, unconnected);
  const silent = authorizationUrl(on.issuer, unconnected, { prompt: 'none' });
  const open = async (): Promise<Page> => browser.open(request);
  const seen = await open();
  const answered = { deny: await open(), approve: await open() };
  let isAnswered = false;
  // After the session has ended, a copy of the browser's cookies must not work either.
  const cookie = browser.cookieHeader('/profile');
  const copy = createPerson(on.issuer);
  return {
    cache: async () => {},
    async expectValid() {
      expect((await browser.get('/profile')).html).to.include(email);
      expect((await browser.post('/oauth/token/refresh', {})).status).to.equal(200);
      expect(await outcomeOf(browser, silent)).to.equal('consent_required');
    },
    async expectRefused(timing) {
      await timing.here(async () => {
        const profile = await copy.get('/profile', { cookie });
        expect(profile.location?.pathname).to.equal('/login');
      });
      const refreshed = await copy.post('/oauth/token/refresh', {}, { cookie });
      expect(refreshed.status).to.equal(401);
      const location = (await copy.get(silent, { cookie })).location;
      expect(location?.searchParams.get('error')).to.equal('login_required');
      // Each consent page accepts only one answer: skip those that were answered.
      if (isAnswered) return;
      isAnswered = true;
      const shown = await browser.open(seen.url);
      expect(shown.html).to.not.include(email).and.not.include(name);
      expect(await outcomeOf(browser, shown)).to.be.oneOf(['sign-in', 'page 410']);
      for (const [decision, page] of Object.entries(answered)) {
        const next = await browser.submit(page, { decision });
        expect(await outcomeOf(browser, next), decision).to.equal('sign-in');
      }
      const approved = await on.service.connections.find(accountId, unconnected.id);
      expect(approved).to.equal(undefined);
    },
  };
}
