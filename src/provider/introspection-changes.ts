/** `GET /oauth/introspect/changes`: resource servers hear which introspection answers are no longer true. */
import { Readable } from 'node:stream';
import type { Context, Middleware } from 'koa';
import type { ChangeFeed } from '../storage/change-feed.ts';
import { authenticatedClient, type ClientAuthentication } from './client-authentication.ts';
import { readOAuthForm } from './form.ts';
import { OAuthError } from './oauth-error.ts';

/** Milliseconds. A resource server trusts a stream for two. */
const HEARTBEAT = 1_000;
/** Bytes that wait for a slow reader beside those of its socket; with more its stream ends. */
const MOST_WAITING = 64 * 1024;

/** Streams of events outlive a reload, and are those of one node. */
export interface ChangeStreams {
  /** Undefined where this node hears of no changes itself, or is about to end. */
  open(clientId: string): Readable | undefined;
  /** Ends all of them, and opens no more. */
  end(): void;
}

/**
 * Each change is in every stream before `tell` of the feed returns. While the feed is not live there
 * is no stream: nothing is promised that is not known.
 */
export function createChangeStreams(changes: ChangeFeed): ChangeStreams {
  const streams = new Map<Readable, string>();
  let isEnding = false;

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
  const heartbeat = setInterval(() => send(':\n\n'), HEARTBEAT).unref();

  return {
    open(clientId) {
      if (isEnding || !changes.isLive) return undefined;
      const stream = new Readable({ highWaterMark: MOST_WAITING, read: () => {} });
      streams.set(stream, clientId);
      stream.once('close', () => streams.delete(stream));
      stream.on('error', () => {});
      // The headers alone may be held back on the way.
      stream.push(':\n\n');
      return stream;
    },

    end() {
      isEnding = true;
      clearInterval(heartbeat);
      for (const stream of [...streams.keys()]) end(stream);
    },
  };
}

/** The steps of the request, in order. */
export function introspectionChanges(parts: {
  readonly authentication: ClientAuthentication;
  readonly changeStreams: ChangeStreams;
}): Middleware[] {
  return [
    readOAuthForm,
    parts.authentication.requireClient,
    refuseOthers,
    function openStream(ctx) {
      const stream =
        ctx.method === 'HEAD' ? '' : parts.changeStreams.open(authenticatedClient(ctx).id);
      if (stream === undefined) {
        throw new OAuthError(503, 'temporarily_unavailable', 'try again in a moment');
      }
      ctx.set('Content-Type', 'text/event-stream');
      // A proxy that compresses or collects it would hold the heartbeat back.
      ctx.set('Cache-Control', 'no-store, no-transform');
      ctx.set('X-Accel-Buffering', 'no');
      ctx.body = stream;
    },
  ];
}

function refuseOthers(ctx: Context, next: () => Promise<void>): Promise<void> {
  if (authenticatedClient(ctx).kind === 'resource-server') return next();
  throw new OAuthError(403, 'unauthorized_client', 'changes are for resource servers');
}
