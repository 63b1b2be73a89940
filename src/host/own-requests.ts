/** HTTP requests of the service to itself: through every middleware, but past all proxies. */
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import type { Logger } from 'pino';
import type { PostForm } from '../pages/routes.ts';
import type { RequestHandler } from './broken-requests.ts';
import { addressOf, drain, listen } from './listeners.ts';

/**
 * The issuer's address may be unreachable from this machine (a proxy, a name that resolves only
 * elsewhere, a certificate that Node does not trust), so a loopback listener is opened for each
 * request and closed after the answer.
 *
 * @param handler called for each request: the application itself contains the senders
 */
export function createOwnRequests(parts: {
  issuer: string;
  log: Logger;
  handler: () => RequestHandler;
}): PostForm {
  const { issuer, log, handler } = parts;
  const { host } = new URL(issuer);
  return async (path, form) => {
    const server = await listen(handler(), 0, '127.0.0.1', { log });
    try {
      return await post(new URL(path, addressOf(server)), host, `${new URLSearchParams(form)}`);
    } finally {
      await drain(server);
    }
  };
}

/** Does not use `fetch`, which sends its own `Host` header. */
function post(url: URL, host: string, body: string): ReturnType<PostForm> {
  const headers = { host, 'content-type': 'application/x-www-form-urlencoded' };
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { method: 'POST', headers, agent: false }, (response) => {
      const { statusCode: status = 0 } = response;
      text(response).then((answered) => resolve({ status, body: answered }), reject);
    });
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}
