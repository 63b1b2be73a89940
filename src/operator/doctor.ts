/** `operator doctor`: examines the whole running service, and prints the findings. */
import { type Command, InvalidArgumentError } from 'commander';
import { normalizeEmail } from '../accounts/email.ts';
import { type ExaminationOptions, examine } from '../doctor/doctor.ts';
import { createFindings } from '../doctor/findings.ts';
import type { Operator } from './command/operator.ts';
import { REFUSED } from './command/report.ts';

/** Exit code that shells give a command that Ctrl-C ended. */
const INTERRUPTED = 130;

export function addDoctorCommand(program: Command, operator: Operator): void {
  const { print, say, progress, environment, streamWatch } = operator;
  program
    .command('doctor')
    .description(
      'try the running service out: its stores, its public address, and a whole authorization ' +
        'with a client that is removed again',
    )
    .option(
      '--address <url>',
      'connect there instead of to the issuer, and say the issuer’s name: one node behind a proxy',
      origin,
    )
    .option('--mail <address>', 'send one test mail there; without it no mail is sent', mailbox)
    .action(async (options: Pick<ExaminationOptions, 'address' | 'mail'>) => {
      const interruption = new AbortController();
      operator.onInterrupt(() => interruption.abort());
      const findings = createFindings((text) => {
        say(text);
        progress.show('Checked', findings.all.length);
      });
      const { signal } = interruption;
      const by = operator.by();
      await examine(findings, { ...options, environment, signal, by, streamWatch });
      const { aborted } = signal;
      const count = (status: string): number =>
        findings.all.filter((finding) => finding.status === status).length;
      const [problems, warnings] = [count('problem'), count('warning')];
      print({
        value: { healthy: problems === 0 && !aborted, problems, warnings, findings: findings.all },
        text: aborted
          ? 'Broken off. What was made for it is removed.'
          : `${problems} problem(s), ${warnings} warning(s).`,
        exitCode: aborted ? INTERRUPTED : problems > 0 ? REFUSED : 0,
      });
    });
}

function origin(text: string): string {
  if (!/^https?:\/\//.test(text) || !URL.canParse(text)) {
    throw new InvalidArgumentError('Write an http or https URL, such as http://10.0.0.2:3000.');
  }
  return new URL(text).origin;
}

function mailbox(text: string): string {
  const address = normalizeEmail(text);
  if (address !== undefined) return address;
  throw new InvalidArgumentError('Write an email address, such as you@example.com.');
}
