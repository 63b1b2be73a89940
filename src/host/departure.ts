/** How a listener goes away under load: its answers say so, and whoever is there is still answered. */
import {
  type IncomingMessage,
  type OutgoingHttpHeader,
  type OutgoingHttpHeaders,
  type Server,
  ServerResponse,
} from 'node:http';
import { Server as NetServer } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';

/**
 * Milliseconds. A client that keeps its connections may send a request at the very moment an idle
 * one is closed, and cannot know whether it was taken: so idle ones stay open for one more answer.
 */
const LINGER = 1_000;
/** Longer than any request may take; what is still open then is cut. */
const DRAIN_LIMIT = 7_000;

type Headers = OutgoingHttpHeaders | OutgoingHttpHeader[];

export interface Departure {
  /** What the listener is to answer with. */
  readonly ServerResponse: typeof ServerResponse;
  /** From now on every answer ends its connection (RFC 9112 §9.6), and its client makes a new one. */
  announce(): void;
  /** Lets nobody in any more. Resolves when everybody who was there is answered. */
  leave(server: Server): Promise<void>;
}

export function createDeparture(): Departure {
  let isAnnounced = false;

  class Answer<R extends IncomingMessage = IncomingMessage> extends ServerResponse<R> {
    override writeHead(status: number, reason?: string, headers?: Headers): this;
    override writeHead(status: number, headers?: Headers): this;
    override writeHead(status: number, reason?: string | Headers, headers?: Headers): this {
      if (isAnnounced) this.shouldKeepAlive = false;
      if (typeof reason === 'string') return super.writeHead(status, reason, headers);
      return super.writeHead(status, reason ?? headers);
    }
  }

  return {
    ServerResponse: Answer,

    announce() {
      isAnnounced = true;
    },

    async leave(server) {
      isAnnounced = true;
      // The system resets a connection that nobody has accepted yet: those that knock are let in.
      await nextTurn();
      await nextTurn();
      // That of http.Server would close the idle connections with it.
      const left = new Promise((resolve) => NetServer.prototype.close.call(server, resolve));
      const waiting = [
        setTimeout(() => server.closeIdleConnections(), LINGER),
        setTimeout(() => server.closeAllConnections(), DRAIN_LIMIT),
      ];
      await left;
      for (const timer of waiting) clearTimeout(timer);
    },
  };
}
