/** Logs on standard output: in batches, but lines from `warn` on are written immediately. */
import { type Logger, pino, stdTimeFunctions } from 'pino';
import { logMixin } from '../base/current-request.ts';

const BATCH_BYTES = 3_072;
const FLUSH_INTERVAL_MS = 250;
/** pino's number for the level `warn`. */
const WARN = 40;

interface ProcessLogOptions {
  readonly level: string;
  /** How level and time are written: pino's numbers, or the level's name and an ISO 8601 time. */
  readonly format: 'numbers' | 'words';
}

const WORDS = {
  formatters: { level: (level: string) => ({ level }) },
  timestamp: stdTimeFunctions.isoTime,
};

/**
 * Writes in batches: one write per line would double the cost of logging. Nothing is lost on an
 * orderly exit or an uncaught exception; a process that is killed (SIGKILL, out of memory) loses
 * the lines of its last quarter of a second at most.
 */
export function createProcessLog({ level, format }: ProcessLogOptions): Logger {
  // Write synchronously: an asynchronous write that is pending at the exit may never happen.
  const output = pino.destination({
    fd: 1,
    sync: true,
    minLength: BATCH_BYTES,
    periodicFlush: FLUSH_INTERVAL_MS,
  });
  let brokenBy: Error | undefined;
  output.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    // From now on pino drops all lines.
    brokenBy = error;
  });
  const stream = {
    // This symbol makes pino set `lastLevel`.
    [Symbol.for('pino.metadata')]: true,
    lastLevel: 0,
    write(line: string): void {
      output.write(line);
      if (this.lastLevel >= WARN) output.flush();
    },
    // One write suffices for less than a batch. pino's own `flushSync` would retry forever once the
    // reader of the output is gone.
    flushSync: () => output.flush(),
    flush(done: (error?: Error) => void) {
      output.flush();
      done(brokenBy);
    },
  };
  const log = pino({ level, mixin: logMixin, ...(format === 'words' && WORDS) }, stream);
  process.on('exit', stream.flushSync);
  process.on('uncaughtExceptionMonitor', (err) => {
    // The listener that main.ts adds after the start keeps the process running, and logs the error.
    if (process.listenerCount('uncaughtException') > 0) return;
    log.fatal({ err }, 'the process exits after an unexpected error');
  });
  return log;
}
