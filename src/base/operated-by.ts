/** The operator who ran a command, and the reason that they gave. */
export interface OperatedBy {
  /** The account of the operating system that ran the command. */
  readonly operator: string;
  readonly reason?: string | undefined;
}
