/** What each command receives: the streams, and functions that ask, open the registries and print. */
import type { Readable, Writable } from 'node:stream';
import type { Variables } from '../../config/environment.ts';
import type { StreamWatch } from '../../doctor/change-stream.ts';
import type { Opening, Registries } from '../registries.ts';

/** An output stream. Progress is shown only if `isTTY` is true. */
export type Terminal = Writable & { readonly columns?: number; readonly isTTY?: boolean };

export interface Progress {
  /**
   * @param what names the work; a different name means that other work has begun
   * @param done how much of the work is done, in the unit of `total`
   */
  show(what: string, done: number, total?: number): void;
  /** Erases the progress line. Call this before anything else is written. */
  clear(): void;
}

export interface Surroundings {
  readonly environment: Variables;
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable & { readonly columns?: number };
  readonly stderr: Terminal;
  /** Takes a function, and calls it when the command has to end early, for example after Ctrl-C. */
  readonly onInterrupt: (interrupt: () => void) => void;
  readonly streamWatch?: StreamWatch;
}

export interface Operator extends Surroundings, Opening {
  /** Opens the registries, calls `work`, and prints the returned report. */
  readonly run: (work: (registries: Registries) => Promise<Report>) => Promise<void>;
  readonly confirm: (what: string) => Promise<void>;
  /** Prints the report of a command that needs no database. */
  readonly print: (report: Report) => void;
  readonly json: boolean;
  /** Prints one JSON array page by page, so that it may be larger than the memory of the process. */
  readonly printArray: (pages: AsyncIterable<readonly object[]>) => Promise<void>;
  readonly progress: Progress;
  /** Prints a line at once, or nothing with `--json`. */
  readonly say: (line: string) => void;
}

/** The result of a command, as a value for programs and as text for people. */
export interface Report {
  /** Printed as one line of JSON with `--json`, if not undefined. */
  readonly value: unknown;
  readonly text: string;
  /** The exit code of the command; 0 by default. */
  readonly exitCode?: number;
}
