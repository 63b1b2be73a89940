/** Signing in with an account elsewhere: the OpenID Connect client of one provider. */
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

/** What the answer will be held against. Kept here, and never shown to the browser. */
export interface UpstreamFlow {
  readonly nonce: string;
  readonly codeVerifier: string;
  /** Seconds since the epoch. */
  readonly begunAt: number;
  /** The person must have proved there since then who they are. */
  readonly isFresh: boolean;
  /** The provider asks who it is, instead of letting in who is signed in there. */
  readonly asksWho?: boolean;
}

/** Somebody whom the provider has let in. */
export interface UpstreamPerson {
  readonly issuer: string;
  /** With the issuer who it is, for good (OpenID Connect Core §5.7). */
  readonly subject: string;
  /** Of their session there, by which a sign-out may name it. */
  readonly sid: string | undefined;
  /** Seconds since the epoch at which they proved who they are; undefined where it does not say. */
  readonly provedAt: number | undefined;
  /** How they proved it, in the words of the provider (OpenID Connect Core §2). */
  readonly acr: string | undefined;
  readonly amr: readonly string[];
  /**
   * What else it says of them, asked only where it is needed.
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
   * Exchanges the code of an answer, and believes nothing of it that is not signed and meant for
   * this very sign-in.
   *
   * @param query of the callback.
   * @throws UpstreamAway, UpstreamRefusal
   */
  finish(
    query: URLSearchParams,
    expected: UpstreamFlow & { state: string },
  ): Promise<UpstreamPerson>;
  /**
   * Asks for tokens with a code that does not exist, which it may only refuse for the code.
   *
   * @throws UpstreamAway, or UpstreamRefusal if it does not accept our client ID or secret
   */
  checkClient(): Promise<void>;
  /**
   * Asks it to sign in nobody (`prompt=none`): a provider that knows our redirect URI answers there
   * (OpenID Connect Core §3.1.2.6), one that does not must not (RFC 6749 §4.1.2.1). Some do neither.
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

/** The longest lifetime that a well-known provider lets its customers choose for ID tokens: 30 days. */
const MAX_ID_TOKEN_LIFETIME_SECONDS = 30 * 86_400;

/** Where it sends people back to, to be registered there. */
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

/** Asks the provider nothing yet. */
export function createUpstreamProvider({
  issuer,
  settings,
  clock,
}: {
  /** Ours. */
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
        // `max_age` makes it say when that was (OpenID Connect Core §3.1.2.1).
        ...(flow.isFresh && { prompt: 'login', max_age: '0' }),
        ...(!flow.isFresh && flow.asksWho && { prompt: promptForAnother(known) }),
        // Else it may say so where it is asked to (§5.5.1.1), and the person is not asked again.
        ...(!flow.isFresh && known.claims_parameter_supported && { claims: WHEN_PROVED }),
        ...(loginHint !== undefined && { login_hint: loginHint }),
        ...(settings.acrValues.length > 0 && { acr_values: settings.acrValues.join(' ') }),
      });
    },

    async finish(query, { state, nonce, codeVerifier, begunAt, isFresh }) {
      // Its keys are asked for with each sign-in: new ones count at once, and withdrawn ones no more.
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
  // TLS proves the token endpoint; the signature proves the token, whatever stands in between.
  enableNonRepudiationChecks(configuration);
  return configuration;
}

/** RFC 8414 §2: without a word of it, Basic. */
function authenticationFor(
  secret: string | undefined,
  { token_endpoint_auth_methods_supported: methods = ['client_secret_basic'] }: ServerMetadata,
) {
  if (secret === undefined) return None();
  return methods.includes('client_secret_basic')
    ? ClientSecretBasic(secret)
    : ClientSecretPost(secret);
}

/** Kept with each session, so neither may be of any length. */
const shortTextOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value.length <= 255 ? textOf(value) : undefined;

const methodsIn = (amr: unknown): string[] =>
  Array.isArray(amr) ? amr.slice(0, 20).flatMap((method) => shortTextOf(method) ?? []) : [];

/** What the client library leaves to us. */
function requireMeantForUs(token: IDToken, { clientId }: SignInProvider, clock: Clock): void {
  // OpenID Connect Core §3.1.3.7, 5: also where we are the only audience.
  if (token.azp !== undefined && token.azp !== clientId) {
    throw new Error('its azp is another client');
  }
  requireShortLife(token, clock, MAX_ID_TOKEN_LIFETIME_SECONDS);
}

/** Not of the future, or a session would seem to be of just now for long. */
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

/** At the token endpoint. A challenge (RFC 6749 §5.2) stands in place of `invalid_client`. */
function refuseUs(error: unknown): never {
  const isOurs =
    error instanceof WWWAuthenticateChallengeError ||
    (error instanceof ResponseBodyError && OURS.includes(error.error));
  throw isOurs ? new UpstreamRefusal('misconfigured', error) : error;
}

/** The client ID, the secret or the registration at the provider is not right. */
const OURS: readonly string[] = ['invalid_client', 'unauthorized_client'];

/** RFC 6749 §4.1.2.1. */
const AWAY: readonly string[] = ['server_error', 'temporarily_unavailable'];

function isAway(error: unknown): boolean {
  // The address does not answer, or something in front of it does.
  if (error instanceof ResponseBodyError) return error.status >= 500;
  if (error instanceof ClientError) {
    if (error.code === 'OAUTH_TIMEOUT' || error.code === 'OAUTH_ABORT') return true;
    const { cause } = error;
    return cause instanceof Response ? cause.status >= 500 : cause instanceof TypeError;
  }
  return error instanceof TypeError;
}
