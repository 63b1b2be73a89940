/** `GET /oauth/introspect/changes`: one open request, on which the service says what is no longer true. */
import { IntrospectionFailure } from './introspection-answer.ts';
import type { IntrospectionEndpoint } from './introspection-endpoint.ts';

export interface ChangeStream {
  /** The service was heard on the stream within the last two seconds. */
  readonly stands: boolean;
  close(): void;
}

/** Milliseconds. The service promises a heartbeat each second, the first one at once. */
const MAX_SILENCE = 2_000;
/** Milliseconds between attempts; a random half of it more, so that many APIs do not come at once. */
const RETRY_PAUSE = 250;
const MAX_PAUSE = 2_000;
/** Milliseconds. A `Retry-After` may name any time, and Node's timers fire at once beyond 2^31. */
const MAX_RETRY_AFTER = 600_000;
/** Characters. A line names one id or two. */
const MAX_LINE_LENGTH = 1_000;

/** An id, two of them, or `everything`. */
const CHANGE = /^data: ([\w-]+(?: [\w-]+)?)$/;

/**
 * Keeps the stream open, and opens another when it breaks or falls silent.
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
  /** When the present stream was heard last, or accepted; undefined while there is none. */
  let heardAt: number | undefined;
  /** Since its first heartbeat. Before that, it may be the stream of another service. */
  let hasBegun = false;
  let stop = (): void => {};
  let pause = RETRY_PAUSE;
  let again: NodeJS.Timeout | undefined;
  let isClosed = false;

  const isSilent = (): boolean =>
    heardAt !== undefined && performance.now() - heardAt >= MAX_SILENCE;

  function open(): void {
    let rest = '';
    stop = listen({
      onOpen() {
        heardAt = performance.now();
      },
      onText(text) {
        // What a silent stream says later is not trusted: events may be missing in between.
        if (isSilent()) return lost(silent());
        const lines = (rest + text).split('\n');
        rest = lines.pop() ?? '';
        for (const line of lines) hear(line);
        if (rest.length > MAX_LINE_LENGTH) lost(malformed());
      },
      onEnd: lost,
    });
  }

  function hear(line: string): void {
    const [, change] = CHANGE.exec(line) ?? [];
    if (line.startsWith(':')) {
      if (!hasBegun) onBegin();
      hasBegun = true;
      pause = RETRY_PAUSE;
    } else if (line === '' || !hasBegun) {
      // Nothing is remembered before the first heartbeat, so there is nothing to forget.
      return;
    } else if (change === undefined) {
      // The stream goes on: a newer service may say more than this version knows.
      onChange('everything');
      onFailure(malformed());
      return;
    } else onChange(change);
    heardAt = performance.now();
  }

  /** Once per stream: `stop` makes the rest of it unheard. */
  function lost(failure: IntrospectionFailure): void {
    stop();
    const hadBegun = hasBegun;
    heardAt = undefined;
    hasBegun = false;
    if (isClosed) return;
    if (hadBegun) onLost();
    onFailure(failure);
    const retryAfter = Math.min((failure.retryAfterSeconds ?? 0) * 1_000, MAX_RETRY_AFTER);
    const wait = Math.max(pause, retryAfter);
    pause = Math.min(pause * 2, MAX_PAUSE);
    again = setTimeout(open, wait * (1 + Math.random() / 2)).unref();
  }

  const watch = setInterval(() => {
    if (isSilent()) lost(silent());
  }, MAX_SILENCE / 4).unref();
  open();

  return {
    get stands() {
      return hasBegun && !isSilent();
    },
    close() {
      isClosed = true;
      clearInterval(watch);
      clearTimeout(again);
      stop();
      hasBegun = false;
    },
  };
}

const silent = (): IntrospectionFailure =>
  new IntrospectionFailure('timed_out', 'the stream of changes fell silent');

const malformed = (): IntrospectionFailure =>
  new IntrospectionFailure('malformed_answer', 'the stream of changes says what is not understood');
