/** The sockets the service listens on: opened within limits, and closed without cutting anybody off. */
import {
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeader,
  type OutgoingHttpHeaders,
  type RequestListener,
  type Server,
  type ServerOptions,
  ServerResponse,
} from 'node:http';
import { Server as NetServer } from 'node:net';
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';
import type { Logger } from 'pino';
import { answerBrokenRequests } from './broken-requests.ts';
import { oneAtATime } from './one-at-a-time.ts';

/** What one connection may take. Times in milliseconds. */
export interface ConnectionLimits {
  /** Request line and headers, in bytes: an authorization request with a long `state` among them. */
  readonly maxHeaderSize: number;
  /** From the first byte, or from the connection on, until the headers are there. */
  readonly headersTimeout: number;
  /** The same with the body. */
  readonly requestTimeout: number;
  /** How often the two are looked at: they are exceeded by as much. */
  readonly connectionsCheckingInterval: number;
  /** Longer than a proxy keeps its connections, or it sends a request into one that is closing. */
  readonly keepAliveTimeout: number;
  /** Without a byte in either direction, in the middle of a request or an answer. */
  readonly idleTimeout: number;
}

/**
 * Node's own would let slow clients hold their sockets for minutes: 60 s for the headers and 300 s
 * for a request, looked at every 30 s, and for ever who does not read the answers.
 */
const LIMITS: ConnectionLimits = {
  maxHeaderSize: 16 * 1024,
  headersTimeout: 10_000,
  requestTimeout: 15_000,
  connectionsCheckingInterval: 2_000,
  keepAliveTimeout: 65_000,
  idleTimeout: 20_000,
};

const NOT_SHARED =
  'this system cannot share a port between processes (SO_REUSEPORT): remove `server.reuse_port`, ' +
  'and give each process a port of its own behind a load balancer';

/** Longer than any request may take; what is still open then is cut. */
const DRAIN_LIMIT = 7_000;
/** Milliseconds between two looks for what is answered. */
const SWEEP = 20;

export interface ListenOptions extends Pick<ServerOptions, 'ServerResponse'> {
  /** In place of the usual ones. */
  readonly limits?: Partial<ConnectionLimits>;
  /** Multiplies how long a request and an answer may take, in place of 1. */
  readonly patience?: number;
  /** Further connections are closed at once. Default: no limit. */
  readonly maxConnections?: number;
  /** Lets other processes of this machine that say so too listen there. Default: false. */
  readonly reusePort?: boolean;
  /** Told of requests that are none, and of connections that are too many. */
  readonly log?: Pick<Logger, 'info' | 'warn'>;
}

/** Connections of one port may come to several processes on some systems only (SO_REUSEPORT). */
export class PortNotShared extends Error {
  readonly code = 'port_not_shared';
}

/** Rejects when the address is taken, and with PortNotShared where the system shares no port. */
export function listen(
  handler: RequestListener,
  port: number,
  host: string,
  options: ListenOptions = {},
): Promise<Server> {
  const { ServerResponse, limits, maxConnections, log, patience = 1 } = options;
  const { reusePort = false } = options;
  const { idleTimeout, ...usual } = { ...LIMITS, ...limits };
  const times = {
    ...usual,
    headersTimeout: usual.headersTimeout * patience,
    requestTimeout: usual.requestTimeout * patience,
  };
  const answer = oneAtATime(handler);
  const server = createServer(
    // Without a Host, or with an unknown expectation, Node would answer for itself, and no log line
    // would tell of it.
    { ...times, requireHostHeader: false, ...(ServerResponse && { ServerResponse }) },
    answer,
  );
  server.on('checkExpectation', answer);
  server.setTimeout(idleTimeout * patience);
  if (maxConnections !== undefined) server.maxConnections = maxConnections;
  answerBrokenRequests(server, log);
  return new Promise<Server>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const isRefused = reusePort && error.code === 'ENOTSUP';
      reject(isRefused ? new PortNotShared(NOT_SHARED, { cause: error }) : error);
    });
    server.listen({ port, host, reusePort }, () => resolve(server));
  });
}

/**
 * Like `listen`, but `localhost` means both loopback addresses, of which the name resolves to one: a
 * proxy or probe on this machine may use the other. A machine without IPv6 or IPv4 has only one.
 */
export async function listenOnHost(
  handler: RequestListener,
  port: number,
  host: string,
  options: ListenOptions = {},
): Promise<readonly Server[]> {
  if (host.toLowerCase() !== 'localhost') return [await listen(handler, port, host, options)];
  const servers: Server[] = [];
  let missing: unknown;
  for (const address of LOOPBACK_ADDRESSES) {
    try {
      // Port 0 lets the system choose, once for both.
      const chosen = portOf(servers[0]) ?? port;
      servers.push(await listen(handler, chosen, address, options));
    } catch (error) {
      missing = error;
      if (NO_SUCH_ADDRESS.includes((error as NodeJS.ErrnoException).code ?? '')) continue;
      await Promise.all(servers.map(drain));
      throw error;
    }
  }
  if (servers.length === 0) throw missing;
  return servers;
}

const LOOPBACK_ADDRESSES = ['127.0.0.1', '::1'];
const NO_SUCH_ADDRESS = ['EADDRNOTAVAIL', 'EAFNOSUPPORT'];

function portOf(server: Server | undefined): number | undefined {
  const address = server?.address();
  return address && typeof address === 'object' ? address.port : undefined;
}

/** Answers what is in flight and takes nothing new. */
export async function drain(server: Server): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve));
  // What is answered later may have promised to keep its connection, as a stream has that ends now.
  const idle = setInterval(() => server.closeIdleConnections(), SWEEP);
  const cut = setTimeout(() => server.closeAllConnections(), DRAIN_LIMIT);
  await closed;
  clearInterval(idle);
  clearTimeout(cut);
}

/** Where a server listens, as a URL. */
export function addressOf(server: Server | undefined): string {
  const address = server?.address();
  if (address === null || typeof address !== 'object') return '';
  const host = address.family === 'IPv6' ? `[${address.address}]` : address.address;
  return `http://${host}:${address.port}`;
}

/**
 * Milliseconds. A client that keeps its connections may send a request at the very moment an idle
 * one is closed, and cannot know whether it was taken: so idle ones stay open for one more answer,
 * until no request arrived for so long.
 */
const LINGER = 1_000;
/** From then on idle connections are closed even if requests still arrive. */
const MAX_LINGERS = 4;

/**
 * Milliseconds before the port closes in which connections are kept again. A proxy without health
 * checks sends until the port refuses it: with connections to reuse it opens hardly any new ones, and
 * the system resets each new one that was not accepted before the port closed.
 */
const REUSE = 1_000;

/** Milliseconds to wait for a moment without new connections. */
const MAX_WAIT_FOR_QUIET = 1_000;
/** Milliseconds. In a longer turn of the event loop, connections may have arrived unseen. */
const MAX_QUIET_TURN = 0.1;

type Headers = OutgoingHttpHeaders | OutgoingHttpHeader[];

/** Closes a listener under load: tells its clients to connect again, and answers every request. */
export function createDeparture() {
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
    /** The response class to create the listener with. */
    ServerResponse: Answer,

    /**
     * Takes requests for the delay, then closes the port, and resolves when every request is answered.
     * Answers end their connections (RFC 9112 §9.6), except in the last second before the port closes.
     *
     * @param options.delayMs how long load balancers may take to notice that this node leaves.
     * @param options.onClosed called when the port is closed: new connections go to other nodes.
     * @param options.onUnreachable called each second once the port is closed and requests have ceased:
     *   new ones go to other nodes, so that is when streams should end.
     */
    async leave(
      server: Server,
      {
        delayMs = 0,
        onClosed,
        onUnreachable,
      }: { delayMs?: number; onClosed?: () => void; onUnreachable?: () => void } = {},
    ): Promise<void> {
      if (delayMs > REUSE) {
        isAnnounced = true;
        await delay(delayMs - REUSE);
        isAnnounced = false;
      }
      await delay(Math.min(delayMs, REUSE));
      await untilNoneWaits(server);
      // That of http.Server would close the idle connections with it.
      const left = new Promise((resolve) => NetServer.prototype.close.call(server, resolve));
      isAnnounced = true;
      onClosed?.();
      let sweeps = 0;
      let isAsked = false;
      const markAsked = (): void => {
        isAsked = true;
      };
      server.on('request', markAsked);
      const cut = setTimeout(() => server.closeAllConnections(), DRAIN_LIMIT);
      const idle = setInterval(() => {
        sweeps += 1;
        // While requests arrive, the next one may be on its way on any idle connection.
        if (!isAsked || sweeps >= MAX_LINGERS) {
          server.closeIdleConnections();
          onUnreachable?.();
        }
        isAsked = false;
      }, LINGER);
      await left;
      server.off('request', markAsked);
      clearInterval(idle);
      clearTimeout(cut);
    },
  };
}

/**
 * Resolves when every connection that reached the port is accepted: the system resets those that wait
 * when the port closes. Node accepts one in each turn of the event loop.
 */
async function untilNoneWaits(server: Server): Promise<void> {
  const limit = performance.now() + MAX_WAIT_FOR_QUIET;
  let hasAccepted: boolean;
  let turnBegan: number;
  const markAccepted = (): void => {
    hasAccepted = true;
  };
  server.on('connection', markAccepted);
  await nextTurn();
  do {
    hasAccepted = false;
    turnBegan = performance.now();
    await nextTurn();
  } while (
    (hasAccepted || performance.now() - turnBegan > MAX_QUIET_TURN) &&
    performance.now() < limit
  );
  server.off('connection', markAccepted);
}
