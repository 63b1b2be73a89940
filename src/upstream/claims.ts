/** Reads those claims of a provider about a user that are needed to find the user's account. */
import { type Configuration, fetchUserInfo, type IDToken } from 'openid-client';
import type { SignInProvider } from '../config/sign-in-providers.ts';

export interface UpstreamClaims {
  /** The claim that the operator chose as external id; undefined if it is missing. */
  readonly externalId: string | undefined;
  /** Undefined unless the provider says that the address is verified. */
  readonly verifiedEmail: string | undefined;
  /** True if the provider sent an email address without saying that it is verified. */
  readonly hasUnverifiedEmail: boolean;
}

type Claims = Readonly<Record<string, unknown>>;

/** Reads claims from the ID token and, if some are missing, from the userinfo endpoint (OpenID Connect Core §5.4). */
export async function claimsOf(
  configuration: Configuration,
  { match, accountClaim }: SignInProvider,
  token: IDToken,
  accessToken: string,
): Promise<UpstreamClaims> {
  const isWhole =
    (match !== 'external_id' || token[accountClaim] !== undefined) &&
    (match !== 'verified_email' || token.email !== undefined);
  const hasMore = configuration.serverMetadata().userinfo_endpoint !== undefined;
  // The client library compares the subjects of userinfo and ID token (OpenID Connect Core §5.3.2).
  const more: Claims = isWhole || !hasMore ? {} : await fetchUserInfo(configuration, accessToken, token.sub);
  // Use the address and its verification from the same source: both from the ID token, or both from userinfo.
  const mail: Claims = token.email === undefined ? more : token;
  const email = textOf(mail.email);
  // Accept only `true`: some providers send "false" as a string.
  const isVerified = mail.email_verified === true;
  return {
    externalId:
      match === 'external_id' ? externalIdOf(accountClaim, token[accountClaim] ?? more[accountClaim]) : undefined,
    verifiedEmail: isVerified ? email : undefined,
    hasUnverifiedEmail: email !== undefined && !isVerified,
  };
}

/**
 * Converts the claim to a text. Refuses large numbers, because JSON.parse rounds beyond 2^53, and the result may be the
 * id of another user.
 *
 * @throws Error if the claim is neither a string nor a number that was read exactly
 */
function externalIdOf(name: string, value: unknown): string | undefined {
  if (Number.isSafeInteger(value) && !Object.is(value, -0)) return String(value);
  if (value === undefined || value === null || typeof value === 'string') return textOf(value);
  throw new Error(
    `the claim ${name} is neither a text nor a whole number up to ${Number.MAX_SAFE_INTEGER}, so it does not ` +
      'identify an account reliably: make the provider send it as a text',
  );
}

export const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;
