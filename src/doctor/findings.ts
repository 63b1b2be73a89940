/** The results of the doctor's checks: printed at once, and kept for the report. */

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

export type Verdict = Omit<Finding, 'check'>;

export const ok = (message: string, ms?: number): Verdict => ({ status: 'ok', message, ms });

/** @param where needed only if it differs from the `where` that is passed to `add` */
export const warning = (message: string, remedy: string, where?: string): Verdict => ({
  status: 'warning',
  where,
  message,
  remedy,
});

/** @param where needed only if it differs from the `where` that is passed to `add` */
export const problem = (message: string, remedy: string, where?: string): Verdict => ({
  ...warning(message, remedy, where),
  status: 'problem',
});

/** @param because the reason, as the end of a sentence: "the database does not answer" */
export const notChecked = (because: string): Verdict => ({
  status: 'not_checked',
  message: `not checked: ${because}`,
});

export type Findings = ReturnType<typeof createFindings>;

export function createFindings(say: (text: string) => void) {
  const all: Finding[] = [];
  return {
    all: all as readonly Finding[],
    /** @param where the place for warnings and problems that name no place */
    add(check: string, where: string, ...verdicts: readonly Verdict[]): void {
      for (const { status, message, remedy, ms, ...own } of verdicts) {
        const place = own.where ?? where;
        const about = remedy ? { status, check, where: place } : { check, status };
        const took = ms === undefined ? {} : { ms: Math.round(ms) };
        const finding = { ...about, message, ...(remedy && { remedy }), ...took };
        all.push(finding);
        say(findingText(finding));
      }
    },
    /** @param because the reason, as the end of a sentence: "the database does not answer" */
    notChecked(checks: readonly string[], because: string): void {
      const verdict = notChecked(because);
      all.push(...checks.map((check): Finding => ({ check, ...verdict })));
      const [check = '', ...others] = checks;
      const also = others.length === 0 ? '' : ` (and ${describe(others.join(', '))})`;
      say(findingText({ check, ...verdict, message: verdict.message + also }));
    },
  };
}

const WORDS: Readonly<Record<FindingStatus, string>> = {
  ok: 'ok',
  warning: 'warning',
  problem: 'problem',
  not_checked: '-',
};
const STATUS_WIDTH = 9;
const CHECK_WIDTH = 21;

const describe = (checks: string): string => checks.replaceAll('_', ' ');

function findingText({ check, status, message, where, remedy, ms }: Finding): string {
  const name = describe(check);
  const took = ms === undefined ? '' : ` (${ms} ms)`;
  const margin = ' '.repeat(STATUS_WIDTH + CHECK_WIDTH);
  return [
    `${WORDS[status].padEnd(STATUS_WIDTH)}${name.padEnd(CHECK_WIDTH)}${message}${took}`,
    ...(where === undefined ? [] : [`${margin}where:  ${where}`]),
    ...(remedy === undefined ? [] : [`${margin}remedy: ${remedy}`]),
  ].join('\n');
}
