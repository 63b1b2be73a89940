/** `operator links` and `operator passkeys`: the sign-in methods of a person besides the password. */
import type { Command } from 'commander';
import type { Account } from '../../accounts/account.ts';
import type { LinkedIdentity } from '../../accounts/identities/identities.ts';
import { noticeMail } from '../../accounts/mail/account-mail.ts';
import { detailsOf, type Passkey } from '../../accounts/passkeys/passkey.ts';
import { Refusal } from '../../base/refusal.ts';
import { addYesOption } from '../command/confirmation.ts';
import { aboutAccount } from '../command/names.ts';
import type { Operator, Report } from '../command/operator.ts';
import { dayOf, itemsReport, type ListForm } from '../command/report.ts';
import type { Registries } from '../registries.ts';
import { tryMail } from './mailing.ts';

export function addLinkCommands(program: Command, operator: Operator): void {
  const links = program.command('links').description('accounts at providers with which people sign in');

  aboutAccount(links.command('list'), operator, async (account, registries) => {
    const linked = await registries.identities.listOf(account.id);
    const { providers } = registries.settings.signIn;
    const named = linked.map((one) => ({
      ...one,
      provider: providers.find(({ issuer }) => issuer === one.issuer)?.id,
    }));
    return itemsReport(LINKS, named);
  }).description('list the provider accounts with which the person signs in');

  aboutAccount(
    addYesOption(links.command('remove')).requiredOption(
      '--provider <provider>',
      'the provider: its id in the settings, or its issuer',
    ),
    operator,
    async (account, registries, options: { readonly provider: string }) => {
      const { accounts, identities, settings, recordChange } = registries;
      const known = settings.signIn.providers.find(({ id }) => id === options.provider);
      const issuer = known?.issuer ?? options.provider;
      const linked = await identities.listOf(account.id);
      const found = linked.find((one) => one.issuer === issuer);
      if (!found) throw notLinked(account, options.provider);
      await operator.confirm(
        `Removes the link of ${account.email} with ${found.subject} at ${issuer}, and ends all sessions of the person.`,
      );
      const { id: accountId } = account;
      const { subject } = found;
      const details = { provider: known?.id ?? issuer, provider_name: known?.label ?? issuer, issuer, subject };
      const isGone = await accounts.unlink(
        accountId,
        issuer,
        recordChange('identity_unlinked', { accountId, details }),
      );
      if (!isGone) throw notLinked(account, options.provider);
      return {
        value: { account_id: accountId, issuer, subject, unlinked: true, browser_sessions_ended: true },
        text: `Unlinked ${account.email} from ${subject} at ${issuer}, and signed the person out everywhere.`,
      };
    },
  ).description('remove a link with a provider account, so that it can be created again');
}

const LINKS: ListForm<LinkedIdentity & { readonly provider: string | undefined }> = {
  heading: ['PROVIDER', 'ISSUER', 'SUBJECT', 'LINKED', 'LAST USED'],
  row: ({ provider = 'not in the settings', issuer, subject, createdAt, lastUsedAt }) => [
    provider,
    issuer,
    subject,
    dayOf(createdAt),
    dayOf(lastUsedAt),
  ],
  value: ({ provider = null, issuer, subject, createdAt, lastUsedAt }) => ({
    provider,
    issuer,
    subject,
    linked_at: createdAt,
    last_used_at: lastUsedAt,
  }),
  nothing: 'The account has no linked account at a provider.',
};

const notLinked = ({ email }: Account, provider: string): Refusal =>
  new Refusal('link_unknown', `${email} has no link with ${provider}.`, 'See `links list`.');

export function addPasskeyCommands(program: Command, operator: Operator): void {
  const passkeys = program.command('passkeys').description('passkeys with which people sign in');

  aboutAccount(passkeys.command('list'), operator, async (account, registries) =>
    itemsReport(PASSKEYS, await registries.passkeys.of(account.id)),
  ).description('list the passkeys with which a person signs in');

  aboutAccount(
    addYesOption(passkeys.command('remove')).requiredOption('--passkey <passkey>', 'ID of the passkey'),
    operator,
    async (account, registries, options: { readonly passkey: string }) => {
      const kept = await registries.passkeys.of(account.id);
      const found = kept.find(({ id }) => id === options.passkey);
      if (!found) throw noPasskey(account, options.passkey);
      await operator.confirm(
        `Removes the passkey ${found.name} of ${account.email}, and ends all sessions of the person.`,
      );
      return removePasskey(account, found, registries);
    },
  ).description('remove a passkey, such as one on a lost device');
}

const PASSKEYS: ListForm<Passkey> = {
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

async function removePasskey(account: Account, { id, name }: Passkey, registries: Registries): Promise<Report> {
  const { passkeys, recordChange, settings } = registries;
  const { id: accountId, email } = account;
  const record = recordChange('passkey_removed', { accountId, details: detailsOf({ id, name }) });
  if (!(await passkeys.remove(accountId, id, record))) throw noPasskey(account, id);
  const about = { issuer: settings.issuer, at: new Date(), about: name };
  // The passkey is removed even if the mail cannot be sent.
  const { isMailed, failure, value } = await tryMail(registries, noticeMail(account, 'passkey_removed', about));
  return {
    value: { account_id: accountId, passkey_id: id, removed: true, browser_sessions_ended: true, ...value },
    text: [
      `Removed the passkey ${name} of ${email}, and signed the person out everywhere.`,
      ...(isMailed ? ['The person was notified by mail.'] : []),
      ...(failure === undefined ? [] : [`The person could not be notified by mail: ${failure}`]),
    ].join('\n'),
  };
}

const noPasskey = ({ email }: Account, id: string): Refusal =>
  new Refusal('passkey_unknown', `${email} has no passkey ${id}.`, 'See `passkeys list`.');
