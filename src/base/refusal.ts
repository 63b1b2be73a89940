/** Errors for requests that a rule forbids, with texts for the operator command and the pages. */
import type { Message } from './message.ts';

/** One problem of one value. `index` is the value's position if it is part of a list. */
export interface Problem<Code extends string = string> {
  readonly code: Code;
  /** A sentence for the user: what is wrong, and what to do about it. */
  readonly message: string;
  /** The same sentence in all languages, if pages translate it. */
  readonly text?: Message;
  readonly index?: number;
}

/** Thrown before anything was changed, or between two batches of an import. `remedy` says what to do instead. */
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
 * Thrown if too many requests of an account wait for a turn (account-turns.ts). Changes nothing.
 *
 * oidc-provider and Koa read these members from an error, as from `StorageUnavailable`.
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

/** Thrown instead of work for a caller who has disconnected. No caller reads the refusal, so nothing records it. */
export class CallerLeft extends Error {
  readonly status = CALLER_LEFT;
  readonly expose = true;

  constructor() {
    super('the caller has disconnected');
    this.name = 'CallerLeft';
  }
}

/**
 * Runs one statement and throws the refusal for the named constraint that it violates. Two
 * simultaneous requests could both pass a check made before, so the database decides.
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
