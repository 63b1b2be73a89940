/** Errors for requests that a rule forbids, with texts for the operator command and for pages. */
import type { Message } from './message.ts';

/** One problem with one value. `index` is the position of the value if it is part of a list. */
export interface Problem<Code extends string = string> {
  readonly code: Code;
  /** A sentence for the user: what is wrong, and what to do about it. */
  readonly message: string;
  /** The same sentence in all languages, if pages translate it. */
  readonly text?: Message;
  readonly index?: number;
}

/** Thrown before anything was changed (in an import: between two batches). `remedy` says what to do instead. */
export class Refusal extends Error {
  /** Never changes, because scripts may compare it. */
  readonly code: string;
  readonly remedy: string;
  /** Every problem that was found, if there can be several. */
  readonly problems: readonly Problem[];

  constructor(
    code: string,
    message: string,
    remedy: string,
    options: { problems?: readonly Problem[]; cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause });
    this.name = 'Refusal';
    this.code = code;
    this.remedy = remedy;
    this.problems = options.problems ?? [];
  }
}

/**
 * Thrown if too many requests of an account wait in its queue (account-turns.ts). Changes nothing.
 *
 * oidc-provider and Koa read these members from an error; `StorageUnavailable` has the same ones.
 */
export class AccountBusy extends Error {
  readonly code = 'account_busy';
  readonly status = 429;
  readonly statusCode = 429;
  readonly expose = true;
  readonly allow_redirect = false;
  readonly error = 'account_busy';
  readonly error_description = 'too many requests of this account at once, try again in a moment';

  constructor() {
    super('account_busy');
    this.name = 'AccountBusy';
  }
}

/** nginx's status for a request whose caller disconnected before the answer. */
export const CALLER_LEFT = 499;

/** Thrown instead of work for a caller that has disconnected. Nothing records it, because no caller reads it. */
export class CallerLeft extends Error {
  readonly status = CALLER_LEFT;
  readonly expose = true;

  constructor() {
    super('the caller has disconnected');
    this.name = 'CallerLeft';
  }
}

/**
 * Runs one statement, and throws the refusal that belongs to the constraint that the statement violates. The database
 * must decide, because two simultaneous requests could both pass a check before the statement.
 */
export async function refuseViolations<Result>(
  refusals: Readonly<Record<string, () => Refusal>>,
  statement: Promise<Result>,
): Promise<Result> {
  try {
    return await statement;
  } catch (error) {
    const constraint = error instanceof Error && 'constraint' in error ? error.constraint : undefined;
    const refusal = typeof constraint === 'string' ? refusals[constraint] : undefined;
    throw refusal === undefined ? error : refusal();
  }
}
