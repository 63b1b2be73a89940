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

/** Values with which the provider's answer is checked. They are stored in this service, not in the browser. */
export interface UpstreamFlow {
  readonly nonce: string;
  readonly codeVerifier: string;
  /** Epoch seconds. */
  readonly begunAt: number;
  /** True if the user must authenticate at the provider after `begunAt`, even with a session at the provider. */
  readonly isFresh: boolean;
  /** True if the provider must let the user choose an account, even if it has a session of the user. */
  readonly asksWho?: boolean;
}

export interface UpstreamPerson {
  readonly issuer: string;
  /** Issuer and subject together identify the user permanently (OpenID Connect Core §5.7). */
  readonly subject: string;
  /** When the user authenticated, in epoch seconds; undefined if unknown. */
  readonly provedAt: number | undefined;
  /** How the user authenticated, as the provider names it (OpenID Connect Core §2). */
  readonly acr: string | undefined;
  readonly amr: readonly string[];
  /** Reads further claims, perhaps by a request to the provider. @throws UpstreamAway, UpstreamRefusal */
  claims(): Promise<UpstreamClaims>;
}

export type UpstreamProvider = ReturnType<typeof createUpstreamProvider>;

const WHEN_PROVED = JSON.stringify({ id_token: { auth_time: null } });

/** OpenID Connect Core §2: at most 255 ASCII characters. Numbers are refused, because they could have been rounded. */
const isSubject = (value: unknown): value is string => typeof value === 'string' && /^[\x20-\x7e]{1,255}$/.test(value);

/** How far the clock of a provider may differ from that of this service. */
const CLOCK_TOLERANCE_SECONDS = 60;

/** The longest lifetime of ID tokens that customers of a well-known provider can set: 30 days. */
const MAX_ID_TOKEN_LIFETIME_SECONDS = 30 * 86_400;

/** Returns our redirect URI, which the operator registers at the provider. */
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

/** Creating the client sends no request to the provider. */
export function createUpstreamProvider(parts: {
  readonly issuer: string;
  readonly settings: SignInProvider;
  readonly clock: Clock;
}) {
  const { issuer, settings, clock } = parts;
  const { metadata } = createDiscovery({ provider: settings, clock });
  const fetchFromProvider = createProviderFetch(settings.issuer);
  const redirectUri = callbackUrl(issuer, settings);

  return {
    settings,

    async begin(request: { state: string; flow: UpstreamFlow; loginHint?: string | undefined }): Promise<URL> {
      const { state, flow, loginHint } = request;
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
        // Without `max_age`, request `auth_time` as a claim, because that does not force a new login (Core §5.5.1.1).
        ...(!flow.isFresh && known.claims_parameter_supported && { claims: WHEN_PROVED }),
        ...(loginHint !== undefined && { login_hint: loginHint }),
        ...(settings.acrValues.length > 0 && { acr_values: settings.acrValues.join(' ') }),
      });
    },

    /** Accepts only a signed ID token that belongs to this sign-in. @throws UpstreamAway, UpstreamRefusal */
    async finish(
      query: URLSearchParams,
      { state, nonce, codeVerifier, begunAt, isFresh }: UpstreamFlow & { readonly state: string },
    ): Promise<UpstreamPerson> {
      // Load the keys for each sign-in, so that added and removed keys take effect immediately.
      const configuration = configurationFor(settings, await metadata(), fetchFromProvider);
      return explained(async () => {
        const checks = {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: codeVerifier,
          idTokenExpected: true,
        };
        const callback = new URL(`${redirectUri}?${query}`);
        const answer = await authorizationCodeGrant(configuration, callback, checks).catch(refuseUs);
        const token = answer.claims();
        if (!isSubject(token?.sub)) throw new Error('the sub of the token is not a printable text');
        requireMeantForUs(token, settings, clock);
        const provedAt = timeOf(token, epochSeconds(clock));
        if (isFresh && (provedAt ?? 0) < begunAt - CLOCK_TOLERANCE_SECONDS) {
          throw new Error('the provider did not ask the person to sign in again: auth_time is missing or too old');
        }
        let claims: Promise<UpstreamClaims> | undefined;
        return {
          issuer: settings.issuer,
          subject: token.sub,
          provedAt,
          acr: shortTextOf(token.acr),
          amr: methodsIn(token.amr),
          claims() {
            claims ??= explained(() => claimsOf(configuration, settings, token, answer.access_token));
            return claims;
          },
        };
      });
    },

    /** Checks our id and secret with an invalid code. @throws UpstreamAway, or UpstreamRefusal if they are refused */
    async checkClient(): Promise<void> {
      const configuration = configurationFor(settings, await metadata(), fetchFromProvider);
      const wrong = { redirect_uri: redirectUri, code: 'none', code_verifier: 'none'.repeat(11) };
      try {
        await explained(() => genericGrantRequest(configuration, 'authorization_code', wrong).catch(refuseUs));
      } catch (error) {
        if (error instanceof UpstreamAway) throw error;
        if ((error as UpstreamRefusal).reason === 'misconfigured') throw error;
      }
    },
  };
}

/** Uses `prompt_values_supported` (Initiating User Registration via OpenID Connect 1.0, §3). */
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
  // Also check the signature, because TLS authenticates only the server of this connection.
  enableNonRepudiationChecks(configuration);
  return configuration;
}

/** Chooses the client authentication method. Without metadata, it is Basic (RFC 8414 §2). */
function authenticationFor(
  secret: string | undefined,
  { token_endpoint_auth_methods_supported: methods = ['client_secret_basic'] }: ServerMetadata,
) {
  if (secret === undefined) return None();
  return methods.includes('client_secret_basic') ? ClientSecretBasic(secret) : ClientSecretPost(secret);
}

/** Limits the length of `acr` and `amr` values, because they are stored with each session. */
const shortTextOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value.length <= 255 ? textOf(value) : undefined;

const methodsIn = (amr: unknown): string[] =>
  Array.isArray(amr) ? amr.slice(0, 20).flatMap((method) => shortTextOf(method) ?? []) : [];

/** Checks an ID token for problems that the client library does not check. */
function requireMeantForUs(token: IDToken, { clientId }: SignInProvider, clock: Clock): void {
  // Check `azp` even if we are the only audience (OpenID Connect Core §3.1.3.7, step 5).
  if (token.azp !== undefined && token.azp !== clientId) {
    throw new Error('the azp of the token is another client');
  }
  const latest = epochSeconds(clock) + CLOCK_TOLERANCE_SECONDS;
  // Negate the comparisons, so that a claim that is missing or not a number is refused.
  if (!(Number(token.iat) <= latest)) throw new Error('the iat of the token is in the future');
  // Refuse a very late expiry: the provider's clock is wrong, or the token is not meant for a single sign-in.
  if (!(Number(token.exp) <= latest + MAX_ID_TOKEN_LIFETIME_SECONDS)) {
    throw new Error(`the exp of the token is more than ${MAX_ID_TOKEN_LIFETIME_SECONDS} seconds from now`);
  }
}

/** Returns whole seconds. Replaces a future time by `now`: otherwise, the sign-in would be recent for too long. */
const timeOf = ({ auth_time: at }: IDToken, now: number): number | undefined =>
  typeof at === 'number' && Number.isFinite(at) ? Math.floor(Math.min(at, now)) : undefined;

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

/** Treats a challenge (RFC 6749 §5.2) of the token endpoint as `invalid_client`. */
function refuseUs(error: unknown): never {
  const isOurs =
    error instanceof WWWAuthenticateChallengeError ||
    (error instanceof ResponseBodyError && OURS.includes(error.error));
  throw isOurs ? new UpstreamRefusal('misconfigured', error) : error;
}

/** Errors caused by a wrong client ID, secret or registration at the provider. */
const OURS: readonly string[] = ['invalid_client', 'unauthorized_client'];

/** Errors of an unavailable provider (RFC 6749 §4.1.2.1). */
const AWAY: readonly string[] = ['server_error', 'temporarily_unavailable'];

function isAway(error: unknown): boolean {
  // The provider failed, or a proxy in front of it.
  if (error instanceof ResponseBodyError) return error.status >= 500;
  if (error instanceof ClientError) {
    if (error.code === 'OAUTH_TIMEOUT' || error.code === 'OAUTH_ABORT') return true;
    const { cause } = error;
    return cause instanceof Response ? cause.status >= 500 : cause instanceof TypeError;
  }
  return error instanceof TypeError;
}
