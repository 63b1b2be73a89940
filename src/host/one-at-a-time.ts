/** Pipelined requests (RFC 9112 §9.3.2) are worked on one by one, as if the client had waited. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Requests of one connection that wait for the answer before them. No HTTP client in common use
 * pipelines, so an honest one never has more than this waiting.
 */
const MAX_WAITING = 16;

/** The state of a connection with a request under way. */
interface Line {
  readonly waiting: (readonly [IncomingMessage, ServerResponse])[];
  /** More came than may wait: the connection ends after the last one that waits. */
  isFull: boolean;
}

/**
 * Calls `handler` for one request of a connection at a time. Node itself hands over every request
 * that it has parsed, 64 KiB of them at once, so that one connection would have as many under way
 * as hundreds of others.
 */
export function oneAtATime(handler: RequestListener): RequestListener {
  const lines = new WeakMap<Socket, Line>();

  function start(request: IncomingMessage, response: ServerResponse, line: Line): void {
    const { socket } = request;
    response.once('close', () => {
      const next = line.waiting.shift();
      if (!next || socket.destroyed) {
        lines.delete(socket);
        return;
      }
      const [nextRequest, nextResponse] = next;
      const isLast = line.waiting.length === 0;
      // What was not taken is for the client to send again (RFC 9112 §9.3.2).
      if (isLast && line.isFull) nextResponse.shouldKeepAlive = false;
      else if (isLast) socket.resume();
      start(nextRequest, nextResponse, line);
    });
    handler(request, response);
  }

  return (request, response) => {
    const { socket } = request;
    const line = lines.get(socket);
    if (!line) {
      const opened: Line = { waiting: [], isFull: false };
      lines.set(socket, opened);
      start(request, response, opened);
      return;
    }
    // The request under way has its whole body, or this one could not have been read.
    socket.pause();
    if (line.waiting.length < MAX_WAITING) line.waiting.push([request, response]);
    else line.isFull = true;
  };
}
