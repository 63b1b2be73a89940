/** A partner's callback: a real HTTP listener that keeps the redirects it receives. */
import { createServer } from 'node:http';
import { atEndOfFile } from './end-of-run.ts';
import { freePort } from './programs.ts';

export interface Partner {
  readonly origin: string;
  readonly redirectUri: string;
  /** The redirects that arrived at `redirectUri`, oldest first. */
  readonly received: readonly URL[];
  /** Waits for the next redirect that no earlier call has returned. */
  nextRedirect(): Promise<URL>;
}

/**
 * Starts a partner, for the rest of the file.
 *
 * @param onwardTo where the partner redirects the browser after its callback; without this URL
 *   the callback answers a page that says "connected".
 */
export async function startPartner({ onwardTo }: { onwardTo?: string } = {}): Promise<Partner> {
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  const redirectUri = `${origin}/callback`;
  const received: URL[] = [];
  const waiting: ((url: URL) => void)[] = [];
  let answered = 0;

  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', origin);
    if (url.pathname !== '/callback') {
      response.writeHead(url.pathname === '/' ? 200 : 404, HTML).end('<h1>partner</h1>');
      return;
    }
    received.push(url);
    const next = waiting.shift();
    if (next) {
      answered += 1;
      next(url);
    }
    if (onwardTo === undefined) response.writeHead(200, HTML).end('<h1>connected</h1>');
    else response.writeHead(302, { location: onwardTo }).end();
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  atEndOfFile(() => {
    server.close();
    server.closeAllConnections();
  });

  return {
    origin,
    redirectUri,
    received,
    nextRedirect() {
      const earlier = received[answered];
      if (!earlier) return new Promise((resolve) => waiting.push(resolve));
      answered += 1;
      return Promise.resolve(earlier);
    },
  };
}

const HTML = { 'content-type': 'text/html; charset=utf-8' };
