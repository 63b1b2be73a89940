/** `operator keys`: lists by fingerprint which keys sign or are accepted, and generates keys. */
import { randomBytes } from 'node:crypto';
import { type Command, Option } from 'commander';
import { KEY_VARIABLE, type KeyFacts, keyFacts, keyProblems, keyStates } from '../service/key-states.ts';
import type { KeyKind } from '../storage/heartbeat.ts';
import type { Operator, Report } from './command/operator.ts';
import { table } from './command/report.ts';
import { addOutOption } from './command/secret-file.ts';

/** As many bytes as in the documented `openssl rand -base64 48`. */
const KEY_BYTES = 48;

export function addKeyCommands(program: Command, { run, print, stderr }: Operator): void {
  const keys = program.command('keys').description('the keys that sign cookies and refresh tokens');

  keys
    .command('list', { isDefault: true })
    .description('list every key by its fingerprint, which one signs, and which nodes differ')
    .action(() => run(async (registries) => listReport(await keyFacts(registries))));

  addOutOption(keys.command('generate'))
    .description('make a new key, and print on standard error how to install it; changes nothing')
    .addOption(new Option('--kind <kind>', 'what the key is for').choices(['cookie', 'token']))
    .action(({ kind }: { kind?: KeyKind }) => {
      const key = randomBytes(KEY_BYTES).toString('base64url');
      const steps = rotationSteps(kind);
      stderr.write(`${steps.join('\n')}\n`);
      print({ value: { key, ...(kind && { variable: KEY_VARIABLE[kind] }), steps }, text: key, secret: key });
    });
}

function rotationSteps(kind: KeyKind | undefined): string[] {
  const variable = kind ? KEY_VARIABLE[kind] : Object.values(KEY_VARIABLE).join(' or ');
  return [
    `A new deployment needs nothing more. To replace a key, write into ${variable}, comma-separated (embedded deployment:`,
    'into the list in data/secrets.json), in three steps, each finished on every node before the next:',
    '1. old,new   every node accepts the new key, but none signs with it yet',
    '2. new,old   the new key signs, the old one is still accepted',
    '3. new       tokens.refresh_token (cookie keys: sessions.absolute) after step 2',
  ];
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
