/** Why something is dead whose authorization, client or person is gone or suspended. */
import { CAUSES } from '../accounts/activity-words.ts';
import type { RememberedGrant, RevocationCause } from '../accounts/revocations.ts';
import type { Client } from '../clients/client.ts';
import { systemClock } from '../clock.ts';
import type { GrantData } from '../provider/store-adapter.ts';
import type { StoredRecord } from '../storage/token-store.ts';
import type { Explanation } from './explanation.ts';
import type { Registries } from './registries.ts';

export type Facts = Partial<Explanation>;

export const atSeconds = (seconds: number): Date => new Date(seconds * 1000);

/** What the person must be asked for again, once a token cannot come back. */
export const AUTHORIZE_AGAIN = 'The client must send the person through the authorization again.';

/** Dead with its grant, or with who it is for; else what `alive` says. */
export async function explainGrant(
  registries: Registries,
  {
    grantId,
    grant,
    facts,
  }: { grantId: string; grant: StoredRecord<GrantData> | undefined; facts: Facts },
  alive: () => Explanation,
): Promise<Explanation> {
  const known = await registries.revocations.find(grantId);
  if (grant) return explainHolders(registries, grant.data, facts, alive);
  if (!known) {
    return { ...facts, ...gone('Its authorization is not there, and nobody remembers why.') };
  }
  const ended = explainEnd(known);
  return { ...facts, ...(await holdersOf(registries, known)), ...ended };
}

const REMEDY: Readonly<Record<RevocationCause, string>> = {
  client_revoked: 'As the client wanted: it must send the person through the authorization again.',
  code_replayed:
    'The client must exchange each code once. If it did, somebody else had the code: see that its redirect URIs lead nowhere else.',
  refresh_token_replayed:
    'The client must keep the refresh token of each answer, before it uses it, in one place for all its workers. If it does, somebody else has a copy.',
  person_disconnected: 'As the person wanted: they may connect the client again.',
  operator_revoked: 'The person may connect the client again.',
  client_deleted: 'Nothing is to be done: the client is gone for good.',
};

function explainEnd({ revoked, expiresAt }: RememberedGrant): Explanation {
  if (revoked) {
    const { at, cause } = revoked;
    return {
      state: 'revoked',
      why: `Its authorization was ended: ${CAUSES[cause]}.`,
      remedy: REMEDY[cause],
      revokedAt: at,
    };
  }
  const remedy = AUTHORIZE_AGAIN;
  if (expiresAt && expiresAt.getTime() <= systemClock()) {
    return { state: 'expired', why: 'Its authorization has reached the absolute age.', remedy };
  }
  const why = 'Its authorization was ended; why was not recorded, or the token store lost it.';
  return { state: 'revoked', why, remedy };
}

export async function explainHolders(
  registries: Registries,
  holders: { readonly accountId?: string; readonly clientId: string },
  facts: Facts,
  alive: (client: Client) => Explanation | Promise<Explanation>,
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

async function holdersOf(
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
