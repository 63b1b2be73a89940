/** `operator keys`: lists each key by its fingerprint, and whether the key signs or is only accepted. */
import type { Command } from 'commander';
import { type KeyFacts, keyFacts, keyProblems, keyStates } from '../service/key-states.ts';
import type { Operator, Report } from './command/operator.ts';
import { table } from './command/report.ts';

export function addKeyCommands(program: Command, { run }: Operator): void {
  const keys = program.command('keys').description('the keys that sign cookies and refresh tokens');

  keys
    .command('list', { isDefault: true })
    .description('list every key by its fingerprint, which one signs, and which nodes differ')
    .action(() => run(async (registries) => listReport(await keyFacts(registries))));
}

function listReport(facts: KeyFacts): Report {
  const states = keyStates(facts);
  const warnings = keyProblems(facts);
  const rows = states.map(({ kind, fingerprint, use }) => [
    kind,
    fingerprint,
    use === 'current' ? 'signs' : 'accepted',
  ]);
  return {
    value: {
      keys: states,
      nodes: facts.nodes.map(({ node, cookieKeys, tokenKeys }) => ({
        node,
        cookie_keys: cookieKeys,
        token_keys: tokenKeys,
      })),
      warnings,
    },
    text: [
      table(['KIND', 'KEY', 'USE'], rows, 'There are no keys.'),
      `Running nodes: ${facts.nodes.map(({ node }) => node).join(', ') || 'none'}`,
      ...warnings.map(({ message, remedy }) => `Warning: ${message}\n  Remedy: ${remedy}`),
    ].join('\n'),
  };
}
