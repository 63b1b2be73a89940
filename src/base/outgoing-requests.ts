/** Sends all requests to other servers, with limits of time and size; decodes no answer and follows no redirect. */
import { request as httpRequest, type IncomingMessage, STATUS_CODES } from 'node:http';
import { request as httpsRequest, type RequestOptions } from 'node:https';

export interface OutgoingRequest {
  readonly method?: string;
  readonly headers?: Record<string, string> | Headers;
  /** The body, sent as a string; `URLSearchParams` are sent as a form. */
  readonly body?: unknown;
  /** Aborts the request, even while the answer is being read. */
  readonly signal?: AbortSignal | undefined;
  /** Options of the connection, such as `lookup`. */
  readonly connect?: RequestOptions;
}

/** Thrown if an answer has arrived but must not be read. The message may be shown to users. */
export class AnswerRefused extends Error {
  override readonly name = 'AnswerRefused';
}

/**
 * Sends a request and reads the whole answer, even if the answer is a redirect.
 *
 * @param limits the time for request and answer together, and the size of the answer
 * @throws AnswerRefused; `TimeoutError` after `timeoutMs`; the reason of the signal; Node's error if no answer arrives
 */
export async function fetchAnswer(
  url: string | URL,
  { signal, ...request }: OutgoingRequest,
  { timeoutMs, maxBytes }: { readonly timeoutMs: number; readonly maxBytes: number },
): Promise<Response> {
  const ends = [AbortSignal.timeout(timeoutMs), ...(signal ? [signal] : [])];
  const answer = await openAnswer(url, { ...request, signal: AbortSignal.any(ends) });
  return wholeAnswer(answer, maxBytes);
}

/** Resolves when the headers of the answer have arrived. Only the signal limits the time. */
export async function openAnswer(
  url: string | URL,
  { method = 'GET', headers, body, signal, connect }: OutgoingRequest & { signal: AbortSignal },
): Promise<IncomingMessage> {
  signal.throwIfAborted();
  const sent = new Headers(headers);
  // Refuse compressed answers, because Node's decoders have had vulnerabilities, and a small compressed answer can fill
  // the memory. Without this header, servers may compress (RFC 9110 §12.5.3).
  sent.set('accept-encoding', 'identity');
  if (body instanceof URLSearchParams && !sent.has('content-type')) {
    sent.set('content-type', 'application/x-www-form-urlencoded');
  }
  const target = new URL(url);
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const start = target.protocol === 'https:' ? httpsRequest : httpRequest;
    const outgoing = start(target, { ...connect, method, headers: Object.fromEntries(sent) });
    // Do not reuse connections, because `lookup` checks only the address of a new connection. The header
    // `Connection: close` is not enough if the server answers with `keep-alive`.
    outgoing.shouldKeepAlive = false;
    signal.addEventListener('abort', () => outgoing.destroy(signal.reason));
    outgoing.on('response', resolve).on('error', reject);
    // Node emits no error if the server switches to another protocol (status 101).
    outgoing.on('close', () => reject(new Error('the connection was closed without an answer')));
    outgoing.end(String(body ?? ''));
  });
  signal.addEventListener('abort', () => answer.destroy(signal.reason));
  const coding = answer.headers['content-encoding']?.toLowerCase() ?? '';
  const status = answer.statusCode ?? 0;
  const isStatus = status >= 200 && status <= 599;
  if (isStatus && !coding.split(',').some((each) => CODINGS.includes(each.trim()))) return answer;
  answer.destroy();
  if (!isStatus) throw new AnswerRefused(`an answer with the status ${status}, which does not exist`);
  const refused = JSON.stringify(coding.slice(0, 40));
  throw new AnswerRefused(`an answer with the content coding ${refused}`);
}

/** The registered codings except `identity`. Servers also send other values, such as `none`, which are ignored. */
const CODINGS: readonly string[] =
  'aes128gcm br compress dcb dcz deflate exi gzip pack200-gzip x-compress x-gzip zstd'.split(' ');

/** @throws AnswerRefused if the answer is longer than `maxBytes` */
export async function wholeAnswer(answer: IncomingMessage, maxBytes: number): Promise<Response> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    size += chunk.byteLength;
    // Leaving the loop closes the connection.
    if (size > maxBytes) throw new AnswerRefused(`an answer of more than ${maxBytes} bytes`);
  }
  return responseOf(answer, EMPTY_STATUS.includes(answer.statusCode) ? null : Buffer.concat(chunks));
}

/** Statuses for which a `Response` must not have a body. */
const EMPTY_STATUS: readonly (number | undefined)[] = [204, 205, 304];

function responseOf(answer: IncomingMessage, body: Buffer<ArrayBuffer> | null): Response {
  const { statusCode: status = 0, headersDistinct } = answer;
  const headers = Object.entries(headersDistinct).flatMap(([name, values = []]) =>
    values.map((value): [string, string] => [name, value]),
  );
  // Do not use the server's reason phrase, which may contain characters that a `Response` refuses.
  return new Response(body, { status, statusText: STATUS_CODES[status] ?? '', headers });
}
