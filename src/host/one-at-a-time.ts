/** Handles the pipelined requests of a connection one after another (RFC 9112 §9.3.2). */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Maximum number of waiting requests per connection. Few clients use pipelining at all. */
const MAX_WAITING = 16;

type Exchange = readonly [IncomingMessage, ServerResponse];

interface Pipeline {
  inProgress: Exchange;
  readonly waiting: Exchange[];
  /** True if more requests arrived than may wait. The connection then ends after the last waiting request. */
  isFull: boolean;
  /** Called instead of reading more requests. */
  last?: () => void;
}

/**
 * Returns a listener that calls `handler` for one request of a connection at a time. Node reads up to 64 KiB at once
 * and emits all requests in it, so one connection could have hundreds of requests in progress.
 */
export function oneAtATime(handler: RequestListener) {
  const pipelines = new WeakMap<Socket, Pipeline>();

  function start(pipeline: Pipeline): void {
    const [request, response] = pipeline.inProgress;
    const { socket } = request;
    response.once('close', () => {
      const next = pipeline.waiting.shift();
      // After an answer that ends the connection, no request is handled (RFC 9112 §9.6).
      if (!next || socket.destroyed || !response.shouldKeepAlive) {
        pipelines.delete(socket);
        if (response.shouldKeepAlive) pipeline.last?.();
        return;
      }
      const isLast = pipeline.waiting.length === 0;
      // The client must resend the dropped requests (RFC 9112 §9.3.2).
      if (isLast && pipeline.isFull) next[1].shouldKeepAlive = false;
      else if (isLast && !pipeline.last) socket.resume();
      pipeline.inProgress = next;
      start(pipeline);
    });
    handler(request, response);
  }

  return {
    answer(request: IncomingMessage, response: ServerResponse): void {
      const { socket } = request;
      const pipeline = pipelines.get(socket);
      if (!pipeline) {
        const opened: Pipeline = { inProgress: [request, response], waiting: [], isFull: false };
        pipelines.set(socket, opened);
        start(opened);
        return;
      }
      // Pausing is safe: the request in progress has its whole body, or this one could not be parsed.
      socket.pause();
      if (pipeline.waiting.length < MAX_WAITING) pipeline.waiting.push([request, response]);
      else pipeline.isFull = true;
    },

    /**
     * Calls `work`, which ends a connection after invalid input, when all earlier requests are answered. If it were
     * called earlier, the client would take its text as a part of another answer.
     */
    afterAnswers(socket: Socket, work: () => void): void {
      const pipeline = pipelines.get(socket);
      if (!pipeline) {
        work();
        return;
      }
      const [request, response] = pipeline.inProgress;
      if (!request.complete) {
        if (response.headersSent) socket.destroy();
        else work();
        return;
      }
      socket.pause();
      pipeline.last = work;
      if (pipeline.waiting.at(-1)?.[0].complete === false) pipeline.waiting.pop();
    },
  };
}
