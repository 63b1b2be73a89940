/** Answers invalid or oversized HTTP, timeouts and unexpected errors; logs dropped connections. */
import {
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import { failureText, newRequestId } from './request-log.ts';

/** Handles a request. May throw or reject. */
export type RequestHandler = (request: IncomingMessage, response: ServerResponse) => unknown;

/**
 * The only place where requests enter the service. Passes `handler` only targets that every parser
 * reads alike, and answers each error that it does not catch itself: in an event handler of Node,
 * such an error would end the process, and a proxy would repeat the request at the next node.
 */
export function guardRequests(
  handler: RequestHandler,
  log: Pick<Logger, 'info' | 'error'> | undefined,
): RequestListener {
  return async function answerRequest(request, response) {
    try {
      if (toOriginForm(request)) await handler(request, response);
      else refuseTarget(request, response, log);
    } catch (err) {
      const requestId = String(response.getHeader('X-Request-Id') ?? newRequestId());
      // The client would take a second answer for a part of the first one.
      if (response.headersSent) response.destroy();
      else answerText(response, 500, { requestId, text: failureText(requestId) });
      log?.error({ requestId, err }, 'request failed');
    }
  };
}

/** A path with an optional query (RFC 9112 §3.2.1): visible ASCII characters without a fragment. */
const ORIGIN_FORM = /^\/[!"$-~]*$/;
/** A host as browsers and proxies write it, without userinfo or escapes. */
const ABSOLUTE_FORM = /^https?:\/\/(([a-z0-9.-]+|\[[0-9a-f:.]+\])(?::\d+)?)([/?].*)?$/i;

/**
 * Replaces a target in absolute-form by the path and the host in it (RFC 9112 §3.2.2). Returns false
 * for every other target that is not in origin-form: Koa would parse it with `url.parse`, which
 * throws for an invalid host and reads some targets as having no path.
 */
function toOriginForm(request: IncomingMessage): boolean {
  const { url: target = '', headers } = request;
  if (ORIGIN_FORM.test(target)) return true;
  const [, authority, name, path = ''] = ABSOLUTE_FORM.exec(target) ?? [];
  const url = URL.parse(`http://${authority}`);
  // `URL` also reads numbers and shortened addresses as hosts.
  if (!url || url.hostname !== name?.toLowerCase()) return false;
  const { pathname: root } = url;
  request.url = path.startsWith(root) ? path : root + path;
  // A request without a Host stays invalid (§3.2).
  if (headers.host !== undefined) headers.host = url.host;
  return ORIGIN_FORM.test(request.url);
}

/** Does not log the target, which may contain a secret. */
function refuseTarget(
  { socket }: IncomingMessage,
  response: ServerResponse,
  log: Pick<Logger, 'info'> | undefined,
): void {
  const requestId = newRequestId();
  const { remoteAddress: address } = socket;
  const text =
    'The request target must be a path with an optional query, in percent-encoded ASCII and ' +
    `without a fragment (RFC 9112 §3.2). Reference: ${requestId}\n`;
  answerText(response, 400, { requestId, text });
  log?.info({ requestId, status: 400, address, code: 'invalid_target' }, 'no request');
}

/** Ends the connection, and keeps nothing of an answer that was begun. */
function answerText(
  response: ServerResponse,
  status: number,
  { requestId, text }: { requestId: string; text: string },
): void {
  for (const name of response.getHeaderNames()) response.removeHeader(name);
  response.shouldKeepAlive = false;
  response
    .writeHead(status, STATUS_CODES[status], {
      'Cache-Control': 'no-store',
      Connection: 'close',
      'Content-Type': 'text/plain; charset=utf-8',
      'Content-Length': Buffer.byteLength(text),
      'X-Request-Id': requestId,
    })
    .end(text);
}

/** The status for an error of Node's parser or timers; any other error means invalid HTTP (400). */
const STATUSES: Readonly<Record<string, number>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 408,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  HPE_HEADER_OVERFLOW: 431,
};

const DROP_LOG_INTERVAL_MS = 60_000;

/**
 * Answers what Node's parser refuses, and closes the connection. Does not log what was sent: it may
 * be a truncated request with a secret.
 */
export function answerBrokenRequests(
  server: Server,
  log: Pick<Logger, 'info' | 'warn'> | undefined,
): void {
  const answers = new WeakMap<object, ServerResponse>();
  server.on('request', ({ socket }: IncomingMessage, response) => answers.set(socket, response));

  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    const answer = answers.get(socket);
    // Send nothing if an answer is in progress: the client would take this for a part of it.
    const isBeingAnswered =
      answer?.writableFinished === false && (answer.headersSent || answer.req.complete);
    // ECONNRESET: the client closed the connection, so there is no request and no reader.
    if (!socket.writable || isBeingAnswered || error.code === 'ECONNRESET') {
      socket.destroy();
      return;
    }
    const status = STATUSES[error.code ?? ''] ?? 400;
    const requestId = newRequestId();
    const address = socket.remoteAddress;
    log?.info({ requestId, status, address, code: error.code }, 'no request');
    const text = `${STATUS_CODES[status]} (${requestId})\n`;
    const lines = [
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
      'Connection: close',
      'Cache-Control: no-store',
      'Content-Type: text/plain; charset=utf-8',
      `Content-Length: ${text.length}`,
      `X-Request-Id: ${requestId}`,
    ];
    socket.write(`${lines.join('\r\n')}\r\n\r\n${text}`);
    // Destroy the socket: after `end()`, a client that continues to send keeps its half open.
    socket.destroySoon();
  });

  let dropped = 0;
  let loggedAt = Number.NEGATIVE_INFINITY;
  server.on('drop', () => {
    dropped += 1;
    if (performance.now() - loggedAt < DROP_LOG_INTERVAL_MS) return;
    const { maxConnections } = server;
    log?.warn(
      { dropped, maxConnections },
      'connections are closed at once, because server.max_connections is reached',
    );
    loggedAt = performance.now();
    dropped = 0;
  });
}
