/** Keeps a stream open on which the service announces whose access changed. */
import type { IntrospectionFailure } from './introspection-answer.ts';
import type { IntrospectionEndpoint } from './introspection-endpoint.ts';
import { connectStream, type StreamConnection, silent } from './stream-connection.ts';

export interface ChangeStream {
  /** True if the stream has begun and its heartbeat is not overdue. */
  readonly stands: boolean;
  close(): void;
}

/** Milliseconds between attempts; a random half of it more, so that many APIs do not come at once. */
const RETRY_PAUSE = 250;
const MAX_PAUSE = 2_000;
/** Milliseconds over which the APIs of a node that died reconnect, at random. */
const SPREAD = 1_000;
/** Milliseconds. A `Retry-After` may name any time, and Node's timers fire at once beyond 2^31. */
const MAX_RETRY_AFTER = 600_000;
/**
 * Milliseconds for which the stream of a leaving node and the next stream must both be open. Within
 * this time a node either hears of a change or ends its streams, so the leaving node's stream brings
 * every change that the other node heard before the next stream began.
 */
const OVERLAP = 1_000;
/** Milliseconds between two checks for silence. */
const CHECK_INTERVAL = 100;

/**
 * Opens another stream when it breaks or falls silent. If its node says that it is about to end, the
 * next stream is opened first, and no change is missed.
 *
 * @param onChange receives an id, two with a space between, or `everything`.
 * @param onBegin changes before this call may have been missed.
 * @param onLost changes after this call are missed.
 */
export function createChangeStream(parts: {
  readonly listen: IntrospectionEndpoint['listen'];
  readonly onChange: (what: string) => void;
  readonly onBegin: () => void;
  readonly onLost: () => void;
  readonly onFailure: (failure: IntrospectionFailure) => void;
}): ChangeStream {
  const { listen, onChange, onBegin, onLost, onFailure } = parts;
  let current: StreamConnection | undefined;
  /** Opened while the node of the current one is leaving. */
  let next: StreamConnection | undefined;
  const leaving = new WeakSet<StreamConnection>();
  let pause = RETRY_PAUSE;
  let again: NodeJS.Timeout | undefined;

  function open(): void {
    again = undefined;
    const connection = connectStream(listen, {
      onBegin() {
        pause = RETRY_PAUSE;
        if (connection === current) onBegin();
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
    });
    if (current) next = connection;
    else current = connection;
  }

  function openIn(milliseconds: number): void {
    clearTimeout(again);
    again = setTimeout(open, milliseconds).unref();
  }

  /** The port of the leaving node closes meanwhile, so that a load balancer chooses another one. */
  function openNext(): void {
    if (!next && again === undefined) openIn(RETRY_PAUSE * Math.random());
  }

  /** Lets the next stream take the place of the current one once no change can be missing. */
  function takeOver(): void {
    if (current?.heardAt === undefined || next?.begunAt === undefined) return;
    if (current.heardAt - next.begunAt < OVERLAP || current.isSilent() || next.isSilent()) return;
    current.stop();
    current = next;
    next = undefined;
    if (leaving.has(current)) openNext();
  }

  function lost(connection: StreamConnection, failure: IntrospectionFailure): void {
    const hadBegun = connection.begunAt !== undefined;
    const isCurrent = connection === current;
    if (isCurrent) current = next;
    next = undefined;
    if (isCurrent && hadBegun) onLost();
    onFailure(failure);
    if (isCurrent && current) {
      // The next one is open already, and begins like any other.
      if (leaving.has(current)) openNext();
      return;
    }
    if (hadBegun) {
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
    get stands() {
      return current?.begunAt !== undefined && !current.isSilent();
    },
    close() {
      clearInterval(watch);
      clearTimeout(again);
      current?.stop();
      next?.stop();
      current = undefined;
      next = undefined;
    },
  };
}
