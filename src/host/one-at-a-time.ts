/** Ends the connection of a client that sends a request before the answer to its last one (RFC 9112 §9.3.2). */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Returns a listener that calls `handler` for one request of a connection at a time. Node reads up to 64 KiB at once
 * and emits all requests in it, so one connection could have hundreds of requests in progress. A client that pipelines
 * must resend the requests whose answers it did not get.
 */
export function oneAtATime(handler: RequestListener) {
  const answers = new WeakMap<Socket, ServerResponse>();

  /** An answer that is written is not pending: a client may send its next request as soon as it has read the answer. */
  function pendingOn(socket: Socket): ServerResponse | undefined {
    const answer = answers.get(socket);
    return answer?.writableEnded === false && !answer.destroyed ? answer : undefined;
  }

  function endAfter(answer: ServerResponse, socket: Socket): void {
    socket.pause();
    if (!answer.shouldKeepAlive) return;
    answer.shouldKeepAlive = false;
    // The headers may already have said that the connection stays open, so close it after the answer.
    answer.once('finish', () => socket.destroySoon());
  }

  return {
    answer(request: IncomingMessage, response: ServerResponse): void {
      const { socket } = request;
      const pending = pendingOn(socket);
      if (pending) {
        endAfter(pending, socket);
        return;
      }
      answers.set(socket, response);
      handler(request, response);
    },

    /**
     * Calls `work`, which answers invalid input and ends the connection. If an earlier answer is unfinished, ends the
     * connection after that answer, because the client would take the text of `work` as a part of it. If the input
     * belongs to a request whose answer has begun, ends the connection without calling `work`.
     */
    afterAnswers(socket: Socket, work: () => void): void {
      const answer = answers.get(socket);
      if (answer?.writableFinished && !answer.req.complete) socket.destroySoon();
      else if (!answer || answer.destroyed || answer.writableFinished) work();
      else if (answer.req.complete || answer.writableEnded) endAfter(answer, socket);
      else if (answer.headersSent) socket.destroy();
      else work();
    },
  };
}
