/** `operator show`: what the values and IDs in a text are, whether they are valid, and if not, since when and why. */
import type { Command } from 'commander';
import { Refusal } from '../../base/refusal.ts';
import { StorageUnavailable } from '../../storage/storage-unavailable.ts';
import { readToken, STANDARD_INPUT_IS_SAFER } from '../command/arguments.ts';
import type { Operator } from '../command/operator.ts';
import type { Registries } from '../registries.ts';
import { type Answer, answersReport } from './answer.ts';
import { type FoundValue, type Kind, valuesIn } from './find.ts';
import {
  showAccount,
  showApiKey,
  showApiKeyId,
  showClient,
  showClientSecret,
  showConnection,
  showEmail,
  showOpaque,
  showPasskey,
  showPlace,
  showRequest,
  showSession,
} from './subjects.ts';
import { showAuthorization, showMachineToken, showToken } from './tokens.ts';

export function addShowCommand(program: Command, operator: Operator): void {
  const { run, print, progress } = operator;
  program
    .command('show')
    .description(
      'show for each value and ID in a text what it is, whose it is, whether it works now, and if not, ' +
        'why and since when; changes nothing',
    )
    .argument('[text]', 'the text, or one value; - or nothing: standard input', '-')
    .addHelpText(
      'after',
      '\nFinds tokens, codes, client secrets, API keys and one-time links; IDs of clients, accounts, organizations,\n' +
        'warehouses, connections, authorizations, sessions, API keys, passkeys and requests; email addresses; and\n' +
        `URLs of pages that contain one of them.\n${STANDARD_INPUT_IS_SAFER}`,
    )
    .action(async (argument: string) => {
      const found = valuesIn(await readToken(argument, operator));
      if (found.length > MAX_VALUES) throw tooManyValues();
      // Values in a wrong form were never issued: no store is opened for them.
      if (found.every(({ faults }) => faults.length > 0)) {
        return print(answersReport(found.map((one) => [one, malformed(one)])));
      }
      return run(async (registries) => {
        const answers: (readonly [FoundValue, Answer])[] = [];
        for (const one of found) {
          answers.push([one, await answerTo(registries, one).catch((error) => notAnswered(error, found.length))]);
          progress.show('Looked up', answers.length, found.length);
        }
        return answersReport(answers);
      });
    });
}

type Show = (registries: Registries, value: string) => Promise<Answer>;

const SHOW: Readonly<Record<Kind, Show>> = {
  access_token: showToken,
  machine_token: showMachineToken,
  refresh_token: showToken,
  code: showToken,
  client_secret: showClientSecret,
  api_key: showApiKey,
  client_id: showClient,
  account: showAccount,
  email: showEmail,
  organization: showPlace('organization'),
  warehouse: showPlace('warehouse'),
  connection: showConnection,
  authorization: showAuthorization,
  session: showSession,
  api_key_id: showApiKeyId,
  passkey: showPasskey,
  request: showRequest,
  opaque: showOpaque,
};

async function answerTo(registries: Registries, found: FoundValue): Promise<Answer> {
  const { kind, text, faults } = found;
  return kind === undefined || faults.length > 0 ? malformed(found) : SHOW[kind](registries, text);
}

/** A text with several values is answered as far as possible. */
function notAnswered(error: unknown, values: number): Answer {
  if (values === 1 || !(error instanceof StorageUnavailable)) throw error;
  return { state: 'not_answered', why: 'A store did not answer.', remedy: 'Run the command again.' };
}

const MAX_VALUES = 1_000;

const tooManyValues = (): Refusal =>
  new Refusal('too_many_values', `The text has more than ${MAX_VALUES} values and IDs.`, 'Show a part of the text.');

const malformed = ({ faults }: FoundValue): Answer => ({
  state: 'malformed',
  why: `The value ${faults.join('; it ')}.`,
  remedy: 'It is refused in this form, without a lookup in the stores.',
});
