/** Ends all that acts for a person: for an account that somebody else has got into. */
import type { Confirm } from './confirmation.ts';
import { endConnections } from './connection-ends.ts';
import { accountNamed } from './names.ts';
import type { Registries } from './registries.ts';
import type { Report } from './report.ts';

export async function revokeAccount(
  registries: Registries,
  name: string,
  confirm: Confirm,
): Promise<Report> {
  const { accounts, apiKeys, passwordLinks, recordChange } = registries;
  const { id, email } = await accountNamed(registries, name);
  // Asked before anything is ended: where Redis is away, nothing is half done.
  await (await registries.tokenStore()).ping();
  const keys = await apiKeys.listOf(id);
  const connected = await registries.connections.listOf(id);
  await confirm(
    `Ends ${connected.length} connections, ${keys.length} API keys and every browser session of ${email}.`,
  );
  // The sessions first: with one of them somebody could connect a client again meanwhile.
  const signedOut = recordChange('signed_out_everywhere', { accountId: id });
  await accounts.endSessions(id, async (tx) => {
    await passwordLinks.forget(id, tx);
    await signedOut(tx);
  });
  let revokedKeys = 0;
  for (const key of keys) if (await apiKeys.revoke(id, key.id)) revokedKeys += 1;
  const grants = await endConnections(
    registries,
    connected.map(({ clientId, name }) => ({ accountId: id, clientId, name })),
  );
  return {
    value: {
      ...{ account_id: id, email, connections: connected.length, authorizations: grants },
      ...{ api_keys: revokedKeys, browser_sessions_ended: true },
    },
    text: [
      `Ended for ${email}:`,
      `  connections      ${connected.length}, with ${grants} authorizations`,
      `  API keys         ${revokedKeys}`,
      '  browser sessions all, and the links to set a password',
      'The password is as it was. Where somebody else may know it, `accounts suspend` keeps everybody',
      'out, and after `accounts resume` the link of `accounts invite` sets another one.',
    ].join('\n'),
  };
}
