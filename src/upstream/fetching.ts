/** Requests to a provider, with limited time and size, no redirects, and no access to internal networks. */
import { AnswerRefused, fetchAnswer, type OutgoingRequest } from '../base/outgoing-requests.ts';
import { isAddress, lookupFor, resolveEndpoint } from './internal-networks.ts';

/** The time limit is short, because a user waits for the answer. */
export const TIME_LIMIT_SECONDS = 5;
/** Discovery documents and key sets are only a few kilobytes long. */
const LIMITS = { timeoutMs: TIME_LIMIT_SECONDS * 1000, maxBytes: 256 * 1024 };

/** Like `fetch`: throws a TypeError if there is no answer. */
export type ProviderFetch = (url: string, options: OutgoingRequest) => Promise<Response>;

/**
 * Replaces the global `fetch`, which cannot check the address that it connects to. Internal addresses are allowed only
 * if the host of the provider's `issuer` is in the same network.
 */
export function createProviderFetch(issuer: string): ProviderFetch {
  const connect = { lookup: lookupFor(issuer) };
  return async (url, options) => {
    try {
      const { hostname } = new URL(url);
      // Check an IP address here, because Node calls `lookup` only for names.
      if (isAddress(hostname)) await resolveEndpoint(hostname, issuer);
      return await fetchAnswer(url, { ...options, connect }, LIMITS);
    } catch (error) {
      // Rethrow these errors unchanged: both OpenID Connect libraries recognize a timeout by the name of the error.
      const isKnown = error instanceof AnswerRefused || (error as Error).name === 'TimeoutError';
      throw isKnown ? error : new TypeError('fetch failed', { cause: error });
    }
  };
}
