/** Decides whether a session's sign-in was strong enough for `sign_in.require`. */

/** Signed claims of a provider about a sign-in (OpenID Connect Core §2). */
export interface UpstreamProof {
  readonly issuer: string;
  readonly acr: string | undefined;
  readonly amr: readonly string[];
}

export interface UpstreamStrength {
  readonly issuer: string;
  /** True if all sign-ins at the provider are strong; used only if both lists below are empty. */
  readonly isStrong: boolean;
  /** Accepted values of `acr`; an empty list accepts any. */
  readonly strongAcr: readonly string[];
  /** The `amr` must contain one of these values; an empty list accepts any. */
  readonly strongAmr: readonly string[];
}

export interface SignedInBy {
  readonly method: 'password' | 'passkey' | 'link' | 'upstream';
  /** The provider's signed claims; undefined for other methods. */
  readonly proof?: UpstreamProof | undefined;
  /** True if the session began at a provider, and its user has used a passkey here since. */
  readonly hasUsedPasskey?: boolean;
}

/** False for a password alone, and for a weak sign-in at a provider with no passkey used since. */
export const isStrongSession = (
  { method, proof, hasUsedPasskey = false }: SignedInBy,
  providers: readonly UpstreamStrength[],
): boolean => (method === 'upstream' ? hasUsedPasskey || isStrongSignIn(proof, providers) : method !== 'password');

const asksForProof = ({ strongAcr, strongAmr }: UpstreamStrength): boolean =>
  strongAcr.length > 0 || strongAmr.length > 0;

/** True if any sign-in at this provider can satisfy `sign_in.require`. */
export const canBeStrong = (provider: UpstreamStrength): boolean => provider.isStrong || asksForProof(provider);

/** Decides by the present settings, also for sessions that began under earlier ones. */
export function isStrongSignIn(proof: UpstreamProof | undefined, providers: readonly UpstreamStrength[]): boolean {
  if (!proof) return false;
  const provider = providers.find(({ issuer }) => issuer === proof.issuer);
  if (!provider) return false;
  const { strongAcr, strongAmr, isStrong } = provider;
  if (!asksForProof(provider)) return isStrong;
  const hasAcr = strongAcr.length === 0 || strongAcr.includes(proof.acr ?? '');
  return hasAcr && (strongAmr.length === 0 || proof.amr.some((value) => strongAmr.includes(value)));
}
