/** Holds the stream of changes open for three seconds, as a GraphQL API does for months. */
import { ENDPOINT } from '../../provider/endpoints.ts';
import type { Findings } from './findings.ts';
import type { DoctorAnswer, DoctorStream, OpenStream } from './requests.ts';
import { described, type Trouble, troubleOnTheWay, unreachable } from './troubles.ts';

const CHECK = 'change_stream';
const PATH = ENDPOINT.introspectionChanges;

/** The service sends one each second; the first comes with the headers. */
const HEARTBEAT = ':\n\n';
const NEEDED = 4;
/** Milliseconds for all of them, on a slow machine as well. */
const LIMIT = 6_000;
/** Heartbeats that arrive at once: a resource server trusts a stream for two seconds. */
const MAX_AT_ONCE = 2;

const REMEDY =
  'let the proxy pass it on as it comes: without a buffer, a cache or compression, and with a time limit of minutes (nginx: proxy_buffering off; proxy_cache off; proxy_read_timeout 60s)';

/** What became of the stream. */
export interface StreamOutcome {
  readonly trouble: Trouble | undefined;
  readonly ms: number;
}

/**
 * Takes three seconds, so the doctor does it while it checks other things.
 *
 * @param client a resource server: only these may listen.
 */
export async function watchChanges({
  openStream,
  client: { id, secret },
  signal,
}: {
  readonly openStream: OpenStream;
  readonly client: { readonly id: string; readonly secret: string };
  readonly signal: AbortSignal;
}): Promise<StreamOutcome> {
  const authorization = `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`;
  const limit = AbortSignal.any([signal, AbortSignal.timeout(LIMIT)]);
  const start = performance.now();
  let trouble: Trouble | undefined;
  try {
    const stream = await openStream({ path: PATH, headers: { authorization } }, limit);
    trouble = 'status' in stream ? refusalIn(stream) : await troubleIn(stream, limit);
  } catch (error) {
    trouble = limit.aborted ? HELD_BACK : unreachable(error);
  }
  return { trouble, ms: performance.now() - start };
}

export function reportChanges(
  findings: Findings,
  where: string,
  { trouble, ms }: StreamOutcome,
): void {
  if (trouble) findings.problem({ check: CHECK, where, ...trouble });
  else findings.ok(CHECK, 'it stays open, and its heartbeats arrive one by one', ms);
}

const about = (what: string): Trouble => ({
  message: `GET ${PATH} ${what}: APIs go on asking for every request, or hear late that access ended`,
  remedy: REMEDY,
});

const HELD_BACK = about(
  `brought nothing for ${LIMIT / 1000} s, though the service sends each second`,
);

const refusalIn = (answer: DoctorAnswer): Trouble =>
  troubleOnTheWay(answer) ?? {
    message: `GET ${PATH} was answered ${described(answer)}`,
    remedy: 'let the proxy pass Authorization on, and see the log of the nodes for that request',
  };

async function troubleIn(
  { chunks, close }: DoctorStream,
  limit: AbortSignal,
): Promise<Trouble | undefined> {
  let arrived = 0;
  try {
    for await (const chunk of chunks) {
      const atOnce = chunk.split(HEARTBEAT).length - 1;
      if (atOnce > MAX_AT_ONCE)
        return about(`collects what it brings (${atOnce} heartbeats at once)`);
      arrived += atOnce;
      if (arrived >= NEEDED) return undefined;
    }
    // Without a promise that it ends, a stream that ends was cut, or came from a cache.
    return about(`ended after ${arrived} heartbeat(s)`);
  } catch (error) {
    if (limit.aborted) return HELD_BACK;
    return about(`was cut after ${arrived} heartbeat(s) (${(error as Error).message})`);
  } finally {
    close();
  }
}
