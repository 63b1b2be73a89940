/** Requests to ourselves: real HTTP through every middleware, whatever stands before the service. */
import { type RequestListener, request } from 'node:http';
import { text } from 'node:stream/consumers';
import type { PostForm } from '../pages/routes.ts';
import { addressOf, drain, listen } from './listeners.ts';

/**
 * The issuer's own address may not be reachable from where we run (a proxy, a name that only the
 * world outside resolves, a certificate that Node does not trust), so each request gets a loopback
 * listener of its own, which lives as long as the request does.
 *
 * @param handler the application; asked for at each request, for it holds who makes them.
 */
export function createOwnRequests(parts: {
  issuer: string;
  handler: () => RequestListener;
}): PostForm {
  const { issuer, handler } = parts;
  const { host } = new URL(issuer);
  return async (path, form) => {
    const server = await listen(handler(), 0, '127.0.0.1');
    try {
      return await post(new URL(path, addressOf(server)), host, `${new URLSearchParams(form)}`);
    } finally {
      await drain(server);
    }
  };
}

/** Not `fetch`, which writes a `Host` of its own. */
function post(url: URL, host: string, body: string): ReturnType<PostForm> {
  const headers = { host, 'content-type': 'application/x-www-form-urlencoded' };
  return new Promise((resolve, reject) => {
    const asking = request(url, { method: 'POST', headers, agent: false }, (response) => {
      const { statusCode: status = 0 } = response;
      text(response).then((answered) => resolve({ status, body: answered }), reject);
    });
    asking.on('error', reject);
    asking.end(body);
  });
}
