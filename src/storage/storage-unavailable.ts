/** The error for a store that does not answer. Both oidc-provider and Koa turn it into a 503. */

/**
 * Thrown if PostgreSQL or Redis did not answer in time, or refused the write.
 *
 * oidc-provider and Koa read these members: `expose` lets them send the OAuth error code, and
 * `allow_redirect: false` answers an authorization request with our own error page.
 */
export class StorageUnavailable extends Error {
  /**
   * For operators. `statement_too_long` means that the database works, but a statement exceeded its timeout.
   * `too_many_waiting` means that the database is too slow for the waiting requests.
   */
  readonly code: 'storage_unavailable' | 'statement_too_long' | 'too_many_waiting';
  readonly status = 503;
  readonly statusCode = 503;
  readonly expose = true;
  readonly allow_redirect = false;
  readonly error = 'temporarily_unavailable';
  readonly error_description = 'the service cannot reach its storage, try again in a moment';
  /** The driver's message, for operators. It is not named `error_detail`, because clients would receive that. */
  readonly reason: string;

  /** @param cause the error of the store's driver */
  constructor(store: 'postgresql' | 'redis', cause: unknown, code?: 'too_many_waiting') {
    super('temporarily_unavailable', { cause });
    this.name = 'StorageUnavailable';
    this.code = code ?? (isOurLimit(cause) ? 'statement_too_long' : 'storage_unavailable');
    this.reason = `${store}: ${reasonOf(cause)}`;
  }
}

/** True if the store does not answer; false if only this statement took too long. */
export const isAway = (error: unknown): error is StorageUnavailable =>
  error instanceof StorageUnavailable && error.code === 'storage_unavailable';

/** The SQLSTATE of idle_in_transaction_session_timeout: the process was stopped inside the transaction. */
export const STOPPED_INSIDE = '25P03';

/** True if statement_timeout or lock_timeout ended the statement, or this process was stopped in a transaction. */
const isOurLimit = (cause: unknown): boolean =>
  cause instanceof Error &&
  'code' in cause &&
  (cause.code === '55P03' ||
    cause.code === STOPPED_INSIDE ||
    (cause.code === '57014' && !cause.message.includes('user request')));

/** The AggregateError for a host with several addresses has no message, so this joins the reasons in it. */
function reasonOf(cause: unknown): string {
  if (cause instanceof AggregateError) return cause.errors.map(reasonOf).join(', ');
  return cause instanceof Error ? cause.message : String(cause);
}
