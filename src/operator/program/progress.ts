/** Shows the progress of long work as one line that is redrawn on a terminal, and shows nothing in a pipe. */
import type { Progress, Terminal } from '../command/operator.ts';
import { WIDTH } from '../command/report.ts';

const REDRAW_PAUSE_MS = 100;
/** No speed is shown before this time has passed, because it would be inaccurate. */
const WARM_UP_MS = 500;
const ERASE = '\r\u001B[K';

/** @param now a monotonic clock, in milliseconds */
export function createProgress(terminal: Terminal, now: () => number = () => performance.now()): Progress {
  let start = { what: '', at: 0, done: 0 };
  let drawnAt = Number.NEGATIVE_INFINITY;
  let isDrawn = false;
  return {
    show(what, done, total) {
      if (!terminal.isTTY) return;
      if (what !== start.what) start = { what, at: now(), done };
      else if (now() - drawnAt < REDRAW_PAUSE_MS && done !== total) return;
      drawnAt = now();
      isDrawn = true;
      const line = textOf({ what, done, total, since: start.done, ms: now() - start.at });
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
  /** The value of `done` when `what` was first displayed, `ms` milliseconds ago. */
  readonly since: number;
  readonly ms: number;
}

function textOf({ what, done, total, since, ms }: State): string {
  const of = total === undefined ? '' : ` of ${total} (${Math.floor((100 * done) / total)} %)`;
  if (ms < WARM_UP_MS || done === since) return `${what}: ${done}${of}`;
  const speed = ((done - since) * 1_000) / ms;
  const left = total === undefined ? '' : `, ${Math.ceil((total - done) / speed)} s left`;
  return `${what}: ${done}${of}, ${speed.toFixed(speed < 10 ? 1 : 0)} a second${left}`;
}
