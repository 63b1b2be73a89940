/** Event streams that show new requests of a client on its open pages. */
import { Readable } from 'node:stream';
import type { ChangeFeed } from '../storage/change-feed.ts';
import type { ClientRequests, LoggedRequest } from './client-requests.ts';

export type RequestStreams = ReturnType<typeof createRequestStreams>;

/** Shorter than the idle timeouts of our connections (listeners.ts) and of proxies. */
const HEARTBEAT_MS = 5_000;
/** Limits per node. Browsers open at most six connections to a host. */
const MAX_PER_ACCOUNT = 4;
const MAX_STREAMS = 200;
/** Limit for a slow reader, in addition to the buffer of the socket. If more data waits, the stream ends. */
const MAX_BUFFERED_BYTES = 16 * 1024;

export function createRequestStreams(parts: {
  readonly requests: Pick<ClientRequests, 'watch' | 'tail' | 'onLogged' | 'openCounts'>;
  readonly changes: Pick<ChangeFeed, 'isLive'>;
  readonly heartbeat?: number;
}) {
  const { requests, changes, heartbeat = HEARTBEAT_MS } = parts;
  const streams = new Map<Readable, { accountId: string; clientId: string; showNew(): void }>();
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

  /** Ends a stream, and makes its page not reconnect. */
  function over(stream: Readable): void {
    send(stream, 'event: over\ndata: \n\n');
    end(stream);
  }

  requests.onLogged((clientIds) => {
    for (const { clientId, showNew } of streams.values()) if (clientIds.includes(clientId)) showNew();
  });

  return {
    /**
     * @param isStillTheirs called at each heartbeat. The stream ends if this returns false, because the session that
     *   opened the stream has ended or the client no longer belongs to this user
     * @param shown converts an event to the form that the page reads
     * @returns undefined if too many streams are open, the change feed is down, or this node is closing
     */
    open(given: {
      readonly clientId: string;
      readonly accountId: string;
      isStillTheirs(): Promise<boolean>;
      shown(request: LoggedRequest): unknown;
    }): Readable | undefined {
      const { clientId, accountId, isStillTheirs, shown } = given;
      // If the user has too many streams, end the oldest one, because the user looks at the newest page.
      const [oldest] = [...streams].filter(([, one]) => one.accountId === accountId).at(-MAX_PER_ACCOUNT) ?? [];
      if (oldest) over(oldest);
      if (isEnding || !changes.isLive || streams.size >= MAX_STREAMS) return undefined;
      const stream = new Readable({ highWaterMark: MAX_BUFFERED_BYTES, read: () => {} });
      let sent: readonly string[] = [];
      let isAsked = false;
      async function sendNew(): Promise<void> {
        isAsked = false;
        if (!streams.has(stream)) return;
        const tail = await requests.tail(clientId);
        const added = tail.filter(({ id }) => !sent.includes(id)).toReversed();
        for (const request of added) send(stream, `data: ${JSON.stringify(shown(request))}\n\n`);
        sent = tail.map(({ id }) => id);
        // Each request can add a problem or show that its cause was removed.
        if (added.length === 0) return;
        const open = (await requests.openCounts(clientId)).get(clientId) ?? 0;
        send(stream, `event: problems\ndata: ${open}\n\n`);
      }
      // Read one after the other, so that no request is sent twice. Let at most one read wait, because a slow database
      // may take longer than the next notification. After a failure, the next read sends all requests.
      let reading = Promise.resolve();
      const showNew = (): void => {
        if (isAsked) return;
        isAsked = true;
        reading = reading.then(sendNew).catch(() => {});
      };
      streams.set(stream, { accountId, clientId, showNew });
      const beat = setInterval(async () => {
        const isTheirs = await isStillTheirs().catch(() => undefined);
        if (isTheirs) {
          void requests.watch(clientId);
          // Read now, because the database may have lost a notification.
          showNew();
          return send(stream, ':\n\n');
        }
        // If the check itself failed, the browser may reconnect, which checks everything again.
        return isTheirs === undefined ? end(stream) : over(stream);
      }, heartbeat).unref();
      stream.once('close', () => {
        streams.delete(stream);
        clearInterval(beat);
      });
      stream.on('error', () => {});
      // Send a comment at once, because a proxy may delay the headers until a body follows.
      stream.push(':\n\n');
      // Requests may have arrived since the page was rendered. The page skips those that it already shows.
      showNew();
      return stream;
    },

    /** Ends all streams, so that browsers reconnect and are checked with the current settings. */
    reopen,

    end() {
      isEnding = true;
      reopen();
    },
  };
}
