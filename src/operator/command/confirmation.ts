/** Asks the operator to confirm a change that cannot be undone, unless `--yes` was given. */
import { type Command, Option } from 'commander';
import { Refusal } from '../../base/refusal.ts';
import { prompting } from './arguments.ts';
import type { Surroundings } from './operator.ts';

/** Adds the option `--yes`. Use this for each command whose action awaits `operator.confirm`. */
export const addYesOption = (command: Command): Command =>
  command.addOption(new Option('--yes', 'skip the confirmation; the action cannot be undone'));

/**
 * Await this after every check that can refuse the command, and before any change.
 *
 * @param what a sentence that says what will be done, with numbers if possible
 * @throws Refusal `confirmation_needed` if there is no terminal to ask on, or `confirmation_denied`
 *   for any answer but `yes`
 */
export async function requireConfirmation(
  what: string,
  { yes }: { readonly yes?: true },
  { stdin, stderr }: Pick<Surroundings, 'stdin' | 'stderr'>,
): Promise<void> {
  if (yes) return;
  // Ask on stderr, so that stdout has only the JSON value with `--json`.
  if (!stdin.isTTY || !stderr.isTTY) {
    throw new Refusal('confirmation_needed', `${what} This cannot be undone.`, 'Add --yes.');
  }
  const question = `${what} This cannot be undone.\nType yes to continue: `;
  // Treat Ctrl-C and the end of input like the answer no.
  const answer = await prompting({ stdin, stderr }, { isHidden: false }, (ask) => ask(question)).catch(() => '');
  if (answer.trim() === 'yes') return;
  throw new Refusal('confirmation_denied', 'Nothing was changed.', 'Type yes to continue.');
}
