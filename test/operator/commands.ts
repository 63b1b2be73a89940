/** The commands of the operator program. */
import { Readable, Writable } from 'node:stream';
import type { Command } from 'commander';

const nowhere = () => new Writable({ write: (_chunk, _encoding, done) => done() });
/** An operator that does nothing, to build the program and look at it. */
export const idle = {
  environment: {},
  stdin: Readable.from([]),
  stdout: nowhere(),
  stderr: nowhere(),
  confirm: async () => {},
  by: () => ({ operator: 'nobody' }),
  load: () => {
    throw new Error('not run');
  },
  announce: () => {},
  warn: () => {},
  onWait: () => {},
  run: async () => {},
  print: () => {},
  say: () => {},
  printArray: async () => {},
  json: false,
  progress: { show: () => {}, clear: () => {} },
  onInterrupt: () => {},
};

/** Lists every subcommand with its full name. */
export function commandsOf(command: Command, path: readonly string[] = []): [string, Command][] {
  return command.commands.flatMap((one) => {
    const words = [...path, one.name()];
    return [[words.join(' '), one] as [string, Command], ...commandsOf(one, words)];
  });
}
