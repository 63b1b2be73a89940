/** Personal API keys: each is a private integration that acts as the person who made it. */
import type { Clock } from '../clock.ts';
import { randomId, sha256 } from '../random-id.ts';
import { type Problem, Refusal } from '../refusal.ts';
import type { ChangeFeed } from '../storage/change-feed.ts';
import type { WriteUses } from '../storage/last-used.ts';
import { createMemory } from '../storage/memory.ts';
import type { Database, Queries } from '../storage/queries.ts';
import { isAccountId } from './account.ts';
import type { Activity, Origin } from './activity.ts';
import { type ApiKey, type ApiKeyRow, apiKeyFrom, isApiKey, isApiKeyId } from './api-key.ts';
import { displayName } from './display-name.ts';

export interface ApiKeys {
  /** The key of this value while it is good. Whether its person still is, is for the caller to ask. */
  findByValue(value: string): Promise<ApiKey | undefined>;
  /** A key of this person; undefined for anybody else's. */
  find(accountId: string, id: string): Promise<ApiKey | undefined>;
  /** All of a person's keys, newest first, the recently expired among them. */
  listOf(accountId: string): Promise<ApiKey[]>;
  /**
   * Makes a key. `value` is what was made, for the only time.
   *
   * @throws Refusal `api_key_invalid` with the problems `name_invalid` and `expiry_invalid`, or
   *   `too_many_api_keys`.
   */
  add(key: NewApiKey, origin: Origin): Promise<{ key: ApiKey; value: string }>;
  /** From the next request on the key is refused. @returns false when this person has no such key. */
  revoke(accountId: string, id: string, origin: Origin): Promise<boolean>;
  readonly writeUses: WriteUses;
  /** Forgets up to `limit` keys that expired a month ago. @returns how many it were. */
  removeExpired(limit: number): Promise<number>;
}

export interface NewApiKey {
  readonly accountId: string;
  readonly name: string;
  /** One of `EXPIRY_DAYS`, or undefined for a key that does not expire by itself. */
  readonly expiresInDays: number | undefined;
  /** Keys that the person may have at the same time, expired ones not counted. Absent: any number. */
  readonly mostOfPerson?: number;
}

/** What a person may choose; a key may also have no expiry. */
export const EXPIRY_DAYS: readonly number[] = [30, 90, 365];

const PREFIX = 'gate_key_';
const DAY = 86_400_000;
/** How long an expired key stays in the list, to explain why an integration stopped. */
const REMEMBER_EXPIRED = 30 * DAY;
/** In characters; shorter than other names, for it stands in a row of the list. */
const LONGEST_NAME = 100;
const COLUMNS = 'id, account_id, name, last_four, created_at, expires_at, last_used_at';

export function createApiKeys(parts: {
  readonly database: Database;
  readonly changes: ChangeFeed;
  readonly clock: Clock;
  readonly activity: Activity;
}): ApiKeys {
  const { database, changes, clock, activity } = parts;
  const memory = createMemory<ApiKey | undefined>(changes, ['api-keys']);
  const isGood = ({ expiresAt }: ApiKey): boolean =>
    expiresAt === undefined || expiresAt.getTime() > clock();

  async function select(where: string, values: readonly unknown[]): Promise<ApiKey[]> {
    const rows = await database.query<ApiKeyRow>(
      `SELECT ${COLUMNS} FROM api_keys WHERE ${where}`,
      values,
    );
    return rows.map(apiKeyFrom);
  }

  async function requireRoom(tx: Queries, accountId: string, limit: number): Promise<void> {
    // Of requests at the same moment each waits here for the one before it, so that the count is
    // of all that were made until now.
    await tx.query('SELECT FROM accounts WHERE id = $1 FOR NO KEY UPDATE', [accountId]);
    const present = await tx.query(
      'SELECT FROM api_keys WHERE account_id = $1 AND (expires_at IS NULL OR expires_at > $2)',
      [accountId, new Date(clock())],
    );
    if (present.length >= limit) throw tooMany(limit);
  }

  return {
    async findByValue(value) {
      if (!isApiKey(value)) return undefined;
      const hash = sha256(value);
      const key = await memory.find(hash, async () => {
        const [found] = await select('key_hash = $1', [hash]);
        return found;
      });
      return key && isGood(key) ? key : undefined;
    },

    async find(accountId, id) {
      if (!isAccountId(accountId) || !isApiKeyId(id)) return undefined;
      const [key] = await select('account_id = $1 AND id = $2', [accountId, id]);
      return key;
    },

    listOf: (accountId) => select('account_id = $1 ORDER BY created_at DESC, id', [accountId]),

    async add({ accountId, name: entered, expiresInDays, mostOfPerson }, origin) {
      const name = acceptableName(entered, expiresInDays);
      const value = randomId(PREFIX, 43);
      const now = clock();
      const expiresAt = expiresInDays && new Date(now + expiresInDays * DAY);
      const key = await database.transaction(async (tx) => {
        if (mostOfPerson !== undefined) await requireRoom(tx, accountId, mostOfPerson);
        const [row] = await tx.query<ApiKeyRow>(
          `INSERT INTO api_keys (id, account_id, name, key_hash, last_four, created_at, expires_at)
            VALUES ($1, $2, $3, $4, $5, $6, $7)
            RETURNING ${COLUMNS}`,
          [
            ...[randomId('key_', 16), accountId, name, sha256(value), value.slice(-4)],
            ...[new Date(now), expiresAt ?? null],
          ],
        );
        if (row === undefined) throw new Error('INSERT … RETURNING answered no row');
        await record(tx, 'api_key_added', apiKeyFrom(row), origin);
        return apiKeyFrom(row);
      });
      return { key, value };
    },

    async revoke(accountId, id, origin) {
      if (!isAccountId(accountId) || !isApiKeyId(id)) return false;
      const key = await database.transaction(async (tx) => {
        const [row] = await tx.query<ApiKeyRow>(
          `DELETE FROM api_keys WHERE account_id = $1 AND id = $2 RETURNING ${COLUMNS}`,
          [accountId, id],
        );
        if (row) await record(tx, 'api_key_revoked', apiKeyFrom(row), origin);
        return row;
      });
      // For whoever revoked it: the notification takes a moment longer.
      memory.forget();
      return key !== undefined;
    },

    async writeUses(uses) {
      await database.query(
        `UPDATE api_keys k SET last_used_at = used.at
          FROM unnest($1::text[], $2::timestamptz[]) AS used (id, at)
          WHERE k.id = used.id AND (k.last_used_at IS NULL OR k.last_used_at < used.at)`,
        [uses.map(({ id }) => id), uses.map(({ at }) => at)],
      );
    },

    async removeExpired(most) {
      const expired = await select('expires_at <= $1 ORDER BY expires_at LIMIT $2', [
        new Date(clock() - REMEMBER_EXPIRED),
        most,
      ]);
      // A deletion, even of nothing, would make every node forget every key.
      if (expired.length === 0) return 0;
      const ids = expired.map(({ id }) => id);
      await database.query('DELETE FROM api_keys WHERE id = ANY($1)', [ids]);
      return expired.length;
    },
  };

  function record(
    tx: Queries,
    action: 'api_key_added' | 'api_key_revoked',
    { id, accountId, name, lastFour }: ApiKey,
    origin: Origin,
  ): Promise<void> {
    const details = { api_key_id: id, api_key_name: name, last_four: lastFour };
    return activity.record({ action, actor: 'person', accountId, details, origin }, tx);
  }
}

/** @throws Refusal `api_key_invalid` */
function acceptableName(entered: string, expiresInDays: number | undefined): string {
  const problems: Problem[] = [];
  let name = '';
  try {
    name = displayName(entered);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
  }
  if (name === '' || [...name].length > LONGEST_NAME) {
    const message = `Give the key a name of 1 to ${LONGEST_NAME} visible characters.`;
    problems.push({ code: 'name_invalid', message });
  }
  if (expiresInDays !== undefined && !EXPIRY_DAYS.includes(expiresInDays)) {
    const message = `Choose ${EXPIRY_DAYS.join(', ')} days, or no expiry.`;
    problems.push({ code: 'expiry_invalid', message });
  }
  if (problems.length === 0) return name;
  const remedy = problems.map(({ message }) => message).join(' ');
  throw new Refusal('api_key_invalid', 'The key cannot be made like this.', remedy, { problems });
}

function tooMany(limit: number): Refusal {
  return new Refusal(
    'too_many_api_keys',
    limit === 0
      ? 'The operator of this service does not allow new API keys.'
      : `You have ${limit} API keys, which is as many as one person may have.`,
    limit === 0 ? 'Ask the operator.' : 'Revoke one that you no longer use.',
  );
}
