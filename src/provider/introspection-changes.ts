/** `GET /oauth/introspect/changes`: streams the ids whose introspection answers have changed. */
import { Readable } from 'node:stream';
import type { Context } from 'koa';
import type { Answer, NextStep, Step } from '../base/answer.ts';
import type { ChangeFeed } from '../storage/change-feed.ts';
import { authenticatedClient, type ClientAuthentication } from './client-authentication.ts';
import { readOAuthForm } from './form.ts';
import { OAuthError } from './oauth-error.ts';
import { createRecentChanges } from './recent-changes.ts';

const HEARTBEAT_INTERVAL_MS = 250;
/**
 * Announces the interval. Older versions of the module for resource servers take every line that
 * begins with a colon for a heartbeat, also this one, and expect one each second.
 */
const FIRST_HEARTBEAT = `: heartbeat-ms=${HEARTBEAT_INTERVAL_MS}\n\n`;
/** The first heartbeat if all changes that the reader has missed precede it. */
const REPEATED = `: heartbeat-ms=${HEARTBEAT_INTERVAL_MS} repeated\n\n`;
/** Asks readers to open their next stream at another node; for older versions it is a heartbeat. */
const LEAVING = ': leaving\n\n';
/** A stream ends if more than this waits for a slow reader, in addition to the socket's buffer. */
const MAX_WAITING_BYTES = 64 * 1024;

export type ChangeStreams = ReturnType<typeof createChangeStreams>;

/**
 * The event streams of one node; a reload of the settings does not end them.
 *
 * Each change is written to every stream before `announce` of the feed returns. While the feed is
 * not live there are no streams, because a stream promises to miss no change.
 */
export function createChangeStreams(changes: ChangeFeed) {
  const streams = new Map<Readable, string>();
  const recent = createRecentChanges(changes);
  let isLeaving = false;

  function end(stream: Readable): void {
    streams.delete(stream);
    stream.push(null);
  }

  function send(text: string): void {
    for (const stream of streams.keys()) {
      // Keep nothing for a slow reader: it clears its cache when its stream ends.
      if (!stream.push(text)) stream.destroy();
    }
  }

  changes.onChange((topic, key) => {
    // Skip hashes of API keys: a message with the key's id follows.
    if (topic === 'everything') recent.clear();
    if (topic !== 'api-keys') {
      const text = `data: ${key || topic}\n\n`;
      if (topic !== 'everything') recent.add(text);
      send(text);
    }
    for (const [stream, clientId] of streams) {
      // End the client's own stream, so that its access is checked when it reconnects.
      if (!changes.isLive || (topic === 'clients' && key === clientId)) end(stream);
    }
  });

  function endAll(): void {
    for (const stream of [...streams.keys()]) end(stream);
  }

  const heartbeat = setInterval(() => {
    // After a stall, this may run before the feed notices that it has missed notifications.
    const position = recent.position();
    if (changes.isLive) send(position ? `: at=${position}\n\n` : ':\n\n');
    else endAll();
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
      const ofClient = [...streams.values()].filter((owner) => owner === clientId);
      if (ofClient.length >= max) return 'too many';
      const stream = new Readable({ highWaterMark: MAX_WAITING_BYTES, read: () => {} });
      streams.set(stream, clientId);
      stream.once('close', () => streams.delete(stream));
      stream.on('error', () => {});
      // Send something at once: proxies may delay headers without a body.
      const missed = recent.after(after);
      stream.push(missed ? `${missed.join('')}${REPEATED}` : FIRST_HEARTBEAT);
      return stream;
    },

    /**
     * Opens no more streams, and asks the readers to open their next stream at another node.
     *
     * @param withinMs the time after which the remaining streams are ended
     */
    leave(withinMs: number): void {
      isLeaving = true;
      send(LEAVING);
      setTimeout(stop, withinMs).unref();
    },

    /** Ends all streams, and opens no more. */
    end: stop,
  };
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
      if (stream === 'too many') throw tooManyStreams(maxPerClient);
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
 * A proxy sends requests to a leaving node only on connections that it has kept, and this answer
 * closes one: an immediate retry reaches another node while the client's former stream is open.
 */
const unavailable = (headers?: Readonly<Record<string, string>>): OAuthError =>
  new OAuthError(503, 'temporarily_unavailable', 'try again in a moment', headers);

/** In seconds. Until the client retries, it introspects every token. */
const RETRY_AFTER_SECONDS = '60';

const tooManyStreams = (max: number): OAuthError =>
  new OAuthError(
    429,
    'too_many_streams',
    `this client already has the maximum of ${max} open streams on this process`,
    { 'Retry-After': RETRY_AFTER_SECONDS },
  );

function refuseOthers(ctx: Context, next: NextStep): Promise<Answer> {
  if (authenticatedClient(ctx).kind === 'resource-server') return next();
  throw new OAuthError(403, 'unauthorized_client', 'only resource servers may read changes');
}
