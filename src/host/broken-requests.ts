/** Answers invalid or oversized HTTP, timeouts and unexpected errors. Logs dropped connections. */
import { type IncomingMessage, type RequestListener, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import { failureText, newRequestId } from './request-log.ts';

export type RequestHandler = (request: IncomingMessage, response: ServerResponse) => unknown;

export interface RefusalOptions {
  /** The headers of every answer of this listener. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Logs invalid and failed requests, and dropped connections. */
  readonly log?: Pick<Logger, 'info' | 'warn' | 'error'>;
}

/**
 * All requests enter the service here. Passes a request to `handler` only if all parsers agree on the meaning of its
 * target. Answers each error that `handler` does not catch. An uncaught error would end the process, and a proxy would
 * send the same request to the next node.
 */
export function guardRequests(handler: RequestHandler, options: RefusalOptions): RequestListener {
  const { log } = options;
  return async function answerRequest(request, response) {
    try {
      if (toOriginForm(request)) await handler(request, response);
      else refuseTarget(request, response, options);
    } catch (err) {
      const requestId = String(response.getHeader('X-Request-Id') ?? newRequestId());
      // After the headers are sent, a second answer would become a part of the first one.
      if (response.headersSent) response.destroy();
      else answerText(response, 500, { ...options, requestId, text: failureText(requestId) });
      log?.error({ requestId, err }, 'request failed');
    }
  };
}

/** A path with an optional query (RFC 9112 §3.2.1): visible ASCII characters without a fragment. */
const ORIGIN_FORM = /^\/[!"$-~]*$/;
const ABSOLUTE_FORM = /^https?:\/\/([^/?]*)/i;
const AUTHORITY = /^([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d+)?$/i;

/** Returns the host in lower case. The authority must have no userinfo and no escapes. */
export const hostIn = (authority = ''): string | undefined => AUTHORITY.exec(authority)?.[1]?.toLowerCase();

/**
 * Replaces a target in absolute-form by its path, and takes the host from it (RFC 9112 §3.2.2). Returns false for every
 * other target that is not in origin-form. Koa would parse such a target with `url.parse`, which throws for an invalid
 * host and reads some targets as having no path.
 */
function toOriginForm(request: IncomingMessage): boolean {
  const { url: target = '', headers } = request;
  if (ORIGIN_FORM.test(target)) return true;
  const [before = '', authority] = ABSOLUTE_FORM.exec(target) ?? [];
  const path = target.slice(before.length);
  const url = URL.parse(`http://${authority}`);
  // `URL` also accepts numbers and shortened addresses as hosts.
  if (!url || url.hostname !== hostIn(authority)) return false;
  const { pathname: root } = url;
  request.url = path.startsWith(root) ? path : root + path;
  // A request without a Host header stays invalid (RFC 9112 §3.2).
  if (headers.host !== undefined) headers.host = url.host;
  return ORIGIN_FORM.test(request.url);
}

/** Does not log the target, because it may contain a secret. */
function refuseTarget({ socket }: IncomingMessage, response: ServerResponse, options: RefusalOptions): void {
  const requestId = newRequestId();
  const { remoteAddress: address } = socket;
  const text =
    'The request target must be a path with an optional query, in percent-encoded ASCII and ' +
    `without a fragment (RFC 9112 §3.2). Reference: ${requestId}\n`;
  answerText(response, 400, { ...options, requestId, text });
  options.log?.info({ requestId, status: 400, address, code: 'invalid_target' }, 'no request');
}

interface Refusal extends RefusalOptions {
  readonly requestId: string;
  readonly text: string;
}

const headersOf = ({ headers, requestId, text }: Refusal) => ({
  Connection: 'close',
  ...headers,
  'Cache-Control': 'no-store',
  'Content-Type': 'text/plain; charset=utf-8',
  'Content-Length': Buffer.byteLength(text),
  'X-Request-Id': requestId,
});

/** Ends the connection after the answer. Drops the headers of an answer that was begun. */
function answerText(response: ServerResponse, status: number, refusal: Refusal): void {
  for (const name of response.getHeaderNames()) response.removeHeader(name);
  response.shouldKeepAlive = false;
  response.writeHead(status, STATUS_CODES[status], headersOf(refusal)).end(refusal.text);
}

/** The status for each error of Node's parser or timers. Any other error means invalid HTTP (400). */
const STATUSES: Readonly<Record<string, number>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 408,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  HPE_HEADER_OVERFLOW: 431,
};

const DROP_LOG_INTERVAL_MS = 60_000;

/**
 * Answers requests that Node's parser refuses, and closes the connection. Does not log what was sent, because it may be
 * a part of a request with a secret.
 * @param afterAnswers see `oneAtATime`
 */
export function answerBrokenRequests(
  server: Server,
  options: RefusalOptions,
  afterAnswers: (socket: Socket, work: () => void) => void,
): void {
  const { log } = options;
  function refuse(socket: Socket, status: number, code: string | undefined): void {
    if (!socket.writable) return;
    const requestId = newRequestId();
    const address = socket.remoteAddress;
    log?.info({ requestId, status, address, code }, 'no request');
    const text = `${STATUS_CODES[status]} (${requestId})\n`;
    const headers = Object.entries(headersOf({ ...options, requestId, text }));
    const lines = headers.map(([name, value]) => `${name}: ${value}`).join('\r\n');
    socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines}\r\n\r\n${text}`);
    // Destroy the socket: after `end()`, a client that continues to send keeps its half of the connection open.
    socket.destroySoon();
  }

  server.on('clientError', ({ code }: NodeJS.ErrnoException, socket: Socket) => {
    // ECONNRESET means that the client has closed the connection, so no one reads an answer.
    if (!socket.writable || code === 'ECONNRESET') socket.destroy();
    else afterAnswers(socket, () => refuse(socket, STATUSES[code ?? ''] ?? 400, code));
  });
  server.on('connect', (_, socket: Socket) => {
    socket.on('error', () => socket.destroy());
    afterAnswers(socket, () => refuse(socket, 405, 'CONNECT'));
    // After CONNECT, Node applies no timeouts, so close the socket at once if the answer is not sent yet.
    if (!socket.writableEnded || socket.writableLength > 0) socket.destroy();
  });

  let dropped = 0;
  let loggedAt = Number.NEGATIVE_INFINITY;
  server.on('drop', () => {
    dropped += 1;
    if (performance.now() - loggedAt < DROP_LOG_INTERVAL_MS) return;
    const { maxConnections } = server;
    log?.warn({ dropped, maxConnections }, 'connections are closed at once, because server.max_connections is reached');
    loggedAt = performance.now();
    dropped = 0;
  });
}
