/** Tests of a client by its owner: authorizations that are redirected back to this service only. */
import type { Context, Next } from 'koa';
import type { AccountRegistry } from '../accounts/account-registry.ts';
import type { ShownOnce } from '../accounts/shown-once.ts';
import { randomId } from '../base/random-id.ts';
import { requestState } from '../base/request-state.ts';
import { createSeals } from '../base/seals.ts';
import type { Client } from '../clients/client.ts';
import type { ClientRegistry } from '../clients/client-registry.ts';
import { type BrowserSession, type BrowserSessions, isAlive } from './browser-sessions.ts';
import { authorizationRequest, challengeOf } from './client-flow.ts';
import { ENDPOINT } from './endpoints.ts';

/** A test that was started and has not come back yet. */
export interface ClientTest {
  readonly clientId: string;
  /** Absent for a public client. */
  readonly secret?: string;
  /** RFC 7636 §4.1. Known to this service only, so only it can exchange the code. */
  readonly verifier: string;
  /** True if the tokens are shown at the end, and not revoked. */
  readonly keepsTokens: boolean;
}

export type ClientTests = ReturnType<typeof createClientTests>;

export const testRedirectUri = (issuer: string): string => issuer + ENDPOINT.clientTest;

export function createClientTests(parts: {
  issuer: string;
  /** Only the first one is used: a test does not survive a change of it. */
  keys: readonly [string, ...string[]];
  shownOnce: ShownOnce;
  sessions: BrowserSessions;
  clients: Pick<ClientRegistry, 'find'>;
  accounts: Pick<AccountRegistry, 'find'>;
}) {
  const { issuer, keys, shownOnce, sessions, clients, accounts } = parts;
  const redirectUri = testRedirectUri(issuer);
  const seals = createSeals('client-test', keys);
  const recognized = requestState<string>('recognize');

  /**
   * A test is found by the session and the `state` together: a state that an attacker sends to
   * another user finds nothing in their browser. Uses our key, because the store has the other two.
   */
  function nameOf({ uid }: BrowserSession, state: string): string {
    return seals.macOf(`${uid}:${state}`);
  }

  /** Returns the client that is tested by exactly this user, session, state and challenge. */
  async function testedClientOf(ctx: Context): Promise<string | undefined> {
    const { client_id: clientId, state, code_challenge: challenge } = ctx.query;
    const session = await sessions.current(ctx);
    if (!session || typeof clientId !== 'string' || typeof state !== 'string') return undefined;
    const { accountId } = session;
    const test = await shownOnce.look<ClientTest>(accountId, nameOf(session, state));
    if (test?.clientId !== clientId || challengeOf(test.verifier) !== challenge) return undefined;
    const [account, client] = await Promise.all([accounts.find(accountId), clients.find(clientId)]);
    if (!isAlive(account, session)) return undefined;
    return client?.ownerAccountId === accountId ? clientId : undefined;
  }

  const requestOf = (
    { clientId, verifier }: Pick<ClientTest, 'clientId' | 'verifier'>,
    state: string,
  ): URLSearchParams => authorizationRequest({ clientId, redirectUri, state, verifier });

  return {
    /** Where the browser comes back to. Valid in tests only, even if a client has registered it. */
    redirectUri,
    requestOf,

    /**
     * Starts a test in this browser session, for five minutes.
     *
     * @returns the query of its authorization request
     */
    async begin(
      session: BrowserSession,
      begun: Omit<ClientTest, 'verifier'>,
    ): Promise<URLSearchParams> {
      const state = randomId('', 43);
      const test: ClientTest = { ...begun, verifier: randomId('', 43) };
      await shownOnce.keep(session.accountId, test, nameOf(session, state));
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

    /** True if this authorization request is the one that a test of the client started with. */
    isRecognized: (ctx: Context | undefined, { id }: Client): boolean =>
      ctx !== undefined && recognized.find(ctx) === id,

    /**
     * Ends the test that came back with this `state`.
     *
     * @returns undefined unless it was started in this session, and on a second call
     */
    finish: (session: BrowserSession, state: string): Promise<ClientTest | undefined> =>
      shownOnce.take<ClientTest>(session.accountId, nameOf(session, state)),
  };
}
