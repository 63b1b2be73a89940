/** The answers of an API that lets a request no further, as RFC 6750 §3 writes them. */

/** Ready to send, in any framework: `new Response(refusal.body, refusal)`. */
export interface Refusal {
  readonly status: 400 | 401 | 403 | 503;
  readonly headers: Readonly<Record<string, string>>;
  /** JSON in the shape of a GraphQL answer, so that GraphQL clients find the error in it. */
  readonly body: string;
  /** The one sentence in `body`. It never repeats what was presented. */
  readonly message: string;
  readonly code: RefusalCode;
}

/** As most GraphQL servers spell them, in `extensions.code`. */
export type RefusalCode = 'BAD_REQUEST' | 'UNAUTHENTICATED' | 'FORBIDDEN' | 'SERVICE_UNAVAILABLE';

/** §3.1: a request without credentials is told the method, and no error code. */
export const noCredentials = (): Refusal =>
  refusal(401, 'UNAUTHENTICATED', 'an access token or API key is required', {
    'WWW-Authenticate': 'Bearer',
  });

export const malformedRequest = (message: string): Refusal =>
  challenged(400, 'BAD_REQUEST', 'invalid_request', message);

/** RFC 9728 §5.1: where a client that knows nothing yet finds out whom to ask for a token. */
export function withMetadata(refused: Refusal, parameter: string | undefined): Refusal {
  const { 'WWW-Authenticate': challenge } = refused.headers;
  if (parameter === undefined || challenge === undefined) return refused;
  const told = `${challenge}${challenge === 'Bearer' ? ' ' : ', '}${parameter}`;
  return { ...refused, headers: { ...refused.headers, 'WWW-Authenticate': told } };
}

/** Which of these it is, is nobody's business. */
export const invalidToken = (): Refusal =>
  challenged(
    401,
    'UNAUTHENTICATED',
    'invalid_token',
    'the access token or API key is unknown, expired or revoked',
  );

/** The code that §3.1 has for more than the caller may; there is no scope to ask for instead. */
export const missingRight = (right: string): Refusal =>
  challenged(403, 'FORBIDDEN', 'insufficient_scope', `this needs the right to ${right} there`);

/** Nobody is let through while it is unknown who they are. */
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
  /** The message is meant to be seen. */
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

/** Of a GraphQL error. Servers that know `http` answer with it, and take it out. */
export interface RefusalExtensions {
  readonly code: RefusalCode;
  readonly http: { readonly status: number; readonly headers: ReadonlyMap<string, string> };
}

function extensionsOf({ status, code, headers }: Refusal): RefusalExtensions {
  const { 'Content-Type': _, ...sent } = headers;
  // Apollo takes a Map only, and Yoga the members of an object only: so it is both.
  const both = Object.assign(new Map(Object.entries(sent)), sent);
  const extensions = { code, http: { status, headers: both } };
  // The other servers print all of it, and `http` is not for the caller.
  return Object.defineProperty(extensions, 'toJSON', { value: () => ({ code }) });
}

function challenged(
  status: Refusal['status'],
  code: RefusalCode,
  error: string,
  message: string,
): Refusal {
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
      'Content-Type': 'application/json; charset=utf-8',
    },
    body: JSON.stringify({ errors: [{ message, extensions: { code } }] }),
  };
}
