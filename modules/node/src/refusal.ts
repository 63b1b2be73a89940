/** The responses by which an API refuses a request (RFC 6750 §3). */

/** Ready to send, in any framework: `new Response(refusal.body, refusal)`. */
export interface Refusal {
  readonly status: 400 | 401 | 403 | 503;
  readonly headers: Readonly<Record<string, string>>;
  /** JSON in the shape of a GraphQL response, so that GraphQL clients find the error. */
  readonly body: string;
  /** The sentence in `body`, which never repeats the presented value. */
  readonly message: string;
  readonly code: RefusalCode;
}

/** `extensions.code`, as most GraphQL servers spell it. */
export type RefusalCode = 'BAD_REQUEST' | 'UNAUTHENTICATED' | 'FORBIDDEN' | 'SERVICE_UNAVAILABLE';

/** RFC 6750 §3.1: the challenge to a request without credentials has no error code. */
export const noCredentials = (): Refusal =>
  refusal(401, 'UNAUTHENTICATED', 'an access token or API key is required', {
    'WWW-Authenticate': 'Bearer',
  });

export const malformedRequest = (message: string): Refusal =>
  challenged(400, 'BAD_REQUEST', 'invalid_request', message);

/** Adds the metadata address, by which a client finds the authorization server (RFC 9728 §5.1). */
export function withMetadata(refused: Refusal, parameter: string | undefined): Refusal {
  const { 'WWW-Authenticate': challenge } = refused.headers;
  if (parameter === undefined || challenge === undefined) return refused;
  const extended = `${challenge}${challenge === 'Bearer' ? ' ' : ', '}${parameter}`;
  return { ...refused, headers: { ...refused.headers, 'WWW-Authenticate': extended } };
}

/** The same refusal for unknown, expired and revoked tokens: more detail would help an attacker. */
export const invalidToken = (): Refusal =>
  challenged(401, 'UNAUTHENTICATED', 'invalid_token', 'the access token or API key is unknown, expired or revoked');

/** RFC 6750 §3.1: `insufficient_scope` means missing permissions. Does not list a scope, because none exist. */
export const missingRight = (right: string): Refusal =>
  challenged(403, 'FORBIDDEN', 'insufficient_scope', `the right to ${right} is required for this`);

/** The refusal of a call whose introspection failed, because its caller is not identified. */
export const cannotTell = (retryAfterSeconds: number): Refusal =>
  refusal(503, 'SERVICE_UNAVAILABLE', 'the caller cannot be identified at the moment', {
    'Retry-After': String(retryAfterSeconds),
  });

/** A refusal as an error: Koa and Express send `status`, Fastify `statusCode`, GraphQL `extensions`. */
export class CallerRefused extends Error {
  readonly refusal: Refusal;
  readonly status: number;
  readonly statusCode: number;
  readonly headers: Refusal['headers'];
  /** Koa sends an error's message to the caller if this is true. */
  readonly expose = true;
  readonly extensions: RefusalExtensions;

  constructor(refusal: Refusal) {
    super(refusal.message);
    this.name = 'CallerRefused';
    this.refusal = refusal;
    this.status = refusal.status;
    this.statusCode = refusal.status;
    this.headers = refusal.headers;
    this.extensions = extensionsOf(refusal);
  }
}

/** The extensions of a GraphQL error. Servers that know `http` apply it and remove it. */
export interface RefusalExtensions {
  readonly code: RefusalCode;
  readonly http: { readonly status: number; readonly headers: ReadonlyMap<string, string> };
}

function extensionsOf({ status, code, headers }: Refusal): RefusalExtensions {
  const { 'Content-Type': _, ...sent } = headers;
  // Apollo reads only a Map, Yoga only properties of an object, so this value is both.
  const both = Object.assign(new Map(Object.entries(sent)), sent);
  const extensions = { code, http: { status, headers: both } };
  // Return only the code: some servers send all extensions to the caller, but `http` is not meant for the caller.
  return Object.defineProperty(extensions, 'toJSON', { value: () => ({ code }) });
}

function challenged(status: Refusal['status'], code: RefusalCode, error: string, message: string): Refusal {
  const challenge = `Bearer error="${error}", error_description="${message}"`;
  return refusal(status, code, message, { 'WWW-Authenticate': challenge });
}

function refusal(
  status: Refusal['status'],
  code: RefusalCode,
  message: string,
  headers: Readonly<Record<string, string>>,
): Refusal {
  return {
    status,
    code,
    message,
    headers: {
      ...headers,
      'Cache-Control': 'no-store',
      // The API's own CORS code decides which web pages may read anything.
      'Access-Control-Expose-Headers': 'WWW-Authenticate, Retry-After',
      'Content-Type': 'application/json; charset=utf-8',
    },
    body: JSON.stringify({ errors: [{ message, extensions: { code } }] }),
  };
}
