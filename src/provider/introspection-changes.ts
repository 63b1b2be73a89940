/** `GET /oauth/introspect/changes`: resource servers hear which introspection answers are no longer true. */
import { Readable } from 'node:stream';
import type { Context, Middleware } from 'koa';
import type { ChangeFeed } from '../storage/change-feed.ts';
import { authenticatedClient, type ClientAuthentication } from './client-authentication.ts';
import { readOAuthForm } from './form.ts';
import { OAuthError } from './oauth-error.ts';

/** Milliseconds between two heartbeats. */
const HEARTBEAT_INTERVAL = 250;
/**
 * Says how soon to expect the next one. Versions of the module that do not read it take it, like
 * every line that begins with a colon, for a heartbeat of a service that sends one each second.
 */
const FIRST_HEARTBEAT = `: heartbeat-ms=${HEARTBEAT_INTERVAL}\n\n`;
const HEARTBEAT = ':\n\n';
/** Asks for the next stream to be opened, which another node will answer. A heartbeat to older versions. */
const LEAVING = ': leaving\n\n';
/** Bytes that wait for a slow reader beside those of its socket; with more its stream ends. */
const MOST_WAITING = 64 * 1024;

export type ChangeStreams = ReturnType<typeof createChangeStreams>;

/**
 * Streams of events, which outlive a reload and are those of one node.
 *
 * Each change is in every stream before `tell` of the feed returns. While the feed is not live there
 * is no stream: nothing is promised that is not known.
 */
export function createChangeStreams(changes: ChangeFeed) {
  const streams = new Map<Readable, string>();
  let isLeaving = false;

  function end(stream: Readable): void {
    streams.delete(stream);
    stream.push(null);
  }

  function send(text: string): void {
    for (const stream of streams.keys()) {
      // Its reader forgets everything when it ends, so nothing needs to be kept for it.
      if (!stream.push(text)) stream.destroy();
    }
  }

  changes.onChange((topic, key) => {
    // By their ids, which are told after the hash.
    if (topic !== 'api-keys') send(`data: ${key || topic}\n\n`);
    for (const [stream, clientId] of streams) {
      // Whether it may listen on is found out when it comes again.
      if (!changes.isLive || (topic === 'clients' && key === clientId)) end(stream);
    }
  });

  function endAll(): void {
    for (const stream of [...streams.keys()]) end(stream);
  }

  const heartbeat = setInterval(() => {
    // A process that was stalled may get here before its feed notices that it heard nothing.
    if (changes.isLive) send(HEARTBEAT);
    else endAll();
  }, HEARTBEAT_INTERVAL).unref();

  function stop(): void {
    isLeaving = true;
    clearInterval(heartbeat);
    endAll();
  }

  return {
    /**
     * @param max streams that the client may have.
     * @returns 'away' where this node hears of no changes itself, or is about to end.
     */
    open(clientId: string, max: number): Readable | 'away' | 'too many' {
      if (isLeaving || !changes.isLive) return 'away';
      const ofClient = [...streams.values()].filter((owner) => owner === clientId);
      if (ofClient.length >= max) return 'too many';
      const stream = new Readable({ highWaterMark: MOST_WAITING, read: () => {} });
      streams.set(stream, clientId);
      stream.once('close', () => streams.delete(stream));
      stream.on('error', () => {});
      // The headers alone may be held back on the way.
      stream.push(FIRST_HEARTBEAT);
      return stream;
    },

    /**
     * Opens no more, and asks the readers to open their next stream at another node.
     *
     * @param withinMs milliseconds after which the streams end that are still open.
     */
    leave(withinMs: number): void {
      isLeaving = true;
      send(LEAVING);
      setTimeout(stop, withinMs).unref();
    },

    /** Ends all of them, and opens no more. */
    end: stop,
  };
}

export function introspectionChanges(parts: {
  readonly authentication: ClientAuthentication;
  readonly changeStreams: ChangeStreams;
  readonly maxPerClient: number;
}): Middleware[] {
  const { changeStreams, maxPerClient } = parts;
  return [
    readOAuthForm,
    parts.authentication.requireClient,
    refuseOthers,
    function openStream(ctx) {
      const { id } = authenticatedClient(ctx);
      const stream = ctx.method === 'HEAD' ? '' : changeStreams.open(id, maxPerClient);
      if (stream === 'away') {
        throw new OAuthError(503, 'temporarily_unavailable', 'try again in a moment');
      }
      if (stream === 'too many') throw tooManyStreams(maxPerClient);
      ctx.set('Content-Type', 'text/event-stream');
      // A proxy that compresses or collects it would hold the heartbeat back.
      ctx.set('Cache-Control', 'no-store, no-transform');
      ctx.set('X-Accel-Buffering', 'no');
      ctx.body = stream;
    },
  ];
}

/** Seconds after which the client may try again; until then it asks about each token. */
const RETRY_AFTER = '60';

const tooManyStreams = (max: number): OAuthError =>
  new OAuthError(
    429,
    'too_many_streams',
    `this client has ${max} streams open here, which is as many as it may have`,
    { 'Retry-After': RETRY_AFTER },
  );

function refuseOthers(ctx: Context, next: () => Promise<void>): Promise<void> {
  if (authenticatedClient(ctx).kind === 'resource-server') return next();
  throw new OAuthError(403, 'unauthorized_client', 'changes are for resource servers');
}
