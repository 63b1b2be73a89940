/** Answers invalid or oversized HTTP and timeouts; logs dropped connections. */
import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import { newRequestId } from './request-log.ts';

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
