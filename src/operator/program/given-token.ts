/** Where a token comes from that a command is about: best not from an argument, which others can see. */
import { text } from 'node:stream/consumers';
import { askingHidden } from './hidden-line.ts';
import type { Surroundings } from './operator.ts';

/** For the help of commands that take a token. */
export const STANDARD_INPUT_IS_SAFER =
  'An argument stands in the shell history and in the list of processes: better give - and the\n' +
  'value on standard input, or type it where it is asked for.';

/** @param argument `-` for standard input; a line break at its end belongs to the pipe. */
export async function givenToken(
  argument: string,
  terminal: Pick<Surroundings, 'stdin' | 'stderr'>,
): Promise<string> {
  if (argument !== '-') return argument;
  if (terminal.stdin.isTTY) {
    return askingHidden(terminal, 'no token was typed', (ask) => ask('Token (not shown): '));
  }
  return (await text(terminal.stdin)).replace(/\r?\n$/, '');
}
