/** The OpenID Connect client of one sign-in provider. */
import {
  AuthorizationResponseError,
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  ClientError,
  ClientSecretBasic,
  ClientSecretPost,
  Configuration,
  calculatePKCECodeChallenge,
  clockTolerance,
  customFetch,
  enableNonRepudiationChecks,
  genericGrantRequest,
  type IDToken,
  None,
  ResponseBodyError,
  randomNonce,
  randomPKCECodeVerifier,
  type ServerMetadata,
  WWWAuthenticateChallengeError,
} from 'openid-client';
import { type Clock, epochSeconds } from '../base/clock.ts';
import type { SignInProvider } from '../config/sign-in-providers.ts';
import { claimsOf, textOf, type UpstreamClaims } from './claims.ts';
import { createDiscovery } from './discovery.ts';
import { UpstreamAway, UpstreamRefusal } from './failures.ts';
import { createProviderFetch, type ProviderFetch, TIME_LIMIT_SECONDS } from './fetching.ts';
import { createLogoutCheck, type UpstreamLogout } from './logout-token.ts';
import { CLOCK_TOLERANCE_SECONDS, requireShortLife } from './token-times.ts';

/** What the provider's answer is checked against. Stored by us, not in the browser. */
export interface UpstreamFlow {
  readonly nonce: string;
  readonly codeVerifier: string;
  /** Seconds since the epoch. */
  readonly begunAt: number;
  /** True if the user must have authenticated at the provider since `begunAt`. */
  readonly isFresh: boolean;
  /** True if the provider must ask for an account, even if a user is signed in there. */
  readonly asksWho?: boolean;
}

/** A user whom the provider has signed in. */
export interface UpstreamPerson {
  readonly issuer: string;
  /** With the issuer, identifies the user permanently (OpenID Connect Core §5.7). */
  readonly subject: string;
  /** The id of their session at the provider, which a logout token may name. */
  readonly sid: string | undefined;
  /** When they authenticated (seconds since the epoch); undefined if the provider does not say. */
  readonly provedAt: number | undefined;
  /** How they authenticated, in the provider's terms (OpenID Connect Core §2). */
  readonly acr: string | undefined;
  readonly amr: readonly string[];
  /**
   * Returns further claims about the user. Call it only when they are needed.
   *
   * @throws UpstreamAway, UpstreamRefusal
   */
  claims(): Promise<UpstreamClaims>;
}

export interface UpstreamProvider {
  readonly settings: SignInProvider;
  /** @throws UpstreamAway */
  begin(request: {
    readonly state: string;
    readonly flow: UpstreamFlow;
    readonly loginHint?: string | undefined;
  }): Promise<URL>;
  /**
   * Exchanges the code of the callback, and accepts only what is signed and for this sign-in.
   *
   * @param query of the callback
   * @throws UpstreamAway, UpstreamRefusal
   */
  finish(
    query: URLSearchParams,
    expected: UpstreamFlow & { state: string },
  ): Promise<UpstreamPerson>;
  /**
   * Requests tokens with a code that does not exist: the provider may refuse only the code.
   *
   * @throws UpstreamAway, or UpstreamRefusal if it does not accept our client ID or secret
   */
  checkClient(): Promise<void>;
  /**
   * Sends a request with `prompt=none`: a provider that knows our redirect URI redirects there
   * (OpenID Connect Core §3.1.2.6), another must not (RFC 6749 §4.1.2.1). Some do neither.
   *
   * @throws UpstreamAway
   */
  checkRedirectUri(): Promise<'registered' | 'refused' | 'unknown'>;
  /** @throws UpstreamAway, UpstreamRefusal */
  checkLogout(token: string): Promise<UpstreamLogout>;
}

const WHEN_PROVED = JSON.stringify({ id_token: { auth_time: null } });

/** OpenID Connect Core §2: at most 255 ASCII characters. A number would be rounded. */
const isSubject = (value: unknown): value is string =>
  typeof value === 'string' && /^[\x20-\x7e]{1,255}$/.test(value);

/** 30 days: the longest that a well-known provider lets its customers choose for ID tokens. */
const MAX_ID_TOKEN_LIFETIME_SECONDS = 30 * 86_400;

/** Returns our redirect URI, to be registered at the provider. */
export const callbackUrl = (issuer: string, { id }: Pick<SignInProvider, 'id'>): string =>
  `${issuer}/login/${id}/callback`;

export const newFlow = (
  clock: Clock,
  { isFresh, asksWho = false }: { readonly isFresh: boolean; readonly asksWho?: boolean },
): UpstreamFlow => ({
  nonce: randomNonce(),
  codeVerifier: randomPKCECodeVerifier(),
  begunAt: epochSeconds(clock),
  isFresh,
  asksWho,
});

/** Sends no request to the provider yet. */
export function createUpstreamProvider({
  issuer,
  settings,
  clock,
}: {
  /** Our own issuer. */
  readonly issuer: string;
  readonly settings: SignInProvider;
  readonly clock: Clock;
}): UpstreamProvider {
  const { metadata } = createDiscovery({ provider: settings, clock });
  const fetchFromProvider = createProviderFetch(settings.issuer);
  const redirectUri = callbackUrl(issuer, settings);

  return {
    settings,

    async begin({ state, flow, loginHint }) {
      const known = await metadata();
      const configuration = configurationFor(settings, known, fetchFromProvider);
      return buildAuthorizationUrl(configuration, {
        redirect_uri: redirectUri,
        scope: settings.scopes.join(' '),
        state,
        nonce: flow.nonce,
        code_challenge: await calculatePKCECodeChallenge(flow.codeVerifier),
        code_challenge_method: 'S256',
        // `max_age` makes the provider return `auth_time` (OpenID Connect Core §3.1.2.1).
        ...(flow.isFresh && { prompt: 'login', max_age: '0' }),
        ...(!flow.isFresh && flow.asksWho && { prompt: promptForAnother(known) }),
        // Otherwise request `auth_time` as a claim, which forces no new login (Core §5.5.1.1).
        ...(!flow.isFresh && known.claims_parameter_supported && { claims: WHEN_PROVED }),
        ...(loginHint !== undefined && { login_hint: loginHint }),
        ...(settings.acrValues.length > 0 && { acr_values: settings.acrValues.join(' ') }),
      });
    },

    async finish(query, { state, nonce, codeVerifier, begunAt, isFresh }) {
      // Keys are loaded for each sign-in: new ones are accepted and withdrawn ones refused at once.
      const configuration = configurationFor(settings, await metadata(), fetchFromProvider);
      return explained(async () => {
        const checks = {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: codeVerifier,
          idTokenExpected: true,
        };
        const callback = new URL(`${redirectUri}?${query}`);
        const answer = await authorizationCodeGrant(configuration, callback, checks).catch(
          refuseUs,
        );
        const token = answer.claims();
        if (!isSubject(token?.sub)) throw new Error('its subject is no printable text');
        requireMeantForUs(token, settings, clock);
        const provedAt = timeOf(token, epochSeconds(clock));
        if (isFresh && (provedAt ?? 0) < begunAt - CLOCK_TOLERANCE_SECONDS) {
          throw new Error('it did not ask the person again: auth_time is missing or too old');
        }
        let claims: Promise<UpstreamClaims> | undefined;
        return {
          issuer: settings.issuer,
          subject: token.sub,
          sid: textOf(token.sid),
          provedAt,
          acr: shortTextOf(token.acr),
          amr: methodsIn(token.amr),
          claims() {
            claims ??= explained(() =>
              claimsOf(configuration, settings, token, answer.access_token),
            );
            return claims;
          },
        };
      });
    },

    async checkRedirectUri() {
      const { authorization_endpoint: endpoint = '' } = await metadata();
      const query = new URLSearchParams({
        client_id: settings.clientId,
        redirect_uri: redirectUri,
        response_type: 'code',
        scope: settings.scopes.join(' '),
        prompt: 'none',
        state: randomNonce(),
        nonce: randomNonce(),
        code_challenge: await calculatePKCECodeChallenge(randomPKCECodeVerifier()),
        code_challenge_method: 'S256',
      });
      const url = new URL(endpoint);
      for (const [name, value] of query) url.searchParams.set(name, value);
      const { status, headers } = await fetchFromProvider(url.href, {
        method: 'GET',
        headers: {},
      }).catch((error: unknown) => {
        throw new UpstreamAway(error);
      });
      const location = URL.parse(headers.get('location') ?? '', url.href);
      if (location && location.origin + location.pathname === redirectUri) return 'registered';
      if (status === 400) return 'refused';
      return 'unknown';
    },

    async checkClient() {
      const configuration = configurationFor(settings, await metadata(), fetchFromProvider);
      const wrong = { redirect_uri: redirectUri, code: 'none', code_verifier: 'none'.repeat(11) };
      try {
        await explained(() =>
          genericGrantRequest(configuration, 'authorization_code', wrong).catch(refuseUs),
        );
      } catch (error) {
        if (error instanceof UpstreamAway) throw error;
        if ((error as UpstreamRefusal).reason === 'misconfigured') throw error;
      }
    },

    checkLogout: createLogoutCheck({ provider: settings, metadata, clock }),
  };
}

/** `prompt_values_supported`: Initiating User Registration via OpenID Connect 1.0, §3. */
const promptForAnother = ({ prompt_values_supported: known }: ServerMetadata): string =>
  Array.isArray(known) && known.includes('select_account') ? 'select_account' : 'login';

function configurationFor(
  settings: SignInProvider,
  metadata: ServerMetadata,
  fetchFromProvider: ProviderFetch,
): Configuration {
  const { issuer, clientId, clientSecret } = settings;
  const configuration = new Configuration(
    metadata,
    clientId,
    { [clockTolerance]: CLOCK_TOLERANCE_SECONDS },
    authenticationFor(clientSecret, metadata),
  );
  configuration[customFetch] = fetchFromProvider;
  configuration.timeout = TIME_LIMIT_SECONDS;
  if (issuer.startsWith('http:')) allowInsecureRequests(configuration);
  // TLS authenticates the token endpoint; the signature proves the token, whatever is in between.
  enableNonRepudiationChecks(configuration);
  return configuration;
}

/** RFC 8414 §2: the default is Basic. */
function authenticationFor(
  secret: string | undefined,
  { token_endpoint_auth_methods_supported: methods = ['client_secret_basic'] }: ServerMetadata,
) {
  if (secret === undefined) return None();
  return methods.includes('client_secret_basic')
    ? ClientSecretBasic(secret)
    : ClientSecretPost(secret);
}

/** `acr` and `amr` are stored with each session, so their length is limited. */
const shortTextOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value.length <= 255 ? textOf(value) : undefined;

const methodsIn = (amr: unknown): string[] =>
  Array.isArray(amr) ? amr.slice(0, 20).flatMap((method) => shortTextOf(method) ?? []) : [];

/** Makes the checks that the client library leaves to us. */
function requireMeantForUs(token: IDToken, { clientId }: SignInProvider, clock: Clock): void {
  // OpenID Connect Core §3.1.3.7, step 5: also if we are the only audience.
  if (token.azp !== undefined && token.azp !== clientId) {
    throw new Error('its azp is another client');
  }
  requireShortLife(token, clock, MAX_ID_TOKEN_LIFETIME_SECONDS);
}

/** Never in the future: the session would look as if it had just begun, for a long time. */
const timeOf = ({ auth_time: at }: IDToken, now: number): number | undefined =>
  typeof at === 'number' && Number.isFinite(at) ? Math.min(at, now) : undefined;

async function explained<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof UpstreamRefusal) throw error;
    if (error instanceof AuthorizationResponseError) {
      if (AWAY.includes(error.error)) throw new UpstreamAway(error);
      if (OURS.includes(error.error)) throw new UpstreamRefusal('misconfigured', error);
      throw new UpstreamRefusal(error.error === 'access_denied' ? 'cancelled' : 'refused', error);
    }
    throw isAway(error) ? new UpstreamAway(error) : new UpstreamRefusal('invalid', error);
  }
}

/** For errors of the token endpoint. A challenge (RFC 6749 §5.2) replaces `invalid_client`. */
function refuseUs(error: unknown): never {
  const isOurs =
    error instanceof WWWAuthenticateChallengeError ||
    (error instanceof ResponseBodyError && OURS.includes(error.error));
  throw isOurs ? new UpstreamRefusal('misconfigured', error) : error;
}

/** Our client ID, our secret or our registration at the provider is wrong. */
const OURS: readonly string[] = ['invalid_client', 'unauthorized_client'];

/** RFC 6749 §4.1.2.1. */
const AWAY: readonly string[] = ['server_error', 'temporarily_unavailable'];

function isAway(error: unknown): boolean {
  // The provider does not answer, or a proxy in front of it does.
  if (error instanceof ResponseBodyError) return error.status >= 500;
  if (error instanceof ClientError) {
    if (error.code === 'OAUTH_TIMEOUT' || error.code === 'OAUTH_ABORT') return true;
    const { cause } = error;
    return cause instanceof Response ? cause.status >= 500 : cause instanceof TypeError;
  }
  return error instanceof TypeError;
}
