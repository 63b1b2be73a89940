/** Defines how an API key is stored, and creates API keys. A form that is sent twice creates only one key. */
import type { Clock } from '../../base/clock.ts';
import { message } from '../../base/message.ts';
import { formTest, newValue, randomId, sha256 } from '../../base/random-id.ts';
import { type Problem, Refusal } from '../../base/refusal.ts';
import { lockAccount } from '../../storage/account-turns.ts';
import type { Database, Queries } from '../../storage/queries.ts';
import { type AccessLimit, limitDetails, NO_LIMIT } from '../access/access-limit.ts';
import type { Activity, NewActivity, Origin } from '../activity/activity.ts';
import { displayName } from '../display-name.ts';

export interface ApiKey extends AccessLimit {
  readonly id: string;
  readonly accountId: string;
  readonly name: string;
  readonly lastFour: string;
  readonly createdAt: Date;
  /** Null for a key that does not expire. */
  readonly expiresAt: Date | null;
  /** The time is accurate to five minutes if it was read from the database. */
  readonly lastUsedAt: Date | null;
}

export const API_KEY_COLUMNS = `id, account_id AS "accountId", name, last_four AS "lastFour",
  created_at AS "createdAt", expires_at AS "expiresAt", last_used_at AS "lastUsedAt",
  limit_places AS places, limit_read_only AS "isReadOnly"`;

/** True if a value has the form of an API key, with 43 characters of 6 bits: 258 random bits. */
export const isApiKey = formTest('api_key');

/** Check an id with this before a query, because PostgreSQL throws for ids with a NUL byte. */
export const isApiKeyId = (id: string): boolean => /^key_[A-Za-z0-9_-]{16}$/.test(id);

export type LeakReport = Pick<NewActivity, 'actor' | 'details'>;

/** Without `origin` and `leak`, the actor is the operator. @param leak who reported the leaked key, and more details */
export function keyActivity(
  action: 'api_key_added' | 'api_key_revoked',
  { id, accountId, name, lastFour, places, isReadOnly }: ApiKey,
  origin?: Origin,
  leak?: LeakReport,
): NewActivity {
  const actor = leak?.actor ?? (origin ? 'person' : 'operator');
  const details = {
    api_key_id: id,
    api_key_name: name,
    last_four: lastFour,
    ...limitDetails({ places, isReadOnly }),
    ...leak?.details,
  };
  return { action, actor, accountId, details, origin };
}

interface NewApiKey {
  readonly accountId: string;
  readonly name: string;
  /** One of `lifetimesWithin(maxDays)`; undefined for a key that does not expire. */
  readonly expiresInDays: number | undefined;
  /** Maximum lifetime in days. With 0, or if absent, any lifetime is allowed, even no expiry. */
  readonly maxDays?: number;
  readonly limit?: AccessLimit;
  /** Maximum number of the user's active keys, including the new one; absent for no limit. */
  readonly maxOfUser?: number;
}

export interface CreationForm {
  readonly key: string;
  /** Called before the key is stored, so that the value can be shown even if the database's answer is lost. */
  keep(id: string, value: string): Promise<unknown>;
  /** Called with the new key, but not again if the form is sent again. */
  made?(key: ApiKey): void;
}

/** Returns the lifetimes in days that users may choose, the shortest first. */
export function lifetimesWithin(maxDays: number): readonly number[] {
  const longest = maxDays || 365;
  return [...[30, 90].filter((days) => days < longest), longest];
}

const DAY_MS = 86_400_000;
/** Maximum in code points. It is lower than for other names, because a list shows each key in one row. */
const MAX_NAME_LENGTH = 100;

export function createApiKeyCreation(parts: {
  readonly database: Database;
  readonly clock: Clock;
  readonly activity: Activity;
}) {
  const { database, clock, activity } = parts;

  async function requireRoom(tx: Queries, accountId: string, limit: number): Promise<void> {
    const present = await tx.query(
      'SELECT FROM api_keys WHERE account_id = $1 AND (expires_at IS NULL OR expires_at > $2)',
      [accountId, new Date(clock())],
    );
    if (present.length >= limit) throw tooMany(limit);
  }

  async function create(
    { accountId, name: entered, expiresInDays, limit = NO_LIMIT, maxOfUser, maxDays }: NewApiKey,
    form: CreationForm | undefined,
    origin: Origin,
  ): Promise<{ key: ApiKey; value: string }> {
    const name = acceptableName(entered, expiresInDays, maxDays);
    const id = randomId('key_', 16);
    const value = newValue('api_key');
    const now = clock();
    const expiresAt = expiresInDays && new Date(now + expiresInDays * DAY_MS);
    const insert = async (tx: Queries): Promise<ApiKey> => {
      // If the form is sent twice, the second request waits here, and then finds the key of the first one.
      await lockAccount(tx, accountId);
      const [before] = form
        ? await tx.query<ApiKey>(
            `SELECT ${API_KEY_COLUMNS} FROM api_keys WHERE account_id = $1 AND creation_key = $2`,
            [accountId, form.key],
          )
        : [];
      if (before) return before;
      if (maxOfUser !== undefined) await requireRoom(tx, accountId, maxOfUser);
      const [added] = await tx.query<ApiKey>(
        `INSERT INTO api_keys
            (id, account_id, name, key_hash, last_four, created_at, expires_at, creation_key,
              limit_places, limit_read_only)
          VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9::text[], $10)
          RETURNING ${API_KEY_COLUMNS}`,
        [
          id,
          accountId,
          name,
          sha256(value),
          value.slice(-4),
          new Date(now),
          expiresAt ?? null,
          form?.key ?? null,
          limit.places,
          limit.isReadOnly,
        ],
      );
      if (added === undefined) throw new Error('INSERT … RETURNING answered no row');
      await activity.record(keyActivity('api_key_added', added, origin), tx);
      return added;
    };
    const key = await database.inTurn(accountId, async () => {
      await form?.keep(id, value);
      return database.transaction(insert);
    });
    if (key.id === id) form?.made?.(key);
    return { key, value };
  }

  return {
    /**
     * Creates a key. Only this result contains the key's `value`.
     *
     * @throws Refusal `api_key_invalid` with the problems `name_invalid`, `name_secret` and `expiry_invalid`, or
     * `too_many_api_keys`; AccountBusy
     */
    add: (key: NewApiKey, origin: Origin): Promise<{ key: ApiKey; value: string }> => create(key, undefined, origin),
    /** Like `add`, but if the form is sent again, returns the API key that was created the first time. */
    addOnce: async (key: NewApiKey, form: CreationForm, origin: Origin): Promise<ApiKey> =>
      (await create(key, form, origin)).key,
  };
}

function acceptableName(entered: string, expiresInDays: number | undefined, maxDays = 0): string {
  const problems: Problem[] = [];
  let name = '';
  try {
    name = displayName(entered);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    problems.push(...error.problems);
  }
  const isValid = name !== '' && [...name].length <= MAX_NAME_LENGTH;
  if (!isValid && problems.length === 0) {
    problems.push({
      code: 'name_invalid',
      message: `Give the key a name of 1 to ${MAX_NAME_LENGTH} visible characters.`,
      text: message('api-keys.name-invalid', { max: MAX_NAME_LENGTH }),
    });
  }
  const lifetimes = lifetimesWithin(maxDays);
  if (expiresInDays === undefined ? maxDays > 0 : !lifetimes.includes(expiresInDays)) {
    problems.push({
      code: 'expiry_invalid',
      message: `Choose ${lifetimes.join(', ')} days${maxDays > 0 ? '' : ', or no expiry'}.`,
      text: message('api-keys.expiry-invalid', { days: lifetimes.join(', '), isLimited: String(maxDays > 0) }),
    });
  }
  if (problems.length === 0) return name;
  const remedy = problems.map(({ message }) => message).join(' ');
  throw new Refusal('api_key_invalid', 'The API key cannot be created with these values.', remedy, { problems });
}

function tooMany(limit: number): Refusal {
  const [said, remedy] =
    limit === 0
      ? ['The operator of this service does not allow new API keys.', 'Ask the operator.']
      : [`You have reached the limit of ${limit} API keys.`, 'Revoke one that you no longer use.'];
  const problems = [{ code: 'too_many_api_keys', message: said, text: message('api-keys.full', { limit }) }];
  return new Refusal('too_many_api_keys', said, remedy, { problems });
}
