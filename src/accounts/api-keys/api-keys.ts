/** Personal API keys. Each is a private integration that acts as the user who has created it. */
import type { Clock } from '../../base/clock.ts';
import { sha256 } from '../../base/random-id.ts';
import { transactionOf } from '../../storage/account-turns.ts';
import { createCache } from '../../storage/cache.ts';
import type { ChangeFeed } from '../../storage/change-feed.ts';
import { expiryJob } from '../../storage/cleaning.ts';
import type { WriteUses } from '../../storage/last-used.ts';
import { type Page, type PageRequest, pageOf } from '../../storage/pages.ts';
import type { Database, Queries } from '../../storage/queries.ts';
import { type AccessLimit, limitDetails } from '../access/access-limit.ts';
import { createPeople, type People } from '../access/people.ts';
import { isAccountId } from '../account.ts';
import type { Activity, Origin } from '../activity/activity.ts';
import {
  API_KEY_COLUMNS,
  type ApiKey,
  createApiKeyCreation,
  isApiKey,
  isApiKeyId,
  keyActivity,
  type LeakReport,
} from './api-key.ts';

export type ApiKeys = ReturnType<typeof createApiKeys>;

export interface ListedApiKey extends ApiKey {
  readonly email: string;
}

/** For how long the list still shows an expired key, so that users see why an integration stopped working. */
const EXPIRED_KEPT_MS = 30 * 86_400_000;

const keyFromJson = (key: ApiKey): ApiKey => ({
  ...key,
  createdAt: new Date(key.createdAt),
  expiresAt: key.expiresAt && new Date(key.expiresAt),
  lastUsedAt: key.lastUsedAt && new Date(key.lastUsedAt),
});

const SELECT_BY_HASH = `SELECT ${API_KEY_COLUMNS} FROM api_keys WHERE key_hash = $1`;

export function createApiKeys(parts: {
  readonly database: Database;
  readonly people?: Pick<People, 'findWith'>;
  readonly changes: ChangeFeed;
  readonly clock: Clock;
  readonly activity: Activity;
  readonly maxCached?: number | undefined;
}) {
  const { database, changes, clock, activity, maxCached, people = createPeople(parts) } = parts;
  const cache = createCache<ApiKey | undefined>({
    changes,
    clock,
    topics: ['api-keys'],
    ...(maxCached && { maxSize: maxCached }),
  });
  const isActive = ({ expiresAt }: ApiKey): boolean => expiresAt === null || expiresAt.getTime() > clock();

  async function select(where: string, values: readonly unknown[]): Promise<ApiKey[]> {
    return database.query(`SELECT ${API_KEY_COLUMNS} FROM api_keys WHERE ${where}`, values);
  }

  const one = async (isWellFormed: boolean, where: string, values: readonly unknown[]): Promise<ApiKey | undefined> =>
    isWellFormed ? (await select(where, values))[0] : undefined;

  type KeptKey = ApiKey & { readonly hash: string };

  async function remove(
    tx: Queries,
    where: string,
    values: readonly unknown[],
    origin: Origin | undefined,
    leak?: LeakReport,
  ): Promise<readonly KeptKey[]> {
    const rows = await tx.query<KeptKey>(
      `DELETE FROM api_keys WHERE ${where} RETURNING key_hash AS hash, ${API_KEY_COLUMNS}`,
      values,
    );
    for (const row of rows) {
      await activity.record(keyActivity('api_key_revoked', row, origin, leak), tx);
    }
    return rows;
  }

  /** Invalidates cached API keys at once, because the change notification arrives later. */
  function forget(rows: readonly KeptKey[]): void {
    for (const { id, hash } of rows) {
      cache.invalidate('api-keys', hash);
      changes.announce('api-key-ids', id);
    }
  }

  return {
    ...createApiKeyCreation({ database, clock, activity }),
    isActive,

    /** Returns the unexpired key with this value. The caller must check that the user is not suspended. */
    async findByValue(value: string): Promise<ApiKey | undefined> {
      if (!isApiKey(value)) return undefined;
      const hash = sha256(value);
      const key = await cache.get(hash, () => people.findWith(SELECT_BY_HASH, hash, keyFromJson));
      return key && isActive(key) ? key : undefined;
    },

    find: (accountId: string, id: string) =>
      one(isAccountId(accountId) && isApiKeyId(id), 'account_id = $1 AND id = $2', [accountId, id]),
    /** Returns the stored key with this value, even if it has expired. */
    findKept: (value: string) => one(isApiKey(value), 'key_hash = $1', [sha256(value)]),
    /** Returns the API key with this id, of any user, even if the key has expired. */
    findById: (id: string) => one(isApiKeyId(id), 'id = $1', [id]),

    /** Returns all keys of a user, newest first, including those that expired recently. */
    listOf: (accountId: string) => select('account_id = $1 ORDER BY created_at DESC, id', [accountId]),

    /** Lists the keys of one user or of all users, newest first. */
    list: (page: PageRequest, accountId?: string): Promise<Page<ListedApiKey>> =>
      pageOf<ListedApiKey>(
        database,
        {
          select: `SELECT k.*, a.email FROM (SELECT ${API_KEY_COLUMNS} FROM api_keys) k
            JOIN accounts a ON a.id = k."accountId" WHERE a.id = $1 OR $1::text IS NULL`,
          order: ['"createdAt"', 'id'],
          isDescending: true,
          cells: ['id', 'email', 'name', '"lastFour"'],
          values: [accountId ?? null],
        },
        page,
      ),

    /** Without `origin`, the operator acts. @param leak see `keyActivity` @returns false if the user has no such key */
    async revoke(accountId: string, id: string, origin?: Origin, leak?: LeakReport): Promise<boolean> {
      if (!isAccountId(accountId) || !isApiKeyId(id)) return false;
      const revoked = await transactionOf(database, accountId, (tx) =>
        remove(tx, 'account_id = $1 AND id = $2', [accountId, id], origin, leak),
      );
      forget(revoked);
      return revoked.length > 0;
    },

    /** Changes the limit of a key's access, from its next request on. @returns false if this user has no such key */
    async limit(accountId: string, id: string, { places, isReadOnly }: AccessLimit, origin: Origin): Promise<boolean> {
      if (!isAccountId(accountId) || !isApiKeyId(id)) return false;
      const changed = await transactionOf(database, accountId, async (tx) => {
        const rows = await tx.query<KeptKey>(
          `UPDATE api_keys SET limit_places = $3::text[], limit_read_only = $4
            WHERE account_id = $1 AND id = $2 RETURNING key_hash AS hash, ${API_KEY_COLUMNS}`,
          [accountId, id, places, isReadOnly],
        );
        for (const row of rows) {
          const details = { changed: `limit of ${row.name}`, api_key_id: id, ...limitDetails(row) };
          await activity.record({ action: 'account_changed', actor: 'person', accountId, details, origin }, tx);
        }
        return rows;
      });
      forget(changed);
      return changed.length > 0;
    },

    /** Runs in the caller's transaction. @returns the number of revoked keys */
    async revokeAll(accountId: string, { origin, tx }: { origin: Origin; tx: Queries }): Promise<number> {
      const revoked = await remove(tx, 'account_id = $1', [accountId], origin);
      forget(revoked);
      return revoked.length;
    },

    async writeUses(uses: Parameters<WriteUses>[0]): Promise<void> {
      await database.query(
        `UPDATE api_keys k SET last_used_at = used.at
          FROM unnest($1::text[], $2::timestamptz[]) AS used (id, at)
          WHERE k.id = used.id AND (k.last_used_at IS NULL OR k.last_used_at < used.at)`,
        [uses.map(({ id }) => id), uses.map(({ at }) => at)],
      );
    },

    removeExpired: expiryJob(parts, [{ table: 'api_keys', column: 'expires_at' }], EXPIRED_KEPT_MS),
  };
}
