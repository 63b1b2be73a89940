/** oidc-provider's settings, with the reason for each difference from its defaults. */
import { generateKeyPairSync } from 'node:crypto';
import type { Context } from 'koa';
import { type AccountClaims, type Configuration, errors, type interactionPolicy } from 'oidc-provider';
import { cookieAttributes, cookieName } from '../base/cookies.ts';
import type { Settings } from '../config/settings.ts';
import type { StoredSession } from './browser-sessions.ts';
import { ENDPOINT } from './endpoints.ts';
import { clientOf } from './engine-clients.ts';
import { NO_SCOPES } from './oauth-error.ts';

/** An open sign-in or consent page can be used for this long. */
const INTERACTION_SECONDS = 3_600;
/** The size is limited, because the service stores the `state` of unauthenticated callers. */
const MAX_STATE_BYTES = 2_048;

export function engineConfiguration(parts: {
  readonly settings: Settings;
  /** False if the session has ended, or its user needs a stronger sign-in (`sign_in.require`). */
  readonly mayAct: (session: StoredSession, ctx: Context) => Promise<boolean>;
  readonly policy: interactionPolicy.Prompt[];
  readonly adapter: NonNullable<Configuration['adapter']>;
  readonly renderError: NonNullable<Configuration['renderError']>;
}): Configuration {
  const { settings, mayAct } = parts;
  const off = { enabled: false };
  return {
    adapter: parts.adapter,
    // Clients authenticate at our own endpoints.
    clientAuthMethods: ['none'],
    responseTypes: ['code'],
    scopes: [],
    claims: {},
    clockTolerance: 0,
    // No ID tokens are issued. Without this unused key the engine would add its development keys.
    jwks: { keys: [placeholderKey()] },
    clientDefaults: { id_token_signed_response_alg: 'ES256' },
    routes: { authorization: ENDPOINT.authorization },
    features: {
      claimsParameter: off,
      devInteractions: off,
      dPoP: off,
      pushedAuthorizationRequests: off,
      resourceIndicators: off,
      rpInitiatedLogout: off,
      userinfo: off,
    },

    // RFC 7636; `plain` is refused by the engine.
    pkce: { required: (_ctx, client) => clientOf(client).kind === 'public' },
    allowOmittingSingleRegisteredRedirectUri: false,
    // The engine calls this at each request, even without `scope`, after it has accepted the redirect URI.
    extraParams: {
      scope: (ctx) => {
        // Read the raw query: the engine has removed unknown scopes from its parameters.
        if (ctx.query.scope) {
          throw new errors.CustomOIDCProviderError('invalid_scope', NO_SCOPES);
        }
        // RFC 6749 §3.1.1: check the raw `response_type`, because the engine accepts `code code` as `code`.
        if (ctx.query.response_type !== 'code') throw new errors.UnsupportedResponseType();
        const { state, code_challenge: challenge } = ctx.oidc.params ?? {};
        if (state === undefined && challenge === undefined) {
          // RFC 9700 §2.1: state or PKCE must protect the client from forged responses.
          throw new errors.InvalidRequest('state or code_challenge is required');
        }
        // Limit the state's length as JSON: the state is stored in that form while the user is asked.
        if (Buffer.byteLength(JSON.stringify(state ?? '')) > MAX_STATE_BYTES) {
          throw new errors.InvalidRequest(`state must not be longer than ${MAX_STATE_BYTES} bytes`);
        }
      },
    },

    findAccount: async (ctx, accountId) => {
      // The engine calls this for every request for a code, even if it shows no page. If the session has ended, or
      // needs a stronger sign-in, the engine issues no code, but asks for a sign-in (`login_required`).
      const { session } = ctx.oidc;
      if (session?.accountId !== accountId || !(await mayAct(session, ctx))) return undefined;
      return { accountId, claims: (): AccountClaims => ({ sub: accountId }) };
    },
    interactions: {
      policy: parts.policy,
      url: (_ctx, interaction) => `/interaction/${interaction.uid}`,
    },
    // consent-policy.ts creates a new grant for each authorization.
    loadExistingGrant: async () => undefined,
    // Signing out of the browser does not disconnect partners.
    expiresWithSession: async () => false,

    ttl: {
      Interaction: INTERACTION_SECONDS,
      // Only the engine reads this value. session-writes.ts sets the stored lifetime.
      Session: settings.sessions.idleSeconds,
    },

    cookies: cookies(settings),
    renderError: parts.renderError,
  };
}

function cookies({ issuer, secrets }: Settings): NonNullable<Configuration['cookies']> {
  const attributes = { ...cookieAttributes(issuer), signed: true };
  return {
    keys: [...secrets.cookieKeys],
    names: {
      session: cookieName(issuer, 'session'),
      interaction: cookieName(issuer, 'interaction', false),
      resume: cookieName(issuer, 'resume', false),
    },
    long: { ...attributes, path: '/', overwrite: true },
    // Set no path: the engine then limits each cookie to its interaction's path, so that tabs do not share a cookie.
    short: { ...attributes, overwrite: true },
  };
}

function placeholderKey() {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return { ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'ES256' } as const;
}
