/** `operator keys`: lists by fingerprint which keys sign or are accepted, and generates keys. */
import { randomBytes } from 'node:crypto';
import { type Command, Option } from 'commander';
import { systemClock } from '../base/clock.ts';
import {
  KEY_VARIABLE,
  type KeyFacts,
  type KeyState,
  type KeyWarning,
  keyFacts,
  keyStates,
  keyWarnings,
} from '../service/key-states.ts';
import type { KeyKind } from '../storage/key-sightings.ts';
import type { Operator, Report } from './command/operator.ts';
import { table } from './command/report.ts';
import { addOutOption } from './command/secret-file.ts';

/** As many bytes as in the documented `openssl rand -base64 48`. */
const KEY_BYTES = 48;

export function addKeyCommands(program: Command, { run, print, stderr }: Operator): void {
  const keys = program.command('keys').description('the keys that sign cookies and refresh tokens');

  keys
    .command('list', { isDefault: true })
    .description('list every key by its fingerprint: which one signs, and when an older one can be removed')
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
    `Rotate in three steps. Finish each step on every node before the next. Write into ${variable}, comma-separated`,
    '(embedded deployment: into the list in data/secrets.json):',
    '1. old,new   every node accepts the new key, but none signs with it yet',
    '2. new,old   the new key signs, the old one is still accepted',
    '3. new       once `gatehouse keys list` says that the old key is safe to remove',
  ];
}

function listReport(facts: KeyFacts): Report {
  const now = systemClock();
  const states = keyStates(facts);
  const warnings = keyWarnings(facts, now);
  const rows = states.map((state) => [
    state.kind,
    state.fingerprint,
    state.use,
    dayOf(state.currentSince) ?? 'not yet',
    removal(state, now),
  ]);
  const heading = ['KIND', 'KEY', 'USE', 'SIGNS SINCE', 'REMOVE'];
  return {
    value: {
      keys: states.map(stateValue),
      nodes: facts.nodes.map(({ node, cookieKeys, tokenKeys }) => ({
        node,
        cookie_keys: cookieKeys,
        token_keys: tokenKeys,
      })),
      warnings,
    },
    text: [
      table(heading, rows, 'There are no keys.'),
      `Running nodes: ${facts.nodes.map(({ node }) => node).join(', ') || 'none'}`,
      ...warnings.map(warningText),
    ].join('\n'),
  };
}

const stateValue = (state: KeyState) => ({
  kind: state.kind,
  fingerprint: state.fingerprint,
  use: state.use,
  current_since: state.currentSince ?? null,
  replaced_at: state.replacedAt ?? null,
  removable_from: state.removableFrom ?? null,
});

const warningText = ({ message, remedy }: KeyWarning): string => `Warning: ${message}\n  Remedy: ${remedy}`;

function removal({ use, removableFrom }: KeyState, now: number): string {
  if (use === 'current') return 'no: it is the signing key';
  if (use === 'next') return 'any time: it has never signed';
  if (!removableFrom) return 'no: a node still signs with it';
  if (removableFrom.getTime() <= now) return `safe since ${dayOf(removableFrom)}`;
  return `not before ${toMoment(removableFrom)}`;
}

const dayOf = (time: Date | undefined): string | undefined => time?.toISOString().slice(0, 10);
const toMoment = (time: Date): string => `${time.toISOString().slice(0, 16)}Z`;
