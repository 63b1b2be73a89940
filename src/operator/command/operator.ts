/** What a command file gets to work with. */
import type { Readable, Writable } from 'node:stream';
import type { OperatedBy } from '../../accounts/activity/activity.ts';
import type { Variables } from '../../config/environment.ts';
import type { SettingsWithoutSecrets } from '../../config/settings.ts';
import type { StreamWatch } from '../../doctor/changes.ts';
import type { Registries } from '../registries.ts';

/** Where progress is drawn, if it is one: `isTTY`. */
export type Terminal = Writable & { readonly columns?: number; readonly isTTY?: boolean };

export interface Progress {
  /**
   * @param what the same words as long as it is the same work.
   * @param done how much of it, in whatever is counted.
   * @param total where it is known.
   */
  show(what: string, done: number, total?: number): void;
  /** Before anything else is written: the line goes. */
  clear(): void;
}

/** What a command meets outside itself: of the process it runs in, or what a test puts there. */
export interface Surroundings {
  readonly environment: Variables;
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable & { readonly columns?: number };
  readonly stderr: Terminal;
  /** Has `interrupt` called once the command is told to end early, as by Ctrl-C. */
  readonly onInterrupt: (interrupt: () => void) => void;
  /** How long the doctor watches the stream of changes; absent for as long as it should. */
  readonly streamWatch?: StreamWatch;
}

export interface Operator extends Surroundings {
  /**
   * Says on standard error which deployment is acted on, if the command changes something.
   * `run` does so itself.
   */
  readonly announce: (settings: SettingsWithoutSecrets) => void;
  /** Opens the registries, does the work, prints its report. */
  readonly run: (work: (registries: Registries) => Promise<Report>) => Promise<void>;
  /** Who runs the command and why, for what it records. */
  readonly by: () => OperatedBy;
  /**
   * Resolves once the operator has agreed to what cannot be undone; see `confirmed`.
   *
   * @param what a sentence that says what will be done, with numbers where there are any.
   */
  readonly confirm: (what: string) => Promise<void>;
  /** For a command that needs no database. */
  readonly print: (report: Report) => void;
  /** Whether a program reads the answer. */
  readonly json: boolean;
  /** For a command that may take long. */
  readonly progress: Progress;
  /** A line for people while a command works; nothing with `--json`. */
  readonly say: (line: string) => void;
}

/** What a command has to say: a value for programs, and the same for people. */
export interface Report {
  /** Printed as one line of JSON with `--json`. */
  readonly value: unknown;
  /** Printed otherwise. */
  readonly text: string;
  /** What the command ends with, in place of 0. */
  readonly exitCode?: number;
}
