/** `operator explain`: what a value or an id is, if it is valid, or since when and why it is not. */
import type { Command } from 'commander';
import type { ValueKind } from '../../base/random-id.ts';
import { readToken, STANDARD_INPUT_IS_SAFER } from '../command/arguments.ts';
import type { Operator } from '../command/operator.ts';
import type { Registries } from '../registries.ts';
import {
  explainApiKey,
  explainApiKeyId,
  explainClientId,
  explainClientSecret,
  explainMachineToken,
} from './credentials.ts';
import { type Explanation, explanationReport, type Kind } from './explanation.ts';
import { brokenIdKindOf, type IdKind, idKindOf, valueIn } from './ids.ts';
import { explainAccount, explainEmail, explainOpaque, explainPasskey, explainSession } from './people.ts';
import { explainConnection, explainPlace, explainRequest } from './records.ts';
import { shapeOf } from './token-shape.ts';
import { explainAuthorization, explainToken } from './tokens.ts';

export function addExplainCommand(program: Command, operator: Operator): void {
  const { run, print } = operator;
  program
    .command('explain')
    .description(
      'explain what a value or an ID is, whose it is, whether it works now, and if not, ' +
        'why and since when; changes nothing',
    )
    .argument('[value]', 'the value; - or nothing: standard input', '-')
    .addHelpText(
      'after',
      '\nTakes a token, code, client secret, API key, one-time link or session cookie; the ' +
        'ID of a client, account,\norganization, warehouse, connection, authorization, ' +
        'session, API key, passkey or request; an email address;\nor the URL of a page that ' +
        `contains one of them.\n${STANDARD_INPUT_IS_SAFER}`,
    )
    .action(async (argument: string) => {
      const value = valueIn(await readToken(argument, operator));
      const id = idKindOf(value);
      if (id) {
        return run(async (registries) => explanationReport({ kind: id, ...(await EXPLAIN_ID[id](registries, value)) }));
      }
      const broken = brokenIdKindOf(value);
      if (broken) return print(explanationReport(malformed(broken, ['is not a complete ID'])));
      const { kind, faults } = shapeOf(value);
      if (kind === undefined || faults.length > 0) {
        return print(explanationReport(malformed(kind, faults)));
      }
      return run(async (registries) => {
        return explanationReport({ kind, ...(await EXPLAIN[kind](registries, value)) });
      });
    });
}

type Explain = (registries: Registries, value: string) => Promise<Explanation>;

const EXPLAIN: Readonly<Record<ValueKind, Explain>> = {
  access_token: explainToken,
  machine_token: explainMachineToken,
  refresh_token: explainToken,
  code: explainToken,
  client_secret: explainClientSecret,
  api_key: explainApiKey,
  client_id: explainClientId,
};

const EXPLAIN_ID: Readonly<Record<IdKind, Explain>> = {
  account: explainAccount,
  email: explainEmail,
  organization: explainPlace('organization'),
  warehouse: explainPlace('warehouse'),
  connection: explainConnection,
  authorization: explainAuthorization,
  session: explainSession,
  api_key_id: explainApiKeyId,
  passkey: explainPasskey,
  request: explainRequest,
  opaque: explainOpaque,
};

const malformed = (kind: Kind | undefined, faults: readonly string[]): Explanation => ({
  ...(kind && { kind }),
  state: 'malformed',
  why: `The value ${faults.join('; it ')}.`,
  remedy: 'It is refused in this form, without a lookup in the stores.',
});
