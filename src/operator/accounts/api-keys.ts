/** `operator api-keys`: lists and revokes personal API keys by their ids, and never prints a key. */
import { type Command, Option } from 'commander';
import { isLimited } from '../../accounts/access/access-limit.ts';
import type { ListedApiKey } from '../../accounts/api-keys/api-keys.ts';
import { systemClock } from '../../base/clock.ts';
import { Refusal } from '../../base/refusal.ts';
import { addYesOption } from '../command/confirmation.ts';
import { accountNamed } from '../command/names.ts';
import type { Operator } from '../command/operator.ts';
import { addList, dayOf, type ListForm } from '../command/report.ts';

export function addApiKeyCommands(program: Command, operator: Operator): void {
  const { run } = operator;
  const keys = program.command('api-keys').description('personal API keys, each acting as the person who created it');

  addList(keys, operator, LIST, async (registries, page, { account }: { account?: string }) =>
    registries.apiKeys.list(page, account && (await accountNamed(registries, account)).id),
  )
    .description('list the API keys of a person or of everyone, the newest first')
    .addOption(new Option('--account <account>', 'only of this person: email address or account ID'));

  addYesOption(keys.command('revoke'))
    .description('revoke an API key: requests with it are refused from now on')
    .argument('<id>', 'its ID, as in `api-keys list`')
    .action((id: string) =>
      run(async ({ apiKeys, accounts }) => {
        const key = await apiKeys.findById(id);
        if (!key) throw unknown();
        const { accountId, name, lastFour } = key;
        const email = (await accounts.find(accountId))?.email ?? accountId;
        const what = `the API key “${name}” of ${email}, which ends in ${lastFour}`;
        await operator.confirm(`Revokes ${what}.`);
        if (!(await apiKeys.revoke(accountId, id))) throw unknown();
        return {
          value: { id, account_id: accountId, email, name, last_four: lastFour, revoked: true },
          text: `Revoked ${what}.`,
        };
      }),
    );
}

const LIST: ListForm<ListedApiKey> = {
  heading: ['ID', 'EMAIL', 'NAME', 'ENDS IN', 'CREATED', 'EXPIRES', 'LAST USED'],
  row: (key) => [
    key.id,
    key.email,
    key.name,
    key.lastFour,
    dayOf(key.createdAt),
    isExpired(key) ? `expired ${dayOf(key.expiresAt)}` : dayOf(key.expiresAt),
    dayOf(key.lastUsedAt),
  ],
  value: (key) => ({
    id: key.id,
    account_id: key.accountId,
    email: key.email,
    name: key.name,
    last_four: key.lastFour,
    created_at: key.createdAt,
    expires_at: key.expiresAt,
    expired: isExpired(key),
    last_used_at: key.lastUsedAt,
    limit: isLimited(key) ? { places: key.places, read_only: key.isReadOnly } : null,
  }),
  nothing: 'There are no API keys.',
};

const isExpired = ({ expiresAt }: ListedApiKey): boolean => expiresAt !== null && expiresAt.getTime() <= systemClock();

/** The refusal does not repeat the unknown ID, because the operator may have typed the key instead of its ID. */
const unknown = (): Refusal =>
  new Refusal(
    'api_key_unknown',
    'There is no API key with this ID.',
    'See `api-keys list`. To revoke by the key itself, use `revoke --token -`.',
  );
