/** Creates the authorization server with oidc-provider. */
import type { Context, Middleware } from 'koa';
import compose from 'koa-compose';
import { type Configuration, errors, Provider } from 'oidc-provider';
import type { AccountRegistry } from '../accounts/account-registry.ts';
import type { SessionList } from '../accounts/session-list.ts';
import { createAuthorizations } from '../authorizations/authorization.ts';
import type { Connections } from '../authorizations/connections.ts';
import type { Endings } from '../authorizations/endings.ts';
import { createMachineTokens } from '../authorizations/machine-tokens.ts';
import type { ClientRequests } from '../clients/client-requests.ts';
import type { LastUsed } from '../storage/last-used.ts';
import { type ApprovalsParts, createApprovals } from './approvals.ts';
import {
  type AskingApp,
  answerRefusals,
  askingApp,
  handOverToApp,
  keepQuery,
  refusalUrl,
  type ShowHandover,
} from './authorization-answers.ts';
import { createBrowserSessions, type StoredSession } from './browser-sessions.ts';
import { createClientAuthentication } from './client-authentication.ts';
import { createClientTurns } from './client-turns.ts';
import { engineConfiguration } from './configuration.ts';
import { ApprovalsClosed, consentPolicy, saveCode } from './consent-policy.ts';
import { createEngineClients } from './engine-clients.ts';
import { overrideEngine } from './engine-overrides.ts';
import { listenToEvents, nameParties } from './events.ts';
import { createFailureLimits } from './failure-limits.ts';
import { createInteractions, restartOf } from './interactions.ts';
import { type IntrospectionParts, introspection } from './introspection.ts';
import { type ChangeStreams, introspectionChanges } from './introspection-changes.ts';
import type { ProviderOutcomes } from './outcomes.ts';
import { revocation, revokeCurrentToken } from './revocation.ts';
import { createSessionWrites } from './session-writes.ts';
import { mayAct as isEnough, type Standings } from './standings.ts';
import { storeAdapter } from './store-adapter.ts';
import { tokenEndpoint } from './token-endpoint.ts';
import { verification } from './verification.ts';

/** A refused authorization request that the user sees, because the browser must not be redirected. */
export interface AuthorizationRefusal {
  /** An error code of RFC 6749 §4.1.2.1. */
  readonly code: string;
  readonly description?: string | undefined;
  /** True if the interaction was used or has expired; `restart` is the URL that begins its request again. */
  readonly isGone: boolean;
  readonly restart?: string | undefined;
  readonly app: AskingApp | undefined;
  readonly closed?: {
    /** The client's redirect URI with the error, which the user may choose to open. */
    readonly back: string;
  };
}

export type AuthorizationServer = ReturnType<typeof createAuthorizationServer>;

export function createAuthorizationServer(
  parts: ApprovalsParts &
    Parameters<typeof createFailureLimits>[0] &
    Pick<Parameters<typeof createAuthorizations>[0], 'store' | 'people' | 'clock'> &
    Pick<IntrospectionParts, 'clients' | 'access' | 'apiKeys'> & {
      readonly accounts: AccountRegistry;
      readonly sessionList: SessionList;
      readonly standings: Pick<Standings, 'of'>;
      readonly connections: Connections;
      readonly endings: Endings;
      readonly outcomes: ProviderOutcomes;
      readonly changeStreams: ChangeStreams;
      readonly requests: Pick<ClientRequests, 'record'>;
      /** The kinds of things whose last use is recorded and shown to their owner. */
      readonly lastUsed: Pick<LastUsed<'client' | 'client_secret' | 'connection' | 'api_key'>, 'record'>;
      readonly showHandover: ShowHandover;
      /** Multiplies the maximum time that a request waits in its client's queue. Default: 1. */
      readonly timeoutFactor?: number | undefined;
      showError(ctx: Context, refusal: AuthorizationRefusal): Promise<void>;
    },
) {
  const { settings, store, standings, createAttemptLimit } = parts;
  const { issuer } = settings;
  const machineTokens = createMachineTokens(store);
  const keys = settings.secrets.tokenKeys;
  const authorizations = createAuthorizations({ ...parts, keys, lifetimes: settings.tokens });
  const policy = consentPolicy({ ...parts, authorizations, approvals: createApprovals(parts) });
  const waiting = createAttemptLimit({
    name: 'waiting_sign_ins',
    attempts: settings.limits.waitingSignInsPerAddress,
    // Keep the window shorter than an interaction (1 h): an address at the limit must wait until the window ends.
    windowSeconds: 600,
    onStoreUnavailable: 'count here',
  });
  const adapter = storeAdapter({ store, waiting, settings });
  const mayAct = async (session: StoredSession, ctx: Context): Promise<boolean> => {
    const active = await sessions.current(ctx, session);
    return active?.uid === session.uid && isEnough(await standings.of(active, ctx));
  };
  const renderError: Configuration['renderError'] = async (ctx, out, cause) => {
    const isGone = cause instanceof errors.SessionNotFound;
    await parts.showError(ctx, {
      code: out.error,
      description: out.error_description,
      isGone,
      app: askingApp(ctx),
      restart: isGone ? await restartOf(ctx.oidc.provider, store, String(ctx.params.uid)) : undefined,
      ...(cause instanceof ApprovalsClosed && {
        closed: {
          back: refusalUrl(issuer, String(ctx.oidc.params?.redirect_uri), out),
        },
      }),
    });
  };
  const provider = new Provider(issuer, engineConfiguration({ settings, mayAct, policy, adapter, renderError }));
  const failures = createFailureLimits(parts);
  const authentication = createClientAuthentication({
    ...parts,
    failures,
    issuer,
    inTurn: createClientTurns(parts.timeoutFactor),
    graceSeconds: settings.leaks.secretGraceSeconds,
  });
  const writes = createSessionWrites({ ...parts, provider, mayAct });
  const sessions = createBrowserSessions({ ...parts, provider, writes });
  overrideEngine(provider, {
    clients: createEngineClients({ ...parts, provider }),
    sessions: writes,
    saveCode: (code, ctx) => saveCode(authorizations, code, ctx),
    refuse: answerRefusals({ issuer, showError: parts.showError }),
  });
  listenToEvents(provider, parts);

  const interactions = createInteractions({ provider, store, sessions, limit: waiting });
  const handOver = handOverToApp(parts.showHandover) as Middleware;
  const composed = compose([nameParties, handOver, keepQuery as Middleware, ...provider.middleware]);
  const asked = { ...parts, issuer, authentication, failures, authorizations, machineTokens };
  return {
    engine: function engine(ctx: Context, next: () => Promise<void>) {
      return composed(ctx, next);
    },
    token: tokenEndpoint({ ...asked, machineTokenLifetimeSeconds: settings.tokens.machineAccessTokenSeconds }),
    introspection: introspection(asked),
    verification: verification(asked),
    introspectionChanges: introspectionChanges({
      ...asked,
      maxPerClient: settings.limits.changeStreamsPerClient,
    }),
    revocation: revocation(asked),
    revokeCurrentToken: revokeCurrentToken(asked),
    interactions,
    sessions,
    authorizations,
  };
}
