/** What the answers of several kinds share: records that are gone, and the checks of account and client. */
import { limitSentence } from '../../accounts/access/access-limit.ts';
import type { Account } from '../../accounts/account.ts';
import { actionInEnglish } from '../../accounts/activity/activity-words.ts';
import type { AuditQuestion, AuditRecord } from '../../accounts/activity/audit.ts';
import type { Client } from '../../clients/client.ts';
import type { Registries } from '../registries.ts';
import type { Answer } from './answer.ts';

export type Facts = Partial<Answer>;

export const atSeconds = (seconds: number): Date => new Date(seconds * 1000);

/**
 * Returns the answer that the latest audit entry gives about a record that has ended, if there is one.
 *
 * @param name the detail that contains the name of an organization or a warehouse
 */
export async function endIn(
  { audit, accounts, clients }: Registries,
  question: Omit<AuditQuestion, 'limit'>,
  name = '',
): Promise<Answer | undefined> {
  const [entry] = await audit.find({ ...question, limit: 1 });
  if (!entry) return undefined;
  const { accountId, details, at } = entry;
  const clientId = details.client_id as string | undefined;
  return {
    state: 'revoked',
    why: entryText(entry),
    ...(details[name] !== undefined && { name: `${details[name]}` }),
    ...(accountId !== undefined && { account: (await accounts.find(accountId)) ?? { id: accountId } }),
    ...(clientId !== undefined && { client: (await clients.find(clientId)) ?? { id: clientId } }),
    ...(details.last_four !== undefined && { lastFour: `${details.last_four}` }),
    revokedAt: at,
  };
}

/** Returns a sentence with what an audit entry says: what was done, about what, by whom, and why. */
export function entryText(entry: AuditRecord): string {
  const { what, about, note } = actionInEnglish(entry);
  const { actor, by } = entry;
  const thing = [about, note && `(${note})`].filter(Boolean).join(' ');
  const who = actor === 'person' ? 'a person' : `the ${actor}`;
  return `${what}${thing && `: ${thing}`}, by ${who}${by?.reason ? ` (${by.reason})` : ''}.`;
}

/** Answers for a deleted or suspended client or account; else returns the answer of `whenActive`. */
export async function standingOf(
  registries: Registries,
  parties: { readonly accountId?: string; readonly clientId: string },
  facts: Facts,
  whenActive: (client: Client) => Promise<Answer>,
): Promise<Answer> {
  const { account, client } = await findParties(registries, parties);
  const about = { ...facts, ...(account && { account }), client };
  if (!('name' in client)) return { ...about, state: 'revoked', why: 'The client was deleted.' };
  if (client.isSuspended) return { ...about, ...clientSuspended(client) };
  if (account && !('email' in account)) {
    return { ...about, state: 'revoked', why: 'The account of the person was deleted.' };
  }
  if (account?.isSuspended) return { ...about, ...accountSuspended(account) };
  const found = { ...about, ...(await whenActive(client)) };
  if (found.state !== 'active' || !account) return found;
  const connected = await registries.connections.find(account.id, client.id);
  const limits = [await excludedSentences(registries, account.id, client.id), limitSentence(connected?.limit ?? {})];
  return { ...found, why: [found.why, ...limits].filter(Boolean).join(' ') };
}

export const reachesNothing = (because: string, where: readonly { readonly name: string }[]): string =>
  where.length === 0 ? '' : `${because}: it reaches nothing in ${where.map(({ name }) => name).join(', ')}.`;

/** Returns sentences about the person's organizations that the client does not reach, if any. */
async function excludedSentences({ access }: Registries, accountId: string, clientId: string): Promise<string> {
  const all = await access.accessOf({ accountId });
  const ids = all.map(({ id }) => id);
  const excluded = (await access.clientBlocks.exclusions(ids, [clientId])).get(clientId) ?? [];
  const named = (isBlocked: boolean) =>
    all.filter(({ id }) => excluded.some((one) => one.organizationId === id && (one.why === 'blocked') === isBlocked));
  return [
    reachesNothing('Organizations block the client', named(true)),
    reachesNothing('Organizations ask first and have not approved the client', named(false)),
  ]
    .filter(Boolean)
    .join(' ');
}

export const accountSuspended = ({ email, suspendedAt }: Account) =>
  ({
    state: 'account_suspended',
    why: 'The person is suspended.',
    remedy: `\`accounts resume ${email}\` ends the suspension.`,
    ...(suspendedAt && { suspendedAt }),
  }) as const;

export const clientSuspended = ({ id, suspendedAt }: Client) =>
  ({
    state: 'client_suspended',
    why: 'The client is suspended.',
    remedy: `\`clients resume ${id}\` ends the suspension.`,
    ...(suspendedAt && { suspendedAt }),
  }) as const;

export async function findParties(
  { accounts, clients }: Registries,
  { accountId, clientId }: { readonly accountId?: string; readonly clientId: string },
) {
  const account = accountId === undefined ? undefined : ((await accounts.find(accountId)) ?? { id: accountId });
  return { ...(account && { account }), client: (await clients.find(clientId)) ?? { id: clientId } };
}

/** @param forgotten a sentence that says when such a value is forgotten */
export const unknownValue = (forgotten: string): Answer => ({
  state: 'unknown',
  why:
    `Nothing is known about this value. ${forgotten} Otherwise it was never issued here, or ` +
    'one of its characters is wrong.',
  remedy: 'Check that it was copied completely, and that it comes from a client of this deployment.',
});
