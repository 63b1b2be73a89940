/** Asks for secrets on the terminal, without showing what is typed. */
import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { WrongUsage } from './failure.ts';
import type { Surroundings } from './operator.ts';

export type AskHidden = (question: string) => Promise<string>;

/**
 * @param work is given what asks one question after the other.
 * @throws WrongUsage where the terminal is closed in place of an answer, which says `missing`.
 */
export async function askingHidden<Result>(
  { stdin, stderr }: Pick<Surroundings, 'stdin' | 'stderr'>,
  missing: string,
  work: (ask: AskHidden) => Promise<Result>,
): Promise<Result> {
  const unseen = new Writable({ write: (_chunk, _encoding, done) => done() });
  const terminal = createInterface({ input: stdin, output: unseen, terminal: true });
  const ended = new Promise<never>((_, reject) => {
    terminal.once('close', () => reject(new WrongUsage(missing)));
  });
  ended.catch(() => {});
  try {
    return await work(async (question) => {
      stderr.write(question);
      const answer = await Promise.race([terminal.question(''), ended]);
      stderr.write('\n');
      return answer;
    });
  } finally {
    terminal.close();
  }
}
