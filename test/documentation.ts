/** The pages of the docs, and the operator commands in them. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

export const ROOT = path.join(import.meta.dirname, '..');
export const pages = ['.', 'docs', 'docs/decisions', 'docs/operations'].flatMap((folder) =>
  readdirSync(path.join(ROOT, folder))
    .filter((name) => name.endsWith('.md'))
    .map((name) => path.join(ROOT, folder, name)),
);
export const textOf = (file: string): string => readFileSync(file, 'utf8');
export const nameOf = (file: string): string => path.relative(ROOT, file);

export const OPERATOR = /^(?:npm run (?:--silent )?operator --|gatehouse) (.*)$/;

/** Returns the lines of a block, with continued lines joined, and without comments. */
export const linesOf = (block: string): string[] =>
  block
    .replaceAll(/ *\\\n */g, ' ')
    .split('\n')
    .map((line) => line.replace(/(^|\s)#.*$/, '').trim())
    .filter(Boolean);

/** Returns the operator commands in blocks and in the text, without the program's name. */
export function commandsIn(text: string): string[] {
  const blocks = [...text.matchAll(/```sh\n(.*?)```/gs)].flatMap(([, block = '']) => linesOf(block));
  const inText = [...text.matchAll(/`((?:npm run|gatehouse) [^`]+)`/g)].map(([, code = '']) =>
    code.replaceAll(/\s+/g, ' '),
  );
  const commands = [...blocks, ...inText]
    .flatMap((line) => line.split(/ *&& */))
    .map((line) => OPERATOR.exec(line)?.[1]);
  // Skip `gatehouse …`, which stands for any command.
  return commands.filter((command): command is string => ![undefined, '…'].includes(command));
}
