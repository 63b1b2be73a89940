/** What the doctor finds: verdicts, and how a finding is printed. */

export interface Finding {
  /** A stable name, because scripts may compare it. */
  readonly check: string;
  readonly status: keyof typeof WORDS;
  readonly message: string;
  /** The setting, variable, address or file; present, like `remedy`, with every warning and problem. */
  readonly where?: string | undefined;
  readonly remedy?: string | undefined;
  readonly ms?: number | undefined;
}

export type Verdict = Omit<Finding, 'check'>;

const WORDS = { ok: 'ok', warning: 'warning', problem: 'problem', not_checked: '-' };

/**
 * A template tag for a text of the form "what is wrong → what to do"; its line breaks count as spaces.
 *
 * @param where the place, if it is not that of the check
 */
export const trouble =
  (status: 'warning' | 'problem', where?: string) =>
  (texts: TemplateStringsArray, ...values: readonly unknown[]): Verdict => {
    // Split off the remedy only at an arrow in our own text: a value from another server may also contain an arrow.
    const raw = texts.map((text) => text.replace(/\s+/g, ' '));
    const at = raw.findIndex((text) => text.includes(' → '));
    const [end = '', start = ''] = raw[at]?.split(' → ') ?? [];
    const message = String.raw({ raw: [...raw.slice(0, at), end] }, ...values);
    const remedy = String.raw({ raw: [start, ...raw.slice(at + 1)] }, ...values.slice(at));
    return { status, message, remedy, where };
  };
export const warning = trouble('warning');
export const problem = trouble('problem');
export const ok = (message: string, ms?: number): Verdict => ({ status: 'ok', message, ms });
/** @param because the reason, as the end of a sentence: "the database does not answer" */
export const notChecked = (because: string): Verdict => ({ status: 'not_checked', message: `not checked: ${because}` });

/** @param place `where`, unless the verdict has its own */
export const findingOf = (
  check: string,
  place: string,
  { status, message, remedy, ms, where = place }: Verdict,
): Finding => ({ check, status, where: remedy && where, message, remedy, ms: ms && Math.round(ms) });

/** @param others further checks with the same message */
export function findingText({ check, status, message, where, remedy, ms }: Finding, others: Finding[] = []): string {
  const took = ms === undefined ? '' : ` (${ms} ms)`;
  const also = others.length === 0 ? '' : ` (and ${others.map((each) => inWords(each.check)).join(', ')})`;
  const lines = [`${WORDS[status].padEnd(9)}${inWords(check).padEnd(21)}${message}${took}${also}`];
  if (remedy) for (const line of [`where:  ${where}`, `remedy: ${remedy}`]) lines.push(' '.repeat(30) + line);
  return lines.join('\n');
}

export const inWords = (check: string): string => check.replaceAll('_', ' ');
