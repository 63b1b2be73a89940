/** The explanation of a value or an id: its state, the reason, and the remedy. */
import type { Account } from '../../accounts/account.ts';
import type { ValueKind } from '../../base/random-id.ts';
import type { Client } from '../../clients/client.ts';
import type { Report } from '../command/operator.ts';
import { REFUSED } from '../command/report.ts';
import type { IdKind } from './ids.ts';
import { NAME } from './token-shape.ts';

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
  | 'malformed';

export type Kind = ValueKind | IdKind | 'link' | 'sign_in_page';

export interface Explanation {
  readonly kind?: Kind;
  readonly state: State;
  readonly why: string;
  readonly remedy?: string;
  /** The name of an organization or a warehouse. */
  readonly name?: string;
  /** The organization that a warehouse belongs to. */
  readonly organization?: { readonly id: string; readonly name: string };
  readonly account?: Account | { readonly id: string };
  readonly client?: Client | { readonly id: string };
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
}

export function explanationReport(explanation: Explanation): Report {
  const { kind, state, why, remedy, name, organization, account, client, lastFour } = explanation;
  const lines = [
    ['Name', name],
    ['Belongs to', organization && `${organization.name} (${organization.id})`],
    ['Account', account && ('email' in account ? `${account.email} (${account.id})` : account.id)],
    ['Client', client && ('name' in client ? `${client.name} (${client.id})` : client.id)],
    ['Ends in', lastFour],
    ...TIMES.map(([label, , name]) => [label, explanation[name]?.toISOString()] as const),
  ] as const;
  return {
    ...(state === 'malformed' && { exitCode: REFUSED }),
    value: {
      kind: kind ?? null,
      state,
      why,
      remedy: remedy ?? null,
      ...(name !== undefined && { name }),
      ...(organization && { organization }),
      account: account ? { id: account.id, email: 'email' in account ? account.email : null } : null,
      client: client
        ? {
            id: client.id,
            ...('name' in client ? { name: client.name, kind: client.kind } : { name: null }),
          }
        : null,
      ...(lastFour !== undefined && { last_four: lastFour }),
      ...Object.fromEntries(TIMES.map(([, member, name]) => [member, explanation[name] ?? null])),
    },
    text: [
      `${capital(kind ? NAMES[kind] : 'not a Gatehouse value')}: ${state.replaceAll('_', ' ')}`,
      why,
      ...(remedy === undefined ? [] : [remedy]),
      ...lines.filter(([, value]) => value !== undefined).map(([label, value]) => `${label.padEnd(12)}${value}`),
    ].join('\n'),
  };
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

const NAMES: Readonly<Record<Kind, string>> = {
  ...NAME,
  account: 'account',
  email: 'email address',
  organization: 'organization',
  warehouse: 'warehouse',
  connection: 'connection',
  authorization: 'authorization',
  session: 'browser session',
  api_key_id: 'API key',
  passkey: 'passkey',
  request: 'request',
  opaque: 'value of 43 characters',
  link: 'one-time link',
  sign_in_page: 'sign-in page',
};

const capital = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1);
