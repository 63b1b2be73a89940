/** Checks tokens by which providers say that a user signed out (OpenID Back-Channel Logout 1.0). */
import { createRemoteJWKSet, customFetch, errors, type JWTPayload, jwtVerify } from 'jose';
import type { ServerMetadata } from 'openid-client';
import type { Clock } from '../base/clock.ts';
import type { SignInProvider } from '../config/sign-in-providers.ts';
import { UpstreamAway, UpstreamRefusal } from './failures.ts';
import { createProviderFetch, TIME_LIMIT_SECONDS } from './fetching.ts';
import { CLOCK_TOLERANCE_SECONDS, requireShortLife } from './token-times.ts';

/** Who signed out there: from one session, or from all of them if there is no `sid`. */
export interface UpstreamLogout {
  readonly subject: string | undefined;
  readonly sid: string | undefined;
  /** The `jti`: each token is accepted once. */
  readonly tokenId: string;
}

/** Older tokens, and tokens of the future, are refused. Limits how long a token's id is stored. */
export const OLDEST_SECONDS = 600;
/**
 * Maximum time until `exp`. Back-Channel Logout §2.4 recommends two minutes; providers with one
 * lifetime for all tokens use hours. More than a day means a wrong clock or a wrong unit.
 */
const MAX_LIFETIME_SECONDS = 86_400;
/** After this time, a key that the provider withdrew is no longer trusted. */
const MAX_KEY_AGE_SECONDS = 300;

const EVENT = 'http://schemas.openid.net/event/backchannel-logout';
/** Back-Channel Logout §2.4 recommends the first; older providers send the general type or none. */
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
  let keys:
    | { readonly url: string; readonly of: ReturnType<typeof createRemoteJWKSet> }
    | undefined;

  return async (token) => {
    const { jwks_uri: url = '', id_token_signing_alg_values_supported: algorithms = [] } =
      await metadata();
    if (keys?.url !== url) {
      // An unknown key id loads the keys again, at most every 30 seconds whatever callers send.
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
      if (!TYPES.includes(type)) throw new Error('it is a token of another kind');
      return logoutFrom(payload);
    } catch (error) {
      const isAway =
        error instanceof errors.JWKSTimeout || !(error instanceof Error) || isFetch(error);
      throw isAway ? new UpstreamAway(error) : new UpstreamRefusal('invalid', error);
    }
  };
}

/** The rest of Back-Channel Logout §2.6, after signature, issuer, audience and times. */
function logoutFrom({ sub, sid, jti = '', events, nonce }: JWTPayload): UpstreamLogout {
  const event = (events as Readonly<Record<string, unknown>> | null)?.[EVENT];
  if (typeof event !== 'object' || event === null) throw new Error('it is about no sign-out');
  // An ID token is no logout token.
  if (nonce !== undefined) throw new Error('it has a nonce');
  const subject = optional('sub', sub);
  const session = optional('sid', sid);
  if (subject === undefined && session === undefined) throw new Error('it names nobody');
  if (typeof jti !== 'string' || jti === '') throw new Error('it has no id');
  return { subject, sid: session, tokenId: jti };
}

function optional(name: string, value: unknown): string | undefined {
  if (value === undefined) return undefined;
  if (typeof value === 'string' && PRINTABLE.test(value)) return value;
  throw new Error(`its ${name} is not a printable text`);
}

/** True if the keys could not be loaded, which says nothing about the token. */
const isFetch = (error: Error): boolean =>
  error instanceof TypeError ||
  (error instanceof errors.JOSEError && error.code === 'ERR_JOSE_GENERIC');
