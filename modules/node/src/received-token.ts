/** Reads the bearer token of a request from its Authorization header (RFC 6750 §2.1). */
import { invalidToken, malformedRequest, noCredentials, type Refusal } from './refusal.ts';

/** The parts of a request used here. Node's IncomingMessage and the Request of fetch have them. */
export interface ReceivedRequest {
  readonly method?: string | undefined;
  readonly headers:
    | { get(name: string): string | null | undefined }
    | Readonly<Record<string, string | readonly string[] | undefined>>;
  /** An absolute URL, or the path with the query. */
  readonly url?: string | undefined;
  /** Alternating names and values: Node's `headers` has only the first Authorization header. */
  readonly rawHeaders?: readonly string[] | undefined;
}

export type ReceivedToken =
  | { readonly token: string; readonly refusal?: undefined }
  | { readonly refusal: Refusal; readonly token?: undefined };

/** `b64token` of RFC 6750 §2.1. Other values cannot be tokens of Gatehouse, and are not introspected. */
const BEARER = /^bearer [ \t]*([A-Za-z0-9\-._~+/]{1,512}=*)$/i;
const MAX_TOKEN_LENGTH = 512;
/** Maximum number of characters that are read of an Authorization header. */
const MAX_AUTHORIZATION_LENGTH = 2 * MAX_TOKEN_LENGTH;

/** Returns the token to introspect, or the refusal of a request that does not have exactly one token. */
export function receivedToken(request: ReceivedRequest): ReceivedToken {
  // RFC 6750 §2.3: refuse tokens in URLs, because URLs appear in logs and browser histories.
  const query = request.url?.indexOf('?') ?? -1;
  const inQuery = query < 0 ? undefined : new URLSearchParams(request.url?.slice(query + 1));
  if (inQuery?.has('access_token')) return refuse('send the access token in the Authorization header, not in the URL');
  // RFC 6750 §2.2: a form could contain a token. GraphQL requests are never forms.
  const [contentType = ''] = headerValues(request, 'content-type');
  if (/^\s*application\/x-www-form-urlencoded\b/i.test(contentType)) {
    return refuse('send JSON, and the access token in the Authorization header');
  }

  const [authorization = '', ...others] = headerValues(request, 'authorization');
  if (others.length > 0) return refuse('send only one Authorization header');
  if (authorization.length > MAX_AUTHORIZATION_LENGTH) {
    return refusalWithoutToken(authorization.slice(0, MAX_AUTHORIZATION_LENGTH));
  }
  const [, token = ''] = BEARER.exec(withoutOuterBlanks(authorization)) ?? [];
  return token === '' || token.length > MAX_TOKEN_LENGTH ? refusalWithoutToken(authorization) : { token };
}

function refusalWithoutToken(authorization: string): ReceivedToken {
  const [scheme = '', ...rest] = withoutOuterBlanks(authorization).split(' ');
  // RFC 6750 §3.1: another scheme is not an attempt to use a token.
  if (scheme.toLowerCase() !== 'bearer') return { refusal: noCredentials() };
  const value = withoutOuterBlanks(rest.join(' '));
  if (!value) return refuse('the Authorization header has no access token');
  // A comma means several headers: proxies join those of the same name with commas.
  return value.includes(',') ? refuse('send only one access token') : { refusal: invalidToken() };
}

/**
 * Removes spaces and tabs (RFC 9110 §5.6.3) from both ends. Unlike `trim`, keeps no-break spaces, as
 * all other readers of the header do.
 */
function withoutOuterBlanks(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isBlank(text[start])) start += 1;
  while (end > start && isBlank(text[end - 1])) end -= 1;
  return text.slice(start, end);
}

/** True for a CORS preflight, which browsers send without credentials (Fetch §4.8). */
export const isPreflight = (request: ReceivedRequest): boolean =>
  request.method === 'OPTIONS' &&
  PREFLIGHT.every((name) => headerValues(request, name).length > 0) &&
  headerValues(request, 'authorization').length === 0;

const PREFLIGHT = ['origin', 'access-control-request-method'];

const isBlank = (character: string | undefined): boolean => character === ' ' || character === '\t';

const refuse = (message: string): ReceivedToken => ({ refusal: malformedRequest(message) });

function headerValues({ headers, rawHeaders }: ReceivedRequest, name: string): readonly string[] {
  // Plain loops for speed: this is most of the cost of finding a cached caller.
  const values: string[] = [];
  if (rawHeaders) {
    for (let at = 0; at < rawHeaders.length; at += 2) {
      const received = rawHeaders[at] ?? '';
      if (received.length === name.length && received.toLowerCase() === name) {
        values.push(rawHeaders[at + 1] ?? '');
      }
    }
    return values;
  }
  if (isFetchHeaders(headers)) {
    const value = headers.get(name) ?? undefined;
    return value === undefined ? [] : [value];
  }
  for (const key of Object.keys(headers)) {
    if (key.length !== name.length || key.toLowerCase() !== name) continue;
    const value = headers[key];
    if (typeof value === 'string') values.push(value);
    else values.push(...(value ?? []));
  }
  return values;
}

const isFetchHeaders = (
  headers: ReceivedRequest['headers'],
): headers is { get(name: string): string | null | undefined } => typeof headers.get === 'function';
