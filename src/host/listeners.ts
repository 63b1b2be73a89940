/** Opens the listeners of the service with limits, and closes them without dropping the requests of clients. */
import {
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeader,
  type OutgoingHttpHeaders,
  type Server,
  type ServerOptions,
  ServerResponse,
} from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';
import { answerBrokenRequests, guardRequests, type RefusalOptions, type RequestHandler } from './broken-requests.ts';
import { oneAtATime } from './one-at-a-time.ts';

/** Limits of one connection. Times are in milliseconds. */
export interface ConnectionLimits {
  /** Maximum bytes of request line and headers, enough for an authorization request with a long `state`. */
  readonly maxHeaderSize: number;
  /** Maximum time for all headers, from their first byte or, before one arrives, from the start of the connection. */
  readonly headersTimeout: number;
  /** Like `headersTimeout`, but until the whole body has arrived. */
  readonly requestTimeout: number;
  /** Time between two checks of `headersTimeout` and `requestTimeout`, which can be exceeded by this much. */
  readonly connectionsCheckingInterval: number;
  /** Time until an idle connection is closed. Proxies must close it earlier, or they may send a request just then. */
  readonly keepAliveTimeout: number;
  /** Maximum time without a byte in either direction during a request or an answer. */
  readonly idleTimeout: number;
}

/**
 * Node's defaults would let slow clients hold their sockets for minutes: 60 s for the headers and 300 s for a request,
 * checked every 30 s. Clients that do not read the answer could hold them forever.
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

/** After this time, which is longer than any request may take, the remaining connections are destroyed. */
const DRAIN_LIMIT_MS = 7_000;
/** Time between two attempts of `drain` to close connections that have become idle. */
const DRAIN_SWEEP_MS = 20;

export interface ListenOptions extends RefusalOptions, Pick<ServerOptions, 'ServerResponse'> {
  /** Limits that replace the default ones. */
  readonly limits?: Partial<ConnectionLimits>;
  /** Multiplies the timeouts of requests and answers; by default 1. */
  readonly timeoutFactor?: number;
  /** Maximum number of connections; further ones are closed at once. By default there is no limit. */
  readonly maxConnections?: number;
  /** If each of several processes sets this to true, they can listen on the same port; by default false. */
  readonly reusePort?: boolean;
}

/** Thrown if this system has no SO_REUSEPORT, so that several processes cannot share a port. */
export class PortNotShared extends Error {
  readonly code = 'port_not_shared';
}

/**
 * Maximum number of connections that wait to be accepted. `net.core.somaxconn` is another limit, by default the same.
 * If more connections arrive at once, Linux delays or resets some. Node's default is 511.
 */
const MAX_NOT_ACCEPTED = 4_096;

/** Rejects if the address is in use. Rejects with PortNotShared if the system cannot share a port. */
export function listen(
  handler: RequestHandler,
  port: number,
  host: string,
  options: ListenOptions = {},
): Promise<Server> {
  const { ServerResponse, limits, maxConnections, timeoutFactor = 1 } = options;
  const { reusePort = false } = options;
  const { idleTimeout, ...usual } = { ...LIMITS, ...limits };
  const times = {
    ...usual,
    headersTimeout: usual.headersTimeout * timeoutFactor,
    requestTimeout: usual.requestTimeout * timeoutFactor,
  };
  const { answer, afterAnswers } = oneAtATime(guardRequests(handler, options));
  const server = createServer(
    // Disable both checks. Node would answer a request without a Host or with an unknown expectation itself, and log
    // nothing.
    { ...times, requireHostHeader: false, ...(ServerResponse && { ServerResponse }) },
    answer,
  );
  server.on('checkExpectation', answer);
  server.setTimeout(idleTimeout * timeoutFactor);
  if (maxConnections !== undefined) server.maxConnections = maxConnections;
  answerBrokenRequests(server, options, afterAnswers);
  return new Promise<Server>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const isRefused = reusePort && error.code === 'ENOTSUP';
      reject(isRefused ? new PortNotShared(NOT_SHARED, { cause: error }) : error);
    });
    server.listen({ port, host, reusePort, backlog: MAX_NOT_ACCEPTED }, () => resolve(server));
  });
}

/**
 * Like `listen`, but `localhost` means both loopback addresses: the name resolves to only one, and a proxy or probe on
 * this machine may use the other. If the machine has only IPv4 or IPv6, one address is enough.
 */
export async function listenOnHost(
  handler: RequestHandler,
  port: number,
  host: string,
  options: ListenOptions = {},
): Promise<readonly Server[]> {
  if (host.toLowerCase() !== 'localhost') return [await listen(handler, port, host, options)];
  const servers: Server[] = [];
  let missing: unknown;
  for (const address of LOOPBACK_ADDRESSES) {
    try {
      // With port 0 the system chooses. Use the port of the first listener for both.
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

/**
 * Stops accepting connections. Resolves when the requests in progress are answered, or destroyed after a time limit.
 * Unlike `leave`, it does not wait for a client that still reads an answer.
 */
export async function drain(server: Server): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve));
  // Repeat this, because a connection becomes idle only when its answer ends. Some answers, such as streams, end late.
  const idle = setInterval(() => server.closeIdleConnections(), DRAIN_SWEEP_MS);
  const cut = setTimeout(() => server.closeAllConnections(), DRAIN_LIMIT_MS);
  await closed;
  clearInterval(idle);
  clearTimeout(cut);
}

export function addressOf(server: Server | undefined): string {
  const address = server?.address();
  if (address === null || typeof address !== 'object') return '';
  const host = address.family === 'IPv6' ? `[${address.address}]` : address.address;
  return `http://${host}:${address.port}`;
}

/**
 * Milliseconds between two sweeps of `closeWhenAnswered`. A sweep closes the idle connections of a closed port if no
 * request has arrived and no answer has ended since the previous sweep. A client may send a request on an idle
 * connection at the moment it is closed, and cannot know whether the request was accepted. So every connection stays
 * open for one more request.
 */
const LINGER_MS = 1_000;
/** After this many sweeps, idle connections are closed even if requests still arrive. */
const MAX_LINGERS = 4;

/**
 * The last part of the shutdown delay, in which connections stay open after an answer. A proxy without health checks
 * sends requests until the port refuses connections. A proxy that can reuse connections opens few new ones. Each new
 * connection is a risk: the system resets it if it is not accepted before the port closes.
 */
const REUSE_MS = 1_000;

const MAX_WAIT_FOR_QUIET_MS = 1_000;
/** If no connection was accepted for this long, none is waiting, unless an event loop turn exceeded `SHORT_TURN_MS`. */
const QUIET_MS = 5;
/**
 * A turn of the event loop accepts connections only at its start. After a turn longer than this, a connection that
 * arrived during the turn may still wait.
 */
const SHORT_TURN_MS = 1;

type Headers = OutgoingHttpHeaders | OutgoingHttpHeader[];

interface Answers {
  sent: number;
  /**
   * The answers in progress, in any order. Not a Set: V8 replaces a full Set's table, and the former table refers to
   * its entries and to the new table. Once a table is in the old generation, all later tables and entries get there.
   */
  readonly open: ServerResponse[];
}

/**
 * Closes a listener that still gets requests. Makes its clients reconnect, and answers every request. Use one call for
 * all servers that close together, such as those of both loopback addresses.
 */
export function createDeparture() {
  let phase: 'open' | 'announced' | 'closing soon' | 'closed' = 'open';
  const open: Answer[] = [];
  const answers: Answers = { sent: 0, open };

  class Answer<R extends IncomingMessage = IncomingMessage> extends ServerResponse<R> {
    /** The index of this answer in `open`. */
    #place = 0;

    override writeHead(status: number, reason?: string, headers?: Headers): this;
    override writeHead(status: number, headers?: Headers): this;
    override writeHead(status: number, reason?: string | Headers, headers?: Headers): this {
      if (phase === 'announced' || phase === 'closed') this.shouldKeepAlive = false;
      if (typeof reason === 'string') return super.writeHead(status, reason, headers);
      return super.writeHead(status, reason ?? headers);
    }

    override assignSocket(socket: Socket): void {
      // An answer that was destroyed before its turn on the connection is closed already.
      if (!this.destroyed) this.#track();
      super.assignSocket(socket);
    }

    #track(): void {
      this.#place = open.push(this as Answer) - 1;
      this.once('close', () => {
        // Fill the place of this answer with the last answer.
        const last = open.pop();
        if (!last || last === this) return;
        open[this.#place] = last;
        last.#place = this.#place;
      });
    }

    override detachSocket(socket: Socket): void {
      answers.sent += 1;
      super.detachSocket(socket);
    }
  }

  return {
    /** Create the servers with this response class. */
    ServerResponse: Answer,

    /**
     * Accepts requests during the delay, closes the ports, and resolves when every request is answered. Each answer
     * closes its connection (RFC 9112 §9.6), except in the last second before the ports close.
     * @param servers the servers that use `ServerResponse`
     * @param options.delayMs how long load balancers may take to notice that this node is leaving
     * @param options.onClosed called when the ports are closed, so that new connections reach other nodes
     */
    async leave(
      servers: readonly Server[],
      {
        delayMs = 0,
        onClosed,
        timeoutFactor = 1,
      }: { delayMs?: number; onClosed?: () => void; timeoutFactor?: number } = {},
    ): Promise<void> {
      if (delayMs > REUSE_MS) {
        phase = 'announced';
        await delay(delayMs - REUSE_MS);
      }
      phase = 'closing soon';
      await delay(Math.min(delayMs, REUSE_MS));
      await untilNoneWaits(servers, MAX_WAIT_FOR_QUIET_MS * timeoutFactor);
      // `close` of http.Server would also close the idle connections.
      const left = Promise.all(
        servers.map((server) => new Promise((resolve) => NetServer.prototype.close.call(server, resolve))),
      );
      phase = 'closed';
      onClosed?.();
      await closeWhenAnswered(servers, left, answers, DRAIN_LIMIT_MS * timeoutFactor);
    },
  };
}

/**
 * Closes the connections of servers whose ports are closed, and resolves when no connection is left. Idle connections
 * are closed when no more requests arrive (see `LINGER_MS`), and all other connections after `limitMs`.
 * @param left resolves when all connections are closed
 */
async function closeWhenAnswered(
  servers: readonly Server[],
  left: Promise<unknown>,
  answers: Answers,
  limitMs: number,
): Promise<void> {
  let sweeps = 0;
  let isAsked = false;
  let { sent } = answers;
  const markAsked = (): void => {
    isAsked = true;
  };
  for (const server of servers) server.on('request', markAsked);
  const cut = setTimeout(() => {
    for (const server of servers) server.closeAllConnections();
  }, limitMs);
  const idle = setInterval(() => {
    sweeps += 1;
    // While requests arrive, another may be on its way on any idle connection. Also when a stream ends, a proxy may
    // send the next request on the stream's connection at once.
    const hasCeased = !isAsked && answers.sent === sent;
    isAsked = false;
    sent = answers.sent;
    if (!hasCeased && sweeps < MAX_LINGERS) return;
    closeIdleConnections(servers, answers);
  }, LINGER_MS);
  await left;
  for (const server of servers) server.off('request', markAsked);
  clearInterval(idle);
  clearTimeout(cut);
}

/**
 * Closes idle connections, except those on which a client still reads its answer. Node.js regards a connection as idle
 * as soon as its answer is written.
 */
function closeIdleConnections(servers: readonly Server[], answers: Answers): void {
  const stillRead = answers.open.filter((answer) => answer.writableEnded && !answer.writableFinished);
  // With `finished` set to false, Node.js does not close the connection. Restore the value directly after the call.
  for (const answer of stillRead) answer.finished = false;
  for (const server of servers) server.closeIdleConnections();
  for (const answer of stillRead) answer.finished = true;
}

/** Resolves when every connection is accepted, because closing a port resets connections that still wait. */
async function untilNoneWaits(servers: readonly Server[], limitMs: number): Promise<void> {
  const limit = performance.now() + limitMs;
  let hasAccepted = true;
  let turnMs = 0;
  const markAccepted = (): void => {
    hasAccepted = true;
  };
  for (const server of servers) server.on('connection', markAccepted);
  while ((hasAccepted || turnMs > SHORT_TURN_MS) && performance.now() < limit) {
    hasAccepted = false;
    await delay(QUIET_MS);
    const start = performance.now();
    // Wait a turn, because timers run before the connections of the same turn are accepted.
    await nextTurn();
    turnMs = performance.now() - start;
  }
  for (const server of servers) server.off('connection', markAccepted);
}
