/** `operator completion SHELL`: prints a shell function that runs commands, with completion. */
import path from 'node:path';
import { Argument, type Command } from 'commander';
import type { Operator } from '../command/operator.ts';

const PROGRAM = path.join(import.meta.dirname, '../../../bin/gatehouse');

export function addCompletionCommand(program: Command, { print }: Operator): void {
  program
    .command('completion')
    .description(
      'print a shell function `gatehouse` that runs this command and completes its words: ' +
        'put eval "$(…)" into a shell’s start file',
    )
    .addArgument(new Argument('<shell>', 'the shell').choices(['bash', 'zsh']))
    .action((shell: 'bash' | 'zsh') => {
      const text = scriptFor(shell, program);
      print({ value: { shell, script: text }, text });
    });
}

/** Runs compinit first: bashcompinit needs it, and the user's start file may not have run it. */
const ZSH = [
  '(( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i }',
  'autoload -Uz +X bashcompinit && bashcompinit',
];

function scriptFor(shell: 'bash' | 'zsh', program: Command): string {
  // Put the longest words first: the shell takes the first case that matches.
  const cases = choicesOf(program).toReversed();
  return [
    ...(shell === 'zsh' ? ZSH : []),
    `gatehouse() { ${quoted(PROGRAM)} "$@"; }`,
    '_gatehouse() {',
    `  local choices before="\${COMP_WORDS[*]:1:$((COMP_CWORD-1))} "`,
    '  case "$before" in',
    ...cases.map(([words, choices]) => `    ${quoted(words)}*) choices=${quoted(choices)} ;;`),
    '  esac',
    `  COMPREPLY=($(compgen -W "$choices" -- "\${COMP_WORDS[COMP_CWORD]}"))`,
    '}',
    'complete -o default -F _gatehouse gatehouse',
  ].join('\n');
}

/** Returns the possible next words after the words of each command; nouns before their verbs. */
function choicesOf(command: Command, before = ''): [words: string, choices: string][] {
  const options = command.options.map(({ long }) => long ?? '');
  const verbs = command.commands.map((verb) => verb.name());
  const below = command.commands.flatMap((verb) => choicesOf(verb, `${before}${verb.name()} `));
  return [[before, [...verbs, ...options, '--json', '--help'].join(' ')], ...below];
}

const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;
