/** What every command receives: streams, and helpers to confirm, work and report. */
import type { Readable, Writable } from 'node:stream';
import type { Variables } from '../../config/environment.ts';
import type { StreamWatch } from '../../doctor/change-stream.ts';
import type { Opening, Registries } from '../registries.ts';

/** A stream; progress is shown there if `isTTY` is true. */
export type Terminal = Writable & { readonly columns?: number; readonly isTTY?: boolean };

export interface Progress {
  /**
   * @param what names the work; must not change while the same work continues
   * @param done how much of the work is done, in any unit
   * @param total the whole amount of work, if known
   */
  show(what: string, done: number, total?: number): void;
  /** Erases the line. Call it before anything else is written. */
  clear(): void;
}

/** The environment and streams of the process, or what a test passes instead. */
export interface Surroundings {
  readonly environment: Variables;
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable & { readonly columns?: number };
  readonly stderr: Terminal;
  /** Calls `interrupt` when the command must end early, for example after Ctrl-C. */
  readonly onInterrupt: (interrupt: () => void) => void;
  /** How long the doctor watches the change stream; absent for the default time. */
  readonly streamWatch?: StreamWatch;
}

export interface Operator extends Surroundings, Opening {
  /** Opens the registries, does the work, prints its report. */
  readonly run: (work: (registries: Registries) => Promise<Report>) => Promise<void>;
  /** Resolves if the operator agrees to an irrevocable change; see `requireConfirmation`. */
  readonly confirm: (what: string) => Promise<void>;
  /** Prints the report of a command that needs no database. */
  readonly print: (report: Report) => void;
  /** True if `--json` was given: a program reads the output. */
  readonly json: boolean;
  /** Prints one JSON array page by page, so that it may be larger than the memory. */
  readonly printArray: (pages: AsyncIterable<readonly object[]>) => Promise<void>;
  /** Shows the progress of a command that may take long. */
  readonly progress: Progress;
  /** Prints a line for people while a command works; with `--json` prints nothing. */
  readonly say: (line: string) => void;
}

/** The result of a command, as a value for programs and as text for people. */
export interface Report {
  /** The result that `--json` prints as one line; undefined to print nothing. */
  readonly value: unknown;
  /** The text that is printed without `--json`. */
  readonly text: string;
  /** The secret in value and text that `--out` writes into a file instead. */
  readonly secret?: string | undefined;
  /** Exit code of the command; 0 by default. */
  readonly exitCode?: number;
}
