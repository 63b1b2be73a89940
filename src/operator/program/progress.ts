/** Long work that shows itself: on a terminal one line, redrawn; in a pipe nothing. */
import type { Progress, Terminal } from '../command/operator.ts';
import { WIDTH } from '../command/report.ts';

/** Milliseconds between two drawings, and before a speed means anything. */
const PAUSE = 100;
const WARM_UP = 500;
const ERASE = '\r\u001B[K';

/** @param now milliseconds that only go forward. */
export function createProgress(
  terminal: Terminal,
  now: () => number = () => performance.now(),
): Progress {
  let begun = { what: '', at: 0, done: 0 };
  let drawnAt = Number.NEGATIVE_INFINITY;
  let isDrawn = false;
  return {
    show(what, done, total) {
      if (!terminal.isTTY) return;
      if (what !== begun.what) begun = { what, at: now(), done };
      else if (now() - drawnAt < PAUSE && done !== total) return;
      drawnAt = now();
      isDrawn = true;
      const line = textOf({ what, done, total, since: begun.done, ms: now() - begun.at });
      terminal.write(ERASE + line.slice(0, (terminal.columns || WIDTH) - 1));
    },
    clear() {
      if (isDrawn) terminal.write(ERASE);
      isDrawn = false;
    },
  };
}

interface State {
  readonly what: string;
  readonly done: number;
  readonly total: number | undefined;
  /** What was done when it was first shown, and how long ago that is. */
  readonly since: number;
  readonly ms: number;
}

function textOf({ what, done, total, since, ms }: State): string {
  const of = total === undefined ? '' : ` of ${total} (${Math.floor((100 * done) / total)} %)`;
  if (ms < WARM_UP || done === since) return `${what}: ${done}${of}`;
  const speed = ((done - since) * 1_000) / ms;
  const left = total === undefined ? '' : `, ${Math.ceil((total - done) / speed)} s left`;
  return `${what}: ${done}${of}, ${speed.toFixed(speed < 10 ? 1 : 0)} a second${left}`;
}
