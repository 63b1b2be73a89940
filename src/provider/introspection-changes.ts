/** `GET /oauth/introspect/changes`: streams the ids whose introspection answers have changed. */
import { Readable } from 'node:stream';
import type { Context } from 'koa';
import type { Answer, NextStep, Step } from '../base/answer.ts';
import type { ChangeFeed, ChangeTopic } from '../storage/change-feed.ts';
import { authenticatedClient, type ClientAuthentication } from './client-authentication.ts';
import { readOAuthForm } from './form.ts';
import { OAuthError } from './oauth-error.ts';
import { createRecentChanges, type RecentChanges } from './recent-changes.ts';

const HEARTBEAT_INTERVAL_MS = 250;
/** Tells readers the heartbeat interval. Every line that begins with a colon is a heartbeat, including this line. */
const FIRST_HEARTBEAT = `: heartbeat-ms=${HEARTBEAT_INTERVAL_MS}\n\n`;
/** Sent in place of `FIRST_HEARTBEAT` if the stream has repeated all changes that its reader missed. */
const REPEATED = `: heartbeat-ms=${HEARTBEAT_INTERVAL_MS} repeated\n\n`;
/** Maximum number of characters buffered in one stream. Later changes wait in the list that all streams share. */
const BUFFER_LENGTH = 16 * 1024;
/** A stream ends if its reader lags by more than this time. Otherwise, an API would use an outdated cached answer. */
const MAX_LAG_MS = 900;
/** Readers give up a stream whose first heartbeat does not arrive within this time. */
const MAX_BEGINNING_MS = 2_000;

export type ChangeStreams = ReturnType<typeof createChangeStreams>;

/**
 * The event streams of one node. A reload of the settings does not end them. Before the next turn of the event loop, a
 * change is written to every stream whose reader keeps up. So a request on this node is answered only after its change
 * is written. While the feed is not live, no stream is open, because a stream must not miss a change.
 */
export function createChangeStreams(changes: ChangeFeed) {
  const streams = new Set<ChangeStream>();
  const recent = createRecentChanges(changes);
  let isLeaving = false;
  let isWriting = false;

  function end(stream: ChangeStream): void {
    streams.delete(stream);
    stream.push(null);
  }

  function writeAll(): void {
    isWriting = false;
    for (const stream of streams) stream.write();
  }

  /** Writes all changes of one turn of the event loop together, for example those of one read from PostgreSQL. */
  function addToAll(text: string): void {
    recent.add(text);
    if (isWriting) return;
    isWriting = true;
    process.nextTick(writeAll);
  }

  changes.onChange((topic, key) => {
    // Skip the hash of an API key: a message with the id of the key follows.
    if (topic !== 'api-keys') addToAll(`data: ${nameOf(topic, key) || topic}\n\n`);
    if (topic === 'everything') recent.repeatNone();
    if (changes.isLive && topic !== 'clients') return;
    for (const stream of streams) {
      // End the client's own stream, so that its access is checked when it reconnects.
      if (changes.isLive && key !== stream.clientId) continue;
      stream.write();
      end(stream);
    }
  });

  function endAll(): void {
    for (const stream of streams) end(stream);
  }

  const heartbeat = setInterval(() => {
    // After a stall, this timer may run before the feed notices that it has missed notifications.
    const position = recent.position();
    if (!changes.isLive) return endAll();
    for (const stream of streams) stream.beat(position ? `: at=${position}\n\n` : ':\n\n');
  }, HEARTBEAT_INTERVAL_MS).unref();

  function stop(): void {
    isLeaving = true;
    clearInterval(heartbeat);
    endAll();
  }

  return {
    /**
     * @param max maximum number of streams of the client
     * @param after the position of the last heartbeat that the client has received on a lost stream; empty for none
     * @returns 'leaving' if this node is shutting down, 'away' if it receives no changes itself
     */
    open(clientId: string, max: number, after = ''): Readable | 'leaving' | 'away' | 'too many' {
      if (isLeaving) return 'leaving';
      if (!changes.isLive) return 'away';
      const ofClient = [...streams].filter((stream) => stream.clientId === clientId);
      if (ofClient.length >= max) return 'too many';
      const missed = recent.after(after);
      const stream = new ChangeStream(clientId, recent, missed);
      streams.add(stream);
      stream.once('close', () => streams.delete(stream));
      return stream;
    },

    /** Opens no more streams, asks readers to use another node, and ends the remaining streams after `withinMs`. */
    leave(withinMs: number): void {
      isLeaving = true;
      addToAll(': leaving\n\n');
      setTimeout(stop, withinMs).unref();
    },

    end: stop,
  };
}

/** Returns the public id in a key. The key of an authorization begins with the user's id, which is removed. */
const nameOf = (topic: ChangeTopic, key: string): string =>
  topic === 'authorizations' ? key.slice(key.indexOf(' ') + 1) : key;

/** Writes changes as fast as the reader of the stream reads them, and heartbeats when all changes are written. */
class ChangeStream extends Readable {
  readonly clientId: string;
  readonly #recent: RecentChanges;
  #next: number;
  /** The first heartbeat, or undefined once written. The heartbeat is written when no known change is left to write. */
  #beginning: string | undefined;
  #isReading = true;
  /** When the stream was opened and, later, when its first heartbeat was written (`performance.now()`). */
  #since = performance.now();

  /** @param missed the number of the first change that the reader missed on its lost stream; undefined if unknown */
  constructor(clientId: string, recent: RecentChanges, missed: number | undefined) {
    super({ highWaterMark: BUFFER_LENGTH });
    this.clientId = clientId;
    this.#recent = recent;
    this.#next = missed ?? recent.next;
    this.#beginning = missed === undefined ? FIRST_HEARTBEAT : REPEATED;
    this.on('error', () => {});
    // Write at once: proxies may delay headers without a body.
    this.write();
  }

  override _read(): void {
    this.#isReading = true;
    this.write();
  }

  write(): void {
    while (this.#isReading) {
      let text = '';
      let change = this.#recent.find(this.#next);
      while (change && text.length < BUFFER_LENGTH) {
        text += change.text;
        this.#next += 1;
        change = this.#recent.find(this.#next);
      }
      if (!change && this.#beginning !== undefined && this.#next === this.#recent.next) {
        text += this.#beginning;
        this.#beginning = undefined;
        this.#since = performance.now();
      }
      if (text === '') return;
      this.#isReading = this.push(text);
    }
  }

  /** Writes a heartbeat, or ends the stream if its reader is too far behind. */
  beat(text: string): void {
    if (this.#next === this.#recent.next) {
      if (this.#isReading) this.#isReading = this.push(text);
      return;
    }
    const now = performance.now();
    // Allow more time before the first heartbeat, because the reader relies on the stream only after this heartbeat.
    if (this.#beginning !== undefined) {
      if (now - this.#since > MAX_BEGINNING_MS) this.destroy();
      return;
    }
    const change = this.#recent.find(this.#next);
    if (!change || now - Math.max(change.arrivedAt, this.#since) > MAX_LAG_MS) this.destroy();
  }
}

export function introspectionChanges(parts: {
  readonly authentication: ClientAuthentication;
  readonly changeStreams: ChangeStreams;
  readonly maxPerClient: number;
}): Step[] {
  const { changeStreams, maxPerClient } = parts;
  return [
    readOAuthForm,
    parts.authentication.requireClient,
    refuseOthers,
    function openStream(ctx) {
      const { id } = authenticatedClient(ctx);
      const after = ctx.get('Last-Event-ID');
      const stream = ctx.method === 'HEAD' ? '' : changeStreams.open(id, maxPerClient, after);
      if (stream === 'leaving') throw unavailable({ 'Retry-After': '0' });
      if (stream === 'away') throw unavailable();
      if (stream === 'too many') {
        const description = `this client already has the maximum of ${maxPerClient} open streams on this process`;
        throw new OAuthError(429, 'too_many_streams', description, { 'Retry-After': RETRY_AFTER_SECONDS });
      }
      return { headers: STREAM_HEADERS, body: stream };
    },
  ];
}

const STREAM_HEADERS = {
  'Content-Type': 'text/event-stream',
  // A proxy that compresses or buffers the stream would delay its heartbeats.
  'Cache-Control': 'no-store, no-transform',
  'X-Accel-Buffering': 'no',
};

/**
 * A node that shuts down answers with `Retry-After: 0`, and then closes the connection. A proxy opens no new connection
 * to this node, so an immediate retry reaches another node. Meanwhile, the client's existing stream stays open.
 */
const unavailable = (headers?: Readonly<Record<string, string>>): OAuthError =>
  new OAuthError(503, 'temporarily_unavailable', 'try again in a moment', headers);

/** In seconds. A client to which a stream was refused introspects every token until its next attempt. */
const RETRY_AFTER_SECONDS = '60';

function refuseOthers(ctx: Context, next: NextStep): Promise<Answer> {
  if (authenticatedClient(ctx).kind === 'resource-server') return next();
  throw new OAuthError(403, 'unauthorized_client', 'only resource servers may read changes');
}
