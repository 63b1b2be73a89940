/** HTTP requests of the service to itself: through every middleware, but past all proxies. */
import type { RequestListener } from 'node:http';
import { fetchAnswer } from '../base/outgoing-requests.ts';
import type { PostForm } from '../pages/routes.ts';
import type { RequestHandler } from './broken-requests.ts';
import { addressOf, drain, listen } from './listeners.ts';

/** Longer than any request to this service may take. */
const TIMEOUT_MS = 20_000;
/** Far more than an answer to a form of a client has. */
const MAX_BYTES = 1024 * 1024;

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
      const answer = await fetchAnswer(new URL(path, addressOf(server)), {
        method: 'POST',
        headers: { host },
        body: new URLSearchParams(form),
        timeoutMs: TIMEOUT_MS,
        maxBytes: MAX_BYTES,
        connect: { agent: false },
      });
      return { status: answer.status, body: await answer.text() };
    } finally {
      await drain(server);
    }
  };
}
