/** `POST /oauth/introspect` over connections that stay open, and its stream of changes. */
import http from 'node:http';
import https from 'node:https';
import { IntrospectionFailure, type RawAnswer, refuseOtherStatus } from './introspection-answer.ts';

export interface IntrospectionEndpoint {
  /**
   * Introspects one token.
   *
   * @param deadline when the whole answer must have arrived, in the time of `performance.now()`.
   * @throws IntrospectionFailure `unreachable`, `timed_out` or `malformed_answer`.
   */
  ask(token: string, deadline: number): Promise<RawAnswer>;
  /**
   * Opens the stream of changes, on a separate connection.
   *
   * @param after the stream begins with the changes after this position. By default, no change is repeated.
   * @returns a function that ends the stream; the listener may still be called afterwards.
   */
  listen(to: StreamListener, after?: string): () => void;
  /** Closes the connections that are kept open. */
  close(): void;
}

export interface StreamListener {
  /** The service accepted the request: events follow. */
  onOpen(): void;
  onText(text: string): void;
  /** The stream could not be opened, broke, or ended. */
  onEnd(failure: IntrospectionFailure): void;
}

export interface EndpointOptions {
  readonly url: URL;
  /** The value of the Host header: the service accepts only requests to its issuer's host. */
  readonly host: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly maxConnections: number;
}

/** In characters: enough for an organization with ten thousand warehouses. */
const MAX_ANSWER_LENGTH = 4 * 1024 * 1024;
const STREAM = {
  asked: 'the change stream',
  throttled:
    'is refused for a while: this API has too many streams open ' +
    '(limits.change_streams_per_client), or sent too many wrong secrets',
};

export function createIntrospectionEndpoint(options: EndpointOptions): IntrospectionEndpoint {
  const { url, host, clientId, clientSecret, maxConnections } = options;
  const { request: open, Agent } = url.protocol === 'https:' ? https : http;
  // Node's fetch keeps connections open, too, but costs three times as much per request.
  const agent = new Agent({ keepAlive: true, maxSockets: maxConnections });
  // RFC 6749 §2.3.1: id and secret are form-encoded before they are joined.
  const credentials = [clientId, clientSecret].map(encodeURIComponent).join(':');
  const headers = {
    host,
    authorization: `Basic ${Buffer.from(credentials).toString('base64')}`,
    'content-type': 'application/x-www-form-urlencoded',
  };

  /** Sends one request. @returns undefined if the service closed a reused connection meanwhile. */
  function send(body: string, deadline: number): Promise<RawAnswer | undefined> {
    return new Promise((resolve, reject) => {
      const contentLength = { 'content-length': body.length };
      const request = open(url, {
        method: 'POST',
        agent,
        headers: { ...headers, accept: 'application/json', ...contentLength },
      });
      const giveUp = (failure: IntrospectionFailure): void => {
        reject(failure);
        request.destroy();
      };
      const timer = setTimeout(() => giveUp(timedOut(url)), Math.max(0, deadline - performance.now()));
      const broken = (error: NodeJS.ErrnoException): void => {
        const wasClosed = error.code === 'ECONNRESET' || error.code === 'EPIPE';
        if (request.reusedSocket && wasClosed) resolve(undefined);
        else reject(unreachable(url, error));
      };
      request.on('error', broken);
      let isAnswered = false;
      request.on('close', () => {
        clearTimeout(timer);
        // Node reports no error if the server switches to another protocol (status 101).
        if (!isAnswered) broken(new Error('no answer'));
      });
      request.on('response', (response) => {
        isAnswered = true;
        let text = '';
        response.setEncoding('utf8');
        response.on('error', broken);
        response.on('data', (chunk: string) => {
          text += chunk;
          if (text.length > MAX_ANSWER_LENGTH) giveUp(tooLong(url));
        });
        response.on('end', () => {
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text });
        });
      });
      request.end(body);
    });
  }

  return {
    async ask(token, deadline) {
      const body = `token=${encodeURIComponent(token)}`;
      for (;;) {
        // Retry: introspecting twice is harmless, and each failed try removes a closed connection.
        const answer = await send(body, deadline);
        if (answer) return answer;
      }
    },

    listen({ onOpen, onText, onEnd }, after) {
      const changes = changesOf(url);
      const request = open(changes, {
        headers: {
          ...headers,
          accept: EVENT_STREAM,
          ...(after !== undefined && { 'last-event-id': after }),
        },
        // Use a separate connection, because the stream occupies it permanently.
        agent: new Agent(),
      });
      const stop = (): void => {
        clearTimeout(opening);
        request.destroy();
      };
      const end = (failure: IntrospectionFailure): void => {
        stop();
        onEnd(failure);
      };
      const opening = setTimeout(() => end(timedOut(changes)), OPENING_LIMIT).unref();
      // The stream alone must not keep the process running.
      request.on('socket', (socket) => socket.unref());
      request.on('error', (error: NodeJS.ErrnoException) => end(unreachable(url, error)));
      request.on('response', (response) => {
        clearTimeout(opening);
        try {
          const { statusCode: status = 0, headers } = response;
          refuseOtherStatus({ status, headers }, STREAM);
        } catch (failure) {
          return end(failure as IntrospectionFailure);
        }
        if (!isEventStream(response.headers['content-type'])) return end(noEventStream(changes));
        onOpen();
        response.setEncoding('utf8');
        response.on('data', onText);
        response.on('error', (error: NodeJS.ErrnoException) => end(unreachable(url, error)));
        response.on('end', () => end(ended(changes)));
      });
      request.end();
      return stop;
    },

    close: () => agent.destroy(),
  };
}

/** Time limit in milliseconds from the request for the stream to its response headers. */
const OPENING_LIMIT = 5_000;
const EVENT_STREAM = 'text/event-stream';

const isEventStream = (contentType = ''): boolean => contentType.split(';')[0]?.trim().toLowerCase() === EVENT_STREAM;

function changesOf(url: URL): URL {
  const changes = new URL(url);
  changes.pathname = `${url.pathname}/changes`;
  return changes;
}

const ended = ({ href }: URL): IntrospectionFailure => new IntrospectionFailure('unreachable', `${href} ended`);

const noEventStream = ({ href }: URL): IntrospectionFailure =>
  new IntrospectionFailure('malformed_answer', `${href} does not answer with ${EVENT_STREAM}`);

const timedOut = ({ href }: URL): IntrospectionFailure =>
  new IntrospectionFailure('timed_out', `${href} did not answer in time`);

const tooLong = ({ href }: URL): IntrospectionFailure =>
  new IntrospectionFailure('malformed_answer', `${href} sent an answer that is too long`);

const unreachable = ({ href }: URL, cause: NodeJS.ErrnoException): IntrospectionFailure =>
  new IntrospectionFailure('unreachable', `${href} cannot be reached: ${cause.code ?? cause.message}`, { cause });
