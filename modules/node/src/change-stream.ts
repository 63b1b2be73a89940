/** Keeps a stream open on which the service announces changes of access. */
import type { IntrospectionFailure } from './introspection-answer.ts';
import type { IntrospectionEndpoint } from './introspection-endpoint.ts';
import { connectStream, type StreamConnection, type StreamConnectionListener, silent } from './stream-connection.ts';

export type ChangeStream = ReturnType<typeof createChangeStream>;

/** Milliseconds between attempts, plus up to half at random, so that APIs do not retry together. */
const RETRY_PAUSE = 250;
const MAX_PAUSE = 2_000;
/** Milliseconds over which the APIs of a crashed node spread their reconnection, at random. */
const SPREAD = 1_000;
/**
 * Like `SPREAD`, for a node that shuts down. Such a node ends its streams after 3 seconds, so two refused attempts and
 * the overlap must fit into the remaining time.
 */
const HANDOVER_SPREAD = 750;
/** Milliseconds. The maximum is needed because Node's timers fire at once for times above 2^31. */
const MAX_RETRY_AFTER = 600_000;
/**
 * Milliseconds for which the stream of a leaving node and the next stream must both be open. Within
 * this time a node either receives a change or ends its streams, so the old stream delivers every
 * change that the other node received before the next stream began.
 */
const OVERLAP = 1_000;
/** Milliseconds between two checks for silence. */
const CHECK_INTERVAL = 100;

/**
 * Opens another stream when the current one breaks or falls silent. If the node announces that it is leaving, the next
 * stream is opened before the current one ends, so no change is missed.
 *
 * @param onChange receives an id, two ids separated by a space, or `everything`.
 * @param onStart changes before this call may have been missed, unless `isComplete`: then all changes since `onLost`
 * were reported.
 * @param onLost changes after this call are missed until `onStart`.
 */
export function createChangeStream(parts: {
  readonly listen: IntrospectionEndpoint['listen'];
  readonly onChange: (what: string) => void;
  readonly onStart: (isComplete: boolean) => void;
  readonly onLost: () => void;
  readonly onFailure: (failure: IntrospectionFailure) => void;
}) {
  const { listen, onChange, onStart, onLost, onFailure } = parts;
  let current: StreamConnection | undefined;
  /** The next stream, opened while the node of the current one is leaving. */
  let next: StreamConnection | undefined;
  const leaving = new WeakSet<StreamConnection>();
  /** The last position of the streams that were lost. */
  let position: string | undefined;
  let pause = RETRY_PAUSE;
  let again: NodeJS.Timeout | undefined;

  function open(): void {
    again = undefined;
    const listener: StreamConnectionListener = {
      onStart(isComplete) {
        pause = RETRY_PAUSE;
        if (connection === current) onStart(isComplete);
      },
      onHeard: takeOver,
      onChange,
      onLeaving() {
        leaving.add(connection);
        if (connection === current) openNext();
      },
      onUnknown(failure) {
        onChange('everything');
        onFailure(failure);
      },
      onLost: (failure) => lost(connection, failure),
    };
    const connection = connectStream(listen, listener, current ? undefined : position);
    if (current) next = connection;
    else current = connection;
  }

  function openIn(milliseconds: number): void {
    clearTimeout(again);
    again = setTimeout(open, milliseconds).unref();
  }

  /** Waits first. Meanwhile the leaving node closes its port, so that a load balancer chooses another node. */
  function openNext(): void {
    if (!next && again === undefined) openIn(HANDOVER_SPREAD * Math.random());
  }

  /** Replaces the current stream by the next one as soon as no change can be missing. */
  function takeOver(): void {
    if (current?.heardAt === undefined || next?.startedAt === undefined) return;
    if (current.heardAt - next.startedAt < OVERLAP || current.isSilent() || next.isSilent()) return;
    current.stop();
    current = next;
    next = undefined;
    if (leaving.has(current)) openNext();
  }

  function lost(connection: StreamConnection, failure: IntrospectionFailure): void {
    const hadStarted = connection.startedAt !== undefined;
    const isCurrent = connection === current;
    if (isCurrent) current = next;
    next = undefined;
    if (isCurrent && hadStarted) {
      position = connection.position ?? position;
      onLost();
      // The next stream has begun too late to contain all changes.
      if (current?.startedAt !== undefined) onStart(false);
    }
    onFailure(failure);
    if (isCurrent && current) {
      // The node of this stream is leaving, too: open the next one.
      if (leaving.has(current)) openNext();
      return;
    }
    if (hadStarted) {
      pause = RETRY_PAUSE;
      openIn(SPREAD * Math.random());
      return;
    }
    const retryAfter = Math.min((failure.retryAfterSeconds ?? 0) * 1_000, MAX_RETRY_AFTER);
    openIn(Math.max(pause, retryAfter) * (1 + Math.random() / 2));
    pause = Math.min(pause * 2, MAX_PAUSE);
  }

  const watch = setInterval(() => {
    for (const connection of [current, next]) {
      if (!connection?.isSilent()) continue;
      connection.stop();
      lost(connection, silent());
    }
  }, CHECK_INTERVAL).unref();
  open();

  return {
    /** True if the stream has begun and its heartbeat is not overdue. */
    get stands(): boolean {
      return current?.startedAt !== undefined && !current.isSilent();
    },
    close(): void {
      clearInterval(watch);
      clearTimeout(again);
      current?.stop();
      next?.stop();
      current = undefined;
      next = undefined;
    },
  };
}
