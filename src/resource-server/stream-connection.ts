/** One open request for `GET /oauth/introspect/changes`, and the meaning of its lines. */
import { IntrospectionFailure } from './introspection-answer.ts';
import type { IntrospectionEndpoint } from './introspection-endpoint.ts';

export interface StreamConnection {
  /** When its first heartbeat arrived; before that, it may be the stream of another service. */
  readonly begunAt: number | undefined;
  /** When its last line or its headers arrived; undefined before. Times of `performance.now()`. */
  readonly heardAt: number | undefined;
  /** True if its heartbeat is overdue: changes may have been missed. */
  isSilent(): boolean;
  stop(): void;
}

export interface StreamConnectionListener {
  onBegin(): void;
  /** Called for each known line. */
  onHeard(): void;
  /** @param what an id, two with a space between, or `everything`. */
  onChange(what: string): void;
  /** The node of the service that answers here is about to end. */
  onLeaving(): void;
  /** Called for each unknown line. */
  onUnknown(failure: IntrospectionFailure): void;
  /** Called once, unless the connection was stopped. */
  onLost(failure: IntrospectionFailure): void;
}

/** Milliseconds. A service that does not say how often its heartbeat comes sends one each second. */
const MAX_SILENCE = 2_000;
/** Milliseconds by which a heartbeat may be late if the service says when to expect it. */
const MAX_LATENESS = 650;
/** Characters. A line names one id or two. */
const MAX_LINE_LENGTH = 1_000;

/** An id, two of them, or `everything`. */
const CHANGE = /^data: ([\w-]+(?: [\w-]+)?)$/;
const HEARTBEAT_INTERVAL = /^: heartbeat-ms=(\d{1,6})$/;
const LEAVING = ': leaving';

/** Sends the request. */
export function connectStream(
  listen: IntrospectionEndpoint['listen'],
  listener: StreamConnectionListener,
): StreamConnection {
  let begunAt: number | undefined;
  let heardAt: number | undefined;
  let maxSilence = MAX_SILENCE;
  let rest = '';
  let isStopped = false;

  const isSilent = (): boolean =>
    heardAt !== undefined && performance.now() - heardAt >= maxSilence;

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
    else if (line === '' || begunAt === undefined) {
      // Nothing is cached before the first heartbeat, so there is nothing to forget.
      return;
    } else if (change === undefined) {
      // The stream continues: a newer service may send more than this version knows.
      listener.onUnknown(malformed());
      return;
    } else listener.onChange(change);
    heardAt = performance.now();
    listener.onHeard();
  }

  function hearComment(line: string): void {
    const [, interval] = HEARTBEAT_INTERVAL.exec(line) ?? [];
    if (interval !== undefined) {
      maxSilence = Math.min(Number(interval) + MAX_LATENESS, MAX_SILENCE);
    }
    if (begunAt === undefined) {
      begunAt = performance.now();
      listener.onBegin();
    }
    if (line === LEAVING) listener.onLeaving();
  }

  const close = listen({
    onOpen() {
      heardAt = performance.now();
    },
    onText(text) {
      // Events may be missing after a silence, so a later line is not trusted.
      if (isSilent()) return lost(silent());
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        if (!isStopped) hear(line);
      }
      if (rest.length > MAX_LINE_LENGTH) lost(malformed());
    },
    onEnd: lost,
  });

  return {
    get begunAt() {
      return begunAt;
    },
    get heardAt() {
      return heardAt;
    },
    isSilent,
    stop,
  };
}

export const silent = (): IntrospectionFailure =>
  new IntrospectionFailure('timed_out', 'the stream of changes fell silent');

const malformed = (): IntrospectionFailure =>
  new IntrospectionFailure('malformed_answer', 'the stream of changes says what is not understood');
