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
  type IDToken,
  None,
  ResponseBodyError,
  randomNonce,
  randomPKCECodeVerifier,
  type ServerMetadata,
} from 'openid-client';
import { type Clock, epochSeconds } from '../clock.ts';
import type { SignInProvider } from '../config/settings.ts';
import { claimsOf, textOf, type UpstreamClaims } from './claims.ts';
import { createDiscovery } from './discovery.ts';
import { UpstreamAway, UpstreamRefusal } from './failures.ts';
import { fetchBounded, TIME_LIMIT_SECONDS } from './fetching.ts';
import { CLOCK_TOLERANCE_SECONDS, createLogoutCheck, type UpstreamLogout } from './logout-token.ts';

/** What the answer will be held against. Kept here, and never shown to the browser. */
export interface UpstreamFlow {
  readonly nonce: string;
  readonly codeVerifier: string;
  /** Seconds since the epoch. */
  readonly begunAt: number;
  /** The person must have proved there since then who they are. */
  readonly isFresh: boolean;
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
  /** @throws UpstreamAway, UpstreamRefusal */
  checkLogout(token: string): Promise<UpstreamLogout>;
}

const WHEN_PROVED = JSON.stringify({ id_token: { auth_time: null } });

/** OpenID Connect Core §2: at most 255 ASCII characters. */
const SUBJECT = /^[\x20-\x7e]{1,255}$/;

/** Where it sends people back to, to be registered there. */
export const callbackUrl = (issuer: string, { id }: Pick<SignInProvider, 'id'>): string =>
  `${issuer}/login/${id}/callback`;

export const newFlow = (
  clock: Clock,
  { isFresh }: { readonly isFresh: boolean },
): UpstreamFlow => ({
  nonce: randomNonce(),
  codeVerifier: randomPKCECodeVerifier(),
  begunAt: epochSeconds(clock),
  isFresh,
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
  const redirectUri = callbackUrl(issuer, settings);

  return {
    settings,

    async begin({ state, flow, loginHint }) {
      const known = await metadata();
      const configuration = configurationFor(settings, known);
      return buildAuthorizationUrl(configuration, {
        redirect_uri: redirectUri,
        scope: settings.scopes.join(' '),
        state,
        nonce: flow.nonce,
        code_challenge: await calculatePKCECodeChallenge(flow.codeVerifier),
        code_challenge_method: 'S256',
        // `max_age` makes it say when that was (OpenID Connect Core §3.1.2.1).
        ...(flow.isFresh && { prompt: 'login', max_age: '0' }),
        // Else it may say so where it is asked to (§5.5.1.1), and the person is not asked again.
        ...(!flow.isFresh && known.claims_parameter_supported && { claims: WHEN_PROVED }),
        ...(loginHint !== undefined && { login_hint: loginHint }),
      });
    },

    async finish(query, { state, nonce, codeVerifier, begunAt, isFresh }) {
      // Its keys are asked for with each sign-in: new ones count at once, and withdrawn ones no more.
      const configuration = configurationFor(settings, await metadata());
      return explained(async () => {
        const answer = await authorizationCodeGrant(
          configuration,
          new URL(`${redirectUri}?${query}`),
          {
            expectedState: state,
            expectedNonce: nonce,
            pkceCodeVerifier: codeVerifier,
            idTokenExpected: true,
          },
        );
        const token = answer.claims();
        if (!token || !SUBJECT.test(token.sub)) throw new Error('its subject is no printable text');
        const provedAt = timeOf(token, epochSeconds(clock));
        if (isFresh && (provedAt ?? 0) < begunAt - CLOCK_TOLERANCE_SECONDS) {
          throw new Error('it did not ask the person again: auth_time is missing or too old');
        }
        return {
          issuer: settings.issuer,
          subject: token.sub,
          sid: textOf(token.sid),
          provedAt,
          claims: () =>
            explained(() => claimsOf(configuration, settings, token, answer.access_token)),
        };
      });
    },

    checkLogout: createLogoutCheck({ provider: settings, metadata, clock }),
  };
}

function configurationFor(settings: SignInProvider, metadata: ServerMetadata): Configuration {
  const { issuer, clientId, clientSecret } = settings;
  const configuration = new Configuration(
    metadata,
    clientId,
    { [clockTolerance]: CLOCK_TOLERANCE_SECONDS },
    authenticationFor(clientSecret, metadata),
  );
  configuration[customFetch] = fetchBounded;
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

/** Not of the future, or a session would seem to be of just now for long. */
const timeOf = ({ auth_time: at }: IDToken, now: number): number | undefined =>
  typeof at === 'number' && Number.isFinite(at) ? Math.min(at, now) : undefined;

async function explained<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof AuthorizationResponseError) {
      if (AWAY.includes(error.error)) throw new UpstreamAway(error);
      throw new UpstreamRefusal(error.error === 'access_denied' ? 'cancelled' : 'refused', error);
    }
    throw isAway(error) ? new UpstreamAway(error) : new UpstreamRefusal('invalid', error);
  }
}

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
