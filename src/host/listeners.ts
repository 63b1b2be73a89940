/** The sockets the service listens on: opened, and closed without cutting anybody off. */
import { createServer, type RequestListener, type Server } from 'node:http';

/** Milliseconds. Node's own limits would let 500 slow clients hold their sockets for minutes. */
const LIMITS = { headersTimeout: 10_000, requestTimeout: 15_000, keepAliveTimeout: 65_000 };
/** Longer than any request may take; what is still open then is cut. */
const DRAIN_LIMIT = 8_000;

/** Rejects when the address is taken. */
export function listen(handler: RequestListener, port: number, host: string): Promise<Server> {
  const server = createServer(LIMITS, handler);
  return new Promise<Server>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => resolve(server));
  });
}

/** Answers what is in flight and takes nothing new. */
export async function drain(server: Server): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve));
  server.closeIdleConnections();
  const cut = setTimeout(() => server.closeAllConnections(), DRAIN_LIMIT);
  await closed;
  clearTimeout(cut);
}

/** Where a server listens, as a URL. */
export function addressOf(server: Server | undefined): string {
  const address = server?.address();
  if (address === null || typeof address !== 'object') return '';
  const host = address.family === 'IPv6' ? `[${address.address}]` : address.address;
  return `http://${host}:${address.port}`;
}
