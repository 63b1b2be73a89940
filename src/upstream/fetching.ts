/** Requests to a provider: none waits long, follows a redirect or reads without end. */

/** Seconds. A person waits for it. */
export const TIME_LIMIT_SECONDS = 5;
/** Bytes. Discovery documents and key sets have a few thousand. */
const LARGEST_ANSWER = 256 * 1024;

/** What our two clients pass on to `fetch`; the types of each leave out something else. */
interface Options {
  readonly method: string;
  readonly headers: Record<string, string> | Headers;
  readonly body?: unknown;
  readonly signal?: AbortSignal | undefined;
}

/** As `fetch`, for the clients of OpenID Connect. */
export async function fetchBounded(url: string, options: Options): Promise<Response> {
  const { method, headers: sent, body: content, signal } = options;
  const response = await fetch(url, {
    method,
    headers: sent,
    ...(content !== undefined && { body: content as string | URLSearchParams }),
    redirect: 'manual',
    signal: signal ?? AbortSignal.timeout(TIME_LIMIT_SECONDS * 1000),
  });
  const { status, statusText, headers } = response;
  const body = await bodyOf(response);
  return new Response(EMPTY_STATUS.includes(status) ? null : body, { status, statusText, headers });
}

/** Statuses of which a Response may have no body. */
const EMPTY_STATUS: readonly number[] = [204, 205, 304];

async function bodyOf({ body }: Response): Promise<Buffer<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body ?? []) {
    size += chunk.byteLength;
    if (size > LARGEST_ANSWER) throw new Error(`an answer of more than ${LARGEST_ANSWER} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
