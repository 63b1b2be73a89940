/** Decides whether a session's sign-in was strong enough for `sign_in.require`. */

/** Signed claims of a provider about a sign-in (OpenID Connect Core §2). */
export interface UpstreamProof {
  readonly issuer: string;
  readonly acr: string | undefined;
  readonly amr: readonly string[];
}

export interface UpstreamStrength {
  readonly issuer: string;
  /** True if all sign-ins at the provider are strong. Ignored unless both lists below are empty. */
  readonly isStrong: boolean;
  /** Accepted values of `acr`; an empty list accepts any. */
  readonly strongAcr: readonly string[];
  /** The `amr` must contain one of these values; an empty list accepts any. */
  readonly strongAmr: readonly string[];
}

/** How and when the user of a session has authenticated. `at` is in epoch seconds; 0 if the provider gave no time. */
export type Proof =
  | { readonly by: 'password' | 'passkey' | 'link'; readonly at: number }
  | ({ readonly by: 'provider'; readonly at: number } & UpstreamProof);

/** True if at least one proof is stronger than a password under the current settings. */
export const isStrong = (proofs: readonly Proof[], providers: readonly UpstreamStrength[]): boolean =>
  proofs.some((proof) => (proof.by === 'provider' ? isStrongSignIn(proof, providers) : proof.by !== 'password'));

/** Maximum number of stored proofs per session. If there are more, the oldest proof by a provider is dropped. */
const MAX_PROOFS = 8;

/** Replaces only an earlier proof of the same kind, so a weaker proof never removes a stronger one. */
export function withProof(proofs: readonly Proof[], added: Proof): readonly Proof[] {
  const all = [...proofs.filter((one) => kindOf(one) !== kindOf(added)), added];
  if (all.length <= MAX_PROOFS) return all;
  const oldest = all.findIndex(({ by }) => by === 'provider');
  return all.filter((_, index) => index !== oldest);
}

const kindOf = (proof: Proof): string => JSON.stringify({ ...proof, at: 0 });

const METHODS: readonly unknown[] = ['password', 'passkey', 'link'];

/** Returns undefined if the session has no proof or an unreadable one. Such a session is treated as signed out. */
export function proofsFrom(texts: readonly string[] = []): readonly Proof[] | undefined {
  try {
    const proofs = texts.map((text) => proofFrom(JSON.parse(text)));
    return proofs.length > 0 && proofs.every((proof) => proof !== undefined) ? proofs : undefined;
  } catch {
    return undefined;
  }
}

function proofFrom(value: unknown): Proof | undefined {
  const { by, at, issuer, acr, amr } = { ...(value as Record<string, unknown>) };
  if (typeof at !== 'number' || !Number.isSafeInteger(at)) return undefined;
  if (METHODS.includes(by)) return { by: by as 'password' | 'passkey' | 'link', at };
  const isText = (one: unknown) => typeof one === 'string';
  if (by !== 'provider' || typeof issuer !== 'string' || !Array.isArray(amr) || !amr.every(isText)) return undefined;
  return { by, at, issuer, acr: typeof acr === 'string' ? acr : undefined, amr };
}

const asksForProof = ({ strongAcr, strongAmr }: UpstreamStrength): boolean =>
  strongAcr.length > 0 || strongAmr.length > 0;

/** True if any sign-in at this provider can satisfy `sign_in.require`. */
export const canBeStrong = (provider: UpstreamStrength): boolean => provider.isStrong || asksForProof(provider);

/** Applies the current settings, even to sessions that began under earlier settings. */
export function isStrongSignIn(proof: UpstreamProof, providers: readonly UpstreamStrength[]): boolean {
  const provider = providers.find(({ issuer }) => issuer === proof.issuer);
  if (!provider) return false;
  const { strongAcr, strongAmr, isStrong } = provider;
  if (!asksForProof(provider)) return isStrong;
  const hasAcr = strongAcr.length === 0 || strongAcr.includes(proof.acr ?? '');
  return hasAcr && (strongAmr.length === 0 || proof.amr.some((value) => strongAmr.includes(value)));
}
