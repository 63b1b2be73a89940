/** oidc-provider, configured: the only door to the engine. */

import type { Context, Middleware } from 'koa';
import compose from 'koa-compose';
import { type Configuration, errors, Provider } from 'oidc-provider';
import type { Logger } from 'pino';
import type { Access } from '../accounts/access.ts';
import type { AccountRegistry } from '../accounts/account-registry.ts';
import type { Activity } from '../accounts/activity.ts';
import type { ApiKeys } from '../accounts/api-keys.ts';
import type { Connections } from '../accounts/connections.ts';
import type { Revocations } from '../accounts/revocations.ts';
import type { ShownOnce } from '../accounts/shown-once.ts';
import type { CreateAttemptLimit } from '../attempt-limits.ts';
import type { ClientProblems } from '../clients/client-problems.ts';
import type { ClientRegistry } from '../clients/client-registry.ts';
import type { Clock } from '../clock.ts';
import type { Settings } from '../config/settings.ts';
import { randomId } from '../random-id.ts';
import type { LastUsed } from '../storage/last-used.ts';
import type { TokenStore } from '../storage/token-store.ts';
import { type BrowserSessions, createBrowserSessions } from './browser-sessions.ts';
import { createClientAuthentication } from './client-authentication.ts';
import { type ClientTests, createClientTests } from './client-tests.ts';
import { useCodesUpLast } from './code-exchange.ts';
import { engineConfiguration } from './configuration.ts';
import { createDisconnections, type Disconnections } from './disconnections.ts';
import { installClients } from './engine-clients.ts';
import { listenToEvents } from './events.ts';
import { createFailureLimits } from './failure-limits.ts';
import { createGrants, type Grants } from './grants.ts';
import { createInteractions, type Interactions } from './interactions.ts';
import { introspection } from './introspection.ts';
import type { ProviderOutcomes } from './outcomes.ts';
import { createRefreshTokens, type RefreshTokens } from './refresh-tokens.ts';
import { notesReplays } from './replays.ts';
import { namingParties } from './request-parties.ts';
import { revocation } from './revocation.ts';
import { revokeCurrentToken } from './revoke-current-token.ts';
import { storeAdapter } from './store-adapter.ts';
import { PREFIX } from './token-values.ts';

export interface ProviderParts {
  readonly settings: Settings;
  readonly clock: Clock;
  readonly log: Logger;
  readonly store: TokenStore;
  readonly clients: ClientRegistry;
  readonly accounts: AccountRegistry;
  readonly access: Access;
  readonly connections: Connections;
  readonly apiKeys: ApiKeys;
  readonly activity: Activity;
  readonly revocations: Revocations;
  readonly shownOnce: ShownOnce;
  readonly createAttemptLimit: CreateAttemptLimit;
  readonly outcomes: ProviderOutcomes;
  /** Told of every refused authorize and token request. */
  readonly problems: Pick<ClientProblems, 'note'>;
  readonly lastUsed: Pick<LastUsed<UsedThing>, 'note'>;
  /** Draws a refused authorization request that must not be redirected. */
  showError(
    ctx: Context,
    error: {
      code: string;
      description?: string | undefined;
      /** The interaction was used or has expired; `restart` begins its request again. */
      isGone: boolean;
      restart?: string | undefined;
    },
  ): Promise<void>;
}

/** What is noted as used, to be shown to whoever it belongs to. */
type UsedThing = 'client' | 'client_secret' | 'connection' | 'api_key';

/** What the pages and the host may ask of the authorization server. */
export interface AuthorizationServer {
  /** Answers the authorization endpoint. */
  readonly engine: Middleware;
  readonly token: readonly Middleware[];
  readonly introspection: readonly Middleware[];
  readonly revocation: readonly Middleware[];
  readonly revokeCurrentToken: readonly Middleware[];
  readonly interactions: Interactions;
  readonly sessions: BrowserSessions;
  readonly grants: Grants;
  readonly disconnections: Disconnections;
  readonly clientTests: ClientTests;
}

/** Builds the engine with its adapter, policy, values and error texts in place. */
export function createAuthorizationServer(parts: ProviderParts): AuthorizationServer {
  const { settings, clock, store, clients, accounts, connections, revocations } = parts;
  const { issuer } = settings;
  const noteReplay = notesReplays(revocations, parts.outcomes);
  const refreshTokens = createRefreshTokens({
    store,
    clock,
    keys: settings.secrets.tokenKeys,
    retryWindowSeconds: settings.tokens.retryWindowSeconds,
    ...{ noteReplay, outcomes: parts.outcomes },
  });
  const adapter = storeAdapter({ store, refreshTokens, noteReplay });
  const renderError: Configuration['renderError'] = async (ctx, out, cause) => {
    const isGone = cause instanceof errors.SessionNotFound;
    await parts.showError(ctx, {
      code: out.error,
      description: out.error_description,
      isGone,
      restart: isGone ? await interactions.restartOf(String(ctx.params.uid)) : undefined,
    });
  };
  const provider = new Provider(
    issuer,
    engineConfiguration({ settings, clock, accounts, connections, adapter, renderError }),
  );
  // Its own contexts read the scheme, too; the host has the same rule.
  Object.defineProperty(provider.request, 'protocol', {
    value: new URL(issuer).protocol.slice(0, -1),
  });

  const failures = createFailureLimits(parts);
  const authentication = createClientAuthentication({
    ...{ clients, failures },
    lastUsed: parts.lastUsed,
    issuer,
  });
  const sessions = createBrowserSessions({ provider, settings, clock });
  const tests = createClientTests({
    ...{ issuer, clients, accounts, sessions, shownOnce: parts.shownOnce },
    keys: settings.secrets.cookieKeys,
  });
  installClients({ provider, clients, authentication, tests });
  installTokenValues(provider, refreshTokens);
  useCodesUpLast(provider);
  listenToEvents(provider, { ...parts, noteReplay });

  const grants = createGrants({ store, refreshTokens, clock });
  const interactions = createInteractions({ provider, store, sessions });
  const engine = namingParties(compose(provider.middleware));
  return {
    engine,
    token: [failures.limitRefusals, engine],
    introspection: introspection({ ...parts, issuer, authentication, grants }),
    revocation: revocation({ authentication, grants, revocations }),
    revokeCurrentToken: revokeCurrentToken({ grants, clients, revocations, failures }),
    interactions,
    sessions,
    grants,
    disconnections: createDisconnections({ ...parts, grants }),
    clientTests: tests,
  };
}

/** Each kind of value gets its prefix; refresh tokens and grant ids are made by us altogether. */
export function installTokenValues(
  provider: Provider,
  refreshTokens: Pick<RefreshTokens, 'valueOf'>,
): void {
  const { AccessToken, ClientCredentials, AuthorizationCode, RefreshToken, Grant } = provider;
  for (const [prototype, prefix] of [
    [tokenModel(AccessToken), PREFIX.accessToken],
    [tokenModel(ClientCredentials), PREFIX.machineToken],
    [tokenModel(AuthorizationCode), PREFIX.code],
  ] as const) {
    // The original also notes on the token which format it has.
    const { generateTokenId } = prototype;
    const isAccessToken = prefix === PREFIX.accessToken;
    prototype.generateTokenId = function () {
      const grantId = isAccessToken ? (this.grantId ?? '') : '';
      return prefix + grantId + generateTokenId.call(this);
    };
  }
  tokenModel(Grant).generateTokenId = () => randomId('', 22);
  tokenModel(RefreshToken).generateTokenId = function () {
    return refreshTokens.valueOf({ grantId: this.grantId ?? '', rotation: this.rotations ?? 0 });
  };
}

interface TokenModel {
  grantId?: string;
  rotations?: number;
  generateTokenId(this: TokenModel): string;
}

/** The types leave this method of every model out. */
const tokenModel = (model: { prototype: object }): TokenModel => model.prototype as TokenModel;
