/** Sends a GraphQL request with a user's access token to the API that the operator configured. */
import type { CallApi } from '../pages/routes.ts';

/** Time limit for the request and the whole answer. */
const TIMEOUT_MS = 5_000;
/** Maximum number of bytes that are read; the rest of a longer answer is ignored. */
const MAX_BYTES_READ = 16 * 1024;

/**
 * Sends requests to this one address only: the operator sets it, and a redirect is returned instead
 * of followed. Users see nothing that they could not request from the API themselves.
 */
export function createApiCalls(
  api: { readonly graphqlUrl: string; readonly exampleQuery: string },
  timeoutMs = TIMEOUT_MS,
): CallApi {
  return async (accessToken) => {
    const signal = AbortSignal.timeout(timeoutMs);
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
      return { status: response.status, ...(await readStart(response)) };
    } catch (error) {
      return { failure: signal.aborted ? 'it took too long to answer' : reasonOf(error) };
    }
  };
}

async function readStart(response: Response): Promise<{ body: string; isCut: boolean }> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk);
    length += chunk.length;
    // Break: leaving the loop cancels the rest of the answer.
    if (length > MAX_BYTES_READ) break;
  }
  const bytes = Buffer.concat(chunks).subarray(0, MAX_BYTES_READ);
  return { body: new TextDecoder().decode(bytes), isCut: length > MAX_BYTES_READ };
}

/** Returns Node's code, such as `ECONNREFUSED`, but no addresses: those are for operators only. */
function reasonOf(error: unknown): string {
  const { cause } = error as { cause?: { code?: unknown } };
  return typeof cause?.code === 'string' ? `no connection (${cause.code})` : 'no connection';
}
