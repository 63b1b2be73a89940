/** Logs on standard output in batches. Lines of level `warn` and above are written immediately. */
import { type Logger, pino } from 'pino';
import { logMixin } from '../base/current-request.ts';

const BATCH_BYTES = 3_072;
const FLUSH_INTERVAL_MS = 250;
const WARN = 40;

/** At most this many bytes wait while lines cannot be written. Further lines are dropped. */
const MAX_WAITING_BYTES = 1_048_576;

/** The number of dropped lines of the whole process, which has only one standard output. */
let dropped = 0;

/** Returns how many log lines were dropped because standard output was full or closed. */
export const droppedLogLines = (): number => dropped;

/**
 * Writes in batches: one write per line would double the cost of logging. Nothing is lost on an orderly exit or an
 * uncaught exception. A process that is killed (SIGKILL, out of memory) loses at most the lines of its last quarter of
 * a second. Never throws: if the lines cannot be written, because a disk is full or the reader has gone, requests are
 * answered without them.
 */
export function createProcessLog({ level }: { readonly level: string }): Logger {
  // Write synchronously: an asynchronous write that is pending at the exit may never happen.
  const output = pino.destination({
    fd: 1,
    sync: true,
    minLength: BATCH_BYTES,
    maxLength: MAX_WAITING_BYTES,
    periodicFlush: FLUSH_INTERVAL_MS,
  });
  /** Why the latest write failed; undefined if it succeeded. */
  let failure: NodeJS.ErrnoException | undefined;
  let reported = dropped;
  output.on('error', (error: NodeJS.ErrnoException) => {
    failure = error;
  });
  output.on('drop', () => {
    dropped += 1;
  });
  output.on('write', () => {
    failure = undefined;
    const lines = dropped - reported;
    reported = dropped;
    // Do not log in this listener, because the write is still in progress.
    if (lines > 0) setImmediate(() => log.warn({ lines }, 'log lines were dropped'));
  });
  const stream = {
    // This symbol makes pino set `lastLevel`.
    [Symbol.for('pino.metadata')]: true,
    lastLevel: 0,
    write(line: string): void {
      if (failure?.code === 'EPIPE') {
        // The reader of standard output has ended.
        dropped += 1;
        return;
      }
      output.write(line);
      if (this.lastLevel >= WARN) output.flush();
    },
    // One write is enough, because less than a batch is waiting. pino's own `flushSync` would retry forever if the
    // reader of the output has gone.
    flushSync: () => output.flush(),
  };
  const log = pino({ level, mixin: logMixin }, stream);
  process.on('exit', stream.flushSync);
  process.on('uncaughtExceptionMonitor', (err) => {
    // Once the service has started, a listener of main.ts logs uncaught errors and lets the process continue.
    if (process.listenerCount('uncaughtException') > 0) return;
    log.fatal({ err }, 'the process exits after an unexpected error');
  });
  return log;
}
