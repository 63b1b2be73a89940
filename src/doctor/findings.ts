/** The doctor's verdicts, and the text of each finding. */

export interface Finding {
  /** The name of the check; must stay the same across releases, because scripts compare it. */
  readonly check: string;
  readonly status: keyof typeof WORDS;
  readonly message: string;
  /** The setting, variable, address or file to change. Each warning and problem has `where` and `remedy`. */
  readonly where?: string | undefined;
  readonly remedy?: string | undefined;
  readonly ms?: number | undefined;
}

export type Verdict = Omit<Finding, 'check'>;

const WORDS = { ok: 'ok', warning: 'warning', problem: 'problem', not_checked: '-' };

/**
 * Creates a template tag for texts of the form "what is wrong → what to do". Line breaks become spaces.
 *
 * @param where by default, the `where` of the check
 */
export const trouble =
  (status: 'warning' | 'problem', where?: string) =>
  (texts: TemplateStringsArray, ...values: readonly unknown[]): Verdict => {
    // Split at an arrow of the template, not of a value: a message of another server may contain an arrow, too.
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
/** @param because a clause such as "the database does not answer" */
export const notChecked = (because: string): Verdict => ({ status: 'not_checked', message: `not checked: ${because}` });

/** @param place the `where` of the finding if the verdict does not set `where` */
export const findingOf = (
  check: string,
  place: string,
  { status, message, remedy, ms, where = place }: Verdict,
): Finding => ({ check, status, where: remedy && where, message, remedy, ms: ms && Math.round(ms) });

export function findingText({ check, status, message, where, remedy, ms }: Finding): string {
  const took = ms === undefined ? '' : ` (${ms} ms)`;
  const lines = [`${WORDS[status].padEnd(9)}${inWords(check).padEnd(21)}${message}${took}`];
  if (remedy) for (const line of [`where:  ${where}`, `remedy: ${remedy}`]) lines.push(' '.repeat(30) + line);
  return lines.join('\n');
}

export const inWords = (check: string): string => check.replaceAll('_', ' ');
