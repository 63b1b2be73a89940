/** The errors of our own OAuth routes, as clients read them (RFC 6749 §5.2, RFC 6750 §3). */
import type { Answer } from '../base/answer.ts';

/**
 * `headers` are sent with the response, for example a challenge or `Retry-After`. `internalCause` has more details, for
 * the log, the owner of the client, and clients that sent their secret.
 */
export class OAuthError extends Error {
  readonly status: number;
  readonly code: string;
  readonly description: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly internalCause: string;

  constructor(
    status: number,
    code: string,
    description: string,
    headers: Readonly<Record<string, string>> = {},
    internalCause = description,
  ) {
    super(description);
    this.name = 'OAuthError';
    this.status = status;
    this.code = code;
    this.description = description;
    this.headers = headers;
    this.internalCause = internalCause;
  }
}

/** Replaces quotes, backslashes and all but printable ASCII (RFC 6749 §5.2): messages may repeat any parameter. */
export const printable = (text: string): string => text.replace(/["\\]/g, "'").replace(/[^\x20-\x7e]/g, '?');

/** Returns the JSON body of an error, with the address of the page that explains its code. */
export const errorBody = (issuer: string, code: string, description: string) => ({
  error: code,
  error_description: printable(description),
  error_uri: `${issuer}/errors/${code}`,
});

export const oauthErrorAnswer = (issuer: string, { status, headers, code, description }: OAuthError): Answer => ({
  status,
  headers,
  body: errorBody(issuer, code, description),
});

/**
 * The description of `invalid_scope`. Any `scope` except an empty one is refused instead of ignored (RFC 6749 §3.3),
 * because a client that requests limited access must not believe that its access is limited. Does not repeat the value
 * of `scope`, because errors are logged and shown.
 */
export const NO_SCOPES = 'no scopes exist here: leave scope out';
