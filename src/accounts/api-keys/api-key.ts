/** An API key as it is kept: everything but its value. */
import { formTest } from '../../random-id.ts';
import type { NewActivity, Origin } from '../activity/activity.ts';

export interface ApiKey {
  readonly id: string;
  readonly accountId: string;
  readonly name: string;
  /** The end of its value, to tell it from the others. */
  readonly lastFour: string;
  readonly createdAt: Date;
  /** Absent for a key that does not end by itself. */
  readonly expiresAt?: Date;
  /** As of when the key was read, to within five minutes. */
  readonly lastUsedAt?: Date;
}

export interface ApiKeyRow {
  readonly id: string;
  readonly account_id: string;
  readonly name: string;
  readonly last_four: string;
  readonly created_at: Date;
  readonly expires_at: Date | null;
  readonly last_used_at: Date | null;
}

export const API_KEY_COLUMNS =
  'id, account_id, name, last_four, created_at, expires_at, last_used_at';

/** Whether a value looks like an API key: 43 characters of 6 bits are 258 random bits. */
export const isApiKey = formTest('api_key');

/** Other ids exist nowhere, and some (with a NUL byte) PostgreSQL would answer with an error. */
export const isApiKeyId = (id: string): boolean => /^key_[A-Za-z0-9_-]{16}$/.test(id);

export function apiKeyFrom(row: ApiKeyRow): ApiKey {
  return {
    id: row.id,
    accountId: row.account_id,
    name: row.name,
    lastFour: row.last_four,
    createdAt: row.created_at,
    ...(row.expires_at !== null && { expiresAt: row.expires_at }),
    ...(row.last_used_at !== null && { lastUsedAt: row.last_used_at }),
  };
}

/** @param origin of the person; without it, it was the operator. */
export function keyActivity(
  action: 'api_key_added' | 'api_key_revoked',
  { id, accountId, name, lastFour }: ApiKey,
  origin?: Origin,
): NewActivity {
  const actor = origin ? 'person' : 'operator';
  const details = { api_key_id: id, api_key_name: name, last_four: lastFour };
  return { action, actor, accountId, details, origin };
}
