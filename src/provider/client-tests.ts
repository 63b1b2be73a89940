/** Tests of a client by its owner: authorizations that redirect only back to this service. */
import type { Context, Next } from 'koa';
import type { OneTimeValues } from '../accounts/one-time-values.ts';
import { randomId } from '../base/random-id.ts';
import { requestState } from '../base/request-state.ts';
import { createSeals } from '../base/seals.ts';
import type { Client } from '../clients/client.ts';
import type { ClientRegistry } from '../clients/client-registry.ts';
import type { BrowserSession, BrowserSessions } from './browser-sessions.ts';
import { authorizationRequest, challengeOf } from './client-flow.ts';
import { ENDPOINT } from './endpoints.ts';

/** A test that was started, and whose browser was not redirected back yet. */
export interface ClientTest {
  readonly clientId: string;
  /** Absent for a public client. */
  readonly secret?: string;
  /** RFC 7636 §4.1. Only this service knows it, so only this service can exchange the code. */
  readonly verifier: string;
}

export type ClientTests = ReturnType<typeof createClientTests>;

export const testRedirectUri = (issuer: string): string => issuer + ENDPOINT.clientTest;

export function createClientTests(parts: {
  issuer: string;
  /** Only the first key is used: a new first key ends the tests in progress. */
  keys: readonly [string, ...string[]];
  oneTimeValues: OneTimeValues;
  sessions: BrowserSessions;
  clients: Pick<ClientRegistry, 'find'>;
}) {
  const { issuer, keys, oneTimeValues, sessions, clients } = parts;
  const redirectUri = testRedirectUri(issuer);
  const seals = createSeals('client-test', keys);
  const recognized = requestState<string>('recognize');

  /**
   * Names a test by session and `state` together, so a state that an attacker sends to another user
   * finds nothing. The MAC needs our key, because the store contains both values.
   */
  function nameOf({ uid }: BrowserSession, state: string): string {
    return seals.macOf(`${uid}:${state}`);
  }

  async function testedClientOf(ctx: Context): Promise<string | undefined> {
    const { client_id: clientId, state, code_challenge: challenge } = ctx.query;
    const session = await sessions.current(ctx);
    if (!session || typeof clientId !== 'string' || typeof state !== 'string') return undefined;
    const { accountId } = session;
    const test = await oneTimeValues.peek<ClientTest>(accountId, nameOf(session, state));
    if (test?.clientId !== clientId || challengeOf(test.verifier) !== challenge) return undefined;
    const client = await clients.find(clientId);
    return client?.ownerAccountId === accountId ? clientId : undefined;
  }

  const requestOf = (
    { clientId, verifier }: Pick<ClientTest, 'clientId' | 'verifier'>,
    state: string,
  ): URLSearchParams => authorizationRequest({ clientId, redirectUri, state, verifier });

  return {
    /** The redirect URI of tests. Valid only in tests, even if a client has registered it. */
    redirectUri,
    requestOf,

    /** Starts a test in this session, for five minutes. @returns the query of its authorization request */
    async begin(session: BrowserSession, begun: Omit<ClientTest, 'verifier'>): Promise<URLSearchParams> {
      const state = randomId('', 43);
      const test: ClientTest = { ...begun, verifier: randomId('', 43) };
      await oneTimeValues.store(session.accountId, test, nameOf(session, state));
      return requestOf(test, state);
    },

    /** Step of the authorization endpoint: recognizes the request of a test. */
    async recognize(ctx: Context, next: Next): Promise<void> {
      if (ctx.query.redirect_uri === redirectUri) {
        const clientId = await testedClientOf(ctx);
        if (clientId !== undefined) recognized.set(ctx, clientId);
      }
      await next();
    },

    isRecognized: (ctx: Context | undefined, { id }: Client): boolean =>
      ctx !== undefined && recognized.find(ctx) === id,

    /** Ends the test, after the redirect back. @returns undefined on a second call, or for another session */
    finish: (session: BrowserSession, state: string): Promise<ClientTest | undefined> =>
      oneTimeValues.take<ClientTest>(session.accountId, nameOf(session, state)),
  };
}
