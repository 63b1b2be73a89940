/** The one error of a store that does not answer: a 503 wherever it surfaces, in the engine's terms and in Koa's. */

/**
 * PostgreSQL or Redis did not answer in time, or refused the write.
 *
 * The members are what oidc-provider and Koa read from an error: `expose` lets the OAuth code
 * through, `allow_redirect` keeps an authorization request on our own error page.
 */
export class StorageUnavailable extends Error {
  readonly code = 'storage_unavailable';
  readonly status = 503;
  readonly statusCode = 503;
  readonly expose = true;
  readonly allow_redirect = false;
  readonly error = 'temporarily_unavailable';
  readonly error_description = 'the service cannot reach its storage, try again in a moment';
  /**
   * What the driver said, for operators. Not `error_detail`, which a client that has authenticated
   * is told.
   */
  readonly reason: string;

  /** @param store which store failed, for the operator's log; `cause` is what its driver threw. */
  constructor(store: 'postgresql' | 'redis', cause: unknown) {
    super('temporarily_unavailable', { cause });
    this.name = 'StorageUnavailable';
    this.reason = `${store}: ${reasonOf(cause)}`;
  }
}

/** A host with several addresses fails with one error for each, and says nothing itself. */
function reasonOf(cause: unknown): string {
  if (cause instanceof AggregateError) return cause.errors.map(reasonOf).join(', ');
  return cause instanceof Error ? cause.message : String(cause);
}
