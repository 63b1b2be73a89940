/** How a sign-in with a provider can fail. What is said of it is for the log, never for the page. */

/** It does not answer in time, or not as an OpenID provider does. Nothing is known of the person. */
export class UpstreamAway extends Error {
  readonly code = 'upstream_away';

  constructor(cause: unknown) {
    super(inWords(cause), { cause });
    this.name = 'UpstreamAway';
  }
}

/**
 * `cancelled`: the person went back. `refused`: it did not let them in. `invalid`: it proves nothing.
 * `misconfigured`: it does not accept our client ID or secret.
 */
export type RefusalReason = 'cancelled' | 'refused' | 'invalid' | 'misconfigured';

/** It answered, and the answer lets nobody in. */
export class UpstreamRefusal extends Error {
  readonly code = 'upstream_refusal';
  readonly reason: RefusalReason;

  constructor(reason: RefusalReason, cause: unknown) {
    super(inWords(cause), { cause });
    this.name = 'UpstreamRefusal';
    this.reason = reason;
  }
}

/** Messages only: what else errors of a protocol carry are codes, tokens and claims. */
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
