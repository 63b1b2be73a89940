/** `operator doctor`: examines the whole running service, and prints the findings. */
import { type Command, InvalidArgumentError } from 'commander';
import { normalizeEmail } from '../accounts/email.ts';
import { examine } from '../doctor/doctor.ts';
import type { ExaminationOptions } from '../doctor/needs.ts';
import type { Operator } from './command/operator.ts';
import { REFUSED } from './command/report.ts';

/** The exit code by which shells report a command that Ctrl-C ended. */
const INTERRUPTED = 130;

export function addDoctorCommand(program: Command, operator: Operator): void {
  const { print, say, progress, environment, streamWatch } = operator;
  program
    .command('doctor')
    .description(
      'test the running service: its stores, its public address, and a complete authorization with a temporary client',
    )
    .option(
      '--address <url>',
      'connect to this URL instead of the issuer, but send the issuer’s host name: tests one node behind a proxy',
      origin,
    )
    .option('--mail <address>', 'send one test mail to this address; default: no mail is sent', mailbox)
    .action(async (options: Pick<ExaminationOptions, 'address' | 'mail'>) => {
      const interruption = new AbortController();
      operator.onInterrupt(() => interruption.abort());
      const { signal } = interruption;
      const findings = await examine(
        { ...options, environment, signal, by: operator.by(), streamWatch },
        (text, count) => {
          say(text);
          progress.show('Checked', count);
        },
      );
      const { aborted } = signal;
      const count = (status: string): number => findings.filter((finding) => finding.status === status).length;
      const [problems, warnings] = [count('problem'), count('warning')];
      print({
        value: { healthy: problems === 0 && !aborted, problems, warnings, findings },
        text: aborted
          ? 'Interrupted. Everything that the doctor created was removed.'
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
