/** Who a token is for, and what became of it where one of them is gone or suspended. */
import type { Client } from '../../clients/client.ts';
import type { Registries } from '../registries.ts';
import type { Explanation } from './explanation.ts';

export type Facts = Partial<Explanation>;

export const atSeconds = (seconds: number): Date => new Date(seconds * 1000);

export async function explainMachineToken(
  registries: Registries,
  value: string,
): Promise<Explanation> {
  const token = await (await registries.machineTokens()).find(value);
  if (!token) {
    return gone(
      'A machine access token is forgotten once it has expired or was revoked by itself.',
    );
  }
  const { clientId, generation, issuedAt, expiresAt } = token;
  const facts = { issuedAt: atSeconds(issuedAt), expiresAt: atSeconds(expiresAt) };
  return explainHolders(registries, { clientId }, facts, async ({ tokenGeneration }) => {
    if (generation >= tokenGeneration) {
      return { state: 'active', why: 'It is good: introspection answers active.' };
    }
    const action = 'client_tokens_revoked';
    const [ended] = await registries.audit.find({ clientId, action, limit: 1 });
    return {
      state: 'revoked',
      why: 'The operator ended all tokens of the client.',
      remedy: 'The client gets another one with its secret.',
      ...(ended && { revokedAt: ended.at }),
    };
  });
}

/** Dead with who it is for; else what `alive` says. */
export async function explainHolders(
  registries: Registries,
  holders: { readonly accountId?: string; readonly clientId: string },
  facts: Facts,
  alive: (client: Client) => Promise<Explanation>,
): Promise<Explanation> {
  const { account, client } = await holdersOf(registries, holders);
  const about = { ...facts, ...(account && { account }), client };
  if (!('name' in client)) {
    return { ...about, state: 'revoked', why: 'Its client was deleted.' };
  }
  if (client.isSuspended) {
    const remedy = `\`clients resume ${client.id}\` makes it good again.`;
    return { ...about, state: 'client_suspended', why: 'Its client is suspended.', remedy };
  }
  if (account && !('email' in account)) {
    return { ...about, state: 'revoked', why: 'The account of its person is gone.' };
  }
  if (account && 'email' in account && account.isSuspended) {
    const remedy = `\`accounts resume ${account.email}\` makes it good again.`;
    return { ...about, state: 'account_suspended', why: 'Its person is suspended.', remedy };
  }
  return { ...about, ...(await alive(client)) };
}

export async function holdersOf(
  { accounts, clients }: Registries,
  { accountId, clientId }: { readonly accountId?: string; readonly clientId: string },
) {
  const account =
    accountId === undefined ? undefined : ((await accounts.find(accountId)) ?? { id: accountId });
  return {
    ...(account && { account }),
    client: (await clients.find(clientId)) ?? { id: clientId },
  };
}

/** @param forgotten when such a value is forgotten, as a sentence. */
export const gone = (forgotten: string): Explanation => ({
  state: 'unknown',
  why: `Nothing of this value is known. ${forgotten} Or it was never issued here, or a character of it is wrong.`,
  remedy: 'See that it was copied whole, and from a client of this deployment.',
});
