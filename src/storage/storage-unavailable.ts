/** The error for a store that does not answer: both oidc-provider and Koa turn it into a 503. */

/**
 * Thrown if PostgreSQL or Redis did not answer in time, or refused the write.
 *
 * oidc-provider and Koa read these members: `expose` lets them send the OAuth error code, and
 * `allow_redirect: false` answers an authorization request with our own error page.
 */
export class StorageUnavailable extends Error {
  readonly code = 'storage_unavailable';
  readonly status = 503;
  readonly statusCode = 503;
  readonly expose = true;
  readonly allow_redirect = false;
  readonly error = 'temporarily_unavailable';
  readonly error_description = 'the service cannot reach its storage, try again in a moment';
  /** The driver's message, for operators. Not named `error_detail`, which clients would receive. */
  readonly reason: string;

  /** @param cause what the driver of the store threw. */
  constructor(store: 'postgresql' | 'redis', cause: unknown) {
    super('temporarily_unavailable', { cause });
    this.name = 'StorageUnavailable';
    this.reason = `${store}: ${reasonOf(cause)}`;
  }
}

/** For a host with several addresses, joins the reasons: the AggregateError has no message. */
function reasonOf(cause: unknown): string {
  if (cause instanceof AggregateError) return cause.errors.map(reasonOf).join(', ');
  return cause instanceof Error ? cause.message : String(cause);
}
