/** One user's connection to Gatehouse in a partner app, from the first to the last token. */
import * as oauth from 'openid-client';
import { clockTime } from './html.ts';
import { type Watch, watchStock } from './watch.ts';
import { createWireLog, type WireLog } from './wire-log.ts';

/** The values that a partner app gets when it is registered. */
export interface PartnerRegistration {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly redirectUri: string;
}

export interface Tokens {
  readonly accessToken: string;
  readonly expiresAt: Date;
  readonly refreshToken: string;
  /** The refresh token before the current one. */
  readonly replaced?: string;
}

export interface StockLevel {
  readonly article: string;
  readonly count: number;
}

export interface Organization {
  readonly name: string;
  readonly role: string;
  readonly warehouses: readonly {
    readonly id: string;
    readonly name: string;
    readonly rights: readonly string[];
    /** The stock of a warehouse; null if the caller may not read it. */
    readonly stock: readonly StockLevel[] | null;
  }[];
}

/** The actions of a connection; each ends with a sentence for the user in `notice`. */
export interface PartnerConnection {
  readonly log: WireLog;
  readonly notice: string | undefined;
  /** Undefined while not connected. */
  readonly tokens: Tokens | undefined;
  /** The latest answer of the API. */
  readonly organizations: readonly Organization[] | undefined;
  /** The subscription to stock changes. */
  readonly watch: Watch | undefined;
  /** Returns the URL to which the app sends the browser for approval. */
  begin(): Promise<URL>;
  /** @param callback the URL at which the browser came back. */
  finish(callback: URL): Promise<void>;
  showStock(): Promise<void>;
  adjustStock(change: { warehouse: string; article: string; by: number }): Promise<void>;
  refresh(): Promise<void>;
  /** Sends the previous refresh token again, like a client that lost the answer. */
  retry(): Promise<void>;
  revoke(): Promise<void>;
  /** Subscribes to stock changes again. */
  watchStock(): Promise<void>;
  /** Ends the subscription to stock changes. */
  close(): void;
}

/** Reads the metadata of the service once. @returns a function that creates one browser's connection. */
export async function createPartner(registration: PartnerRegistration, apiUrl: URL) {
  const { issuer, clientId, clientSecret, redirectUri } = registration;
  const discovered = await oauth.discovery(new URL(issuer), clientId, clientSecret, undefined, {
    algorithm: 'oauth2',
    // The sandbox uses http, but only on loopback.
    execute: [oauth.allowInsecureRequests],
    [oauth.customFetch]: createWireLog().fetch,
  });

  return function connect(): PartnerConnection {
    const log = createWireLog();
    const config = new oauth.Configuration(discovered.serverMetadata(), clientId, clientSecret);
    oauth.allowInsecureRequests(config);
    config[oauth.customFetch] = log.fetch;

    let checks: { pkceCodeVerifier: string; expectedState: string } | undefined;

    function keep(answer: oauth.TokenEndpointResponse, replaced?: string): void {
      // Gatehouse always sends both values; the library's types allow servers that do not.
      const { refresh_token: refreshToken = '', expires_in: seconds = 0 } = answer;
      const expiresAt = new Date(Date.now() + seconds * 1000);
      const accessToken = answer.access_token;
      connection.tokens = { accessToken, refreshToken, expiresAt, ...(replaced && { replaced }) };
    }

    /** Shows a refusal as a notice, and removes a connection that has ended. */
    async function attempt(step: () => Promise<string>): Promise<void> {
      try {
        connection.notice = await step();
      } catch (error) {
        if (!isRefusal(error)) throw error;
        const description = error.error_description ?? 'no reason given';
        connection.notice = `Gatehouse refused: ${error.error} (${description}).`;
        if (error.error === 'invalid_grant') connection.tokens = undefined;
      }
    }

    async function ask<Data>(query: string, variables: object): Promise<Data | undefined> {
      const response = await log.fetch(apiUrl.href, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${connection.tokens?.accessToken}`,
          'content-type': 'application/json',
        },
        body: JSON.stringify({ query, variables }),
      });
      const { data, errors = [] } = (await response.json()) as GraphqlAnswer<Data>;
      const [problem] = errors;
      if (problem) {
        connection.notice = `The API answered ${response.status}, ${problem.extensions?.code}: ${problem.message}.`;
      }
      return data ?? undefined;
    }

    const connection: { -readonly [Name in keyof PartnerConnection]: PartnerConnection[Name] } = {
      log,
      notice: undefined,
      tokens: undefined,
      organizations: undefined,
      watch: undefined,

      async begin() {
        const pkceCodeVerifier = oauth.randomPKCECodeVerifier();
        checks = { pkceCodeVerifier, expectedState: oauth.randomState() };
        const url = oauth.buildAuthorizationUrl(config, {
          redirect_uri: redirectUri,
          state: checks.expectedState,
          code_challenge: await oauth.calculatePKCECodeChallenge(pkceCodeVerifier),
          code_challenge_method: 'S256',
        });
        log.recordRedirect(url);
        return url;
      },

      finish: (callback) =>
        attempt(async () => {
          // Refuse a callback of another request, or one that arrives a second time.
          if (!checks) return 'There is no pending authorization. Connect from here.';
          log.recordRedirect(callback);
          const expected = checks;
          checks = undefined;
          keep(await oauth.authorizationCodeGrant(config, callback, expected));
          return 'Connected. The code was exchanged for an access token and a refresh token.';
        }),

      async showStock() {
        connection.notice = 'The API answered with what the person of the token can access now.';
        const data = await ask<{ organizations: Organization[] }>(STOCK, {});
        connection.organizations = data?.organizations;
      },

      async adjustStock(change) {
        connection.notice = undefined;
        const data = await ask<{ adjustStock: StockLevel }>(ADJUST, change);
        if (!data?.adjustStock) return;
        await connection.showStock();
        const { article, count } = data.adjustStock;
        connection.notice = `Adjusted: ${article} is now ${count}.`;
      },

      refresh: () =>
        attempt(async () => {
          const { refreshToken = '' } = connection.tokens ?? {};
          keep(await oauth.refreshTokenGrant(config, refreshToken), refreshToken);
          return 'Refreshed. Both tokens are new: always store the new refresh token.';
        }),

      retry: () =>
        attempt(async () => {
          const { replaced = '', refreshToken } = connection.tokens ?? {};
          keep(await oauth.refreshTokenGrant(config, replaced), replaced);
          const isSame = connection.tokens?.refreshToken === refreshToken;
          return isSame
            ? 'The old refresh token was accepted as a retry: the same successor, a new ' + 'access token.'
            : 'The old refresh token got another successor.';
        }),

      revoke: () =>
        attempt(async () => {
          await oauth.tokenRevocation(config, connection.tokens?.refreshToken ?? '');
          return `Revoked at ${clockTime(new Date())}. The authorization has ended: try its tokens.`;
        }),

      async watchStock() {
        connection.watch?.close();
        connection.watch = watchStock({
          apiUrl,
          log,
          accessToken: () => connection.tokens?.accessToken ?? '',
        });
        connection.notice = 'Subscribed to the stock. Adjust it, or end the access in another tab.';
      },

      close: () => connection.watch?.close(),
    };
    return connection;
  };
}

const STOCK = '{ organizations { name role warehouses { id name rights stock { article count } } } }';

const ADJUST = `mutation ($warehouse: ID!, $article: String!, $by: Int!) {
  adjustStock(warehouse: $warehouse, article: $article, by: $by) { article count }
}`;

interface GraphqlAnswer<Data> {
  readonly data?: Data | null;
  readonly errors?: readonly { message: string; extensions?: { code?: string } }[];
}

/** An error from the service, or the user's refusal. */
const isRefusal = (error: unknown): error is oauth.ResponseBodyError | oauth.AuthorizationResponseError =>
  error instanceof oauth.ResponseBodyError || error instanceof oauth.AuthorizationResponseError;
