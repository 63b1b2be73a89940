/** What the doctor finds: verdicts, and how a finding is printed. */

export type FindingStatus = 'ok' | 'warning' | 'problem' | 'not_checked';

export interface Finding {
  /** A stable name, because scripts may compare it. */
  readonly check: string;
  readonly status: FindingStatus;
  readonly message: string;
  /** The setting, variable, address or file that the finding is about. */
  readonly where?: string | undefined;
  /** How to fix it; present with every warning and problem. */
  readonly remedy?: string;
  readonly ms?: number | undefined;
}

/** `where` is present only if it differs from that of the check that returns it. */
export type Verdict = Omit<Finding, 'check'>;

export const ok = (message: string, ms?: number): Verdict => ({ status: 'ok', message, ms });

export const warning = (message: string, remedy: string, where?: string): Verdict => ({
  status: 'warning',
  where,
  message,
  remedy,
});

export const problem = (message: string, remedy: string, where?: string): Verdict => ({
  ...warning(message, remedy, where),
  status: 'problem',
});

/** @param because the reason, as the end of a sentence: "the database does not answer" */
export const notChecked = (because: string): Verdict => ({ status: 'not_checked', message: `not checked: ${because}` });

/** Returns the finding of a verdict; only a warning or a problem names a place. */
export function findingOf(check: string, where: string, { ms, ...verdict }: Verdict): Finding {
  const { status, message, remedy } = verdict;
  const about = remedy ? { status, check, where: verdict.where ?? where } : { check, status };
  return { ...about, message, ...(remedy && { remedy }), ...(ms !== undefined && { ms: Math.round(ms) }) };
}

const WORDS: Readonly<Record<FindingStatus, string>> = {
  ok: 'ok',
  warning: 'warning',
  problem: 'problem',
  not_checked: '-',
};
const STATUS_WIDTH = 9;
const CHECK_WIDTH = 21;

/** @param others names of further checks with the same finding */
export function findingText({ check, status, message, where, remedy, ms }: Finding, others: readonly string[]): string {
  const inWords = (names: string): string => names.replaceAll('_', ' ');
  const also = others.length === 0 ? '' : ` (and ${inWords(others.join(', '))})`;
  const took = ms === undefined ? '' : ` (${ms} ms)`;
  const margin = ' '.repeat(STATUS_WIDTH + CHECK_WIDTH);
  return [
    `${WORDS[status].padEnd(STATUS_WIDTH)}${inWords(check).padEnd(CHECK_WIDTH)}${message}${took}${also}`,
    ...(where === undefined ? [] : [`${margin}where:  ${where}`]),
    ...(remedy === undefined ? [] : [`${margin}remedy: ${remedy}`]),
  ].join('\n');
}
