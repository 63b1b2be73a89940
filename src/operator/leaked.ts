/** `operator leaked`: ends values that were found in public, and mails the people concerned. */
import type { Command } from 'commander';
import { leakMail } from '../accounts/mail/account-mail.ts';
import { hasMailbox } from '../accounts/mail/mail.ts';
import { findValues } from '../authorizations/leaked-report.ts';
import { createLeakedValues, type Leak } from '../authorizations/leaked-values.ts';
import { systemClock } from '../base/clock.ts';
import { FORMS } from '../base/random-id.ts';
import { Refusal } from '../base/refusal.ts';
import { tryMail } from './accounts/mailing.ts';
import { readGiven, readToken, STANDARD_INPUT_IS_SAFER } from './command/arguments.ts';
import type { Operator, Report } from './command/operator.ts';
import type { Registries } from './registries.ts';

export function addLeakedCommand(program: Command, operator: Operator): void {
  program
    .command('leaked')
    .description('revoke values that were found in public, and mail the people concerned')
    .argument('<values>', 'a file, - for standard input, or one value')
    .addHelpText(
      'after',
      '\nThe file is any text with the values in it, or a JSON list of {token, url, source}. ' +
        `Client secrets are\nrefused after leaks.secret_grace.\n${STANDARD_INPUT_IS_SAFER}`,
    )
    .action(async (given: string) => {
      const isFile = given !== '-' && !given.startsWith('gate_');
      const text = await (isFile ? readGiven(given) : readToken(given, operator));
      return operator.run((registries) => endLeaked(registries, text));
    });
}

async function endLeaked(registries: Registries, text: string): Promise<Report> {
  const { accounts, settings } = registries;
  const found = findValues(text);
  if (found.length === 0) throw nothingFound();
  const tokenKeys = registries.keys()?.tokenKeys;
  if (!tokenKeys) throw withoutKeys();
  const leaks: Leak[] = [];
  const leakedValues = createLeakedValues({
    ...registries,
    clock: systemClock,
    store: await registries.tokenStore(),
    endings: await registries.endings(),
    tokenKeys: () => tokenKeys,
    graceSeconds: () => settings.leaks.secretGraceSeconds,
    announce: (leak) => leaks.push(leak),
  });
  const ended = leakedValues.end(found, 'operator');
  // Even if a store fails, send the mails about the values that are already revoked.
  await ended.catch(() => {});
  for (const leak of leaks) {
    const account = leak.accountId === undefined ? undefined : await accounts.find(leak.accountId);
    if (!account || account.isSuspended || !hasMailbox(account)) continue;
    await tryMail(registries, leakMail(account, leak, settings.issuer));
  }
  await ended;
  const lines = leaks.map(({ kind, name, refusedFrom }) => {
    const from = refusedFrom ? `, refused from ${refusedFrom.toISOString()}` : '';
    return `- ${FORMS[kind].name}: ${name}${from}`;
  });
  return {
    value: { found: found.length, ended: leaks },
    text: [`Found ${found.length} values; revoked the ${leaks.length} that were still valid.`].concat(lines).join('\n'),
  };
}

const nothingFound = (): Refusal =>
  new Refusal(
    'no_values',
    'The text contains no token, secret or API key of this service: nothing was done.',
    'Check that the values were copied completely: `show -` says what is wrong with one.',
  );

const withoutKeys = (): Refusal =>
  new Refusal(
    'keys_missing',
    'Without the token keys, genuine tokens cannot be distinguished from made-up ones: nothing was done.',
    'Run the command in the environment of the service, or see `revoke --token`.',
  );
