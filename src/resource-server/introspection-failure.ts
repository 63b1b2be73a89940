/** Why it could not be found out who is calling: for the API's operator, never for the caller. */

/** Stable: monitoring may compare it. */
export type FailureReason =
  /** No connection, or it broke. */
  | 'unreachable'
  /** No complete answer within the time limit. */
  | 'timed_out'
  /** Our own client id or secret is wrong, or the client is suspended. */
  | 'credentials_refused'
  /** 429: too many failed attempts with our credentials. */
  | 'throttled'
  /** Any other status but 200. */
  | 'failed'
  /** 200 with something that is no answer of Gatehouse to a resource server. */
  | 'malformed_answer';

/** The message says what happened and where; neither it nor `cause` holds a token. */
export class IntrospectionFailure extends Error {
  readonly reason: FailureReason;
  /** When the service asked to be left alone for so long. */
  readonly retryAfterSeconds: number | undefined;

  constructor(
    reason: FailureReason,
    message: string,
    options: { cause?: unknown; retryAfterSeconds?: number | undefined } = {},
  ) {
    super(message, 'cause' in options ? { cause: options.cause } : {});
    this.name = 'IntrospectionFailure';
    this.reason = reason;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}
