/** The ports of the sandbox: the same at each start, if they are free. */
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Listening {
  readonly port: number;
  close(): Promise<void>;
}

/** Listens on a port. @param port 0 for any free port. */
export async function listen(
  handler: RequestListener | undefined,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<Listening> {
  const server = createServer({ keepAliveTimeout: 65_000 }, handler);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Returns the wanted port, or another one if it is in use. */
export async function availablePort(wanted: number, host: string): Promise<number> {
  const probe = await listen(undefined, { host, port: wanted }).catch((error) => {
    if (error.code !== 'EADDRINUSE' && error.code !== 'EACCES') throw error;
    return listen(undefined, { host, port: 0 });
  });
  await probe.close();
  return probe.port;
}
