/** Where the password of a new account comes from; never from an argument, which others can see. */
import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { randomId } from '../../random-id.ts';
import { WrongUsage } from '../program/failure.ts';
import { askingHidden } from '../program/hidden-line.ts';
import type { Surroundings } from '../program/operator.ts';

export interface PasswordOptions {
  readonly passwordFile?: string;
  readonly generatePassword?: true;
}

/** The password, and whether it was made here and must therefore be shown. */
export async function passwordFrom(
  options: PasswordOptions,
  terminal: Terminal,
): Promise<{ readonly password: string; readonly isGenerated: boolean }> {
  // 144 bits, short enough to be read out.
  if (options.generatePassword) return { password: randomId('', 24), isGenerated: true };
  const password = withoutLineEnd(await given(options.passwordFile, terminal));
  if (password !== '') return { password, isGenerated: false };
  throw new WrongUsage(
    'there is no password: give it on standard input, with --password-file or with ' +
      '--generate-password',
  );
}

type Terminal = Pick<Surroundings, 'stdin' | 'stderr'>;

async function given(file: string | undefined, terminal: Terminal): Promise<string> {
  const { stdin } = terminal;
  if (file === undefined) return stdin.isTTY ? typed(terminal) : text(stdin);
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new WrongUsage(`the password file ${file} cannot be read (${code})`);
  }
}

/** Spaces belong to a password; the end of the line it was written on does not. */
const withoutLineEnd = (content: string): string => content.replace(/\r?\n$/, '');

const typed = (terminal: Terminal): Promise<string> =>
  askingHidden(terminal, 'no password was typed', async (ask) => {
    const password = await ask('Password: ');
    if (password === (await ask('The same again: '))) return password;
    throw new WrongUsage('the two passwords differ');
  });
