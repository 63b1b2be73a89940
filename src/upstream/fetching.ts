/** Requests to a provider: limited time and size, no redirects, no access to internal networks. */
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest, type RequestOptions } from 'node:https';
import { isAddress, lookupFor, resolveEndpoint } from './internal-networks.ts';

/** Time limit of a request. Short, because a user waits for the answer. */
export const TIME_LIMIT_SECONDS = 5;
/** Maximum length of an answer: discovery documents and key sets are only a few kilobytes. */
const MAX_ANSWER_BYTES = 256 * 1024;

/** The options that both openid-client and jose pass to `fetch`; their types differ. */
interface Options {
  readonly method: string;
  readonly headers: Record<string, string> | Headers;
  readonly body?: unknown;
  readonly signal?: AbortSignal | undefined;
}

/** Like `fetch`, for OpenID Connect clients: throws a TypeError if there is no answer. */
export type ProviderFetch = (url: string, options: Options) => Promise<Response>;

/**
 * Replaces the global `fetch`, which cannot check the address that it connects to.
 *
 * @param issuer of the provider; an internal address is allowed only in a network of its host
 */
export function createProviderFetch(issuer: string): ProviderFetch {
  const lookup = lookupFor(issuer);
  return async (url, { method, headers: given, body, signal: givenSignal }) => {
    const signal = givenSignal ?? AbortSignal.timeout(TIME_LIMIT_SECONDS * 1000);
    const target = new URL(url);
    const headers = new Headers(given);
    // Without this header, servers may use any coding (RFC 9110 §12.5.3), but we decode none.
    headers.set('accept-encoding', 'identity');
    // Do not reuse connections: that would skip the check of the address.
    headers.set('connection', 'close');
    const sent = body === undefined || body === null ? '' : String(body);
    if (sent !== '') headers.set('content-length', String(Buffer.byteLength(sent)));
    if (body instanceof URLSearchParams && !headers.has('content-type')) {
      headers.set('content-type', 'application/x-www-form-urlencoded;charset=UTF-8');
    }
    try {
      // Check an IP address here, because Node calls `lookup` only for names.
      if (isAddress(target.hostname)) await resolveEndpoint(target.hostname, issuer);
      const options = { method, headers: Object.fromEntries(headers), signal, lookup };
      const answer = await send(target, options, sent);
      return await responseFrom(answer);
    } catch (error) {
      // Throw the signal's reason, by which both libraries recognize a timeout.
      signal.throwIfAborted();
      throw error instanceof AnswerTooLarge
        ? error
        : new TypeError('fetch failed', { cause: error });
    }
  };
}

function send(target: URL, options: RequestOptions, body: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const start = target.protocol === 'https:' ? httpsRequest : httpRequest;
    start(target, options).on('response', resolve).on('error', reject).end(body);
  });
}

/** Statuses with which a `Response` must not have a body. */
const EMPTY_STATUS: readonly (number | undefined)[] = [204, 205, 304];

async function responseFrom(answer: IncomingMessage): Promise<Response> {
  const { statusCode: status = 0, headersDistinct } = answer;
  const headers = new Headers();
  for (const [name, values = []] of Object.entries(headersDistinct)) {
    for (const value of values) headers.append(name, value);
  }
  const body = await bodyOf(answer);
  return new Response(EMPTY_STATUS.includes(status) ? null : body, { status, headers });
}

class AnswerTooLarge extends Error {}

/** Reads the body. An error thrown inside the loop closes the connection. */
async function bodyOf(answer: IncomingMessage): Promise<Buffer<ArrayBuffer>> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    size += chunk.byteLength;
    if (size > MAX_ANSWER_BYTES) {
      throw new AnswerTooLarge(`an answer of more than ${MAX_ANSWER_BYTES} bytes`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
