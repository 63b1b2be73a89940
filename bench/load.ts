/** Load on one URL by a bounded number of connections, and what it measured. */
import autocannon from 'autocannon';

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

/** One connection: its requests go out one after another. */
export interface Conversation {
  next(): LoadRequest;
  /** Called with each answer, before `next` is asked again. */
  answered?(answer: LoadAnswer): void;
}

export interface Measurement {
  readonly requestsPerSecond: number;
  /** Milliseconds within which half of the answers came, and 99 of 100. */
  readonly p50: number;
  readonly p99: number;
  /** Answers outside 2xx and 3xx, and requests without one: with any, the rest means little. */
  readonly failures: number;
}

const CONNECTIONS = 32;

/** @param limit how long in seconds, or how many requests. */
export async function measure(
  url: string,
  limit: { readonly seconds: number } | { readonly requests: number },
  converse: () => Conversation,
): Promise<Measurement> {
  const durations: number[] = [];
  const started = performance.now();
  let ended = started;
  const result = await autocannon({
    url,
    connections: CONNECTIONS,
    ...('seconds' in limit ? { duration: limit.seconds } : { amount: limit.requests }),
    setupClient(client) {
      const conversation = converse();
      client.on('response', (_status, _bytes, duration) => {
        durations.push(duration);
        ended = performance.now();
      });
      client.setRequests([
        {
          setupRequest: (request) => ({ ...request, ...conversation.next() }),
          onResponse: (status, body, _context, headers) =>
            conversation.answered?.({ status, body, location: locationOf(headers) }),
        },
      ]);
    },
  });
  const failures = result['4xx'] + result['5xx'] + result.errors + result.timeouts;
  return measurementOf(durations, { milliseconds: ended - started, failures });
}

/** @param durations of each request, in milliseconds. */
export function measurementOf(
  durations: readonly number[],
  { milliseconds, failures }: { milliseconds: number; failures: number },
): Measurement {
  const sorted = durations.toSorted((a, b) => a - b);
  const quantile = (share: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  return {
    requestsPerSecond: sorted.length / (milliseconds / 1000),
    p50: quantile(0.5),
    p99: quantile(0.99),
    failures,
  };
}

function locationOf(headers: object | undefined): string | undefined {
  const found = Object.entries(headers ?? {}).find(([name]) => name.toLowerCase() === 'location');
  return typeof found?.[1] === 'string' ? found[1] : undefined;
}
