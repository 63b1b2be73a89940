/** A load balancer in front of nodes. */
import { Agent, createServer, type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import type { RunningNode } from './running-node.ts';

export interface Balancer {
  readonly issuer: string;
  /** Replaces the nodes among which it distributes requests in turn. */
  serve(nodes: readonly RunningNode[]): void;
  close(): Promise<void>;
}

/**
 * Starts a balancer that works like nginx: it reuses connections, and retries only requests that no
 * node can have received.
 */
export async function startBalancer(port: number): Promise<Balancer> {
  const agent = new Agent({ keepAlive: true, maxFreeSockets: 32 });
  const ready = new Set<RunningNode>();
  const stopping = new AbortController();
  let served: readonly RunningNode[] = [];
  let turn = 0;

  const server = createServer(async (incoming, outgoing) => {
    const body = await text(incoming);
    const nodes = [...ready];
    turn += 1;
    const first = turn;
    for (let attempt = 0; attempt < nodes.length; attempt += 1) {
      const node = nodes[(first + attempt) % nodes.length];
      if (!node) break;
      try {
        const answer = await pass(incoming, body, node.port);
        outgoing.writeHead(answer.status, answer.headers).end(answer.body);
        return;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ECONNREFUSED') break;
      }
    }
    outgoing.writeHead(502).end('no node answered');
  });
  await new Promise<void>((resolve) => server.listen(port, 'localhost', resolve));

  function pass(incoming: IncomingMessage, body: string, target: number): Promise<Passed> {
    const { method, url: path, headers } = incoming;
    const { connection: _, 'transfer-encoding': __, ...kept } = headers;
    const length = { 'content-length': String(Buffer.byteLength(body)) };
    const options = { host: 'localhost', port: target, method, path, agent };
    return new Promise((resolve, reject) => {
      const asking = request({ ...options, headers: { ...kept, ...length } }, (response) => {
        const { statusCode: status = 0, headers: answered } = response;
        const { connection: ___, 'keep-alive': ____, ...others } = answered;
        text(response).then((got) => resolve({ status, headers: others, body: got }), reject);
      });
      asking.on('error', reject);
      asking.end(body);
    });
  }

  /** Polls the readiness of each node, as load balancers do. */
  async function watch(): Promise<void> {
    while (!stopping.signal.aborted) {
      for (const node of served) {
        const status = await node.readyz().then(
          (answer) => answer.status,
          () => 0,
        );
        // A node that does not answer has ended. Do not remove it, because its connections are
        // refused anyway. `serve` may have replaced the nodes while this node was polled.
        if (status === 200 && served.includes(node)) ready.add(node);
        else if (status === 503) ready.delete(node);
      }
      await delay(20);
    }
  }

  const watching = watch();
  return {
    issuer: `http://localhost:${port}`,
    serve(nodes) {
      served = [...nodes];
      ready.clear();
      for (const node of nodes) ready.add(node);
    },
    async close() {
      stopping.abort();
      await watching;
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      agent.destroy();
    },
  };
}

interface Passed {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}
