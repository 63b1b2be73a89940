/** Runs the doctor as an operator does, and returns its findings by check. */
import { expect } from 'chai';
import { operatorWith, type RunOperator } from '../operator/run-operator.ts';

interface Finding {
  readonly check: string;
  readonly status: string;
  readonly message: string;
  readonly where?: string;
  readonly remedy?: string;
}

export interface Examination {
  readonly exitCode: number | null;
  readonly healthy: boolean;
  /** The findings that are warnings or problems, except about the Node that runs the tests. */
  readonly troubles: readonly Finding[];
  of(check: string): Finding;
  readonly output: string;
}

/** Runs the doctor with these variables instead of the environment of the tests. */
export const examine = (environment: Readonly<Record<string, string>>, ...args: string[]): Promise<Examination> =>
  examineBy(operatorWith(environment), ...args);

export async function examineBy(run: RunOperator, ...args: string[]): Promise<Examination> {
  const { exitCode, output, errors } = await run(['doctor', '--json', ...args]);
  expect(errors).to.equal('');
  const value = JSON.parse(output) as { healthy: boolean; findings: Finding[] };
  for (const { status, remedy, where } of value.findings) {
    const isTrouble = status === 'warning' || status === 'problem';
    expect(Boolean(remedy && where), output).to.equal(isTrouble);
  }
  return {
    exitCode,
    output,
    healthy: value.healthy,
    troubles: value.findings.filter(({ status }) => status === 'problem' || status === 'warning'),
    of(check) {
      const found = value.findings.find((finding) => finding.check === check);
      if (!found) throw new Error(`no finding of ${check} in ${output}`);
      return found;
    },
  };
}
