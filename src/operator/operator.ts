/** What a command file gets to work with. */
import type { Registries } from './registries.ts';
import type { Report } from './report.ts';

export interface Operator {
  /** Opens the registries, does the work, prints its report. */
  readonly run: (work: (registries: Registries) => Promise<Report>) => Promise<void>;
  /** For a command that needs no database. */
  readonly print: (report: Report) => void;
  /** A line for people while a command works; nothing with `--json`. */
  readonly say: (line: string) => void;
}
