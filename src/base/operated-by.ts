/** Who ran an operator command, and why. */
export interface OperatedBy {
  /** A user name of the operating system. */
  readonly operator: string;
  readonly reason?: string | undefined;
}
