/** The answers to pushed lines: why a line was not applied, and what to do about it. */
import { Refusal } from '../base/refusal.ts';
import type { StorageUnavailable } from '../storage/storage-unavailable.ts';
import { isOvertaken } from './engine.ts';
import { MAX_AHEAD_MS, type PushedLine } from './pushed-line.ts';

/** The result of one line. `not_done`: PostgreSQL did not answer. */
export interface LineAnswer {
  readonly line: number;
  readonly result: 'ok' | 'unchanged' | 'outdated' | 'refused' | 'held_back' | 'not_done';
  readonly code?: string;
  readonly message?: string;
  readonly remedy?: string;
}

export const MAX_LINES = 1_000;

export const reasonOf = ({ code, message, remedy }: Refusal) => ({ code, message, remedy });

/** Returns why the line is refused; undefined if the line did not cause the error. */
export function refusalOf(error: unknown): Refusal | undefined {
  if (error instanceof Refusal) return error;
  const constraint = error instanceof Error && 'constraint' in error && error.constraint;
  if (typeof constraint === 'string') return (VIOLATIONS[constraint] ?? overtaken)();
  return isOvertaken(error) ? overtaken() : undefined;
}

/** Splits a message of the engine into the problem and, after the semicolon, the remedy. */
export function lineRefused(text: string): Refusal {
  const [message = '', ...remedy] = text.split('; ');
  return new Refusal('line_refused', `${message}.`, remedy.join('; ') || 'Correct the line.');
}

/** Maximum number of problems in an answer: one line may have thousands. */
const MAX_PROBLEMS = 5;

export const invalid = (problems: readonly string[]): Refusal =>
  new Refusal('line_invalid', problems.slice(0, MAX_PROBLEMS).join(' '), 'Correct the line, and send it again.');

const membershipMissing = (): Refusal =>
  new Refusal(
    'membership_missing',
    'The account is not a member of the organization of the warehouse.',
    'Send the membership before the rights.',
  );

const VIOLATIONS: Readonly<Record<string, () => Refusal>> = {
  warehouse_rights_account_membership_fkey: membershipMissing,
  clients_owner_account_id_fkey: () =>
    new Refusal(
      'account_owns_clients',
      'The account owns clients, which need an owner.',
      'Suspend the account (leave out "deleted"), or first run: gatehouse clients transfer.',
    ),
};

const overtaken = (): Refusal =>
  new Refusal('line_overtaken', 'Another request changed the same data at the same time.', 'Send the line again.');

export function futureOf({ as_of: asOf }: PushedLine, now: Date): Refusal | undefined {
  if (asOf === undefined || asOf.getTime() <= now.getTime() + MAX_AHEAD_MS) return undefined;
  return new Refusal(
    'as_of_in_future',
    `as_of: ${asOf.toISOString()} is more than 5 minutes in the future; the server has ${now.toISOString()}.`,
    'Correct the clock of the sender, and send the line again.',
  );
}

export const heldBack = (removals: number): Refusal =>
  new Refusal(
    'held_back',
    'The line would remove more within an hour than import.removals_per_hour allows.',
    `If this is intended, run: gatehouse changes allow ${removals}. Then send the line again.`,
  );

export const notDone = (code: StorageUnavailable['code']): Refusal =>
  new Refusal(
    code,
    code === 'statement_too_long'
      ? 'The database did not finish within the time limit.'
      : 'The database did not answer.',
    'Send the line again. If the line was applied after all, the answer is "unchanged".',
  );

export const tooManyLines = (count: number): Refusal =>
  new Refusal(
    'too_many_lines',
    `The request has ${count} lines; at most ${MAX_LINES} are allowed.`,
    'Split the lines into several requests, in the same order.',
  );
