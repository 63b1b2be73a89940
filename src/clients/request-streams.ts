/** Streams of events that a page reads while it is open: the requests of a client, as they happen. */
import { Readable } from 'node:stream';
import type { ChangeFeed } from '../storage/change-feed.ts';
import type { ClientRequest, ClientRequests } from './client-requests.ts';

export interface RequestStreams {
  /**
   * @param isStillTheirs asked while it is open, as often as the heart beats: a stream ends with the
   *   session it was opened in, and when the client is no longer this person's.
   * @param shown an event as the page takes it.
   * @returns undefined where there are too many, this node hears of no requests, or is about to end.
   */
  open(given: {
    readonly clientId: string;
    readonly accountId: string;
    isStillTheirs(): Promise<boolean>;
    shown(request: ClientRequest): unknown;
  }): Readable | undefined;
  /** Ends all of them: browsers come again, and are asked by the settings that are in force then. */
  reopen(): void;
  /** Ends all of them, and opens no more. */
  end(): void;
}

/** Milliseconds. Shorter than a connection may be silent (listeners.ts), and proxies' patience. */
const HEARTBEAT = 5_000;
/** Of one person on one node; browsers keep no more than six connections to a host. */
const MOST_PER_ACCOUNT = 4;
const MOST = 200;
/** Bytes that wait for a slow reader beside those of its socket; with more its stream ends. */
const MOST_WAITING = 16 * 1024;

/** Streams are those of one node. */
export function createRequestStreams(parts: {
  readonly requests: Pick<ClientRequests, 'subscribe' | 'watch' | 'latest'>;
  readonly changes: Pick<ChangeFeed, 'isLive'>;
  readonly heartbeat?: number;
}): RequestStreams {
  const { requests, changes, heartbeat = HEARTBEAT } = parts;
  const streams = new Map<Readable, string>();
  let isEnding = false;

  function end(stream: Readable): void {
    if (streams.delete(stream)) stream.push(null);
  }

  function reopen(): void {
    for (const stream of [...streams.keys()]) end(stream);
  }

  function send(stream: Readable, text: string): void {
    if (streams.has(stream) && !stream.push(text)) stream.destroy();
  }

  /** One that a person has not left, but opened first, ends for the next: only that is looked at. */
  function makeRoom(accountId: string): void {
    const theirs = [...streams].filter(([, owner]) => owner === accountId);
    const [oldest] = theirs;
    if (theirs.length < MOST_PER_ACCOUNT || !oldest) return;
    send(oldest[0], OVER);
    end(oldest[0]);
  }

  return {
    open({ clientId, accountId, isStillTheirs, shown }) {
      makeRoom(accountId);
      if (isEnding || !changes.isLive || streams.size >= MOST) return undefined;
      const stream = new Readable({ highWaterMark: MOST_WAITING, read: () => {} });
      streams.set(stream, accountId);
      const tell = (request: ClientRequest): void =>
        send(stream, `data: ${JSON.stringify(shown(request))}\n\n`);
      const unsubscribe = requests.subscribe(clientId, tell);
      const beat = setInterval(async () => {
        const isTheirs = await isStillTheirs().catch(() => undefined);
        if (isTheirs) {
          void requests.watch(clientId);
          return send(stream, ':\n\n');
        }
        // Where nobody could be asked the browser comes again, to a full check.
        if (isTheirs === false) send(stream, OVER);
        end(stream);
      }, heartbeat).unref();
      stream.once('close', () => {
        streams.delete(stream);
        clearInterval(beat);
        unsubscribe();
      });
      stream.on('error', () => {});
      // The headers alone may be held back on the way.
      stream.push(':\n\n');
      // Since the page was drawn some may have come; it knows those it has.
      requests.latest(clientId).toReversed().forEach(tell);
      return stream;
    },

    reopen,

    end() {
      isEnding = true;
      reopen();
    },
  };
}

/** Tells the page not to come again. */
const OVER = 'event: over\ndata: \n\n';
