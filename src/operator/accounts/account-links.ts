/** `operator links`: lists and removes the provider accounts that are linked to a person's account. */
import type { Command } from 'commander';
import type { Account } from '../../accounts/account.ts';
import type { LinkedIdentity } from '../../accounts/identities/identities.ts';
import { Refusal } from '../../base/refusal.ts';
import { addYesOption } from '../command/confirmation.ts';
import { aboutAccount } from '../command/names.ts';
import type { Operator } from '../command/operator.ts';
import { dayOf, itemsReport, type ListForm } from '../command/report.ts';

export function addLinkCommands(program: Command, operator: Operator): void {
  const links = program.command('links').description('accounts at providers with which people sign in');

  aboutAccount(links.command('list'), operator, async (account, registries) => {
    const linked = await registries.identities.listOf(account.id);
    const { providers } = registries.settings.signIn;
    const named = linked.map((one) => ({
      ...one,
      provider: providers.find(({ issuer }) => issuer === one.issuer)?.id,
    }));
    return itemsReport(LIST, named);
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
        `Removes the link of ${account.email} with ${found.subject} at ${issuer}, and ends their sessions.`,
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
        text: `Unlinked ${account.email} from ${subject} at ${issuer}, and signed them out everywhere.`,
      };
    },
  ).description('remove a link with a provider account, so that it can be created again');
}

const LIST: ListForm<LinkedIdentity & { readonly provider: string | undefined }> = {
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
