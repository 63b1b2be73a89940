/** The doctor's check of the change stream: holds it open for 3 s, as an API does for months. */
import { ENDPOINT } from '../provider/endpoints.ts';
import {
  described,
  explainConnectionError,
  PROXY_HELP,
  type Trouble,
  troubled,
  unreachable,
} from './connection-errors.ts';
import { ok, type Verdict } from './findings.ts';
import type { DoctorAnswer, DoctorRequests, DoctorStream } from './requests.ts';

const PATH = ENDPOINT.introspectionChanges;

/** An SSE comment: a heartbeat, the interval (first) or a stopping node's announcement. */
const HEARTBEAT = /^:.*\n\n/gm;
/** How a stream is watched; times in milliseconds. */
export interface StreamWatch {
  /** How long the stream must stay open. */
  readonly watched: number;
  /** Time limit for the whole check, enough for slow machines. */
  readonly limit: number;
}

/** Long enough for about eleven heartbeats: more than a busy machine delivers at once. */
const STREAM_WATCH: StreamWatch = { watched: 2_900, limit: 6_000 };
/** Heartbeats that may arrive together on a busy machine; a buffering proxy delivers more. */
const MAX_AT_ONCE = 7;

const REMEDY = `make the proxy pass the stream on at once, with a timeout of minutes and no cache; ${PROXY_HELP}`;

/**
 * Watches a stream for three seconds, or up to twelve if something is wrong, so the doctor does
 * this during other checks.
 *
 * @param client a resource server: only these may open the stream
 */
export async function watchChanges(parts: Watch): Promise<Verdict> {
  const start = performance.now();
  // Try twice: a node ends the streams of a changed client, and may learn only now that it is new.
  const trouble = (await watchOnce(parts)) && (await watchOnce(parts));
  if (trouble) return troubled(trouble);
  return ok('the stream stays open, and its heartbeats arrive one by one', performance.now() - start);
}

interface Watch {
  readonly openStream: DoctorRequests['openStream'];
  readonly client: { readonly id: string; readonly secret: string };
  readonly signal: AbortSignal;
  /** Default: three seconds. */
  readonly watch?: StreamWatch | undefined;
}

async function watchOnce({ openStream, client, signal, watch = STREAM_WATCH }: Watch): Promise<Trouble | undefined> {
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
  message: `GET ${PATH} ${what}: APIs must ask on every request, or learn late that access has ended`,
  remedy: REMEDY,
});

const heldBack = ({ limit }: StreamWatch): Trouble =>
  about(`delivered nothing for ${limit / 1000} s, although the service sends four times a second`);

const refusalIn = (answer: DoctorAnswer): Trouble =>
  explainConnectionError(answer) ?? {
    message: `GET ${PATH} was answered ${described(answer)}`,
    remedy: 'make the proxy pass Authorization on, and search the log of the nodes for that request',
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
      if (atOnce > MAX_AT_ONCE) return about(`is buffered (${atOnce} heartbeats at once)`);
      arrived += atOnce;
      if (performance.now() - start >= watch.watched) return undefined;
    }
    // Report an ended stream: the service ends none by itself, so it was cut or came from a cache.
    return about(`ended after ${arrived} heartbeat(s)`);
  } catch (error) {
    if (limit.aborted) return heldBack(watch);
    return about(`was cut after ${arrived} heartbeat(s) (${(error as Error).message})`);
  } finally {
    close();
  }
}
