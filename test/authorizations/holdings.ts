/** What a person, their partners and their browsers hold, and each door of the service that takes it. */
import { expect } from 'chai';
import { signedIn } from '../pages/signed-in-person.ts';
import { outcomeOf } from '../provider/authorization-outcome.ts';
import { partnerTokens, type Tokens, tokensOf } from '../provider/partner-tokens.ts';
import { apiKeyOf, type CalledApi, startCalledApi } from '../sandbox/called-api.ts';
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
import { addPerson, addTestClient, type SeededPerson } from '../support/seed.ts';
import type { Seeded } from '../support/seeded.ts';
import type { TestService } from '../support/service.ts';

const DAY = 86_400;

/** Repeats a check until it holds, or makes it once: for what must be in force when it is answered. */
export type Hears = (check: () => Promise<void>) => Promise<void>;

/** Who hears of an end, and how soon: the node where it was done, and all others. */
export interface Hearing {
  readonly here: Hears;
  readonly elsewhere: Hears;
  /** An API that remembers is told by a stream. */
  readonly remembering: Hears;
}

/** One thing that opens doors. */
interface Credential {
  /** An API remembers who it belongs to. */
  readonly remember: () => Promise<unknown>;
  /** Asserts that every door takes it, `isEmpty` with no organization behind it. */
  readonly expectTaken: (hearing: Hearing, isEmpty: boolean) => Promise<unknown>;
  /** Asserts that no door takes it. */
  readonly expectRefused: (hearing: Hearing) => Promise<unknown>;
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
  /** Registered by the seeded `other`, who owns the organization. */
  readonly client: TestClient & { readonly name: string };
  readonly machine: TestClient;
  readonly first: Tokens & { readonly former: string; readonly replaced: string };
  readonly code: string;
  readonly keys: readonly { readonly id: string; readonly value: string }[];
  readonly machineToken: string;
  readonly browser: Awaited<ReturnType<typeof signedIn>>;
  readonly credentials: Readonly<Record<HeldName, Credential>>;
  /** New tokens of the same person and client, by a browser that signs in for them. */
  reconnect(): Promise<Credential>;
  isConnected(): Promise<boolean>;
}

export interface Doors {
  readonly on: Seeded;
  /** Another node of the same deployment; the embedded one has none. */
  readonly elsewhere: TestService;
  /** Asks the node where everything is changed at each call. */
  readonly asking: CalledApi;
  /** Is told by the other node, and remembers until then. */
  readonly remembering: CalledApi;
}

/** The doors of a service that was seeded. Call it in a hook. */
export async function openDoors(on: Seeded, elsewhere: TestService): Promise<Doors> {
  const { resourceServer } = on.clients;
  return {
    on,
    elsewhere,
    asking: await startCalledApi(on.service, resourceServer),
    remembering: await startCalledApi(elsewhere, resourceServer, true),
  };
}

let people = 0;

/** Everything new: a person with an organization, the clients around them, and what they hold. */
export async function hold(doors: Doors): Promise<Holdings> {
  const { on } = doors;
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

  // An end counts for what was approved a month before it, too.
  const begun = await mine.tokens(client);
  on.clock.advance(29 * DAY);
  await service.clean();
  // The session of that time is over.
  const now = partnerTokens(issuer, { ...seeded, person });
  const before = await renew(begun);
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

  // What changed a moment ago an API does not remember.
  on.clock.advance(6);

  const tokensWith = (tokens: Tokens, of: TestClient, ...older: string[]): Credential =>
    all([
      ...[tokens.accessToken, ...older].map((value) => bearer(doors, value, organizationId)),
      grant(doors, (at) => refresh(at, of, tokens.refreshToken)),
    ]);
  const keyWith = ({ value = '' }: { value?: string } = {}) => bearer(doors, value, organizationId);
  return {
    ...{ on, person, organizationId, client, machine, first, code, keys, machineToken, browser },
    credentials: {
      authorization: tokensWith(first, client, before.accessToken),
      'second authorization': tokensWith(second, client),
      code: grant(doors, (at) => exchangeCode(at, client, code)),
      'authorization of another client': tokensWith(ofOtherClient, otherClient),
      'authorization of another person': tokensWith(ofOtherPerson, client),
      'API key': keyWith(keys[0]),
      'second API key': keyWith(keys[1]),
      'machine token': bearer(doors, machineToken, organizationId),
      'second machine token': bearer(doors, secondMachineToken, organizationId),
      'machine secret': grant(doors, (at) => clientCredentials(at, machine)),
      browser: await session(doors, browser, person, unconnected),
      'second browser': await session(doors, secondBrowser, person, unconnected),
    },
    reconnect: async () =>
      tokensWith(await partnerTokens(issuer, { ...seeded, person }).tokens(client), client),
    isConnected: async () => (await service.connections.find(accountId, client.id)) !== undefined,
  };
}

const all = (credentials: readonly Credential[]): Credential => ({
  async remember() {
    for (const one of credentials) await one.remember();
  },
  expectTaken: (hearing, isEmpty) =>
    Promise.all(credentials.map((one) => one.expectTaken(hearing, isEmpty))),
  expectRefused: (hearing) => Promise.all(credentials.map((one) => one.expectRefused(hearing))),
});

/** What an API is called with: introspection, and the module of an API with and without a memory. */
function bearer(
  { on, elsewhere, asking, remembering }: Doors,
  value: string,
  organizationId: string,
): Credential {
  const { resourceServer } = on.clients;
  const answers = async (issuer: string, expected: (answer: Answer) => void): Promise<void> =>
    expected(await introspect(issuer, resourceServer, value));
  const isReached = (organizations: unknown, isEmpty: boolean) => {
    const ids = (organizations as { id: string }[] | undefined)?.map(({ id }) => id);
    expect(ids?.includes(organizationId)).to.equal(!isEmpty);
  };
  const isInactive = ({ text }: Answer) => expect(text).to.equal('{"active":false}');
  return {
    remember: () => remembering.expectLetIn(value),
    async expectTaken(hearing, isEmpty) {
      const isTaken = ({ body, text }: Answer) => {
        expect(body, text).to.include({ active: true });
        isReached(body.organizations, isEmpty);
      };
      await hearing.here(() => answers(on.issuer, isTaken));
      await hearing.elsewhere(() => answers(elsewhere.issuer, isTaken));
      await hearing.here(() => asking.expectLetIn(value));
      await hearing.remembering(async () => {
        const { body } = await remembering.query(value, '{ organizations { id } }');
        isReached((body.data as { organizations?: unknown } | undefined)?.organizations, isEmpty);
      });
    },
    async expectRefused(hearing) {
      await hearing.here(() => answers(on.issuer, isInactive));
      await hearing.here(() => asking.expectRefused(value));
      await hearing.elsewhere(() => answers(elsewhere.issuer, isInactive));
      await hearing.remembering(() => remembering.expectRefused(value));
    },
  };
}

/** What the token endpoint takes. */
function grant({ on, elsewhere }: Doors, ask: (issuer: string) => Promise<Answer>): Credential {
  const refuses = async (issuer: string): Promise<void> => {
    const { status, body, text } = await ask(issuer);
    const error = status === 401 ? 'invalid_client' : 'invalid_grant';
    expect({ status, error: body.error }, text).to.deep.equal({
      status: status === 401 ? 401 : 400,
      error,
    });
  };
  return {
    remember: async () => {},
    async expectTaken(hearing) {
      await hearing.elsewhere(async () => {
        const { status, text } = await ask(elsewhere.issuer);
        expect(status, text).to.equal(200);
      });
    },
    async expectRefused(hearing) {
      await hearing.here(() => refuses(on.issuer));
      await hearing.elsewhere(() => refuses(elsewhere.issuer));
    },
  };
}

/** A browser that is signed in, on its pages and on a consent page that it has open. */
async function session(
  { on }: Doors,
  browser: Person,
  { accountId, email, name }: SeededPerson,
  unconnected: TestClient,
): Promise<Credential> {
  const request = authorizationUrl(on.issuer, unconnected);
  const silent = authorizationUrl(on.issuer, unconnected, { prompt: 'none' });
  const open = async (): Promise<Page> => browser.follow(await browser.get(request));
  const seen = await open();
  const answered = { deny: await open(), approve: await open() };
  let isAnswered = false;
  // A copy of its cookies opens nothing either, once it has ended.
  const cookie = browser.cookieHeader('/profile');
  const copy = createPerson(on.issuer);
  return {
    remember: async () => {},
    async expectTaken() {
      expect((await browser.get('/profile')).html).to.include(email);
      expect((await browser.post('/oauth/token/refresh', {})).status).to.equal(200);
      expect(await outcomeOf(browser, silent)).to.equal('consent_required');
    },
    async expectRefused(hearing) {
      await hearing.here(async () => {
        const profile = await copy.get('/profile', { cookie });
        expect(profile.location?.pathname).to.equal('/login');
      });
      const kept = await copy.post('/oauth/token/refresh', {}, { cookie });
      expect(kept.status).to.equal(401);
      const told = (await copy.get(silent, { cookie })).location;
      expect(told?.searchParams.get('error')).to.equal('login_required');
      // Each page takes one answer.
      if (isAnswered) return;
      isAnswered = true;
      const shown = await browser.follow(await browser.get(seen.url));
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
