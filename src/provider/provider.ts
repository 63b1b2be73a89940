/** Configures oidc-provider: the only access to the engine. */
import type { Context, Middleware } from 'koa';
import compose from 'koa-compose';
import { type Configuration, errors, Provider } from 'oidc-provider';
import type { Logger } from 'pino';
import type { Access } from '../accounts/access/access.ts';
import type { People } from '../accounts/access/people.ts';
import type { AccountRegistry } from '../accounts/account-registry.ts';
import type { Activity } from '../accounts/activity/activity.ts';
import type { ApiKeys } from '../accounts/api-keys/api-keys.ts';
import type { UpstreamSessions } from '../accounts/identities/upstream-sessions.ts';
import type { SessionList } from '../accounts/session-list.ts';
import type { ShownOnce } from '../accounts/shown-once.ts';
import { type Authorizations, createAuthorizations } from '../authorizations/authorization.ts';
import type { Connections } from '../authorizations/connections.ts';
import type { Endings } from '../authorizations/endings.ts';
import { createMachineTokens } from '../authorizations/machine-tokens.ts';
import type { CreateAttemptLimit } from '../base/attempt-limits.ts';
import type { Clock } from '../base/clock.ts';
import type { ClientProblems } from '../clients/client-problems.ts';
import type { ClientRegistry } from '../clients/client-registry.ts';
import type { ClientRequests } from '../clients/client-requests.ts';
import type { Settings } from '../config/settings.ts';
import type { LastUsed } from '../storage/last-used.ts';
import type { TokenStore } from '../storage/token-store.ts';
import { type ApprovalsParts, createApprovals } from './approvals.ts';
import {
  answerRefusals,
  handOverToApp,
  refusalUrl,
  type ShowHandover,
} from './authorization-answers.ts';
import {
  type BrowserSessions,
  createBrowserSessions,
  type StoredSession,
  sessionFrom,
} from './browser-sessions.ts';
import { createClientAuthentication } from './client-authentication.ts';
import { type ClientTests, createClientTests, testRedirectUri } from './client-tests.ts';
import { engineConfiguration } from './configuration.ts';
import { consentPolicy, OwnerSuspended, saveCode } from './consent-policy.ts';
import { createEngineClients } from './engine-clients.ts';
import { overrideEngine } from './engine-overrides.ts';
import { listenToEvents, nameParties } from './events.ts';
import { createFailureLimits } from './failure-limits.ts';
import { createInteractions, type Interactions } from './interactions.ts';
import { introspection } from './introspection.ts';
import { type ChangeStreams, introspectionChanges } from './introspection-changes.ts';
import type { ProviderOutcomes } from './outcomes.ts';
import { noteRevocation, revocation, revokeCurrentToken } from './revocation.ts';
import type { SessionDemands } from './session-demands.ts';
import { createSessionWrites } from './session-writes.ts';
import { storeAdapter } from './store-adapter.ts';
import { tokenEndpoint } from './token-endpoint.ts';

interface ProviderParts {
  readonly settings: Settings;
  readonly clock: Clock;
  readonly log: Logger;
  readonly store: TokenStore;
  readonly upstreamSessions: UpstreamSessions;
  readonly clients: ClientRegistry;
  readonly accounts: AccountRegistry;
  readonly people: Pick<People, 'find'>;
  readonly access: Access;
  readonly sessionList: SessionList;
  readonly demands: SessionDemands;
  readonly connections: Connections;
  readonly apiKeys: ApiKeys;
  readonly activity: Activity;
  readonly endings: Endings;
  readonly shownOnce: ShownOnce;
  readonly createAttemptLimit: CreateAttemptLimit;
  readonly outcomes: ProviderOutcomes;
  readonly changeStreams: ChangeStreams;
  /** Records every refused authorize and token request. */
  readonly problems: Pick<ClientProblems, 'note'>;
  /** Records every authorize and token request. */
  readonly requests: Pick<ClientRequests, 'note'>;
  readonly lastUsed: Pick<LastUsed<UsedThing>, 'note'>;
  readonly mail?: ApprovalsParts['mail'];
  readonly showHandover: ShowHandover;
  /** Shows a refused authorization request that must not be redirected. */
  showError(ctx: Context, refusal: AuthorizationRefusal): Promise<void>;
}

/** A refused authorization request, shown to the user because it must not be redirected. */
export interface AuthorizationRefusal {
  /** RFC 6749 §4.1.2.1. */
  readonly code: string;
  readonly description?: string | undefined;
  /** The interaction was used or has expired; `restart` begins its request again. */
  readonly isGone: boolean;
  readonly restart?: string | undefined;
  /** The client's redirect URI with the error, if the user may choose to go there. */
  readonly back?: string;
}

/** What is recorded as used, to be shown to its owner. */
type UsedThing = 'client' | 'client_secret' | 'connection' | 'api_key';

/** What the pages and the host use of the authorization server. */
export interface AuthorizationServer {
  readonly engine: Middleware;
  readonly token: readonly Middleware[];
  readonly introspection: readonly Middleware[];
  readonly introspectionChanges: readonly Middleware[];
  readonly revocation: readonly Middleware[];
  readonly revokeCurrentToken: readonly Middleware[];
  readonly interactions: Interactions;
  readonly sessions: BrowserSessions;
  readonly authorizations: Authorizations;
  readonly clientTests: ClientTests;
}

/** Builds the engine with its adapter, policy, values and error texts in place. */
export function createAuthorizationServer(parts: ProviderParts): AuthorizationServer {
  const { settings, clock, log, store, upstreamSessions, clients, accounts, people } = parts;
  const { access, sessionList, demands, connections, apiKeys, activity, endings, mail } = parts;
  const { createAttemptLimit, outcomes, changeStreams, problems, requests, lastUsed } = parts;
  const { issuer } = settings;
  const machineTokens = createMachineTokens(store);
  const authorizations = createAuthorizations({
    store,
    clients,
    people,
    clock,
    keys: settings.secrets.tokenKeys,
    lifetimes: settings.tokens,
  });
  const policy = consentPolicy({
    accounts,
    connections,
    authorizations,
    approvals: createApprovals({ access, activity, connections, mail }),
    testRedirectUri: testRedirectUri(issuer),
  });
  const waiting = createAttemptLimit({
    name: 'waiting_sign_ins',
    attempts: settings.limits.waitingSignInsPerAddress,
    // Shorter than they may wait: above the limit no sign-in can start before the window ends.
    windowSeconds: 600,
    onStoreUnavailable: 'count here',
    log,
  });
  const adapter = storeAdapter({ store, waiting, settings });
  const mayAct = async (session: StoredSession | undefined, ctx: Context | undefined) => {
    const present = sessionFrom(session);
    return !present || demands.mayAct(present, ctx);
  };
  const renderError: Configuration['renderError'] = async (ctx, out, cause) => {
    const isGone = cause instanceof errors.SessionNotFound;
    await parts.showError(ctx, {
      code: out.error,
      description: out.error_description,
      isGone,
      restart: isGone ? await interactions.restartOf(String(ctx.params.uid)) : undefined,
      ...(cause instanceof OwnerSuspended && {
        back: refusalUrl(issuer, String(ctx.oidc.params?.redirect_uri), out),
      }),
    });
  };
  const provider = new Provider(
    issuer,
    engineConfiguration({ settings, accounts, mayAct, policy, adapter, renderError }),
  );
  const failures = createFailureLimits({ settings, createAttemptLimit, log, outcomes });
  const authentication = createClientAuthentication({
    clients,
    failures,
    lastUsed,
    issuer,
  });
  const writes = createSessionWrites({ provider, store, clock, settings, sessionList, mayAct });
  const sessions = createBrowserSessions({
    provider,
    upstreamSessions,
    store,
    writes,
    settings,
    clock,
  });
  const tests = createClientTests({
    issuer,
    clients,
    accounts,
    sessions,
    shownOnce: parts.shownOnce,
    keys: settings.secrets.cookieKeys,
  });
  overrideEngine(provider, {
    clients: createEngineClients({ provider, clients, tests }),
    sessions: writes,
    saveCode: (code, ctx) => saveCode(authorizations, code, ctx),
    refuse: answerRefusals({
      issuer,
      testRedirectUri: testRedirectUri(issuer),
      showError: parts.showError,
    }),
  });
  listenToEvents(provider, { log, problems, requests, outcomes });

  const interactions = createInteractions({ provider, store, accounts, sessions, clock });
  const handOver = handOverToApp(parts.showHandover) as Middleware;
  const composed = compose([nameParties, handOver, ...provider.middleware]);
  return {
    engine: function engine(ctx, next) {
      return composed(ctx, next);
    },
    token: tokenEndpoint({
      authentication,
      failures,
      authorizations,
      machineTokens,
      endings,
      problems,
      requests,
      lastUsed,
      outcomes,
      log,
      clock,
      machineTokenLifetimeSeconds: settings.tokens.machineAccessTokenSeconds,
    }),
    introspection: introspection({
      issuer,
      authentication,
      authorizations,
      machineTokens,
      clients,
      people,
      access,
      apiKeys,
      lastUsed,
      outcomes,
    }),
    introspectionChanges: introspectionChanges({
      authentication,
      changeStreams,
      maxPerClient: settings.limits.changeStreamsPerClient,
    }),
    revocation: [
      noteRevocation(requests),
      ...revocation({ authentication, authorizations, machineTokens, endings }),
    ],
    revokeCurrentToken: [
      noteRevocation(requests),
      ...revokeCurrentToken({ authorizations, machineTokens, endings, clients, failures }),
    ],
    interactions,
    sessions,
    authorizations,
    clientTests: tests,
  };
}
