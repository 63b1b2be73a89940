/** A proxy that stands for a load balancer: it passes all requests to the node that is to answer them. */
import { Agent, createServer, request } from 'node:http';
import { text } from 'node:stream/consumers';
import type { RunningNode } from './running-node.ts';

export interface Balancer {
  readonly issuer: string;
  /** Passes further requests to this node; without one they are answered 502. */
  serve(node?: RunningNode): void;
  close(): Promise<void>;
}

export async function startBalancer(port: number): Promise<Balancer> {
  const agent = new Agent({ keepAlive: true, maxFreeSockets: 32 });
  let target: RunningNode | undefined;

  const server = createServer((incoming, outgoing) => {
    const { method, url: path, headers } = incoming;
    const refuse = (): void => void outgoing.writeHead(502).end('no node answered');
    if (!target) return refuse();
    const { connection: _, ...kept } = headers;
    const options = { host: 'localhost', port: target.port, method, path, headers: kept, agent };
    const asking = request(options, async (response) => {
      const { connection: __, 'keep-alive': ___, 'transfer-encoding': ____, ...others } = response.headers;
      outgoing.writeHead(response.statusCode ?? 0, others).end(await text(response));
    });
    asking.on('error', refuse);
    incoming.pipe(asking);
  });
  await new Promise<void>((resolve) => server.listen(port, 'localhost', resolve));

  return {
    issuer: `http://localhost:${port}`,
    serve(node) {
      target = node;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      agent.destroy();
    },
  };
}
