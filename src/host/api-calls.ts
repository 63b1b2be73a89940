/** One GraphQL request to the API that the operator named, with somebody's access token. */
import type { CallApi } from '../pages/routes.ts';

/** Milliseconds, for the whole answer. */
const TIME_LIMIT = 5_000;
/** Bytes of an answer that are read; the rest is left where it is. */
const MOST_READ = 16 * 1024;

/**
 * Asks this one address and no other: only the operator says where it is, and a redirect is an answer
 * like any other. What a person of ours learns from it is what that API tells them anyway.
 */
export function createApiCalls(
  api: { readonly graphqlUrl: string; readonly exampleQuery: string },
  timeLimit = TIME_LIMIT,
): CallApi {
  return async (accessToken) => {
    const signal = AbortSignal.timeout(timeLimit);
    try {
      const response = await fetch(api.graphqlUrl, {
        method: 'POST',
        redirect: 'manual',
        signal,
        headers: {
          authorization: `Bearer ${accessToken}`,
          'content-type': 'application/json',
          accept: 'application/graphql-response+json, application/json;q=0.9',
        },
        body: JSON.stringify({ query: api.exampleQuery }),
      });
      return { status: response.status, ...(await startOf(response)) };
    } catch (error) {
      return { failure: signal.aborted ? 'it took too long to answer' : reasonOf(error) };
    }
  };
}

async function startOf(response: Response): Promise<{ body: string; isCut: boolean }> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk);
    length += chunk.length;
    // Leaving the loop cancels the answer.
    if (length > MOST_READ) break;
  }
  const bytes = Buffer.concat(chunks).subarray(0, MOST_READ);
  return { body: new TextDecoder().decode(bytes), isCut: length > MOST_READ };
}

/** What Node calls it, such as `ECONNREFUSED`. Addresses are the operator's business. */
function reasonOf(error: unknown): string {
  const { cause } = error as { cause?: { code?: unknown } };
  return typeof cause?.code === 'string' ? `no connection (${cause.code})` : 'no connection';
}
