/** Sends HTTP requests of the service to itself. They pass all middleware, but no proxy. */
import type { Logger } from 'pino';
import { fetchAnswer } from '../base/outgoing-requests.ts';
import type { PostForm } from '../pages/routes.ts';
import type { RequestHandler } from './broken-requests.ts';
import { addressOf, drain, listen } from './listeners.ts';

/** Far above what a request of the service to itself takes. */
const LIMITS = { timeoutMs: 20_000, maxBytes: 1024 * 1024 };

/**
 * The issuer's address may be unreachable from this machine (a proxy, a name that resolves only elsewhere, a
 * certificate that Node does not trust), so a loopback listener is opened for each request and closed after the answer.
 *
 * @param handler returns the application; a function, because the application is created after this object
 */
export function createOwnRequests(parts: { issuer: string; log: Logger; handler: () => RequestHandler }): PostForm {
  const { issuer, log, handler } = parts;
  const { host } = new URL(issuer);
  return async (path, form) => {
    const server = await listen(handler(), 0, '127.0.0.1', { log });
    try {
      const body = new URLSearchParams(form);
      const request = { method: 'POST', headers: { host }, body, connect: { agent: false } };
      const answer = await fetchAnswer(new URL(path, addressOf(server)), request, LIMITS);
      return { status: answer.status, body: await answer.text() };
    } finally {
      await drain(server);
    }
  };
}
