/** Decides if a session began with a sign-in that is as strong as `sign_in.require` demands. */

/** What a provider signs about a sign-in (OpenID Connect Core §2). */
export interface UpstreamProof {
  readonly issuer: string;
  readonly acr: string | undefined;
  readonly amr: readonly string[];
}

export interface UpstreamStrength {
  readonly issuer: string;
  /** Applies if both lists are empty. */
  readonly isStrong: boolean;
  /** The `acr` must be one of them; an empty list accepts any. */
  readonly strongAcr: readonly string[];
  /** The `amr` must have one of them; an empty list accepts any. */
  readonly strongAmr: readonly string[];
}

export interface SignedInBy {
  readonly method: 'password' | 'passkey' | 'link' | 'upstream';
  /** What the provider signed; undefined for other methods and for sessions of an older version. */
  readonly proof?: UpstreamProof | undefined;
  /** The session began at a provider, and its user has used a passkey here since. */
  readonly hasUsedPasskey?: boolean;
}

/** False for a password alone, and for a sign-in at a provider that was not strong. */
export const isStrongSession = (
  { method, proof, hasUsedPasskey = false }: SignedInBy,
  providers: readonly UpstreamStrength[],
): boolean =>
  method === 'upstream'
    ? hasUsedPasskey || isStrongSignIn(proof, providers)
    : method !== 'password';

const asksForProof = ({ strongAcr, strongAmr }: UpstreamStrength): boolean =>
  strongAcr.length > 0 || strongAmr.length > 0;

/** True if any sign-in at this provider can satisfy `sign_in.require`. */
export const canBeStrong = (provider: UpstreamStrength): boolean =>
  provider.isStrong || asksForProof(provider);

/**
 * Applies the present settings, so a change is in force for sessions that began before it.
 *
 * @param proof undefined for a session of an older version, whose provider is unknown.
 */
export function isStrongSignIn(
  proof: UpstreamProof | undefined,
  providers: readonly UpstreamStrength[],
): boolean {
  if (!proof) {
    return providers.every((provider) => provider.isStrong && !asksForProof(provider));
  }
  const provider = providers.find(({ issuer }) => issuer === proof.issuer);
  if (!provider) return false;
  const { strongAcr, strongAmr, isStrong } = provider;
  if (!asksForProof(provider)) return isStrong;
  const hasAcr = strongAcr.length === 0 || strongAcr.includes(proof.acr ?? '');
  return hasAcr && (strongAmr.length === 0 || proof.amr.some((way) => strongAmr.includes(way)));
}
