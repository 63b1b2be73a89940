/** `operator show`: says what each value or ID in a text is, whether it is valid, and if not, since when and why. */
import type { Command } from 'commander';
import { auditEntry } from '../../accounts/activity/audit.ts';
import { Refusal } from '../../base/refusal.ts';
import { StorageUnavailable } from '../../storage/storage-unavailable.ts';
import { auditLine } from '../audit.ts';
import { readToken, STANDARD_INPUT_IS_SAFER } from '../command/arguments.ts';
import type { Operator, Report } from '../command/operator.ts';
import { printable, REFUSED } from '../command/report.ts';
import type { Registries } from '../registries.ts';
import { type Answer, as, TIMES } from './answer.ts';
import { type FoundValue, kindName, publicForm, valuesIn } from './find.ts';
import { SUBJECTS } from './subjects.ts';

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
        `URLs of pages that contain one of these IDs.\n${STANDARD_INPUT_IS_SAFER}`,
    )
    .action(async (argument: string) => {
      const text = await readToken(argument, operator, 'One line (hidden; for a longer text: show - < FILE): ');
      if (text.length > MAX_LENGTH) throw refused('text_too_long', `is longer than ${MAX_LENGTH} characters.`);
      const found = valuesIn(text);
      if (found.length > MAX_VALUES) throw refused('too_many_values', `has ${found.length} values.`);
      // Malformed values were never issued, so no store needs to be opened.
      if (found.every(({ faults }) => faults.length > 0)) {
        return print(answersReport(found.map((one) => [one, malformed(one)])));
      }
      return run(async (registries) => {
        const isAlone = found.length === 1;
        const answers: (readonly [FoundValue, Answer])[] = [];
        for (const one of found) {
          answers.push([one, await answerTo(registries, one, isAlone).catch((error) => notAnswered(error, isAlone))]);
          progress.show('Looked up', answers.length, found.length);
        }
        return answersReport(answers);
      });
    });
}

async function answerTo(registries: Registries, found: FoundValue, isAlone: boolean): Promise<Answer> {
  const { kind, text, faults } = found;
  return kind === undefined || faults.length > 0 ? malformed(found) : SUBJECTS[kind](registries, text, isAlone);
}

/** Returns an answer if a value is refused or its store fails, so that others are answered. Otherwise throws. */
function notAnswered(error: unknown, isAlone: boolean): Answer {
  if (!isAlone && error instanceof Refusal) return as('not_answered', error.message, error.remedy);
  if (isAlone || !(error instanceof StorageUnavailable)) throw error;
  return as('not_answered', 'A store did not answer.', 'Run the command again.');
}

const MAX_VALUES = 1_000;
const MAX_LENGTH = 10_000_000;

const refused = (code: string, why: string): Refusal =>
  new Refusal(code, `The text ${why}`, 'Show a part of the text.');

const malformed = ({ faults, isNothing }: FoundValue): Answer =>
  isNothing
    ? as('malformed', `The text ${faults.join()}.`)
    : as(
        'malformed',
        `The value ${faults.join('; it ')}.`,
        'A malformed value is refused: it was not looked up in a store.',
      );

const answersReport = (answers: readonly (readonly [FoundValue, Answer])[]): Report => ({
  ...(answers.some(([, { state }]) => state === 'malformed' || state === 'not_answered') && { exitCode: REFUSED }),
  value: answers.map(([found, answer]) => answerValue(found, answer)),
  text: answers.map(([found, answer]) => answerText(found, answer)).join('\n\n'),
});

/** A value that was not found in a store may be a secret of another service. */
const shownValue = (found: FoundValue, { state }: Answer): string =>
  publicForm(found, state === 'unknown' || state === 'not_answered');

function answerValue(found: FoundValue, answer: Answer): object {
  const { kind = found.kind ?? null, state, why, remedy = null, name, account, client } = answer;
  const { lastFour, times = {}, content, log = [] } = answer;
  return {
    value: shownValue(found, answer),
    kind,
    state,
    why,
    remedy,
    name,
    account: account ? { id: account.id, email: 'email' in account ? account.email : null } : null,
    client: client
      ? { id: client.id, ...('name' in client ? { name: client.name, kind: client.kind } : { name: null }) }
      : null,
    last_four: lastFour,
    ...Object.fromEntries(TIMES.map((time) => [time, times[time] ?? null])),
    content: content?.value ?? null,
    log: log.map(auditEntry),
  };
}

function answerText(found: FoundValue, answer: Answer): string {
  const { kind, state, why, remedy, name, account, client, times = {}, content, log = [] } = answer;
  const what = kind === 'link' ? 'one-time link' : found.kind ? kindName(kind ?? found.kind) : 'not a Gatehouse value';
  const facts = [
    ['Value', shownValue(found, answer)],
    ['Name', name],
    ['Ends in', found.kind === 'api_key_id' && answer.lastFour],
    ['Account', account && ('email' in account ? `${account.email} (${account.id})` : account.id)],
    ['Client', client && ('name' in client ? `${client.name} (${client.id})` : client.id)],
    ...TIMES.map((time) => [inWords(time.replace('_at', '')), times[time]?.toISOString()] as const),
  ] as const;
  return [
    `${inWords(what)}: ${state.replaceAll('_', ' ')}`,
    why,
    remedy,
    ...facts.flatMap(([label, fact]) => (fact ? [`${label.padEnd(12)}${fact}`] : [])),
    content?.text,
    ...(log.length > 0 ? ['Latest in the audit log:', ...log.map(auditLine)] : []),
  ]
    .filter((line) => line !== undefined && line !== '')
    .flatMap((line) => `${line}`.split('\n').map(printable))
    .join('\n');
}

const inWords = (name: string): string => `${name.slice(0, 1).toUpperCase()}${name.slice(1).replaceAll('_', ' ')}`;
