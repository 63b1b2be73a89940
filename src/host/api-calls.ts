/** Sends a GraphQL request with a user's access token to the API that the operator configured. */
import { type Message, message } from '../base/message.ts';
import { AnswerRefused, openAnswer, startOfAnswer } from '../base/outgoing-requests.ts';
import type { CallApi } from '../pages/routes.ts';

/** The time limit for the request and the whole answer. */
const TIMEOUT_MS = 5_000;
/** Maximum number of bytes that are read; the rest of a longer answer is ignored. */
const MAX_BYTES_READ = 16 * 1024;

/**
 * Sends requests only to the address that the operator has set. A redirect is returned and not followed, so users see
 * nothing that they could not request from the API themselves.
 */
export function createApiCalls(
  api: { readonly graphqlUrl: string; readonly exampleQuery: string },
  timeoutMs = TIMEOUT_MS,
): CallApi {
  return async (accessToken) => {
    const signal = AbortSignal.timeout(timeoutMs);
    try {
      const answer = await openAnswer(api.graphqlUrl, {
        method: 'POST',
        signal,
        headers: {
          authorization: `Bearer ${accessToken}`,
          'content-type': 'application/json',
          accept: 'application/graphql-response+json, application/json;q=0.9',
        },
        body: JSON.stringify({ query: api.exampleQuery }),
      });
      const { bytes, isCut } = await startOfAnswer(answer, MAX_BYTES_READ);
      const { statusCode: status = 0 } = answer;
      return { status, body: new TextDecoder().decode(bytes), isCut };
    } catch (error) {
      return { failure: signal.aborted ? message('client-test.api-slow') : reasonOf(error) };
    }
  };
}

/** Returns Node's code, such as `ECONNREFUSED`, but no addresses, which only operators may see. */
function reasonOf(error: unknown): Message {
  if (error instanceof AnswerRefused) return message('client-test.api-refused', { reason: error.message });
  const { code } = error as { code?: unknown };
  return message('client-test.api-away', { error: typeof code === 'string' ? code : 'unknown' });
}
