/** The token with which a provider says that somebody signed out (OpenID Connect Back-Channel Logout 1.0). */
import { createRemoteJWKSet, customFetch, errors, type JWTPayload, jwtVerify } from 'jose';
import type { ServerMetadata } from 'openid-client';
import type { Clock } from '../base/clock.ts';
import type { SignInProvider } from '../config/sign-in-providers.ts';
import { UpstreamAway, UpstreamRefusal } from './failures.ts';
import { createProviderFetch, TIME_LIMIT_SECONDS } from './fetching.ts';
import { CLOCK_TOLERANCE_SECONDS, requireShortLife } from './token-times.ts';

/** Who signed out there: one session of theirs, or all of them where there is no `sid`. */
export interface UpstreamLogout {
  readonly subject: string | undefined;
  readonly sid: string | undefined;
  /** Names this token; it may count once. */
  readonly tokenId: string;
}

/** A token that is older, or not yet made, is not looked at. Bounds how long its id is remembered. */
export const OLDEST_SECONDS = 600;
/**
 * Longest accepted `exp` from now. §2.4 recommends two minutes; providers that give all their tokens
 * one lifetime use hours. What is beyond a day is a wrong clock or a wrong unit.
 */
const MAX_LIFETIME_SECONDS = 86_400;
/** A key that the provider withdrew is no longer believed after this time. */
const MAX_KEY_AGE_SECONDS = 300;

const EVENT = 'http://schemas.openid.net/event/backchannel-logout';
/** §2.4 recommends the first; older providers name it like any other token, or not at all. */
const TYPES: readonly (string | undefined)[] = ['logout+jwt', 'jwt', undefined];
const PRINTABLE = /^[\x20-\x7e]{1,255}$/;

/** @returns checks a token. It throws UpstreamRefusal, or UpstreamAway where there are no keys. */
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
      // Asks again for a key that it does not know, at most every half minute whoever sends what.
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

/** §2.6, what is left of it once signature, issuer, audience and times are right. */
function logoutFrom({ sub, sid, jti = '', events, nonce }: JWTPayload): UpstreamLogout {
  const event = (events as Readonly<Record<string, unknown>> | null)?.[EVENT];
  if (typeof event !== 'object' || event === null) throw new Error('it is about no sign-out');
  // An ID token is none.
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

/** The keys could not be had: that says nothing of the token. */
const isFetch = (error: Error): boolean =>
  error instanceof TypeError ||
  (error instanceof errors.JOSEError && error.code === 'ERR_JOSE_GENERIC');
