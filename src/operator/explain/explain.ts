/** `operator explain`: what a token, secret, key or client ID is, whether it is good, and why not. */
import type { Command } from 'commander';
import type { ValueKind } from '../../random-id.ts';
import { givenToken, STANDARD_INPUT_IS_SAFER } from '../program/given.ts';
import type { Operator } from '../program/operator.ts';
import type { Registries } from '../registries.ts';
import {
  explainApiKey,
  explainClientId,
  explainClientSecret,
  explainMachineToken,
} from './credentials.ts';
import { type Explanation, explanationReport } from './explanation.ts';
import { shapeOf } from './token-shape.ts';
import { explainToken } from './tokens.ts';

export function addExplainCommand(program: Command, operator: Operator): void {
  const { run, print } = operator;
  program
    .command('explain')
    .description('say what a token is, whose, whether it is good, and why not; changes nothing')
    .argument(
      '[token]',
      'a token, code, client secret, API key or client ID; - or none: standard input',
      '-',
    )
    .addHelpText('after', `\n${STANDARD_INPUT_IS_SAFER}`)
    .action(async (argument: string) => {
      const value = await givenToken(argument, operator);
      const { kind, faults } = shapeOf(value);
      if (kind === undefined || faults.length > 0) {
        return print(explanationReport(malformed(kind, faults)));
      }
      return run(async (registries) => {
        return explanationReport({ kind, ...(await EXPLAIN[kind](registries, value)) });
      });
    });
}

const EXPLAIN: Readonly<
  Record<ValueKind, (registries: Registries, value: string) => Promise<Explanation>>
> = {
  access_token: explainToken,
  machine_token: explainMachineToken,
  refresh_token: explainToken,
  code: explainToken,
  client_secret: explainClientSecret,
  api_key: explainApiKey,
  client_id: explainClientId,
};

const malformed = (kind: ValueKind | undefined, faults: readonly string[]): Explanation => ({
  ...(kind && { kind }),
  state: 'malformed',
  why: `The value ${faults.join('; it ')}.`,
  remedy: 'It is refused as it stands, without asking the stores.',
});
