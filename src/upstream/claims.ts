/** What a provider says of a person, as far as it is needed to know whose account it is. */
import { type Configuration, fetchUserInfo, type IDToken } from 'openid-client';
import type { SignInProvider } from '../config/settings.ts';

export interface UpstreamClaims {
  /** What the operator named as the external id; undefined where there is no such text or number. */
  readonly externalId: string | undefined;
  /** Undefined unless the provider says that it is verified. */
  readonly verifiedEmail: string | undefined;
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
  const externalId = token[accountClaim] ?? more[accountClaim];
  return {
    externalId: typeof externalId === 'number' ? String(externalId) : textOf(externalId),
    // Nothing but `true`: some say "false" as a text.
    verifiedEmail: mail.email_verified === true ? textOf(mail.email) : undefined,
    name: textOf(token.name) ?? textOf(more.name),
  };
}

export const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;
