import { expect } from 'chai';
import type { Command } from 'commander';
import { createProgram } from '../../src/operator/program.ts';
import { operatorWith, valueFrom } from './run-operator.ts';

const idle = { run: async () => {}, print: () => {}, say: () => {} };

/** Every command below this one, with its words. */
function commandsOf(command: Command, path: readonly string[] = []): [string, Command][] {
  return command.commands.flatMap((one) => {
    const words = [...path, one.name()];
    return [[words.join(' '), one] as [string, Command], ...commandsOf(one, words)];
  });
}

function helpOf(command: Command): string {
  const parts: string[] = [];
  command.configureOutput({ writeOut: (part) => parts.push(part) }).outputHelp();
  return parts.join('');
}

describe('the help of the operator command', () => {
  const program = createProgram(idle, { json: false });

  it('shows an example on every level, with options that the command has', () => {
    const commands = commandsOf(program);
    expect(commands.length).to.be.above(25);
    for (const [words, command] of commands) {
      const help = helpOf(command);
      const [, examples = ''] = help.split(/\nExamples?:\n/);
      const begins = `npm run operator -- ${words === 'keys list' ? 'keys' : words}`;
      expect(examples, words).to.contain(begins);
      expect(help, words).to.contain('--json');
      if (command.commands.length > 0) continue;
      const known = ['--json', ...command.options.map(({ long }) => long)];
      expect(known).to.include.members([...examples.matchAll(/--[a-z][a-z-]*/g)].map(String));
    }
  });

  it('is what a command line without a command gets, as wrong usage', async () => {
    const run = operatorWith({});
    const { exitCode, output, errors } = await run([]);
    expect([exitCode, output]).to.deep.equal([2, '']);
    for (const [name] of commandsOf(program)) {
      if (!name.includes(' ')) expect(errors).to.match(new RegExp(`^  ${name}\\b`, 'm'));
    }
    const { error } = await valueFrom(run, [], { exitCode: 2 });
    expect(error.message).to.equal('a command is missing');
    const mistyped = await run(['revok']);
    expect(mistyped.errors).to.contain('Did you mean revoke?');
  });
});
