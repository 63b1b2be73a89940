/** Holds the stream of changes open for three seconds, as a GraphQL API does for months. */
import { ENDPOINT } from '../provider/endpoints.ts';
import { ok, type Verdict } from './findings.ts';
import type { DoctorAnswer, DoctorStream, OpenStream } from './requests.ts';
import { described, type Trouble, troubled, troubleOnTheWay, unreachable } from './troubles.ts';

const PATH = ENDPOINT.introspectionChanges;

/** A comment. The first one says how often the next ones come, and nodes that leave send another. */
const HEARTBEAT = /^:.*\n\n/gm;
/** In milliseconds. */
export interface StreamWatch {
  /** How long the stream must stay open. */
  readonly watched: number;
  /** Until it has been watched for so long, on a slow machine as well. */
  readonly limit: number;
}

/** A service of before 0.2.0 sends a heartbeat each second. */
const STREAM_WATCH: StreamWatch = { watched: 2_900, limit: 6_000 };
/** Heartbeats that may arrive at once, as on a busy machine. A proxy that collects brings more. */
const MAX_AT_ONCE = 7;

const REMEDY =
  'let the proxy pass it on as it comes: without a buffer, a cache or compression, and with a time limit of minutes (nginx: proxy_buffering off; proxy_cache off; proxy_read_timeout 60s)';

/**
 * Takes three seconds, or twice as long where something is wrong, so the doctor does it while it checks
 * other things.
 *
 * @param client a resource server: only these may listen.
 */
export async function watchChanges(parts: Watch): Promise<Verdict> {
  const start = performance.now();
  // A node ends the streams of a client that changes, and may hear only now that this one was made.
  const trouble = (await watchOnce(parts)) && (await watchOnce(parts));
  if (trouble) return troubled(trouble);
  return ok('it stays open, and its heartbeats arrive one by one', performance.now() - start);
}

interface Watch {
  readonly openStream: OpenStream;
  readonly client: { readonly id: string; readonly secret: string };
  readonly signal: AbortSignal;
  /** Absent for three seconds. */
  readonly watch?: StreamWatch | undefined;
}

async function watchOnce({
  openStream,
  client,
  signal,
  watch = STREAM_WATCH,
}: Watch): Promise<Trouble | undefined> {
  const authorization = `Basic ${Buffer.from(`${client.id}:${client.secret}`).toString('base64')}`;
  const limit = AbortSignal.any([signal, AbortSignal.timeout(watch.limit)]);
  try {
    const stream = await openStream({ path: PATH, headers: { authorization } }, limit);
    return 'status' in stream ? refusalIn(stream) : await troubleIn(stream, watch, limit);
  } catch (error) {
    return limit.aborted ? heldBack(watch) : unreachable(error);
  }
}

const about = (what: string): Trouble => ({
  message: `GET ${PATH} ${what}: APIs go on asking for every request, or hear late that access ended`,
  remedy: REMEDY,
});

const heldBack = ({ limit }: StreamWatch): Trouble =>
  about(`brought nothing for ${limit / 1000} s, though the service sends four times a second`);

const refusalIn = (answer: DoctorAnswer): Trouble =>
  troubleOnTheWay(answer) ?? {
    message: `GET ${PATH} was answered ${described(answer)}`,
    remedy: 'let the proxy pass Authorization on, and see the log of the nodes for that request',
  };

async function troubleIn(
  { chunks, close }: DoctorStream,
  watch: StreamWatch,
  limit: AbortSignal,
): Promise<Trouble | undefined> {
  let arrived = 0;
  const start = performance.now();
  try {
    for await (const chunk of chunks) {
      const atOnce = chunk.match(HEARTBEAT)?.length ?? 0;
      if (atOnce > MAX_AT_ONCE)
        return about(`collects what it brings (${atOnce} heartbeats at once)`);
      arrived += atOnce;
      if (performance.now() - start >= watch.watched) return undefined;
    }
    // Without a promise that it ends, a stream that ends was cut, or came from a cache.
    return about(`ended after ${arrived} heartbeat(s)`);
  } catch (error) {
    if (limit.aborted) return heldBack(watch);
    return about(`was cut after ${arrived} heartbeat(s) (${(error as Error).message})`);
  } finally {
    close();
  }
}
