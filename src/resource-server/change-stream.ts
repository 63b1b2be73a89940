/** `GET /oauth/introspect/changes`: one open request, on which the service says what is no longer true. */
import { IntrospectionFailure } from './introspection-answer.ts';
import type { IntrospectionEndpoint } from './introspection-endpoint.ts';

export interface ChangeStream {
  /** The stream is there, and was heard within the last two seconds. */
  readonly stands: boolean;
  close(): void;
}

/** Milliseconds. The service is heard each second. */
const LONGEST_SILENCE = 2_000;
/** Milliseconds between attempts; a random half of it more, so that many APIs do not come at once. */
const RETRY_PAUSE = 250;
const LONGEST_PAUSE = 2_000;
/** Characters. What is named are one or two ids. */
const LONGEST_LINE = 1_000;

/**
 * Keeps the stream open, and opens another when it breaks or falls silent.
 *
 * @param onChange an id, two with a space between, or `everything`.
 * @param onBegin nothing that was said before can be trusted to have been heard.
 * @param onLost from now on nothing is heard.
 */
export function createChangeStream(parts: {
  readonly listen: IntrospectionEndpoint['listen'];
  readonly onChange: (what: string) => void;
  readonly onBegin: () => void;
  readonly onLost: () => void;
  readonly onFailure: (failure: IntrospectionFailure) => void;
}): ChangeStream {
  const { listen, onChange, onBegin, onLost, onFailure } = parts;
  let heardAt: number | undefined;
  let stop = (): void => {};
  let pause = RETRY_PAUSE;
  let again: NodeJS.Timeout | undefined;
  let isClosed = false;

  const isHeard = (): boolean =>
    heardAt !== undefined && performance.now() - heardAt < LONGEST_SILENCE;

  function open(): void {
    let rest = '';
    stop = listen({
      onText(text) {
        // Of a stream that fell silent something may have been lost: only a new one counts.
        if (heardAt !== undefined && !isHeard()) return lost(silent());
        if (heardAt === undefined) onBegin();
        heardAt = performance.now();
        pause = RETRY_PAUSE;
        const lines = (rest + text).split('\n');
        rest = lines.pop() ?? '';
        for (const line of lines) if (line.startsWith('data: ')) onChange(line.slice(6));
        if (rest.length > LONGEST_LINE) lost(malformed());
      },
      onEnd: lost,
    });
  }

  /** Once per stream: `stop` makes the rest of it unheard. */
  function lost(failure: IntrospectionFailure): void {
    stop();
    const wasThere = heardAt !== undefined;
    heardAt = undefined;
    if (isClosed) return;
    if (wasThere) onLost();
    onFailure(failure);
    const wait = Math.max(pause, (failure.retryAfterSeconds ?? 0) * 1_000);
    pause = Math.min(pause * 2, LONGEST_PAUSE);
    again = setTimeout(open, wait * (1 + Math.random() / 2)).unref();
  }

  const watch = setInterval(() => {
    if (heardAt !== undefined && !isHeard()) lost(silent());
  }, LONGEST_SILENCE / 4).unref();
  open();

  return {
    get stands() {
      return isHeard();
    },
    close() {
      isClosed = true;
      clearInterval(watch);
      clearTimeout(again);
      stop();
      heardAt = undefined;
    },
  };
}

const silent = (): IntrospectionFailure =>
  new IntrospectionFailure('timed_out', 'the stream of changes fell silent');

const malformed = (): IntrospectionFailure =>
  new IntrospectionFailure('malformed_answer', 'the stream of changes is none of Gatehouse');
