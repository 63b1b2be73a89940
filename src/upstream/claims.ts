/** What a provider says of a person, as far as it is needed to know whose account it is. */
import { type Configuration, fetchUserInfo, type IDToken } from 'openid-client';
import type { SignInProvider } from '../config/sign-in-providers.ts';

export interface UpstreamClaims {
  /** What the operator named as the external id; undefined if there is no such claim. */
  readonly externalId: string | undefined;
  /** Undefined unless the provider says that it is verified. */
  readonly verifiedEmail: string | undefined;
  /** It names an address, and does not say that it is verified. */
  readonly hasUnverifiedEmail: boolean;
  readonly name: string | undefined;
}

type Claims = Readonly<Record<string, unknown>>;

/** Of the ID token, or what it leaves out of the userinfo endpoint (OpenID Connect Core §5.4). */
export async function claimsOf(
  configuration: Configuration,
  { match, accountClaim, create }: SignInProvider,
  token: IDToken,
  accessToken: string,
): Promise<UpstreamClaims> {
  const wantsEmail = create || match === 'verified_email';
  const isWhole =
    (match !== 'external_id' || token[accountClaim] !== undefined) &&
    (!wantsEmail || token.email !== undefined) &&
    (!create || token.name !== undefined);
  const hasMore = configuration.serverMetadata().userinfo_endpoint !== undefined;
  // It must be about the same person (§5.3.2), which the client library sees to.
  const more: Claims =
    isWhole || !hasMore ? {} : await fetchUserInfo(configuration, accessToken, token.sub);
  // An address and whether it is verified belong together.
  const mail: Claims = token.email === undefined ? more : token;
  const email = textOf(mail.email);
  // Nothing but `true`: some say "false" as a text.
  const isVerified = mail.email_verified === true;
  return {
    externalId:
      match === 'external_id'
        ? externalIdOf(accountClaim, token[accountClaim] ?? more[accountClaim])
        : undefined,
    verifiedEmail: isVerified ? email : undefined,
    hasUnverifiedEmail: email !== undefined && !isVerified,
    name: textOf(token.name) ?? textOf(more.name),
  };
}

/**
 * JSON.parse rounds numbers beyond 2^53, and a rounded one is another account's id.
 *
 * @throws Error if the claim is neither a text nor a number that was read exactly.
 */
function externalIdOf(name: string, value: unknown): string | undefined {
  if (Number.isSafeInteger(value) && !Object.is(value, -0)) return String(value);
  if (value === undefined || value === null || typeof value === 'string') return textOf(value);
  throw new Error(
    `its claim ${name} is neither a text nor a whole number up to ${Number.MAX_SAFE_INTEGER}, ` +
      'so it names no account for certain: have the provider send it as a text',
  );
}

export const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;
