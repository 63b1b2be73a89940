/** A reverse proxy that a test can configure correctly, or with chosen faults. */
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { buffer } from 'node:stream/consumers';
import { freePort } from '../support/programs.ts';

interface ProxyConduct {
  /** The port of the node; the proxy answers 502 if no server listens there. */
  leadTo: number;
  /**
   * What the proxy does with X-Forwarded-For. `set`: replaces it with the address of the
   * connection; `append`: adds that address; `pass`: leaves the header unchanged.
   */
  forwardedFor: 'set' | 'append' | 'pass';
  /** Headers that the proxy removes from requests and responses. */
  dropped: readonly string[];
  /** Sends a POST to this path twice, and passes on the second answer. */
  repeats?: string;
  /** Answers each request for this path with the first answer that sets no cookie, as nginx does. */
  caches?: string;
  /** Removes the attribute Secure from cookies. */
  isStrippingSecure?: boolean;
  /** How the proxy treats an event stream; by default it passes on each chunk at once. */
  stream?: 'buffer' | 'collect' | 'cut' | undefined;
  /** Called for an introspection request, which is then never answered. */
  onStall?: () => void;
}

export interface ReverseProxy {
  readonly port: number;
  /** The behavior of the proxy, which tests change between requests. */
  readonly conduct: ProxyConduct;
  close(): Promise<void>;
}

export async function startReverseProxy(tls?: { key: string; cert: string }): Promise<ReverseProxy> {
  const conduct: ProxyConduct = { leadTo: 1, forwardedFor: 'set', dropped: [] };
  const handle = (asked: IncomingMessage, answer: ServerResponse): void => {
    pass(asked, answer, conduct).catch(() => {
      answer.writeHead(502, { server: 'test proxy' }).end('<h1>502 Bad Gateway</h1>');
    });
  };
  const server = tls ? createTlsServer(tls, handle) : createServer(handle);
  const port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return {
    port,
    conduct,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function pass(asked: IncomingMessage, answer: ServerResponse, conduct: ProxyConduct): Promise<void> {
  if (conduct.onStall && asked.url === '/oauth/introspect') {
    conduct.onStall();
    return;
  }
  const body = await buffer(asked);
  const headers: Record<string, string | string[] | undefined> = { ...asked.headers };
  const from = asked.socket.remoteAddress ?? '';
  const before = headers['x-forwarded-for'];
  if (conduct.forwardedFor === 'set') headers['x-forwarded-for'] = from;
  if (conduct.forwardedFor === 'append') {
    headers['x-forwarded-for'] = [before, from].filter(Boolean).join(', ');
  }
  for (const name of conduct.dropped) delete headers[name];
  const send = (): Promise<IncomingMessage> =>
    new Promise((resolve, reject) => {
      const { method, url: path } = asked;
      const host = '127.0.0.1';
      request({ host, port: conduct.leadTo, method, path, headers, agent: false }, resolve)
        .once('error', reject)
        .end(body);
    });
  if (asked.method === 'POST' && asked.url === conduct.repeats) (await send()).resume();
  if (conduct.caches !== undefined && asked.url === conduct.caches) {
    const copy = cached.get(conduct) ?? (await copyOf(await send()));
    if (!copy.headers['set-cookie']) cached.set(conduct, copy);
    const { status, headers: sent, body: page } = copy;
    answer.writeHead(status, sent).end(page);
    return;
  }
  const answered = await send();
  const kept = Object.entries(answered.headers).filter(([name]) => !conduct.dropped.includes(name));
  const cookies = answered.headers['set-cookie']?.map((line) => line.replace(/; secure/gi, ''));
  const bared = conduct.isStrippingSecure && cookies ? { 'set-cookie': cookies } : {};
  answer.writeHead(answered.statusCode ?? 0, { ...Object.fromEntries(kept), ...bared });
  const isStream = answered.headers['content-type'] === 'text/event-stream';
  if (!isStream || conduct.stream === undefined) answered.pipe(answer);
  else if (conduct.stream === 'buffer') answered.resume();
  else if (conduct.stream === 'cut') answered.once('data', (chunk) => answer.end(chunk));
  else collect(answered, answer);
}

interface Copy {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}
const cached = new WeakMap<ProxyConduct, Copy>();
const copyOf = async (answered: IncomingMessage): Promise<Copy> => ({
  status: answered.statusCode ?? 0,
  headers: answered.headers,
  body: await buffer(answered),
});

/** Passes on a stream when it has eight heartbeats; events may arrive between them. */
function collect(from: IncomingMessage, to: ServerResponse): void {
  let waiting: Buffer[] = [];
  from.on('data', (chunk: Buffer) => {
    waiting.push(chunk);
    const collected = Buffer.concat(waiting);
    if ((collected.toString().match(/^:/gm)?.length ?? 0) < 8) return;
    to.write(collected);
    waiting = [];
  });
}
