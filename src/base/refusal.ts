/** Errors for requests and commands that a rule forbids, with texts for operators and for the users of pages. */
import type { Message } from './message.ts';

/** A problem with one value, which is at position `index` if it is part of a list. */
export interface Problem<Code extends string = string> {
  readonly code: Code;
  /** Says what is wrong and what to do. */
  readonly message: string;
  /** The translatable form of `message`, if pages show the problem. */
  readonly text?: Message;
  readonly index?: number;
}

/** Thrown before anything is changed, or between two batches of an import. `remedy` says what to do instead. */
export class Refusal extends Error {
  /** Must stay the same across releases, because scripts compare it. */
  readonly code: string;
  readonly remedy: string;
  /** All problems, if the refusal is about several; otherwise empty. */
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
 * Thrown if too many requests of one account wait in its queue (account-turns.ts).
 *
 * oidc-provider and Koa read these fields from an error, as they do from `StorageUnavailable`.
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

/** nginx's status code for a request whose caller disconnected before the answer. */
export const CALLER_LEFT = 499;

/** Thrown to skip work for a caller that has disconnected. It is not logged. */
export class CallerLeft extends Error {
  readonly status = CALLER_LEFT;
  readonly expose = true;

  constructor() {
    super('the caller has disconnected');
    this.name = 'CallerLeft';
  }
}

/** Returns the name of the constraint that a statement has violated. */
export const constraintOf = (error: unknown): string | undefined =>
  error instanceof Error && 'constraint' in error && error.constraint ? `${error.constraint}` : undefined;

/**
 * Awaits a statement, and throws the refusal for the constraint that the statement violates. The database must decide,
 * because two simultaneous requests could both pass a check before the statement.
 */
export async function refuseViolations<Result>(
  refusals: Readonly<Record<string, () => Refusal>>,
  statement: Promise<Result>,
): Promise<Result> {
  try {
    return await statement;
  } catch (error) {
    const refusal = refusals[constraintOf(error) ?? ''];
    throw refusal === undefined ? error : refusal();
  }
}
