/** Checks tokens by which providers say that a user signed out (OpenID Back-Channel Logout 1.0). */
import { createRemoteJWKSet, customFetch, errors, type JWTPayload, jwtVerify } from 'jose';
import type { ServerMetadata } from 'openid-client';
import type { Clock } from '../base/clock.ts';
import type { SignInProvider } from '../config/sign-in-providers.ts';
import { UpstreamAway, UpstreamRefusal } from './failures.ts';
import { createProviderFetch, TIME_LIMIT_SECONDS } from './fetching.ts';
import { CLOCK_TOLERANCE_SECONDS, requireShortLife } from './token-times.ts';

/** The user who signed out at the provider: of the session `sid`, or of all if it is absent. */
export interface UpstreamLogout {
  readonly subject: string | undefined;
  readonly sid: string | undefined;
  /** The `jti`: each token is accepted only once. */
  readonly tokenId: string;
}

/** Older tokens, and tokens from the future, are refused: their ids are stored only this long. */
export const OLDEST_SECONDS = 600;
/**
 * Maximum time until `exp`. Back-Channel Logout §2.4 recommends two minutes; providers with one
 * lifetime for all tokens use hours. More than a day means a wrong clock or a wrong unit.
 */
const MAX_LIFETIME_SECONDS = 86_400;
/** How long keys are cached: then a key that the provider withdrew is no longer trusted. */
const MAX_KEY_AGE_SECONDS = 300;

const EVENT = 'http://schemas.openid.net/event/backchannel-logout';
/** The `typ` values: Back-Channel Logout §2.4 recommends the first; older providers send others. */
const TYPES: readonly (string | undefined)[] = ['logout+jwt', 'jwt', undefined];
const PRINTABLE = /^[\x20-\x7e]{1,255}$/;

/** @returns a function that throws UpstreamRefusal, or UpstreamAway if the keys are unavailable */
export function createLogoutCheck({
  provider: { issuer, clientId },
  metadata,
  clock,
}: {
  readonly provider: Pick<SignInProvider, 'issuer' | 'clientId'>;
  readonly metadata: () => Promise<ServerMetadata>;
  readonly clock: Clock;
}): (token: string) => Promise<UpstreamLogout> {
  const fetchKeys = createProviderFetch(issuer);
  let keys: { readonly url: string; readonly of: ReturnType<typeof createRemoteJWKSet> } | undefined;

  return async (token) => {
    const { jwks_uri: url = '', id_token_signing_alg_values_supported: algorithms = [] } = await metadata();
    if (keys?.url !== url) {
      // An unknown key id reloads the keys, but at most every 30 seconds, whatever callers send.
      const options = {
        timeoutDuration: TIME_LIMIT_SECONDS * 1000,
        cooldownDuration: 30_000,
        cacheMaxAge: MAX_KEY_AGE_SECONDS * 1000,
        [customFetch]: fetchKeys,
      };
      keys = { url, of: createRemoteJWKSet(new URL(url), options) };
    }
    try {
      const { payload, protectedHeader } = await jwtVerify(token, keys.of, {
        issuer,
        audience: clientId,
        algorithms,
        clockTolerance: CLOCK_TOLERANCE_SECONDS,
        maxTokenAge: OLDEST_SECONDS,
        requiredClaims: ['iat', 'exp', 'jti', 'events'],
        currentDate: new Date(clock()),
      });
      requireShortLife(payload, clock, MAX_LIFETIME_SECONDS);
      const type = protectedHeader.typ?.toLowerCase().replace(/^application\//, '');
      if (!TYPES.includes(type)) throw new Error('the typ of the token is not that of a logout token');
      return logoutFrom(payload);
    } catch (error) {
      const isAway = error instanceof errors.JWKSTimeout || !(error instanceof Error) || isFetch(error);
      throw isAway ? new UpstreamAway(error) : new UpstreamRefusal('invalid', error);
    }
  };
}

/** Checks the claims (Back-Channel Logout §2.6), except for issuer, audience and times. */
function logoutFrom({ sub, sid, jti = '', events, nonce }: JWTPayload): UpstreamLogout {
  const event = (events as Readonly<Record<string, unknown>> | null)?.[EVENT];
  if (typeof event !== 'object' || event === null) throw new Error('the logout token has no sign-out event');
  // Do not accept an ID token as a logout token.
  if (nonce !== undefined) throw new Error('the logout token has a nonce');
  const subject = optional('sub', sub);
  const session = optional('sid', sid);
  if (subject === undefined && session === undefined) throw new Error('the logout token has neither sub nor sid');
  if (typeof jti !== 'string' || jti === '') throw new Error('the logout token has no jti');
  return { subject, sid: session, tokenId: jti };
}

function optional(name: string, value: unknown): string | undefined {
  if (value === undefined) return undefined;
  if (typeof value === 'string' && PRINTABLE.test(value)) return value;
  throw new Error(`the ${name} of the logout token is not a printable text`);
}

/** True if the keys could not be loaded, which does not make the token invalid. */
const isFetch = (error: Error): boolean =>
  error instanceof TypeError || (error instanceof errors.JOSEError && error.code === 'ERR_JOSE_GENERIC');
