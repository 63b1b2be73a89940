/** What the doctor found, check by check: told as it is found, and kept for the report. */

export type FindingStatus = 'ok' | 'warning' | 'problem' | 'not_checked';

export interface Finding {
  /** Stable: scripts may compare it. */
  readonly check: string;
  readonly status: FindingStatus;
  /** What was found, as a sentence. */
  readonly message: string;
  /** The setting, variable, address or file it is about. */
  readonly where?: string;
  /** How to mend it; with every warning and problem. */
  readonly remedy?: string;
  readonly ms?: number;
}

type Trouble = Required<Pick<Finding, 'check' | 'message' | 'where' | 'remedy'>> &
  Pick<Finding, 'ms'>;

export interface Findings {
  readonly all: readonly Finding[];
  ok(check: string, message: string, ms?: number): void;
  warning(trouble: Trouble): void;
  problem(trouble: Trouble): void;
  /** @param because why not, as the end of a sentence: "the database does not answer". */
  notChecked(checks: readonly string[], because: string): void;
}

/** @param say prints a line for people. */
export function createFindings(say: (text: string) => void): Findings {
  const all: Finding[] = [];
  const add = (finding: Finding): void => {
    all.push(finding);
    say(findingText(finding));
  };
  return {
    all,
    ok: (check, message, ms) =>
      add({ check, status: 'ok', message, ...(ms !== undefined && { ms: Math.round(ms) }) }),
    warning: (trouble) => add({ status: 'warning', ...trouble }),
    problem: (trouble) => add({ status: 'problem', ...trouble }),
    notChecked(checks, because) {
      const message = `not checked: ${because}`;
      all.push(...checks.map((check): Finding => ({ check, status: 'not_checked', message })));
      const [check = '', ...others] = checks;
      const also = others.length === 0 ? '' : ` (and ${inWords(others.join(', '))})`;
      say(findingText({ check, status: 'not_checked', message: message + also }));
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

const inWords = (checks: string): string => checks.replaceAll('_', ' ');

function findingText({ check, status, message, where, remedy, ms }: Finding): string {
  const name = inWords(check);
  const took = ms === undefined ? '' : ` (${ms} ms)`;
  const margin = ' '.repeat(STATUS_WIDTH + CHECK_WIDTH);
  return [
    `${WORDS[status].padEnd(STATUS_WIDTH)}${name.padEnd(CHECK_WIDTH)}${message}${took}`,
    ...(where === undefined ? [] : [`${margin}where:  ${where}`]),
    ...(remedy === undefined ? [] : [`${margin}remedy: ${remedy}`]),
  ].join('\n');
}
