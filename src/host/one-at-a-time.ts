/** Handles pipelined requests (RFC 9112 §9.3.2) one by one, as if the client had waited. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Maximum number of waiting requests per connection. No common HTTP client pipelines, so an honest
 * client never exceeds this.
 */
const MAX_WAITING = 16;

/** The state of a connection with a request in progress. */
interface Pipeline {
  readonly waiting: (readonly [IncomingMessage, ServerResponse])[];
  /** More requests arrived than may wait: the connection ends after the last waiting one. */
  isFull: boolean;
}

/**
 * Calls `handler` for one request of a connection at a time. Node emits every request in the up to
 * 64 KiB it reads at once: one connection could have hundreds of requests in progress.
 */
export function oneAtATime(handler: RequestListener): RequestListener {
  const pipelines = new WeakMap<Socket, Pipeline>();

  function start(request: IncomingMessage, response: ServerResponse, pipeline: Pipeline): void {
    const { socket } = request;
    response.once('close', () => {
      const next = pipeline.waiting.shift();
      // After an answer that ends the connection, no request is handled (RFC 9112 §9.6).
      if (!next || socket.destroyed || !response.shouldKeepAlive) {
        pipelines.delete(socket);
        return;
      }
      const [nextRequest, nextResponse] = next;
      const isLast = pipeline.waiting.length === 0;
      // The client has to resend the requests that were dropped (RFC 9112 §9.3.2).
      if (isLast && pipeline.isFull) nextResponse.shouldKeepAlive = false;
      else if (isLast) socket.resume();
      start(nextRequest, nextResponse, pipeline);
    });
    handler(request, response);
  }

  return (request, response) => {
    const { socket } = request;
    const pipeline = pipelines.get(socket);
    if (!pipeline) {
      const opened: Pipeline = { waiting: [], isFull: false };
      pipelines.set(socket, opened);
      start(request, response, opened);
      return;
    }
    // Pausing is safe: the request in progress has its whole body, or this one could not be parsed.
    socket.pause();
    if (pipeline.waiting.length < MAX_WAITING) pipeline.waiting.push([request, response]);
    else pipeline.isFull = true;
  };
}
