/** The log of a process, on standard output: written in batches, and at once where something is wrong. */
import { type Logger, pino, stdTimeFunctions } from 'pino';
import { logMixin } from '../base/current-request.ts';

/** Bytes that are worth a write. */
const BATCH = 3_072;
/** Milliseconds after which a line is written although its batch is not full. */
const LONGEST_WAIT = 250;
/** pino's number of the level `warn`. */
const WARN = 40;

interface ProcessLogOptions {
  readonly level: string;
  /** How level and time are said. */
  readonly format: 'numbers' | 'words';
}

const WORDS = {
  formatters: { level: (level: string) => ({ level }) },
  timestamp: stdTimeFunctions.isoTime,
};

/**
 * A write for each request would cost as much as logging it does. Nothing is lost at an orderly
 * end, nor at an exception that nobody caught; a process that is killed (SIGKILL, out of memory)
 * takes its last lines along, those of a quarter of a second at most.
 */
export function createProcessLog({ level, format }: ProcessLogOptions): Logger {
  // An asynchronous write that is under way when the process exits may never happen.
  const output = pino.destination({
    fd: 1,
    sync: true,
    minLength: BATCH,
    periodicFlush: LONGEST_WAIT,
  });
  const stream = {
    // Asks pino for `lastLevel`.
    [Symbol.for('pino.metadata')]: true,
    lastLevel: 0,
    write(line: string): void {
      output.write(line);
      if (this.lastLevel >= WARN) output.flush();
    },
    // Less than a batch is left between two lines, so one write is enough. Its own `flushSync` would
    // try for ever where nobody reads any more.
    flushSync: () => output.flush(),
  };
  const log = pino({ level, mixin: logMixin, ...(format === 'words' && WORDS) }, stream);
  process.on('exit', stream.flushSync);
  process.on('uncaughtExceptionMonitor', (err) => log.fatal({ err }, 'the process ends'));
  return log;
}
