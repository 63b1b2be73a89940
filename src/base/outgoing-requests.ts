/** Sends every request to another server: limited time and size, nothing decoded or redirected. */
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest, type RequestOptions } from 'node:https';
import { Readable } from 'node:stream';

export interface OutgoingRequest {
  readonly method?: string;
  readonly headers?: Record<string, string> | Headers;
  /** Sent as text; `URLSearchParams` become a form. */
  readonly body?: unknown;
  /** Ends the request, also while its answer is read. */
  readonly signal: AbortSignal;
  /** How to connect, for example through which `lookup`. */
  readonly connect?: RequestOptions;
}

/** An answer whose headers have arrived. Its body must be read once, or `message` destroyed. */
export interface OpenedAnswer {
  readonly message: IncomingMessage;
  readonly headers: Headers;
  /** Reads at most so many bytes, and closes the connection if there are more. */
  readStart(maxBytes: number): Promise<{ bytes: Buffer<ArrayBuffer>; isCut: boolean }>;
  /** Returns an answer whose body is still arriving. */
  stream(): Response;
  /** @throws AnswerRefused if the body is longer. */
  whole(maxBytes: number): Promise<Response>;
}

/** Thrown if an answer has arrived that must not be read. The message is safe for everyone. */
export class AnswerRefused extends Error {
  readonly code: 'answer_encoded' | 'answer_too_large';

  constructor(code: AnswerRefused['code'], message: string) {
    super(message);
    this.name = 'AnswerRefused';
    this.code = code;
  }
}

/** Servers of event streams send `none` to prevent a proxy from encoding them. */
const NOT_ENCODED: readonly string[] = ['', 'identity', 'none'];

/** Statuses with which a `Response` must not have a body. */
const EMPTY_STATUS: readonly number[] = [204, 205, 304];

/**
 * Sends a request and reads its whole answer. A redirect is returned, never followed.
 *
 * @throws AnswerRefused, the reason of an aborted signal (`TimeoutError` after `timeoutMs`), or
 *   Node's error if there is no answer.
 */
export async function fetchAnswer(
  url: string | URL,
  {
    timeoutMs,
    maxBytes,
    signal,
    ...asked
  }: Omit<OutgoingRequest, 'signal'> & {
    readonly signal?: AbortSignal | undefined;
    /** Time limit for the request and the whole answer. */
    readonly timeoutMs: number;
    readonly maxBytes: number;
  },
): Promise<Response> {
  const limits = [AbortSignal.timeout(timeoutMs), ...(signal ? [signal] : [])];
  const answer = await openAnswer(url, { ...asked, signal: AbortSignal.any(limits) });
  return answer.whole(maxBytes);
}

/** Like `fetchAnswer`, but resolves when the headers have arrived; only `signal` limits the time. */
export async function openAnswer(
  url: string | URL,
  { method = 'GET', headers: given, body: content, signal, connect }: OutgoingRequest,
): Promise<OpenedAnswer> {
  const target = new URL(url);
  const sent = new Headers(given);
  // Without this header, servers may use any coding (RFC 9110 §12.5.3). The decoders of Node have
  // had holes, and a small encoded answer can fill the memory.
  sent.set('accept-encoding', 'identity');
  const body = String(content ?? '');
  if (body !== '') sent.set('content-length', String(Buffer.byteLength(body)));
  if (content instanceof URLSearchParams && !sent.has('content-type')) {
    sent.set('content-type', 'application/x-www-form-urlencoded');
  }
  const options = { ...connect, method, headers: Object.fromEntries(sent), signal };
  const orAborted = (error: unknown): never => {
    signal.throwIfAborted();
    throw error;
  };
  const message = await send(target, options, body).catch(orAborted);
  const coding = message.headers['content-encoding']?.toLowerCase() ?? '';
  if (!NOT_ENCODED.includes(coding)) {
    message.destroy();
    const refused = JSON.stringify(coding.slice(0, 40));
    throw new AnswerRefused('answer_encoded', `an answer with the content coding ${refused}`);
  }
  const headers = new Headers();
  for (const [name, values = []] of Object.entries(message.headersDistinct)) {
    for (const value of values) headers.append(name, value);
  }
  const { statusCode: status = 0, statusMessage: statusText = '' } = message;
  const answer: OpenedAnswer = {
    message,
    headers,
    readStart: (maxBytes) => startOf(message, maxBytes).catch(orAborted),
    stream: () => new Response(Readable.toWeb(message), { status, statusText, headers }),
    async whole(maxBytes) {
      const { bytes, isCut } = await answer.readStart(maxBytes);
      if (isCut) {
        throw new AnswerRefused('answer_too_large', `an answer of more than ${maxBytes} bytes`);
      }
      const body = EMPTY_STATUS.includes(status) ? null : bytes;
      return new Response(body, { status, statusText, headers });
    },
  };
  return answer;
}

function send(target: URL, options: RequestOptions, body: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const start = target.protocol === 'https:' ? httpsRequest : httpRequest;
    const outgoing = start(target, options);
    // Do not reuse connections: that would skip the check of an address by `lookup`. The header
    // `Connection: close` is not enough if the server answers with `keep-alive`.
    outgoing.shouldKeepAlive = false;
    outgoing.on('response', resolve).on('error', reject);
    // Node reports no error if the server switches to another protocol (status 101).
    outgoing.on('close', () => reject(new Error('the connection was closed without an answer')));
    outgoing.end(body);
  });
}

async function startOf(message: IncomingMessage, maxBytes: number) {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of message as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    size += chunk.byteLength;
    // Break: leaving the loop closes the connection.
    if (size > maxBytes) break;
  }
  return { bytes: Buffer.concat(chunks).subarray(0, maxBytes), isCut: size > maxBytes };
}
