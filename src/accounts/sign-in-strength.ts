/** Whether a session began with a sign-in that is as strong as `sign_in.require` asks for. */

/** What a provider signs about a sign-in (OpenID Connect Core §2). */
export interface UpstreamProof {
  readonly issuer: string;
  readonly acr: string | undefined;
  readonly amr: readonly string[];
}

/** What the operator says about a provider. */
export interface UpstreamStrength {
  readonly issuer: string;
  /** Decides if neither of the lists names anything. */
  readonly isStrong: boolean;
  /** One of them must be the `acr`; anything is if there are none. */
  readonly strongAcr: readonly string[];
  /** One of them must be in the `amr`; anything is if there are none. */
  readonly strongAmr: readonly string[];
}

/** How the person of a session signed in. */
export interface SignedInBy {
  readonly method: 'password' | 'passkey' | 'link' | 'upstream';
  /** What the provider signed; undefined for other methods and for a session of an older version. */
  readonly proof?: UpstreamProof | undefined;
  /** The session began at a provider, and its person has used a passkey here since. */
  readonly hasUsedPasskey?: boolean;
}

/** Anything but a password alone, and a sign-in at a provider if that was strong. */
export const isStrongSession = (
  { method, proof, hasUsedPasskey = false }: SignedInBy,
  providers: readonly UpstreamStrength[],
): boolean =>
  method === 'upstream'
    ? hasUsedPasskey || isStrongSignIn(proof, providers)
    : method !== 'password';

const asksForProof = ({ strongAcr, strongAmr }: UpstreamStrength): boolean =>
  strongAcr.length > 0 || strongAmr.length > 0;

/** Whether some sign-in there can satisfy the demand. */
export const canBeStrong = (provider: UpstreamStrength): boolean =>
  provider.isStrong || asksForProof(provider);

/**
 * By the settings of now, so that a change is in force for sessions that began before it.
 *
 * @param proof undefined for a session that began before proofs were kept: any provider may be its.
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
