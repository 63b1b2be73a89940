/** `operator passkeys`: lists and removes the passkeys of a person. */
import type { Command } from 'commander';
import type { Account } from '../../accounts/account.ts';
import { noticeMail } from '../../accounts/mail/account-mail.ts';
import { detailsOf, type Passkey } from '../../accounts/passkeys/passkey.ts';
import { Refusal } from '../../base/refusal.ts';
import { addYesOption } from '../command/confirmation.ts';
import { aboutAccount } from '../command/names.ts';
import type { Operator, Report } from '../command/operator.ts';
import { dayOf, itemsReport, type ListForm } from '../command/report.ts';
import type { Registries } from '../registries.ts';
import { tryMail } from './mailing.ts';

export function addPasskeyCommands(program: Command, operator: Operator): void {
  const passkeys = program.command('passkeys').description('passkeys with which people sign in');

  aboutAccount(passkeys.command('list'), operator, async (account, registries) =>
    itemsReport(LIST, await registries.passkeys.of(account.id)),
  ).description('list the passkeys with which a person signs in');

  aboutAccount(
    addYesOption(passkeys.command('remove')).requiredOption('--passkey <passkey>', 'ID of the passkey'),
    operator,
    async (account, registries, options: { readonly passkey: string }) => {
      const kept = await registries.passkeys.of(account.id);
      const found = kept.find(({ id }) => id === options.passkey);
      if (!found) throw unknown(account, options.passkey);
      await operator.confirm(`Removes the passkey ${found.name} of ${account.email}, and ends their sessions.`);
      return remove(account, found, registries);
    },
  ).description('remove a passkey, such as one on a lost device');
}

const LIST: ListForm<Passkey> = {
  heading: ['ID', 'NAME', 'SYNCED', 'ADDED', 'LAST USED'],
  row: ({ id, name, isSynced, createdAt, lastUsedAt }) => [
    id,
    name,
    isSynced ? 'yes' : 'no',
    dayOf(createdAt),
    dayOf(lastUsedAt),
  ],
  value: ({ id, name, isSynced, createdAt, lastUsedAt }) => ({
    id,
    name,
    synced: isSynced,
    added_at: createdAt,
    last_used_at: lastUsedAt,
  }),
  nothing: 'The account has no passkey.',
};

async function remove(account: Account, { id, name }: Passkey, registries: Registries): Promise<Report> {
  const { passkeys, recordChange, settings } = registries;
  const { id: accountId, email } = account;
  const record = recordChange('passkey_removed', { accountId, details: detailsOf({ id, name }) });
  if (!(await passkeys.remove(accountId, id, record))) throw unknown(account, id);
  const about = { issuer: settings.issuer, at: new Date(), about: name };
  // The passkey is removed even if the mail cannot be sent.
  const { isMailed, failure, value } = await tryMail(registries, noticeMail(account, 'passkey_removed', about));
  return {
    value: { account_id: accountId, passkey_id: id, removed: true, browser_sessions_ended: true, ...value },
    text: [
      `Removed the passkey ${name} of ${email}, and signed them out everywhere.`,
      ...(isMailed ? ['The person was notified by mail.'] : []),
      ...(failure === undefined ? [] : [`The person could not be notified by mail: ${failure}`]),
    ].join('\n'),
  };
}

const unknown = ({ email }: Account, id: string): Refusal =>
  new Refusal('passkey_unknown', `${email} has no passkey ${id}.`, 'See `passkeys list`.');
