/** Writes the answers of the routes for programs. */
import { pipeline, Readable } from 'node:stream';
import type { Context } from 'koa';
import type { Answer } from '../base/answer.ts';

const statusOfAnswer = ({ status, body }: Answer): number => status ?? (body === undefined ? 204 : 200);

/**
 * Writes headers and body at once, because this is faster than setting each header by itself.
 * @param common the headers of every answer, unless the answer sets these itself
 */
export function sendAnswer(
  { res, state, response }: Context,
  answer: Answer,
  common: Readonly<Record<string, string>>,
): void {
  // The caller may disconnect during the write, which is no failure of the service.
  res.on('error', ignore);
  const { body } = answer;
  if (!response.writable) {
    if (body instanceof Readable) body.destroy();
    res.end();
    return;
  }
  const headers = { ...common, 'X-Request-Id': state.requestId, ...answer.headers };
  if (body instanceof Readable) {
    res.writeHead(statusOfAnswer(answer), headers);
    pipeline(body, res, ignore);
    return;
  }
  const text = typeof body === 'object' ? JSON.stringify(body) : (body ?? '');
  // A response with status 204 has no `Content-Length` (RFC 9110 §8.6).
  const length = body === undefined ? {} : { 'Content-Length': Buffer.byteLength(text) };
  res.writeHead(statusOfAnswer(answer), { ...headers, ...length }).end(text);
}

function ignore(): void {}
