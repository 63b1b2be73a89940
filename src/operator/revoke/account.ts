/** Ends all that acts for a person: for an account that somebody else has got into. */
import type { Confirm } from '../program/confirmation.ts';
import { accountNamed } from '../program/names.ts';
import type { Report } from '../program/report.ts';
import type { Registries } from '../registries.ts';

export async function revokeAccount(
  registries: Registries,
  name: string,
  confirm: Confirm,
): Promise<Report> {
  const { accounts, apiKeys, passwordLinks, recordChange } = registries;
  const { id, email } = await accountNamed(registries, name);
  const { length: keys } = await apiKeys.listOf(id);
  const connected = await registries.connections.listOf(id);
  await confirm(
    `Ends ${connected.length} connections, ${keys} API keys and every browser session of ${email}.`,
  );
  // The sessions first: with one of them somebody could connect a client again meanwhile.
  const signedOut = recordChange('signed_out_everywhere', { accountId: id });
  await accounts.endSessions(id, async (tx) => {
    await passwordLinks.forget(id, tx);
    await signedOut(tx);
  });
  let revokedKeys = 0;
  // As they are now: the question may have stood for long.
  for (const key of await apiKeys.listOf(id))
    if (await apiKeys.revoke(id, key.id)) revokedKeys += 1;
  const ended = await registries.disconnect({ accountId: id });
  return {
    value: {
      account_id: id,
      email,
      connections: ended.length,
      api_keys: revokedKeys,
      browser_sessions_ended: true,
    },
    text: [
      `Ended for ${email}:`,
      `  connections      ${ended.length}, with all their authorizations`,
      `  API keys         ${revokedKeys}`,
      '  browser sessions all, and the links to set a password',
      'The password is as it was. Where somebody else may know it, `accounts suspend` keeps everybody',
      'out, and after `accounts resume` the link of `accounts invite` sets another one.',
    ].join('\n'),
  };
}
