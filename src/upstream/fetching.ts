/** Requests to a provider: limited time and size, no redirects, no access to internal networks. */
import { AnswerRefused, fetchAnswer } from '../base/outgoing-requests.ts';
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
  return async (url, { method, headers, body, signal }) => {
    try {
      const { hostname } = new URL(url);
      // Check an IP address here, because Node calls `lookup` only for names.
      if (isAddress(hostname)) await resolveEndpoint(hostname, issuer);
      return await fetchAnswer(url, {
        method,
        headers,
        body,
        signal,
        timeoutMs: TIME_LIMIT_SECONDS * 1000,
        maxBytes: MAX_ANSWER_BYTES,
        connect: { lookup },
      });
    } catch (error) {
      const { name } = error as Error;
      // Both libraries recognize a timeout by its name.
      if (error instanceof AnswerRefused || name === 'TimeoutError') throw error;
      throw new TypeError('fetch failed', { cause: error });
    }
  };
}
