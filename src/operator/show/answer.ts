/** The answer about one value or ID: its state, the reason, the remedy, and what belongs to it. */
import type { Account } from '../../accounts/account.ts';
import { type AuditRecord, auditEntry } from '../../accounts/activity/audit.ts';
import type { Client } from '../../clients/client.ts';
import { auditLine } from '../audit.ts';
import type { Report } from '../command/operator.ts';
import { printable, REFUSED } from '../command/report.ts';
import { type FoundValue, kindName, publicForm } from './find.ts';

export type State =
  | 'active'
  | 'expired'
  /** The state of a code that was exchanged. */
  | 'used'
  /** A refresh token that was replaced, but returns the same successor within the retry window. */
  | 'replaced'
  /** A refresh token whose use would end its authorization. */
  | 'reused'
  | 'revoked'
  | 'client_suspended'
  | 'account_suspended'
  | 'no_password_yet'
  /** The state of a request that was refused. */
  | 'refused'
  /** The state of a request that succeeded. */
  | 'done'
  /** The settings disable this kind of value. */
  | 'off'
  /** The form is valid, but no store knows the value: never issued here, or deleted long ago. */
  | 'unknown'
  | 'malformed'
  /** A store was away. */
  | 'not_answered';

/** A record that may be gone: then only its ID is known. */
type Gone = { readonly id: string };

export interface Answer {
  /** Replaces the kind of the value's form: a one-time link, for example. */
  readonly kind?: 'link' | 'session';
  readonly state: State;
  readonly why: string;
  readonly remedy?: string;
  /** The name of an organization or a warehouse. */
  readonly name?: string;
  /** The organization that a warehouse belongs to. */
  readonly organization?: { readonly id: string; readonly name: string };
  readonly account?: Account | Gone;
  readonly client?: Client | Gone;
  readonly issuedAt?: Date;
  readonly expiresAt?: Date;
  /** For a refresh token: the time of the latest refresh of its authorization. */
  readonly rotatedAt?: Date;
  /** For a replaced refresh token: the end of the time in which it still returns its successor. */
  readonly retryUntil?: Date;
  readonly revokedAt?: Date;
  readonly suspendedAt?: Date;
  readonly lastUsedAt?: Date;
  /** The last four characters of a client secret or an API key. */
  readonly lastFour?: string;
  /** What belongs to a client, a person, an organization or a warehouse. */
  readonly content?: Report;
  /** The latest entries of the audit log about a client or a person. */
  readonly log?: readonly AuditRecord[];
}

/** @param answers each with the value that it is about, in the order of the text */
export const answersReport = (answers: readonly (readonly [FoundValue, Answer])[]): Report => ({
  ...(answers.some(([, { state }]) => state === 'malformed' || state === 'not_answered') && { exitCode: REFUSED }),
  value: answers.map(([found, answer]) => answerValue(found, answer)),
  text: answers.map(([found, answer]) => answerText(found, answer)).join('\n\n'),
});

/** False for what may be a secret of another service. */
const isKnown = (state: State): boolean => state !== 'unknown' && state !== 'not_answered';

function answerValue(found: FoundValue, answer: Answer): object {
  const { kind = found.kind ?? null, state, why, remedy = null, name, organization, account, client } = answer;
  const { lastFour, content, log = [] } = answer;
  return {
    value: publicForm(found, !isKnown(state)),
    kind,
    state,
    why,
    remedy,
    ...(name !== undefined && { name }),
    ...(organization && { organization }),
    account: account ? { id: account.id, email: 'email' in account ? account.email : null } : null,
    client: client
      ? { id: client.id, ...('name' in client ? { name: client.name, kind: client.kind } : { name: null }) }
      : null,
    ...(lastFour !== undefined && { last_four: lastFour }),
    ...Object.fromEntries(TIMES.map(([, member, time]) => [member, answer[time] ?? null])),
    content: content?.value ?? null,
    log: log.map(auditEntry),
  };
}

function answerText(found: FoundValue, answer: Answer): string {
  const { kind, state, why, remedy, name, organization, account, client, content, log = [] } = answer;
  const what = kind === 'link' ? 'one-time link' : found.kind ? kindName(kind ?? found.kind) : 'not a Gatehouse value';
  const facts = [
    ['Value', publicForm(found, !isKnown(state))],
    ['Name', name],
    ['Belongs to', organization && `${organization.name} (${organization.id})`],
    ['Account', account && ('email' in account ? `${account.email} (${account.id})` : account.id)],
    ['Client', client && ('name' in client ? `${client.name} (${client.id})` : client.id)],
    ...TIMES.map(([label, , time]) => [label, answer[time]?.toISOString()] as const),
  ] as const;
  return [
    `${what.slice(0, 1).toUpperCase()}${what.slice(1)}: ${state.replaceAll('_', ' ')}`,
    why,
    remedy,
    ...facts.flatMap(([label, fact]) => (fact ? [`${label.padEnd(12)}${fact}`] : [])),
    content?.text,
    ...log.map(auditLine),
  ]
    .filter((line) => line !== undefined && line !== '')
    .flatMap((line) => `${line}`.split('\n').map(printable))
    .join('\n');
}

const TIMES = [
  ['Issued', 'issued_at', 'issuedAt'],
  ['Expires', 'expires_at', 'expiresAt'],
  ['Refreshed', 'rotated_at', 'rotatedAt'],
  ['Retry until', 'retry_until', 'retryUntil'],
  ['Revoked', 'revoked_at', 'revokedAt'],
  ['Suspended', 'suspended_at', 'suspendedAt'],
  ['Last used', 'last_used_at', 'lastUsedAt'],
] as const;
