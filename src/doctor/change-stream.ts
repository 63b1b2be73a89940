/** The doctor's check of the change stream: it opens a stream as an API does, but only for 3 s. */
import { ENDPOINT } from '../provider/endpoints.ts';
import { described, explainConnectionError, PROXY_HELP, unreachable } from './connection-errors.ts';
import { ok, problem, type Verdict } from './findings.ts';
import type { DoctorRequests } from './requests.ts';
import type { Visitor } from './visitor.ts';

const PATH = ENDPOINT.introspectionChanges;

/** Matches an SSE comment: the interval of heartbeats (sent first), a heartbeat, or the announcement of a shutdown. */
const HEARTBEAT = /^:.*\n\n/gm;
/** Maximum number of heartbeats that a busy machine delivers together. A buffering proxy delivers more. */
const MAX_AT_ONCE = 7;

/** How a stream is watched; times in milliseconds. */
export interface StreamWatch {
  readonly watched: number;
  /** The timeout of one attempt of the check. */
  readonly limit: number;
}

/** While the stream is watched, about eleven heartbeats arrive, which is more than `MAX_AT_ONCE`. */
const STREAM_WATCH: StreamWatch = { watched: 2_900, limit: 6_000 };

/**
 * Watches a stream for three seconds, or for up to twelve if something is wrong.
 *
 * @param client must be a resource server, because no other client may open the stream
 */
export async function watchChanges(
  openStream: DoctorRequests['openStream'],
  client: Visitor['client'],
  signal: AbortSignal,
  { watched, limit } = STREAM_WATCH,
): Promise<Verdict> {
  const headers = { authorization: client.authorization };

  async function troubleOnce(): Promise<Verdict | undefined> {
    const end = AbortSignal.any([signal, AbortSignal.timeout(limit)]);
    let arrived: number | undefined;
    try {
      const stream = await openStream({ path: PATH, headers }, end);
      if ('status' in stream) return explainConnectionError(stream) ?? refused(described(stream));
      arrived = 0;
      const start = performance.now();
      for await (const chunk of stream as AsyncIterable<string>) {
        const atOnce = chunk.match(HEARTBEAT)?.length ?? 0;
        if (atOnce > MAX_AT_ONCE) return about(`is buffered (${atOnce} heartbeats at once)`);
        arrived += atOnce;
        if (performance.now() - start >= watched) return undefined;
      }
      // The service does not end a stream so soon, so a proxy has cut the stream, or a cache has answered.
      return about(`ended after ${arrived} heartbeat(s)`);
    } catch (error) {
      const late = `delivered nothing for ${limit / 1000} s, although the service sends four times a second`;
      if (end.aborted) return about(late);
      if (arrived === undefined) return unreachable(error);
      return about(`was cut after ${arrived} heartbeat(s) (${(error as Error).message})`);
    }
  }

  const start = performance.now();
  // Try twice: the client is new, and a node that learns of this client during the first try ends the client's streams.
  const trouble = (await troubleOnce()) && (await troubleOnce());
  return trouble ?? ok('the stream stays open, and its heartbeats arrive one by one', performance.now() - start);
}

const about = (what: string): Verdict =>
  problem`GET ${PATH} ${what}: APIs must introspect on every request, or learn late that access has ended →
    make the proxy pass the stream on at once, with a timeout of minutes and no cache; ${PROXY_HELP}`;

const refused = (answer: string): Verdict =>
  problem`GET ${PATH} was answered ${answer} →
    make the proxy pass Authorization on, and search the log of the nodes for that request`;
