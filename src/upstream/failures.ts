/** Errors of sign-ins with a provider. Their messages are only for the log, never for a page. */

/** The provider did not answer in time, or its answer violates OpenID Connect. */
export class UpstreamAway extends Error {
  readonly code = 'upstream_away';

  constructor(cause: unknown) {
    super(describeCause(cause), { cause });
    this.name = 'UpstreamAway';
  }
}

/**
 * `cancelled`: the user cancelled the sign-in. `refused`: the provider did not sign the user in. `invalid`: the
 * provider's answer failed a check. `misconfigured`: the provider does not accept our client ID or secret.
 */
export type RefusalReason = 'cancelled' | 'refused' | 'invalid' | 'misconfigured';

/** The provider answered, but the user cannot be signed in with its answer. */
export class UpstreamRefusal extends Error {
  readonly code = 'upstream_refusal';
  readonly reason: RefusalReason;

  constructor(reason: RefusalReason, cause: unknown) {
    super(describeCause(cause), { cause });
    this.name = 'UpstreamRefusal';
    this.reason = reason;
  }
}

/** Joins only messages and error codes, because protocol errors also contain codes, tokens and claims. */
export function describeCause(cause: unknown): string {
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
