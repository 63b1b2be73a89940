/** The answer of `operator show` about one value or ID. */
import { limitSentence } from '../../accounts/access/access-limit.ts';
import type { ClientExclusion } from '../../accounts/access/client-blocks.ts';
import type { Account } from '../../accounts/account.ts';
import { actionInEnglish } from '../../accounts/activity/activity-words.ts';
import type { AuditQuestion, AuditRecord } from '../../accounts/activity/audit.ts';
import type { Client } from '../../clients/client.ts';
import type { Report } from '../command/operator.ts';
import type { Registries } from '../registries.ts';

/**
 * `used` is an exchanged code, `replaced` a refresh token that still returns its successor, `reused` a refresh token
 * whose use would end its authorization. A request is `refused` or `done`. `off` is a kind of value that the settings
 * disable, `unknown` a value that was never issued here or was deleted long ago. `not_answered` means that a store did
 * not answer, or that the settings do not name it.
 */
export type State =
  | 'active'
  | 'expired'
  | 'used'
  | 'replaced'
  | 'reused'
  | 'revoked'
  | `${'client' | 'account'}_suspended`
  | 'no_password_yet'
  | 'refused'
  | 'done'
  | 'off'
  | 'unknown'
  | 'malformed'
  | 'not_answered';

/** `rotated_at` is the latest refresh. Until `retry_until`, a replaced refresh token still returns its successor. */
export const TIMES = [
  'issued_at',
  'expires_at',
  'rotated_at',
  'retry_until',
  'revoked_at',
  'suspended_at',
  'last_used_at',
] as const;

export type Times = { readonly [time in (typeof TIMES)[number]]?: Date | null | undefined };

export interface Answer {
  /** The kind of the value. Present only if a lookup, and not the form of the value, shows the kind. */
  readonly kind?: 'link' | 'session' | undefined;
  readonly state: State;
  readonly why: string;
  readonly remedy?: string | undefined;
  /** The name of an organization or a warehouse. */
  readonly name?: string | undefined;
  /** For a deleted account or client, only the ID is known. */
  readonly account?: Account | { readonly id: string } | undefined;
  readonly client?: Client | { readonly id: string } | undefined;
  readonly times?: Times;
  /** The last four characters of a client secret or of an API key. */
  readonly lastFour?: string | undefined;
  /** The records that belong to a client, a person, an organization or a warehouse. */
  readonly content?: Report | undefined;
  /** The latest entries of the audit log about a client or a person. */
  readonly log?: readonly AuditRecord[] | undefined;
}

export const as = (state: State, why: string, remedy?: string, times: Times = {}): Answer => ({
  state,
  why,
  remedy,
  times,
});

/** Maximum number of audit entries in the answer about a client or a person. */
export const LOG_LENGTH = 5;

/** Says what was done, to what, by whom, and why. */
export function entryText(entry: AuditRecord): string {
  const { what, about, note } = actionInEnglish(entry);
  const { actor, by } = entry;
  const thing = sentences(about ?? '', note ? `(${note})` : '');
  const who = actor === 'person' ? 'a person' : `the ${actor}`;
  return `${what}${thing && `: ${thing}`}, by ${who}${by?.reason ? ` (${by.reason})` : ''}.`;
}

/** A search of the audit log for the deletion or revocation of a record. */
export type EndQuestion = Pick<AuditQuestion, 'accountId' | 'clientId' | 'action' | 'end'>;

/** Returns how a record was deleted or revoked; undefined if the audit log has no matching entry. */
export async function whatEnded(
  { audit, accounts, clients }: Registries,
  { action, ...question }: EndQuestion,
): Promise<Answer | undefined> {
  const log = question.end ? undefined : await audit.find({ ...question, limit: LOG_LENGTH });
  if (log?.length === 0) return undefined;
  const [entry] = await audit.find({ ...question, action, limit: 1 });
  if (!entry) return undefined;
  const { accountId, details, at } = entry;
  const { client_id: clientId, last_four: lastFour } = details as Readonly<Record<string, string | undefined>>;
  const name = details.organization_name ?? details.warehouse_name;
  return {
    state: 'revoked',
    why: entryText(entry),
    name: name === undefined ? undefined : `${name}`,
    // In an entry about a client, the account is only the owner of the client, so leave it out.
    account: clientId === undefined ? await byId(accounts, accountId) : undefined,
    client: await byId(clients, clientId),
    lastFour,
    times: { revoked_at: at },
    log,
  };
}

const byId = async <Found>(
  registry: { readonly find: (id: string) => Promise<Found | undefined> },
  id: string | undefined,
): Promise<Found | { readonly id: string } | undefined> =>
  id === undefined ? undefined : ((await registry.find(id)) ?? { id });

export interface Parties {
  readonly accountId?: string | undefined;
  readonly clientId?: string | undefined;
}

const WORKS: readonly State[] = ['active', 'replaced', 'no_password_yet'];

/**
 * Adds a record's person and client to the answer about the record. The state becomes `revoked` if the person or client
 * was deleted before the record ended, and `suspended` if only a suspension makes a valid record unusable.
 */
export async function withParties(
  registries: Registries,
  { accountId, clientId }: Parties,
  answer: Answer,
): Promise<Answer> {
  const account = await byId(registries.accounts, accountId);
  const client = await byId(registries.clients, clientId);
  const found = { ...answer, account: account ?? answer.account, client: client ?? answer.client };
  const { state, times } = answer;
  if (state === 'unknown' || times?.revoked_at) return found;
  const deleted = { ...found, state: 'revoked', remedy: undefined } as const;
  if (client && !('name' in client)) return { ...deleted, why: 'The client was deleted.' };
  if (account && !('name' in account)) return { ...deleted, why: 'The account of the person was deleted.' };
  if (!WORKS.includes(state)) return found;
  if (client?.isSuspended)
    return { ...found, ...suspended('client', client.id, { ...times, suspended_at: client.suspendedAt }) };
  if (account?.isSuspended)
    return { ...found, ...suspended('account', account.email, { ...times, suspended_at: account.suspendedAt }) };
  if (state !== 'active' || !account || !client) return found;
  const connected = await registries.connections.find(account.id, client.id);
  const excluded = await excludedSentences(registries, account.id, client.id);
  return { ...found, why: sentences(found.why, ...excluded, limitSentence(connected?.limit ?? {})) };
}

export const sentences = (...all: readonly string[]): string => all.filter(Boolean).join(' ');

const suspended = (kind: 'client' | 'account', name: string, times: Times) => ({
  state: `${kind}_suspended` as const,
  why: `The ${kind === 'client' ? 'client' : 'person'} is suspended.`,
  remedy: `\`${kind}s resume ${name}\` ends the suspension.`,
  times,
});

export const reachesNothing = (because: string, where: readonly { readonly name: string }[]): string =>
  where.length === 0 ? '' : `${because}: it reaches nothing in ${where.map(({ name }) => name).join(', ')}.`;

/** Returns one sentence for each organization of the person that the client cannot access. */
async function excludedSentences({ access }: Registries, accountId: string, clientId: string): Promise<string[]> {
  const all = await access.accessOf({ accountId });
  const ids = all.map(({ id }) => id);
  const excluded = (await access.clientBlocks.exclusions(ids, [clientId])).get(clientId) ?? [];
  const named = (...reasons: readonly ClientExclusion['why'][]) =>
    all.filter(({ id }) => excluded.some(({ organizationId, why }) => organizationId === id && reasons.includes(why)));
  const warehouses = all
    .flatMap((organization) => organization.warehouses)
    .filter(({ id }) => excluded.some(({ warehouseId }) => warehouseId === id));
  return [
    reachesNothing('Organizations block the client', named('blocked')),
    reachesNothing('Organizations ask first and have not approved the client', named('declined', 'waiting')),
    reachesNothing('Organizations block the client in some warehouses', warehouses),
  ];
}

/** @param forgotten a sentence on why the service may have forgotten a value */
export const unknownValue = (forgotten?: string): Answer => ({
  state: 'unknown',
  why:
    `Nothing is known about this value. ${forgotten ? `${forgotten} Otherwise it` : 'It'} was never issued here, ` +
    'or one of its characters is wrong.',
  remedy: 'Check that the value was copied completely, and that it comes from this deployment.',
});
