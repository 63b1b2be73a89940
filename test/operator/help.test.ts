import { Readable, Writable } from 'node:stream';
import { expect } from 'chai';
import type { Command } from 'commander';
import { createProgram } from '../../src/operator/program.ts';
import { operatorWith, valueFrom } from './run-operator.ts';

const nowhere = () => new Writable({ write: (_chunk, _encoding, done) => done() });
const idle = {
  ...{ environment: {}, stdin: Readable.from([]), stdout: nowhere(), stderr: nowhere() },
  ...{ run: async () => {}, print: () => {}, say: () => {}, onInterrupt: () => {} },
};

/** Every command below this one, with its words. */
function commandsOf(command: Command, path: readonly string[] = []): [string, Command][] {
  return command.commands.flatMap((one) => {
    const words = [...path, one.name()];
    return [[words.join(' '), one] as [string, Command], ...commandsOf(one, words)];
  });
}

describe('the help of the operator command', () => {
  const program = createProgram(idle, { json: false });
  const run = operatorWith({});

  it('shows an example on every level, with options that the command has', async () => {
    const commands = commandsOf(program);
    expect(commands.length).to.be.above(25);
    for (const [words, command] of [['', program] as const, ...commands]) {
      const { exitCode, output: help } = await run([...words.split(' ').filter(Boolean), '--help']);
      expect(exitCode, words).to.equal(0);
      expect(help.startsWith(`Usage: operator ${words}`), help).to.equal(true);
      expect(help, words).to.contain('--json');
      if (words === '') continue;
      const [, examples = ''] = help.split(/\nExamples?:\n/);
      const begins = `npm run operator -- ${words === 'keys list' ? 'keys' : words}`;
      expect(examples, words).to.contain(begins);
      if (command.commands.length > 0) continue;
      const known = ['--json', ...command.options.map(({ long }) => long)];
      expect(known).to.include.members([...examples.matchAll(/--[a-z][a-z-]*/g)].map(String));
    }
  });

  it('is what a command line without a command gets, as wrong usage', async () => {
    const answer = await run([]);
    expect(answer).to.include({ exitCode: 2, output: '' });
    for (const [name] of commandsOf(program)) {
      if (!name.includes(' ')) expect(answer.errors).to.match(new RegExp(`^  ${name}\\b`, 'm'));
    }
    const { error } = await valueFrom(run, [], { exitCode: 2 });
    expect(error.message).to.equal('a command is missing');
    const mistyped = await run(['revok']);
    expect(mistyped.errors).to.contain('Did you mean revoke?');
  });
});
