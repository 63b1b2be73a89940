/** How a sign-in with a provider can fail. The messages are for the log, never for the page. */

/** The provider did not answer in time, or not as OpenID Connect says: the user remains unknown. */
export class UpstreamAway extends Error {
  readonly code = 'upstream_away';

  constructor(cause: unknown) {
    super(inWords(cause), { cause });
    this.name = 'UpstreamAway';
  }
}

/**
 * `cancelled`: the user went back. `refused`: the provider did not sign them in. `invalid`: its
 * answer proves nothing. `misconfigured`: it does not accept our client ID or secret.
 */
export type RefusalReason = 'cancelled' | 'refused' | 'invalid' | 'misconfigured';

/** The provider answered, but the answer signs no user in. */
export class UpstreamRefusal extends Error {
  readonly code = 'upstream_refusal';
  readonly reason: RefusalReason;

  constructor(reason: RefusalReason, cause: unknown) {
    super(inWords(cause), { cause });
    this.name = 'UpstreamRefusal';
    this.reason = reason;
  }
}

/** Joins messages and error codes only: protocol errors also carry codes, tokens and claims. */
export function inWords(cause: unknown): string {
  const said: string[] = [];
  for (let error = cause; error !== undefined && said.length < 4; ) {
    if (!(error instanceof Error)) {
      if (typeof error === 'string') said.push(error);
      break;
    }
    const code = 'error' in error ? error.error : 'code' in error ? error.code : undefined;
    said.push(typeof code === 'string' ? `${error.message} (${code})` : error.message);
    error = error.cause;
  }
  return said
    .join(': ')
    .replace(/[^\x20-\x7e]/g, '?')
    .slice(0, 500);
}
