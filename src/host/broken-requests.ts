/** What never becomes a request: bytes that are no HTTP, too many of them, too slow, too many at once. */
import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import { newRequestId } from './request-log.ts';

/** Of Node's parser and timers; anything else is no HTTP. */
const STATUS: Readonly<Record<string, number>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 408,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  HPE_HEADER_OVERFLOW: 431,
};

/** Milliseconds between two log entries about connections that were too many. */
const SILENCE = 60_000;

/**
 * Answers what Node's parser refuses, and closes the connection. What was sent is not logged: it
 * may be a request with a secret, cut off in the middle.
 */
export function answerBrokenRequests(
  server: Server,
  log: Pick<Logger, 'info' | 'warn'> | undefined,
): void {
  const answers = new WeakMap<object, ServerResponse>();
  server.on('request', ({ socket }: IncomingMessage, response) => answers.set(socket, response));

  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    const answer = answers.get(socket);
    // What came whole is answered already, or about to be: a refusal would be taken for its answer.
    const isBeingAnswered =
      answer?.writableFinished === false && (answer.headersSent || answer.req.complete);
    // A connection that its client ended (ECONNRESET) is no request, and has nobody to answer.
    if (!socket.writable || isBeingAnswered || error.code === 'ECONNRESET') {
      socket.destroy();
      return;
    }
    const status = STATUS[error.code ?? ''] ?? 400;
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
    // Not only ended: whoever goes on sending would keep the other half open.
    socket.destroySoon();
  });

  let dropped = 0;
  let toldAt = Number.NEGATIVE_INFINITY;
  server.on('drop', () => {
    dropped += 1;
    if (performance.now() - toldAt < SILENCE) return;
    const { maxConnections } = server;
    log?.warn({ dropped, maxConnections }, 'connections are closed at once: there are too many');
    toldAt = performance.now();
    dropped = 0;
  });
}
