/** Sends one request for `GET /oauth/introspect/changes` and parses the lines of the stream. */
import { IntrospectionFailure } from './introspection-answer.ts';
import type { IntrospectionEndpoint, StreamListener } from './introspection-endpoint.ts';

export type StreamConnection = ReturnType<typeof connectStream>;

export interface StreamConnectionListener {
  /** @param isComplete true if all changes after the position `after` were reported before. */
  onStart(isComplete: boolean): void;
  /** Called for each known line. */
  onHeard(): void;
  /** @param what an id, two ids separated by a space, or `everything`. */
  onChange(what: string): void;
  /** Called when the node that sends this stream is about to shut down. */
  onLeaving(): void;
  /** Called for each unknown line. */
  onUnknown(failure: IntrospectionFailure): void;
  /** Called once, unless the connection was stopped. */
  onLost(failure: IntrospectionFailure): void;
}

/** Milliseconds of silence if the service announces no interval, and the maximum in any case. */
const MAX_SILENCE = 2_000;
/** Milliseconds by which a heartbeat may be late if the service says when to expect it. */
const MAX_LATENESS = 650;
/** Maximum number of characters of a line, which contains at most two ids. */
const MAX_LINE_LENGTH = 1_000;

/** Matches a line with an id, two ids, or `everything`. */
const CHANGE = /^data: ([\w-]+(?: [\w-]+)?)$/;
const HEARTBEAT_INTERVAL = /^: heartbeat-ms=(\d{1,6})( repeated)?$/;
const POSITION = /^: at=([\w-]{1,100})$/;
const LEAVING = ': leaving';

/**
 * Sends the request and reports each line to the listener.
 *
 * @param after asks the service to repeat the changes after this position of a lost stream.
 */
export function connectStream(
  listen: IntrospectionEndpoint['listen'],
  listener: StreamConnectionListener,
  after?: string,
) {
  let startedAt: number | undefined;
  let heardAt: number | undefined;
  let position: string | undefined;
  let maxSilence = MAX_SILENCE;
  let rest = '';
  let isStopped = false;

  /** True if the heartbeat is overdue: changes may have been missed. */
  const isSilent = (): boolean => heardAt !== undefined && performance.now() - heardAt >= maxSilence;

  function stop(): void {
    isStopped = true;
    close();
  }

  function lost(failure: IntrospectionFailure): void {
    if (isStopped) return;
    stop();
    listener.onLost(failure);
  }

  function hear(line: string): void {
    const [, change] = CHANGE.exec(line) ?? [];
    if (line.startsWith(':')) hearComment(line);
    else if (line === '' || (startedAt === undefined && after === undefined)) {
      // Ignore changes before the first heartbeat: they are repeated changes, which this stream has not requested.
      return;
    } else if (change === undefined) {
      // Only report an unknown line: a newer service may send more than this version knows.
      listener.onUnknown(malformed());
      return;
    } else listener.onChange(change);
    heardAt = performance.now();
    listener.onHeard();
  }

  function hearComment(line: string): void {
    const [, interval, repeated] = HEARTBEAT_INTERVAL.exec(line) ?? [];
    position = POSITION.exec(line)?.[1] ?? position;
    if (interval !== undefined) {
      maxSilence = Math.min(Number(interval) + MAX_LATENESS, MAX_SILENCE);
    }
    if (startedAt === undefined) {
      startedAt = performance.now();
      listener.onStart(after !== undefined && repeated !== undefined);
    }
    if (line === LEAVING) listener.onLeaving();
  }

  const events: StreamListener = {
    onOpen() {
      heardAt = performance.now();
    },
    onText(text) {
      // Do not use this text: after a silence, earlier events may be missing.
      if (isSilent()) return lost(silent());
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        if (!isStopped) hear(line);
      }
      if (rest.length > MAX_LINE_LENGTH) lost(malformed());
    },
    onEnd: lost,
  };
  const close = listen(events, after);

  return {
    /** When the first heartbeat arrived; until then this may be another service's stream. */
    get startedAt(): number | undefined {
      return startedAt;
    },
    /** When the last line (or the headers) arrived, by `performance.now()`; undefined before. */
    get heardAt(): number | undefined {
      return heardAt;
    },
    /** The position of the last heartbeat; undefined if the service sends none. */
    get position(): string | undefined {
      return position;
    },
    isSilent,
    stop,
  };
}

export const silent = (): IntrospectionFailure =>
  new IntrospectionFailure('timed_out', 'the change stream sent nothing in time');

const malformed = (): IntrospectionFailure =>
  new IntrospectionFailure('malformed_answer', 'the change stream sent an invalid event');
