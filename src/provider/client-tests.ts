/** Tests of a client by its owner: authorizations that come back to ourselves, and to nobody else. */
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

/** A test that was begun and has not come back yet. */
export interface ClientTest {
  readonly clientId: string;
  /** Absent for a public client. */
  readonly secret?: string;
  /** RFC 7636 §4.1. Nobody else ever has it, so nobody else can exchange the code. */
  readonly verifier: string;
  /** The tokens are shown at the end, and not revoked. */
  readonly keepsTokens: boolean;
}

export type ClientTests = ReturnType<typeof createClientTests>;

export const testRedirectUri = (issuer: string): string => issuer + ENDPOINT.clientTest;

export function createClientTests(parts: {
  issuer: string;
  /** The first one is used: a test does not outlive a change of it. */
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
   * A test is found by the session and the `state` together: a state that somebody else was sent
   * finds nothing in their browser. With our key, because the store knows the other two.
   */
  function nameOf({ uid }: BrowserSession, state: string): string {
    return seals.macOf(`${uid}:${state}`);
  }

  /** The client whose test this request is: of exactly this person, session, state and challenge. */
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
    /** Where the browser comes back to. What is registered for a client does not count for it. */
    redirectUri,
    requestOf,

    /**
     * Begins a test in this browser session, for five minutes.
     *
     * @returns the query of its authorization request.
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

    /** Step of the authorization endpoint: notes that this is the request of a test. */
    async recognize(ctx: Context, next: Next): Promise<void> {
      if (ctx.query.redirect_uri === redirectUri) {
        const clientId = await testedClientOf(ctx);
        if (clientId !== undefined) recognized.set(ctx, clientId);
      }
      await next();
    },

    /** Whether this authorization request is the one that a test of the client began with. */
    isRecognized: (ctx: Context | undefined, { id }: Client): boolean =>
      ctx !== undefined && recognized.find(ctx) === id,

    /**
     * Ends the test that came back with this `state`.
     *
     * @returns undefined for any but one that was begun in this session, and the second time.
     */
    finish: (session: BrowserSession, state: string): Promise<ClientTest | undefined> =>
      shownOnce.take<ClientTest>(session.accountId, nameOf(session, state)),
  };
}
