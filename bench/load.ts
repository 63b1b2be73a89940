/** Sends load to a URL over a fixed number of connections, and measures the answers. */
import { connect } from 'node:net';

export interface LoadRequest {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface LoadAnswer {
  readonly status: number;
  readonly body: string;
  readonly location: string | undefined;
}

/** The requests of one connection, which are sent one after another. */
export interface Conversation {
  next(): LoadRequest;
  /** Called with each answer, before the following call of `next`. */
  answered?(answer: LoadAnswer): void;
}

export interface Measurement {
  /** Answered requests, with any status. */
  readonly requests: number;
  readonly requestsPerSecond: number;
  /** Milliseconds within which 50 % of the answers arrived, 99 %, 99.9 %, and all. */
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  readonly longest: number;
  /** Answers with status 400 or more, and unanswered requests. If there are any, do not trust the other values. */
  readonly failures: number;
}

const CONNECTIONS = 32;
const TIMEOUT_MS = 10_000;

/**
 * Implements HTTP itself, because the load must be faster than the measured program to keep it busy. Reads only answers
 * with a Content-Length.
 *
 * @param limit the duration in seconds, or the number of requests. With `perSecond`, requests are planned at this
 * constant rate, however slow the answers are, and each duration counts from the planned moment.
 */
export async function measure(
  url: string,
  limit: { readonly seconds: number; readonly perSecond?: number } | { readonly requests: number },
  converse: () => Conversation,
): Promise<Measurement> {
  const durations: number[] = [];
  let failures = 0;
  let left = 'requests' in limit ? limit.requests : Number.POSITIVE_INFINITY;
  const started = performance.now();
  const end = 'seconds' in limit ? started + limit.seconds * 1000 : Number.POSITIVE_INFINITY;
  const perSecond = 'seconds' in limit ? limit.perSecond : undefined;
  let plannedRequests = 0;
  const planned = perSecond && (() => started + (1000 * plannedRequests++) / perSecond);
  const { host, hostname, port } = new URL(url);

  function converseOnce(conversation: Conversation): Promise<void> {
    return new Promise((resolve) => {
      const socket = connect({ host: hostname, port: Number(port), noDelay: true });
      let asked = 0;
      let isDone = false;
      let received = '';
      const ask = (): void => {
        const now = performance.now();
        asked = planned ? planned() : now;
        if (left > 0 && asked > now && asked < end) setTimeout(send, asked - now);
        else send();
      };
      const send = (): void => {
        if (left <= 0 || asked >= end) {
          isDone = true;
          socket.end();
          return;
        }
        left -= 1;
        socket.write(requestText(conversation.next(), host));
      };
      socket.setEncoding('latin1');
      socket.on('connect', ask);
      socket.on('data', (text: string) => {
        received += text;
        const answer = answerIn(received);
        if (!answer) return;
        received = '';
        durations.push(performance.now() - asked);
        if (answer.status >= 400) failures += 1;
        conversation.answered?.(answer);
        ask();
      });
      socket.setTimeout(TIMEOUT_MS, () => socket.destroy());
      socket.on('error', () => {});
      socket.on('close', () => {
        if (!isDone) failures += 1;
        resolve();
      });
    });
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, () => converseOnce(converse())));
  return measurementOf(durations, { milliseconds: performance.now() - started, failures });
}

/** Returns the request as HTTP text. */
function requestText({ method, path, headers = {}, body }: LoadRequest, host: string): string {
  let text = `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\n`;
  for (const name in headers) text += `${name}: ${headers[name]}\r\n`;
  if (body === undefined) return `${text}\r\n`;
  return `${text}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

/** Returns undefined until the answer is complete. */
function answerIn(text: string): LoadAnswer | undefined {
  const end = text.indexOf('\r\n\r\n') + 4;
  if (end < 4) return undefined;
  const head = text.slice(0, end);
  const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0);
  if (text.length < end + length) return undefined;
  const location = /\r\nlocation: (.*)\r\n/i.exec(head)?.[1];
  return { status: Number(head.slice(9, 12)), body: text.slice(end), location };
}

/** @param durations of each request, in milliseconds */
export function measurementOf(
  durations: readonly number[],
  { milliseconds, failures }: { milliseconds: number; failures: number },
): Measurement {
  const sorted = Float64Array.from(durations).sort();
  const quantile = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  return {
    requests: durations.length,
    requestsPerSecond: durations.length / (milliseconds / 1000),
    p50: quantile(0.5),
    p99: quantile(0.99),
    p999: quantile(0.999),
    longest: quantile(1),
    failures,
  };
}
